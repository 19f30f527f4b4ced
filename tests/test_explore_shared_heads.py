"""The explorer of shared key/value heads."""

import re

import pytest
import torch
from helpers import assert_close, normal, page
from torch.nn import functional as F

from course_utils.sliders import explore_shared_heads


def test_maps_are_those_of_torch_and_groups_are_neighbours():
    query, key = normal(6, 4, 3), normal(6, 4, 3, seed=1)
    explorer = explore_shared_heads(query, key, num_kv_heads=2)
    slider = explorer.controls["num_kv_heads"]
    assert list(slider.options) == [1, 2, 3, 6]
    for count in slider.options:
        slider.value = count
        state = explorer.state
        means = torch.stack([own.mean(0) for own in key.chunk(count)])  # (H_kv, L, d_h)
        wanted = F.scaled_dot_product_attention(  # with the identity as values: the weights
            query[None],
            means[None],
            torch.eye(4, dtype=torch.float64).expand(1, count, 4, 4),
            is_causal=True,
            enable_gqa=True,
        )
        assert_close(state["weights"], wanted[0])
        assert state["reads"] == [h * count // 6 for h in range(6)]
        assert state["cached_numbers"] == 2 * means[:, 0].numel()
        assert state["unshared_numbers"] == 2 * key[:, 0].numel()


def test_the_view_says_who_shares_and_what_is_kept():
    explorer = explore_shared_heads(normal(4, 3, 5), normal(4, 3, 5, seed=1), num_kv_heads=2)
    facts, *maps = page(explorer).tables
    assert [row[1] for row in facts["rows"]] == ["0–1 | 2–3", "2 · 2 · 5 = 20 numbers", "50%"]
    assert [one["caption"] for one in maps] == [
        f"head {head}, reads k/v {kv}" for head, kv in enumerate((0, 0, 1, 1))
    ]
    assert len(explorer.figure().axes) >= 4
    assert "4 query heads share 2 key/value heads, in groups 0–1 | 2–3; 20 of 40" in repr(explorer)


def test_arguments_are_copied():
    query, key = normal(2, 3, 4), normal(2, 3, 4, seed=1)
    explorer = explore_shared_heads(query, key)
    before = explorer.state["weights"]
    query.zero_()
    key.zero_()
    explorer.controls["num_kv_heads"].value = 1
    explorer.controls["num_kv_heads"].value = 2
    assert explorer.state["weights"] == before


X = normal(4, 3, 2)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: explore_shared_heads([1.0], X), ("query", "torch tensor (H, L, d_h)", "got list")),
        (lambda: explore_shared_heads(X, X[0]), ("key", "(H, L, d_h)", "got")),
        (lambda: explore_shared_heads(X, X[:2]), ("key", "shape of query", "(2, 3, 2)")),
        (lambda: explore_shared_heads(X, X / 0), ("key", "finite", "got")),
        (lambda: explore_shared_heads(X, X, num_kv_heads=3), ("num_kv_heads", "4 query", "got 3")),
        (lambda: explore_shared_heads(X, X, num_kv_heads=0), ("num_kv_heads", "at least 1")),
        (lambda: explore_shared_heads(X, X, tokens=["a"]), ("tokens", "3")),
    ],
)
def test_wrong_arguments(call, parts):
    with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
