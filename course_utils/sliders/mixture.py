"""Let a query ask louder and see its new vector walk through the plane."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.arguments import names_or_numbers, require_finite
from course_utils.attention import scaled_dot_product_attention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.plane import values_plane
from course_utils.pictures.shapes import Picture
from course_utils.pictures.svg import picture_html
from course_utils.sliders.controls import make_slider
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
        An explorer with the control ``factor``, one of ``FACTORS``; its state holds ``scores``,
        scaled and times the factor, ``weights`` (both one number per key), ``values`` and
        ``shares`` (both (L, 2)) and ``output`` (2 numbers).

    Raises:
        ValueError: shapes that do not fit together, values that are not in the plane, numbers that
            are not finite, another number of tokens, or no such query.
    """
    scaled_dot_product_attention(query, key, value)  # refuses what does not fit together
    if query.ndim != 2:
        raise ValueError(f"query must be (L, d), one head; got shape {tuple(query.shape)}")
    if value.shape[1] != 2:
        raise ValueError(f"value must be (L, 2), to be drawn in a plane; got {tuple(value.shape)}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        require_finite(name, x)
    names = names_or_numbers(tokens, len(query))
    key_names = names_or_numbers(tokens, len(key))
    if isinstance(chosen, bool) or chosen not in range(len(query)):
        raise ValueError(f"chosen must be from 0 to {len(query) - 1}, got {chosen!r}")
    scores = query[chosen].detach() @ key.detach().T / math.sqrt(query.shape[1])  # (key,)
    require_finite("query times key", scores)
    values = value.detach().clone()
    name = names[chosen]
    order = scores.argsort(descending=True, stable=True).tolist()
    steps = torch.linspace(0, max(FACTORS), WALK_STEPS, dtype=scores.dtype)
    walk = (torch.softmax(steps[:, None] * scores, dim=-1) @ values).tolist()

    def compute(factor: float) -> dict:
        weights = torch.softmax(factor * scores, dim=-1)
        return {
            "factor": factor,
            "scores": (factor * scores).tolist(),
            "weights": weights.tolist(),
            "values": values.tolist(),
            "shares": (weights[:, None] * values).tolist(),
            "output": (weights @ values).tolist(),
        }

    def picture(state: dict, **size: float) -> Picture:
        own = key_names, state["values"], state["weights"]
        return values_plane(*own, name=name, order=order, walk=walk, **size)

    def view(state: dict) -> str:
        rows = [
            [token_html(token), two_decimals(score), weight_bar(weight), vector_text(share)]
            for token, score, weight, share in zip(
                key_names, state["scores"], state["weights"], state["shares"], strict=True
            )
        ]
        total = two_decimals(sum(state["weights"]))
        return side_by_side(
            picture_html(picture(state), f"The values as arrows: {describe(state)}"),
            html_table(
                f"{token_html(name)} asks {state['factor']:g} times as loud",
                ["key", "score", "weight", "weight × value"],
                rows,
                ["sum", "", total, vector_text(state["output"])],
            ),
        )

    def describe(state: dict) -> str:
        pairs = sorted(zip(state["weights"], key_names, strict=True), key=lambda pair: -pair[0])
        shares = ", ".join(f"{display_token(key)} {weight:.2f}" for weight, key in pairs[:3])
        asks = f"query × {state['factor']:g}: “{display_token(name)}” takes {shares}"
        return f"{asks}; output {vector_text(state['output'])}"

    def draw(state: dict) -> CourseFigure:
        return paint_pictures([picture(state)], titles=[title(state)], alt=describe(state))

    def still(_state: dict) -> CourseFigure:
        states = list(map(compute, STILL_FACTORS))
        return paint_pictures(
            [picture(state, width=360, height=250, legend=False) for state in states],
            titles=list(map(title, states)),
            alt="; ".join(map(describe, states)),
            columns=len(states),
        )

    def title(state: dict) -> str:
        return f"query × {state['factor']:g}: {vector_text(state['output'])}"

    stops = [(f"{factor:g}", factor) for factor in FACTORS]
    return Explorer(
        {"factor": make_slider("query ×", stops, 1, width="38em")},
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )
