"""See the maps of some heads become one, as torch's layer returns them by default."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

from course_utils.arguments import names_or_numbers, require_weights
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.pictures.average import MAX_HEADS, MAX_SAMPLES, MAX_TOKENS, average_picture
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.shapes import Picture
from course_utils.pictures.svg import picture_html
from course_utils.sliders.controls import make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import html_table

STEPS = ("each head", "on top of each other", "averaged")
LEAST_WIDTH = 560  # pixels of a picture whose labels can still be read


def explore_average(weights: Tensor, *, tokens: Sequence[str] | None = None) -> Explorer:
    """See what the mean over heads keeps of their maps, and what it hides.

    Args:
        weights: (N, H, L, L), up to 2 samples, 4 heads and 4 tokens.
        tokens: L names; left out, the positions.

    Returns:
        An explorer with the control ``step``, one of ``STEPS``. Its state holds ``maps`` (nested
        lists: (N, H, L, L), or the mean, (N, L, L)), ``shape`` and ``fact``.

    Raises:
        ValueError: weights of another shape, that are no weights, or too many to be drawn.
    """
    maps = torch.as_tensor(require_weights(weights, "(N, H, L, L)"))
    if maps.ndim != 4 or maps.shape[2] != maps.shape[3]:
        raise ValueError(f"weights must be (N, H, L, L); got shape {tuple(maps.shape)}")
    for axis, (name, most) in enumerate(
        (("samples", MAX_SAMPLES), ("heads", MAX_HEADS), ("tokens", MAX_TOKENS))
    ):
        if not 1 <= maps.shape[axis] <= most:
            raise ValueError(
                f"weights must hold 1 to {most} {name}, to be drawn; got {maps.shape[axis]}"
            )
    shown = _Average(maps.double(), names_or_numbers(tokens, maps.shape[-1]))
    return Explorer(
        {"step": make_slider("show", [(step, step) for step in STEPS], STEPS[0])},
        compute=shown.compute,
        view=shown.view,
        draw=lambda state: shown.paint([state]),
        describe=shown.describe,
        still=lambda state: shown.paint([shown.compute(STEPS[0]), shown.compute(STEPS[2])]),
    )


@dataclass(frozen=True)
class _Average:
    """The maps of all heads of some samples."""

    maps: Tensor  # (N, H, L, L)
    tokens: list[str]

    def compute(self, step: str) -> dict:
        averaged = step == STEPS[2]
        maps = self.maps.mean(dim=1) if averaged else self.maps
        axes = "(N, L, L)" if averaged else "(N, H, L, L)"
        return {
            "step": step,
            "shape": f"{axes} = {tuple(maps.shape)}",
            "maps": maps.tolist(),
            "fact": self.fact(step),
        }

    def fact(self, step: str) -> str:
        samples, heads = self.maps.shape[:2]
        if step == STEPS[0]:
            count = samples * heads
            return f"{count} maps: {heads} for each sample. In each of them every row sums to 1."
        if step == STEPS[1]:
            return "The mean adds up what stands in one cell, and divides by the number of heads."
        spread = (self.maps.amax(dim=1) - self.maps.amin(dim=1)).max().item()
        return (
            f"One map for each sample, and every row still sums to 1. In one cell the heads were "
            f"{two_decimals(spread)} apart; here nothing shows it."
        )

    def picture(self, state: dict) -> Picture:
        names = [display_token(token) for token in self.tokens]
        step = STEPS.index(state["step"])
        look = {"step": step, "fact": state["fact"], "shape": f"weights: {state['shape']}"}
        return average_picture(self.maps.tolist(), names, **look)

    def view(self, state: dict) -> str:
        names = [escape(display_token(token)) for token in self.tokens]
        tables = []
        for sample, own in enumerate(state["maps"]):
            maps = [own] if state["step"] == STEPS[2] else own
            for head, weights in enumerate(maps):
                which = "mean" if state["step"] == STEPS[2] else f"head {head}"
                rows = [
                    [name, *map(two_decimals, row)]
                    for name, row in zip(names, weights, strict=True)
                ]
                tables.append(html_table(f"sample {sample}, {which}", ["query", *names], rows))
        picture = picture_html(
            self.picture(state), f"Maps of weights: {self.describe(state)}", least=LEAST_WIDTH
        )
        return f'{picture}<div class="ac-unseen">{"".join(tables)}</div>'

    def describe(self, state: dict) -> str:
        return f"{state['step']}, {state['shape']}. {state['fact']}"

    def paint(self, states: Sequence[dict]) -> CourseFigure:
        return paint_pictures(
            [self.picture(state) for state in states],
            titles=[state["step"] for state in states],
            alt="; ".join(map(self.describe, states)),
        )
