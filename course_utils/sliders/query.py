"""Choose a query and follow it through one head."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from course_utils.arguments import names_or_numbers, require_finite, require_position
from course_utils.attention import scaled_dot_product_attention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_attention
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.flow import flow_fits, head_flow
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

LEAST_WIDTH = 720  # pixels of a picture whose numbers can still be read


def explore_query(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    tokens: Sequence[str] | None = None,
    chosen: int = 0,
) -> Explorer:
    """Choose a query token and see its row turn into a mixture of values.

    A head of at most 8 tokens, 5 features and 2 value features is drawn; a larger one is shown as
    tables.

    Args:
        query: (L, d), one head of one sample.
        key: (L, d).
        value: (L, d_v).
        tokens: L names; left out, the positions.
        chosen: the position where the slider starts.

    Returns:
        An explorer with the control ``query`` (a position). Its state holds ``scores`` and
        ``weights`` (one number per key), ``values`` (L, d_v) and ``output`` (d_v numbers).

    Raises:
        ValueError: shapes that do not fit together, numbers that are not finite, another
            number of tokens, or no such query.
    """
    _, weights = scaled_dot_product_attention(query, key, value)
    if weights.ndim != 2:
        raise ValueError(f"query must be (L, d), one head; got shape {tuple(query.shape)}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        require_finite(name, x)
    scores = query @ key.T  # (L_q, L_k), before the scale
    require_finite("query times key", scores)  # finite features can still overflow in the product
    require_position("chosen", chosen, len(query))
    shown = _Query(
        query=query.detach().clone(),  # as they are now, like the weights
        key=key.detach().clone(),
        scores=scores,
        scale=math.sqrt(query.shape[-1]),
        weights=weights,
        value=value.detach().clone(),
        query_tokens=names_or_numbers(tokens, len(query)),
        key_tokens=names_or_numbers(tokens, len(key)),
    )
    stops = [(f"{i}: {display_token(token)}", i) for i, token in enumerate(shown.query_tokens)]
    return Explorer(
        {"query": make_slider("query", stops, chosen, width=WIDE if shown.is_drawn else None)},
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
    )


@dataclass(frozen=True)
class _Query:
    """One head of one sample, seen from one query at a time."""

    query: Tensor  # (L_q, d)
    key: Tensor  # (L_k, d)
    scores: Tensor  # (L_q, L_k), before the scale
    scale: float  # √d
    weights: Tensor  # (L_q, L_k)
    value: Tensor  # (L_k, d_v)
    query_tokens: list[str]
    key_tokens: list[str]

    def compute(self, query: int) -> dict:
        return {
            "query": query,
            "scores": self.scores[query].tolist(),
            "weights": self.weights[query].tolist(),
            "values": self.value.tolist(),
            "output": (self.weights[query] @ self.value).tolist(),
        }

    @property
    def is_drawn(self) -> bool:
        longest = max(len(self.query), len(self.key))
        return flow_fits(longest, self.query.shape[1], self.value.shape[1])

    def picture(self, state: dict) -> Picture:
        return head_flow(
            self.query_tokens,
            self.key_tokens,
            state["query"],
            self.query.tolist(),
            self.key.tolist(),
            state["values"],
            products=state["scores"],
            scale=self.scale,
            weights=state["weights"],
            output=state["output"],
        )

    def view(self, state: dict) -> str:
        if not self.is_drawn:
            return self.tables(state)
        name = f"One head as a flow: {self.describe(state)}"
        picture = picture_html(self.picture(state), name, least=LEAST_WIDTH)
        return f'{picture}<div class="ac-unseen">{self.tables(state)}</div>'

    def tables(self, state: dict) -> str:
        looks, mixes = [], []
        for token, score, weight, vector in zip(
            self.key_tokens, state["scores"], state["weights"], state["values"], strict=True
        ):
            name = token_html(token)
            looks.append(
                [name, two_decimals(score), two_decimals(score / self.scale), weight_bar(weight)]
            )
            mixes.append([name, vector_text(vector), vector_text([weight * v for v in vector])])
        return side_by_side(
            html_table(
                f"{token_html(self.query_tokens[state['query']])} looks around",
                ["key", "q·k", f"÷ {self.scale:.3g}", "weight"],
                looks,
                ["sum", "", "", two_decimals(sum(state["weights"]))],
            ),
            html_table(
                "and mixes the values",
                ["key", "value", "weight × value"],
                mixes,
                ["sum", "", vector_text(state["output"])],
            ),
        )

    def draw(self, state: dict) -> CourseFigure:
        if self.is_drawn:
            return self.paint([state])
        token = self.query_tokens[state["query"]]
        return plot_attention(
            [state["weights"]],
            query_tokens=[token],
            key_tokens=self.key_tokens,
            title=f"where {display_token(token)} looks",
        )

    def describe(self, state: dict) -> str:
        shares = ", ".join(
            f"{display_token(token)} {weight:.2f}"
            for token, weight in zip(self.key_tokens, state["weights"], strict=True)
        )
        name = display_token(self.query_tokens[state["query"]])
        return f"query {name} takes {shares}; output {vector_text(state['output'])}"

    def paint(self, states: Sequence[dict]) -> CourseFigure:
        names = (display_token(self.query_tokens[state["query"]]) for state in states)
        return paint_pictures(
            list(map(self.picture, states)),
            titles=[f"the way of “{name}”" for name in names],
            alt="; ".join(map(self.describe, states)),
        )

    def still(self, state: dict) -> CourseFigure:
        """The chosen query and the one after it; of a large head the map, one row per query."""
        if self.is_drawn:
            after = (state["query"] + 1) % len(self.query_tokens)
            return self.paint([state, self.compute(after)])
        return plot_attention(
            self.weights,
            query_tokens=self.query_tokens,
            key_tokens=self.key_tokens,
            title="where each query looks",
        )
