"""One row, the scale, one head, copied weights: what else is right, and what else is wrong."""

import math

import pytest
import torch
from solutions.one_head import head_projection
from solutions.parameters import copy_weights
from torch import nn
from torch.nn import functional as F

from course_utils.exercises import (
    CheckFailed,
    check_attention_scale,
    check_copy_weights,
    check_head_projection,
    check_one_row,
)


def loop_row(query, key, value):
    scores = torch.stack([(query * k).sum() for k in key]) / len(query) ** 0.5
    weights = scores.exp() / scores.exp().sum()
    return sum(w * v for w, v in zip(weights, value, strict=True)), weights


def torch_row(query, key, value):
    weights = torch.softmax(key @ query / math.sqrt(len(query)), dim=-1)
    return F.scaled_dot_product_attention(query[None], key, value)[0], weights


def list_row(query, key, value):
    scores = [math.exp(sum((query * k).tolist()) / math.sqrt(len(query))) for k in key]
    weights = [score / sum(scores) for score in scores]
    columns = zip(*value.tolist(), strict=True)
    return [sum(w * v for w, v in zip(weights, c, strict=True)) for c in columns], weights


@pytest.mark.parametrize("fn", [loop_row, torch_row, list_row])
def test_a_row_may_be_written_in_any_way(fn):
    assert check_one_row(fn) is True


def test_a_scale_may_be_a_tensor():
    assert check_attention_scale(lambda d, h: torch.tensor(d / h).rsqrt()) is True


def test_a_row_without_scale_is_named():
    def fn(query, key, value):
        weights = torch.softmax(key @ query, dim=0)
        return weights @ value, weights

    with pytest.raises(CheckFailed) as failed:
        check_one_row(fn)
    assert failed.value.mistakes == ("no-scale",)


def test_a_copy_does_not_share_its_numbers():
    def fn(theirs, ours):
        copy_weights()(theirs, ours)
        ours.out_proj = theirs.out_proj

    with pytest.raises(CheckFailed):
        check_copy_weights(fn)


def test_copying_the_other_way_round_is_refused():
    def fn(theirs, ours):
        projections = (ours.q_proj, ours.k_proj, ours.v_proj)
        theirs.in_proj_weight.copy_(torch.cat([proj.weight for proj in projections]))
        theirs.in_proj_bias.copy_(torch.cat([proj.bias for proj in projections]))
        theirs.out_proj.load_state_dict(ours.out_proj.state_dict())

    with pytest.raises(CheckFailed):
        check_copy_weights(fn)


def test_a_projection_that_is_changed_first_is_judged_as_it_came():
    def fn(proj, num_heads, head):
        nn.init.zeros_(proj.weight)
        nn.init.zeros_(proj.bias)
        return head_projection()(proj, num_heads, head)

    with pytest.raises(CheckFailed):
        check_head_projection(fn)


def test_an_unknown_mistake_is_not_named():
    with pytest.raises(CheckFailed, match="no known mistake") as failed:
        check_attention_scale(lambda d, h: 0.123)
    assert failed.value.mistakes == ()
    assert "embed_dim 8, num_heads 2" in str(failed.value)
