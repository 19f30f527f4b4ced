"""Let a query ask louder and see its new vector walk through the plane."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.arguments import names_or_numbers, require_finite, require_position
from course_utils.attention import scaled_dot_product_attention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.plane import values_plane
from course_utils.pictures.shapes import Picture
from course_utils.pictures.svg import picture_html
from course_utils.sliders.controls import WIDE, make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import (
    html_table,
    side_by_side,
    token_html,
    vector_text,
    weight_bar,
)

# Of the query. The output moves most while they are small.
FACTORS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.7, 2, 2.5, 3)
STILL_FACTORS = (0, 0.3, 1)
WALK_STEPS = 60  # of the dotted line


def explore_mixture(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    tokens: Sequence[str] | None = None,
    chosen: int = 0,
) -> Explorer:
    """Multiply one query by 0 to 3 and see which mixture of the values comes out.

    Each value is an arrow in the plane, and its share of the output a piece of a chain.

    Args:
        query: (L, d), one head of one sample.
        key: (L, d).
        value: (L, 2).
        tokens: L names; left out, the positions.
        chosen: the position of the query.

    Returns:
        An explorer with the control ``factor``, one of ``FACTORS``. Its state holds ``scores``,
        scaled and times the factor, and ``weights`` (one number per key), ``values`` and ``shares``
        (L, 2) and ``output`` (2 numbers).

    Raises:
        ValueError: shapes that do not fit together, values that are not in a plane, numbers that
            are not finite, another number of tokens, or no such query.
    """
    scaled_dot_product_attention(query, key, value)  # refuses what does not fit together
    if query.ndim != 2:
        raise ValueError(f"query must be (L, d), one head; got shape {tuple(query.shape)}")
    if value.shape[1] != 2:
        raise ValueError(f"value must be (L, 2), to lie in a plane; got {tuple(value.shape)}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        require_finite(name, x)
    require_position("chosen", chosen, len(query))
    scores = query.detach()[chosen] @ key.detach().T / math.sqrt(query.shape[1])  # (key,)
    require_finite("query times key", scores * max(FACTORS))  # the product may overflow
    value = value.detach().clone()
    factors = torch.linspace(0, max(FACTORS), WALK_STEPS, dtype=scores.dtype)
    outputs = torch.softmax(factors[:, None] * scores, dim=-1) @ value  # (step, 2)
    shown = _Mixture(
        scores=scores,
        value=value,
        # The same at every factor; by the weights it would change where all are equal.
        order=scores.argsort(descending=True, stable=True).tolist(),
        walk=outputs.tolist(),
        name=names_or_numbers(tokens, len(query))[chosen],
        key_tokens=names_or_numbers(tokens, len(key)),
    )
    stops = [(f"{factor:g}", factor) for factor in FACTORS]
    return Explorer(
        {"factor": make_slider("query ×", stops, 1, width=WIDE)},
        compute=shown.compute,
        view=shown.view,
        draw=lambda state: shown.paint([state]),
        describe=shown.describe,
        still=shown.still,
    )


@dataclass(frozen=True)
class _Mixture:
    """One query of one head."""

    scores: Tensor  # (L_k,), scaled
    value: Tensor  # (L_k, 2)
    order: list[int]  # of the shares, the largest first
    walk: list[list[float]]  # (step, 2), the outputs for factors from 0 on
    name: str  # of the query
    key_tokens: list[str]

    def compute(self, factor: float) -> dict:
        weights = torch.softmax(factor * self.scores, dim=-1)
        return {
            "factor": factor,
            "scores": (factor * self.scores).tolist(),
            "weights": weights.tolist(),
            "values": self.value.tolist(),
            "shares": (weights[:, None] * self.value).tolist(),
            "output": (weights @ self.value).tolist(),
        }

    def picture(self, state: dict, **size) -> Picture:
        return values_plane(
            self.key_tokens,
            state["values"],
            state["weights"],
            name=self.name,
            order=self.order,
            walk=self.walk,
            **size,
        )

    def view(self, state: dict) -> str:
        columns = state["scores"], state["weights"], state["shares"]
        rows = [
            [token_html(token), two_decimals(score), weight_bar(weight), vector_text(share)]
            for token, score, weight, share in zip(self.key_tokens, *columns, strict=True)
        ]
        total = ["sum", "", two_decimals(sum(state["weights"])), vector_text(state["output"])]
        return side_by_side(
            picture_html(
                self.picture(state), f"The values as arrows in the plane: {self.describe(state)}"
            ),
            html_table(
                f"query of {token_html(self.name)} × {state['factor']:g}",
                ["key", "score", "weight", "weight × value"],
                rows,
                total,
            ),
        )

    def describe(self, state: dict) -> str:
        pairs = sorted(
            zip(state["weights"], self.key_tokens, strict=True), key=lambda pair: -pair[0]
        )
        shares = ", ".join(f"{display_token(key)} {weight:.2f}" for weight, key in pairs[:3])
        return (
            f"query × {state['factor']:g}: “{display_token(self.name)}” takes {shares}; "
            f"output {vector_text(state['output'])}"
        )

    def paint(self, states: Sequence[dict], **size) -> CourseFigure:
        return paint_pictures(
            [self.picture(state, **size) for state in states],
            titles=[f"query × {s['factor']:g}: {vector_text(s['output'])}" for s in states],
            alt="; ".join(map(self.describe, states)),
            columns=len(states),
        )

    def still(self, _state: dict) -> CourseFigure:
        states = list(map(self.compute, STILL_FACTORS))
        return self.paint(states, width=360, height=250, legend=False)
