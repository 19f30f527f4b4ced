"""What a check can see of an unknown mistake, and of gradients."""

import math

import pytest
import torch
from learners import Base, by_einsum, failure

from course_utils import attention as ours
from course_utils.exercises import (
    check_merge_heads,
    check_multi_head_attention,
    check_scaled_dot_product_attention,
)


def test_numpy_on_the_way_is_said_where_gradients_are_wanted():
    def fn(x):
        heads = x.numpy()
        return torch.from_numpy(heads.swapaxes(1, 2).reshape(len(x), x.shape[2], -1))

    said = str(failure(check_merge_heads, fn))
    assert said.startswith(
        "✗ merge_heads: the numbers are right, but your code cannot take tensors that need a "
        "gradient.\n  in your line "
    )
    assert ": heads = x.numpy()\n  Look at: NumPy on the way" in said
    assert "RuntimeError" not in said


def test_another_error_with_gradients_is_told_as_it_is():
    def fn(x):
        if x.requires_grad:
            raise ValueError("no gradients here")
        return ours.merge_heads(x)

    said = str(failure(check_merge_heads, fn))
    assert "cannot take tensors that need a gradient" in said
    assert "ValueError: no gradients here" in said
    assert "NumPy" not in said


def test_gradients_that_cannot_be_used_are_noted(capsys):
    def minus_infinity(query, key, value, mask=None):
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1).nan_to_num()
        return weights @ value, weights

    def in_place(query, key, value, mask=None):
        weights = by_einsum(query, key, value, mask)[1].exp()
        weights.log_()
        return weights @ value, weights

    assert check_scaled_dot_product_attention(minus_infinity)
    assert "; but gradients are NaN where a whole row is blocked" in capsys.readouterr().out
    assert check_scaled_dot_product_attention(in_place)
    assert "; but backward() fails" in capsys.readouterr().out


def test_what_is_wrong_with_a_mask_only_is_said():
    def fn(query, key, value, mask=None):
        output, weights = by_einsum(query, key, value, mask)
        return output, weights if mask is None else weights + 0.1

    failed = failure(check_scaled_dot_product_attention, fn)
    assert failed.mistakes == ()
    assert "rows of weights do not sum to 1" in str(failed)
    assert "Without a mask, everything is right." in str(failed)
    assert "is a size fixed" not in str(failed)


def test_rows_that_sum_to_1_where_none_should_are_said():
    def fn(query, key, value, mask=None):
        output, weights = by_einsum(query, key, value, mask)
        if mask is not None:
            weights = weights**2 + 0.5 * (weights.sum(-1, keepdim=True) == 0)
            weights = weights / weights.sum(-1, keepdim=True)
        return output, weights

    failed = failure(check_scaled_dot_product_attention, fn)
    assert "all rows of weights sum to 1, even where a query may see nothing" in str(failed)
    assert "do not sum to 1" not in str(failed)


class Strange(Base):
    """Wrong in a way that no exercise knows."""

    def change(self, output, weights):
        return output + 0.1, weights

    def attend(self, *inputs):
        return self.change(*super().attend(*inputs))


class Leaking(Strange):
    def change(self, output, weights):
        return output.cumsum(0), weights


class NotANumber(Strange):
    def change(self, output, weights):
        return output.log(), weights


class ColumnsSumToOne(Strange):
    def change(self, output, weights):
        return output, (weights * 2).softmax(dim=1)


class AnotherShape(Strange):
    def change(self, output, weights):
        return output[:, :2], weights.flatten(1)


class Random(Strange):
    def change(self, output, weights):
        return output + torch.rand(output.shape), weights


@pytest.mark.parametrize(
    ("cls", "seen"),
    [
        (Strange, ["output: 0 of its 48 numbers are right", "weights: 36 of its 36 numbers"]),
        (Leaking, ["samples mix: a change of sample 0 alone"]),
        (NotANumber, ["output holds NaN"]),
        (ColumnsSumToOne, ["rows of weights do not sum to 1; over the head axis they do"]),
        (
            AnotherShape,
            ["output has shape (2, 2, 8), expected (2, 3, 8)", "weights has shape (2, 18"],
        ),
        (Random, ["the same input gives another result each time"]),
    ],
)
def test_an_unknown_mistake_is_described_and_not_named(cls, seen):
    failed = failure(check_multi_head_attention, cls)
    assert failed.mistakes == failed.explanations == ()
    assert all(sentence in str(failed) for sentence in seen)
    assert ("samples mix" in str(failed)) == (cls is Leaking)
