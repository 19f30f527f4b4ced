"""Choose a mask and see who may look at whom."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from course_utils.arguments import count_of, names_or_numbers, require_finite
from course_utils.attention import MultiHeadAttention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_heads
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.sliders.controls import make_slider, make_switch
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.layer import head_titles, own_copy
from course_utils.sliders.stills import MAX_STILL_MAPS
from course_utils.sliders.tables import (
    facts_table,
    heat_tables,
    html_table,
    side_by_side,
    token_html,
)

MASKS = ("none", "causal", "padding", "causal + padding")


def explore_masks(
    layer: MultiHeadAttention | nn.MultiheadAttention,
    x: Tensor,
    *,
    tokens: Sequence[str] | None = None,
) -> Explorer:
    """Lay a mask over one sentence, the right way round or not, and see who sees whom.

    The tokens from ``length`` on become padding: vectors of zeros, called "pad". The layer is run
    in eval mode, and reads a mask as True = may attend.

    Args:
        layer: ours or torch's.
        x: (1, L, D), one sentence.
        tokens: L names; left out, the positions.

    Returns:
        An explorer with the controls ``mask``, ``length`` (L - 2 at first), ``inverted`` (the
        mask is handed over as True = blocked) and ``averaged``; its state holds ``weights``
        (nested lists, (H, L, L), or (1, L, L) when averaged), ``row_sums`` ((H, L) or (1, L)),
        ``blocked`` ((L, L), as the layer reads the mask), ``sees`` (how many keys each query may
        attend to), ``blind`` (queries that may attend to nothing), and ``to_padding`` and
        ``to_later``: the share of their weight that real tokens give to padding and to later real
        tokens, on average over tokens and heads.

    Raises:
        ValueError: a layer, input or token list that does not fit.
    """
    layer, weights, x = own_copy(layer, x)
    if len(x) != 1:
        raise ValueError(f"x must be one sentence, (1, L, D); got shape {tuple(x.shape)}")
    _, num_heads, seq_len, _ = weights.shape
    names = names_or_numbers(tokens, seq_len)
    place = torch.arange(seq_len)
    earlier = place[:, None] >= place  # (query, key): the token itself, and those before

    def compute(mask: str, length: int, inverted: bool, averaged: bool) -> dict:
        real = place < length  # (token,)
        attend = torch.ones(seq_len, seq_len, dtype=torch.bool)
        if "causal" in mask:
            attend &= earlier
        if "padding" in mask:
            attend &= real
        if inverted and mask != "none":
            attend = ~attend
        padded = x.clone()
        padded[:, length:] = 0
        with torch.no_grad():
            _, weights = layer(padded, mask=attend)  # (1, H, L, L)
        require_finite("weights", weights)  # scores may overflow
        mean = weights[0].mean(dim=0)[:length]  # (real query, key)
        weights = weights.mean(dim=1) if averaged else weights[0]
        sees = attend.sum(-1)
        return {
            "mask": mask,
            "length": length,
            "inverted": inverted,
            "averaged": averaged,
            "weights": weights.tolist(),
            "row_sums": weights.sum(-1).tolist(),
            "blocked": (~attend).tolist(),
            "sees": sees.tolist(),
            "blind": place[sees == 0].tolist(),
            "to_padding": mean[:, length:].sum().item() / max(length, 1),
            "to_later": mean[:, :length].triu(1).sum().item() / max(length, 1),
        }

    def shown_tokens(state: dict) -> list[str]:
        return names[: state["length"]] + ["pad"] * (seq_len - state["length"])

    def titles(state: dict) -> list[str]:
        return head_titles(num_heads, state["averaged"])

    def blind_rows(state: dict, name: Callable[[str], str]) -> str:
        if len(state["blind"]) == seq_len:
            return "all rows"
        tokens = shown_tokens(state)
        return ", ".join(f"{name(tokens[i])} (row {i})" for i in state["blind"])

    def view(state: dict) -> str:
        tokens = shown_tokens(state)
        facts = [
            [
                "the mask was built as",
                "True = blocked" if state["inverted"] else "True = may attend",
            ],
            ["the layer reads it as", "True = may attend"],
            ["blocked cells, ×", f"{sum(map(sum, state['blocked']))} of {seq_len**2}"],
            ["share of real tokens' weight on padding", two_decimals(state["to_padding"])],
            ["share on later tokens", two_decimals(state["to_later"])],
        ]
        sums = [
            [
                token_html(token),
                f"{sees} of {seq_len}" if sees else "⚠ nothing",
                *map(two_decimals, row_sums),
            ]
            for token, sees, row_sums in zip(
                tokens, state["sees"], zip(*state["row_sums"], strict=True), strict=True
            )
        ]
        blind = ""
        if state["blind"]:
            blind = (
                f'<p class="ac-note">⚠ May attend to nothing: {blind_rows(state, token_html)}. '
                "Weights 0 here, as this course defines it; NaN from nn.MultiheadAttention with "
                "need_weights=True.</p>"
            )
        return (
            side_by_side(
                *heat_tables(
                    state["weights"], tokens, tokens, titles(state), blocked=state["blocked"]
                ),
                html_table("rows sum to", ["query", "may see", *titles(state)], sums),
                facts_table("what the mask does", facts),
            )
            + blind
        )

    def draw(state: dict) -> CourseFigure:
        tokens = shown_tokens(state)
        return plot_heads(
            state["weights"], query_tokens=tokens, titles=titles(state), blocked=state["blocked"]
        )

    def describe(state: dict) -> str:
        way = ", built as True = blocked" if state["inverted"] else ""
        heads = ("mean of " if state["averaged"] else "") + count_of(num_heads, "head")
        return (
            f"mask: {state['mask']}{way}, {state['length']} of {seq_len} tokens real, "
            f"{heads}; {sum(map(sum, state['blocked']))} of {seq_len**2} cells "
            f"blocked; on padding {state['to_padding']:.2f}, on later tokens "
            f"{state['to_later']:.2f}; may attend to nothing: "
            f"{blind_rows(state, display_token) or 'no row'}"
        )

    def still(state: dict) -> CourseFigure:
        """All masks on the first heads."""
        states = [compute(mask, state["length"], state["inverted"], False) for mask in MASKS]
        heads = range(min(num_heads, MAX_STILL_MAPS // len(MASKS)))
        maps = [(state, head) for state in states for head in heads]
        figure = plot_heads(
            [state["weights"][head] for state, head in maps],
            query_tokens=shown_tokens(state),
            titles=[f"{state['mask']}, head {head}" for state, head in maps],
            blocked=[state["blocked"] for state, _ in maps],
        )
        figure.alt = ". ".join(map(describe, states))
        return figure

    return Explorer(
        {
            "mask": make_slider("mask", [(name, name) for name in MASKS], MASKS[0]),
            "length": make_slider("real tokens", range(seq_len + 1), max(seq_len - 2, 1)),
            "inverted": make_switch("built as True = blocked", False),
            "averaged": make_switch("average over heads", False),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )
