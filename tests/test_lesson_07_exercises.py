"""Heads in another order, and what a layer costs: what else is right, and what else is wrong."""

import pytest
import torch
from solutions.cost import layer_cost
from solutions.parameters import permute_heads

from course_utils.attention import MultiHeadAttention
from course_utils.exercises import CheckFailed, check_layer_cost, check_permute_heads


@torch.no_grad()
def test_the_right_answer_leaves_the_output_as_it_was():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 4), torch.randn(2, 5, 12)
    before, maps = layer(x)
    permute_heads()(layer, [2, 0, 3, 1])
    after, moved = layer(x)
    assert torch.allclose(before, after, atol=1e-6)
    assert torch.allclose(moved, maps[:, [2, 0, 3, 1]], atol=1e-6)


def split_by_head(layer, order):
    """Another right way: new parameters, not numbers in the old ones."""
    h = layer.num_heads
    for proj in (layer.q_proj, layer.k_proj, layer.v_proj):
        for name in ("weight", "bias"):
            parts = getattr(proj, name).chunk(h)
            setattr(proj, name, torch.nn.Parameter(torch.cat([parts[old] for old in order])))
    blocks = layer.out_proj.weight.chunk(h, dim=1)
    layer.out_proj.weight = torch.nn.Parameter(torch.cat([blocks[i] for i in order], dim=1))


def test_heads_may_be_moved_in_any_way():
    assert check_permute_heads(split_by_head) is True


def test_costs_may_be_any_kind_of_number():
    def fn(n, length, d, h):
        costs = torch.tensor(layer_cost()(n, length, d, h))
        return [costs[0], costs[1].item(), float(costs[2])]

    assert check_layer_cost(fn) is True


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda costs: costs[:2], "only two results came back; expected parameters, multiply-adds"),
        (lambda costs: costs[0], "only the first of the results"),
        (lambda costs: (*costs[:2], None), "stored weights is of type NoneType; expected a number"),
        (lambda costs: (3, "5", costs[2]), "multiply-adds is of type str; expected a number"),
        (lambda costs: [[1], *costs[1:]], "parameters is of type list; expected a number"),
        (lambda costs: (torch.zeros(2), 1, 1), r"a tensor of shape \(2,\); expected a number"),
        (lambda costs: (*costs, 1), "returned 4 things"),
        (lambda costs: dict(zip("abc", costs, strict=True)), "return three numbers, not a dict"),
        (lambda costs: None, "your code returned None"),
        (lambda costs: (*costs[:2], 7), "  multiply-adds: right\n  stored weights: not right"),
    ],
)
def test_what_came_back_is_said_by_its_name(change, said):
    with pytest.raises(CheckFailed, match=said) as failed:
        check_layer_cost(lambda *sizes: change(layer_cost()(*sizes)))
    assert "input: batch_size 2, seq_len 3, embed_dim 8, num_heads 2" in str(failed.value) or (
        failed.value.mistakes
    )


def test_a_layer_that_lost_a_part_is_said_in_the_courses_words():
    def fn(layer, order):
        layer.q_proj = torch.nn.Linear(layer.embed_dim, layer.embed_dim, bias=False)

    with pytest.raises(CheckFailed, match=r"after your code, the layer has no q_proj\.bias"):
        check_permute_heads(fn)


@pytest.mark.parametrize(
    ("part", "axis", "said"),
    [
        (
            "q_proj.weight",
            0,
            "q_proj.weight is (2, 8); it was (8, 8). "
            "order counts heads, not features: each head is d_h rows.",
        ),
        (
            "v_proj.bias",
            0,
            "v_proj.bias is (2,); it was (8,). "
            "order counts heads, not features: each head is d_h numbers.",
        ),
        (
            "out_proj.weight",
            1,
            "out_proj.weight is (8, 2); it was (8, 8). "
            "order counts heads, not features: each head is d_h columns.",
        ),
    ],
)
def test_order_read_as_features_is_said(part, axis, said):
    def fn(layer, order):
        module, name = part.split(".")
        x = layer.get_parameter(part)
        new = torch.nn.Parameter(x[order] if axis == 0 else x[:, order])
        setattr(layer.get_submodule(module), name, new)

    with pytest.raises(CheckFailed) as failed:
        check_permute_heads(fn)
    assert str(failed.value).splitlines()[0] == f"✗ permute_heads: after your code, {said}"


def test_another_shape_is_said_without_a_guess():
    def fn(layer, order):
        layer.k_proj = torch.nn.Linear(layer.embed_dim, 3)

    with pytest.raises(CheckFailed) as failed:
        check_permute_heads(fn)
    assert "after your code, k_proj.weight is (3, 8); it was (8, 8).\n" in str(failed.value)


def test_a_new_layer_in_place_of_the_old_one_is_refused():
    def fn(layer, order):
        return MultiHeadAttention(layer.embed_dim, layer.num_heads)

    with pytest.raises(CheckFailed) as failed:
        check_permute_heads(fn)
    assert failed.value.explanations == (("heads-not-moved",),)
