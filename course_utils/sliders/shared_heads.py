"""Choose how many key/value heads the query heads share, and see what that keeps and changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.arguments import (
    count_of,
    divisors,
    names_or_numbers,
    require_finite,
    require_tensor,
    require_whole,
)
from course_utils.attention import scaled_dot_product_attention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_heads
from course_utils.heatmaps.texts import describe_weights
from course_utils.sliders.controls import make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import facts_table, heat_tables, maps_height, side_by_side


def explore_shared_heads(
    query: Tensor,
    key: Tensor,
    *,
    num_kv_heads: int | None = None,
    tokens: Sequence[str] | None = None,
) -> Explorer:
    """Change the number of key/value heads, and see who shares, the cache and the causal maps.

    The query heads stay as they are. The key of a group is the mean of the keys of its heads.

    Args:
        query: (H, L, d_h).
        key: (H, L, d_h), one per query head, before any are shared.
        num_kv_heads: H_kv, where the slider starts, a divisor of H; left out, H.
        tokens: L names; left out, the positions.

    Returns:
        An explorer with the control ``num_kv_heads``. Its state holds ``reads`` (H numbers: the
        key/value head of each query head), ``cached_numbers`` (per token and layer),
        ``unshared_numbers`` (the same with H_kv = H), ``weights`` (nested lists, (H, L, L)).

    Raises:
        ValueError: tensors of another rank, shape or type, or that are not finite; num_kv_heads
            does not divide H; a token list that does not fit.
    """
    for name, x in (("query", query), ("key", key)):
        require_tensor(name, x, "(H, L, d_h)", ndim=3)
        require_finite(name, x)
    if key.shape != query.shape:
        raise ValueError(
            f"key must have the shape of query; got query {tuple(query.shape)} and key "
            f"{tuple(key.shape)}"
        )
    num_heads, seq_len, _ = query.shape
    counts = divisors(num_heads)
    start = num_heads if num_kv_heads is None else require_whole("num_kv_heads", num_kv_heads)
    if start not in counts:
        raise ValueError(
            f"num_kv_heads must divide the {num_heads} query heads, got {start}; "
            f"try {', '.join(map(str, counts))}"
        )
    query, key = (x.detach().double().cpu() for x in (query, key))
    shown = _SharedHeads(query.clone(), key.clone(), names_or_numbers(tokens, seq_len))
    shown.compute(1)  # scores may overflow: then the arguments are refused, not a move
    return Explorer(
        {"num_kv_heads": make_slider("key/value heads", counts, start)},
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
    )


@dataclass(frozen=True)
class _SharedHeads:
    """The queries and keys of all heads, and the names of their tokens."""

    query: Tensor  # (H, L, d_h)
    key: Tensor  # (H, L, d_h)
    tokens: list[str]

    @property
    def causal(self) -> Tensor:
        return torch.ones(len(self.tokens), len(self.tokens)).tril().bool()

    def compute(self, num_kv_heads: int) -> dict:
        num_heads, _, head_dim = self.query.shape
        group = num_heads // num_kv_heads
        shared = self.key.unflatten(0, (num_kv_heads, group)).mean(dim=1)  # (H_kv, L, d_h)
        repeated = shared.repeat_interleave(group, dim=0)  # (H, L, d_h)
        _, weights = scaled_dot_product_attention(self.query, repeated, repeated, self.causal)
        require_finite("weights", weights)
        return {
            "num_kv_heads": num_kv_heads,
            "reads": [head // group for head in range(num_heads)],
            "cached_numbers": 2 * num_kv_heads * head_dim,
            "unshared_numbers": 2 * num_heads * head_dim,
            "weights": weights.tolist(),
        }

    def titles(self, state: dict) -> list[str]:
        return [f"head {head}, reads k/v {kv}" for head, kv in enumerate(state["reads"])]

    def groups(self, state: dict) -> list[str]:
        """The query heads of each key/value head, such as "0–3"."""
        size = len(self.query) // state["num_kv_heads"]
        firsts = range(0, len(self.query), size)
        return [f"{i}–{i + size - 1}" if size > 1 else str(i) for i in firsts]

    def view(self, state: dict) -> str:
        count, width = state["num_kv_heads"], self.query.shape[-1]
        cached, unshared = state["cached_numbers"], state["unshared_numbers"]
        facts = [
            ["query heads that share", " | ".join(self.groups(state))],
            ["cache per token and layer", f"2 · {count} · {width} = {cached:,} numbers"],
            ["of the cache without sharing", f"{cached / unshared:.0%}"],
        ]
        height = maps_height(len(self.query), self.tokens, self.tokens) + 90  # facts are above
        return side_by_side(
            facts_table("what is kept", facts, strip=True),
            *heat_tables(
                state["weights"],
                self.tokens,
                self.tokens,
                self.titles(state),
                blocked=(~self.causal).tolist(),
            ),
            height=height,
        )

    def draw(self, state: dict) -> CourseFigure:
        return plot_heads(
            state["weights"],
            query_tokens=self.tokens,
            titles=self.titles(state),
            blocked=~self.causal,
        )

    def describe(self, state: dict) -> str:
        first = torch.tensor(state["weights"][0]).numpy()
        return (
            f"{count_of(len(self.query), 'query head')} share "
            f"{count_of(state['num_kv_heads'], 'key/value head')}, in groups "
            f"{' | '.join(self.groups(state))}; {state['cached_numbers']:,} of "
            f"{state['unshared_numbers']:,} numbers cached per token and layer; head 0: "
            f"{describe_weights(first, self.tokens, self.tokens)}"
        )
