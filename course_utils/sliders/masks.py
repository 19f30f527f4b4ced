"""Choose a mask and see who may look at whom."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_utils.arguments import count_of, names_or_numbers, require_finite
from course_utils.attention import MultiHeadAttention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_heads
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.sliders.controls import make_buttons, make_slider, make_switch
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
        mask is handed over as True = blocked) and ``averaged``. Its state holds ``weights``
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
    shown = _Masks(layer, x, names_or_numbers(tokens, seq_len), num_heads)
    return Explorer(
        {
            "mask": make_buttons("mask", MASKS, MASKS[0]),
            "length": make_slider("real tokens", range(seq_len + 1), max(seq_len - 2, 1)),
            "inverted": make_switch("built as True = blocked", False),
            "averaged": make_switch("average over heads", False),
        },
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
    )


@dataclass(frozen=True)
class _Masks:
    """A layer and one sentence, over which masks are laid."""

    layer: MultiHeadAttention
    x: Tensor  # (1, L, D)
    names: list[str]  # one per token
    num_heads: int

    def attend(self, mask: str, length: int, inverted: bool) -> Tensor:
        """The mask as the layer reads it, (L, L), True = may attend."""
        position = torch.arange(len(self.names))
        attend = torch.ones(len(position), len(position), dtype=torch.bool)
        if "causal" in mask:
            attend &= position[:, None] >= position  # the token itself, and those before it
        if "padding" in mask:
            attend &= position < length
        return ~attend if inverted and mask != "none" else attend

    def compute(self, mask: str, length: int, inverted: bool, averaged: bool) -> dict:
        attend = self.attend(mask, length, inverted)
        padded = self.x.clone()
        padded[:, length:] = 0
        with torch.no_grad():
            _, weights = self.layer(padded, mask=attend)  # (1, H, L, L)
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
            "blind": (sees == 0).nonzero().flatten().tolist(),
            "to_padding": mean[:, length:].sum().item() / max(length, 1),
            "to_later": mean[:, :length].triu(1).sum().item() / max(length, 1),
        }

    def tokens(self, state: dict) -> list[str]:
        """The names as they are shown: padding has lost its own."""
        return self.names[: state["length"]] + ["pad"] * (len(self.names) - state["length"])

    def titles(self, state: dict) -> list[str]:
        return head_titles(self.num_heads, state["averaged"])

    def blocked_cells(self, state: dict) -> str:
        return f"{sum(map(sum, state['blocked']))} of {len(self.names) ** 2}"

    def blind_rows(self, state: dict, name: Callable[[str], str]) -> str:
        if len(state["blind"]) == len(self.names):
            return "all rows"
        tokens = self.tokens(state)
        return ", ".join(f"{name(tokens[i])} (row {i})" for i in state["blind"])

    def view(self, state: dict) -> str:
        tokens, titles = self.tokens(state), self.titles(state)
        note = ""
        if state["blind"]:
            note = (
                f'<p class="ac-note">⚠ May attend to nothing: {self.blind_rows(state, token_html)}'
                ". Weights 0 here, as this course defines it; NaN from nn.MultiheadAttention with "
                "need_weights=True.</p>"
            )
        return (
            side_by_side(
                *heat_tables(state["weights"], tokens, tokens, titles, blocked=state["blocked"]),
                html_table("rows sum to", ["query", "may see", *titles], self.sums(state)),
                facts_table("what the mask does", self.facts(state)),
            )
            + note
        )

    def sums(self, state: dict) -> list[list[str]]:
        """For each query: its name, how many keys it may see, and the sum of its row per map."""
        row_sums = zip(*state["row_sums"], strict=True)
        return [
            [
                token_html(token),
                f"{sees} of {len(self.names)}" if sees else "⚠ nothing",
                *map(two_decimals, own),
            ]
            for token, sees, own in zip(self.tokens(state), state["sees"], row_sums, strict=True)
        ]

    def facts(self, state: dict) -> list[list[str]]:
        built_as = "True = blocked" if state["inverted"] else "True = may attend"
        return [
            ["the mask was built as", built_as],
            ["the layer reads it as", "True = may attend"],
            ["blocked cells, ×", self.blocked_cells(state)],
            ["share of real tokens' weight on padding", two_decimals(state["to_padding"])],
            ["share on later tokens", two_decimals(state["to_later"])],
        ]

    def draw(self, state: dict) -> CourseFigure:
        return plot_heads(
            state["weights"],
            query_tokens=self.tokens(state),
            titles=self.titles(state),
            blocked=state["blocked"],
        )

    def describe(self, state: dict) -> str:
        way = ", built as True = blocked" if state["inverted"] else ""
        heads = ("mean of " if state["averaged"] else "") + count_of(self.num_heads, "head")
        return (
            f"mask: {state['mask']}{way}, {state['length']} of {len(self.names)} tokens real, "
            f"{heads}; {self.blocked_cells(state)} cells blocked; on padding "
            f"{state['to_padding']:.2f}, on later tokens {state['to_later']:.2f}; "
            f"may attend to nothing: {self.blind_rows(state, display_token) or 'no row'}"
        )

    def still(self, state: dict) -> CourseFigure:
        """All masks on the first heads."""
        states = [self.compute(mask, state["length"], state["inverted"], False) for mask in MASKS]
        heads = range(min(self.num_heads, MAX_STILL_MAPS // len(MASKS)))
        maps = [(state, head) for state in states for head in heads]
        figure = plot_heads(
            [state["weights"][head] for state, head in maps],
            query_tokens=self.tokens(state),
            titles=[f"{state['mask']}, head {head}" for state, head in maps],
            blocked=[state["blocked"] for state, _ in maps],
        )
        figure.alt = ". ".join(map(self.describe, states))
        return figure
