"""Choose a query and see how it shares out its attention."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from course_utils.arguments import names_or_numbers, require_finite
from course_utils.attention import scaled_dot_product_attention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_attention
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.sliders.controls import make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import (
    html_table,
    side_by_side,
    token_html,
    vector_text,
    weight_bar,
)


def explore_query(
    query: Tensor, key: Tensor, value: Tensor, *, tokens: Sequence[str] | None = None
) -> Explorer:
    """Choose a query token and see its row turn into a mixture of values.

    Args:
        query: (L, d), one head of one sample.
        key: (L, d).
        value: (L, d_v).
        tokens: L names; left out, the positions.

    Returns:
        An explorer with the control ``query`` (a position). Its state holds ``scores`` and
        ``weights`` (one number per key), ``values`` (L, d_v) and ``output`` (d_v numbers).

    Raises:
        ValueError: shapes that do not fit together, numbers that are not finite, or another
            number of tokens.
    """
    _, weights = scaled_dot_product_attention(query, key, value)
    if weights.ndim != 2:
        raise ValueError(f"query must be (L, d), one head; got shape {tuple(query.shape)}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        require_finite(name, x)
    scores = query @ key.T  # (L_q, L_k), before the scale
    require_finite("query times key", scores)  # finite features can still overflow in the product
    shown = _Query(
        scores=scores,
        scale=math.sqrt(query.shape[-1]),
        weights=weights,
        value=value.detach().clone(),  # as it is now, like the weights
        query_tokens=names_or_numbers(tokens, len(query)),
        key_tokens=names_or_numbers(tokens, len(key)),
    )
    stops = [(f"{i}: {display_token(token)}", i) for i, token in enumerate(shown.query_tokens)]
    return Explorer(
        {"query": make_slider("query", stops, 0)},
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
    )


@dataclass(frozen=True)
class _Query:
    """One head of one sample, seen from one query at a time."""

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

    def view(self, state: dict) -> str:
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

    def still(self, _state: dict) -> CourseFigure:
        """The whole map: one row per query."""
        return plot_attention(
            self.weights,
            query_tokens=self.query_tokens,
            key_tokens=self.key_tokens,
            title="where each query looks",
        )
