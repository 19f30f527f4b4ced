"""Choose a query and see how it shares out its attention."""

import math
from collections.abc import Sequence

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
        An explorer with the control ``query`` (a position); its state holds ``scores``,
        ``weights`` (both one number a key), ``values`` (L, d_v) and ``output`` (d_v numbers).

    Raises:
        ValueError: shapes that do not fit together, numbers that are not finite, or another
            number of tokens.
    """
    _, weights = scaled_dot_product_attention(query, key, value)
    if weights.ndim != 2:
        raise ValueError(f"query must be (L, d), one head; got shape {tuple(query.shape)}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        require_finite(name, x)
    value = value.detach().clone()  # as it is now, like the weights
    key_tokens = names_or_numbers(tokens, len(key))
    tokens = names_or_numbers(tokens, len(query))
    scores = query @ key.T  # (query, key), before the scale
    require_finite("query times key", scores)  # they may overflow
    scale = math.sqrt(query.shape[-1])

    def compute(query: int) -> dict:
        return {
            "query": query,
            "scores": scores[query].tolist(),
            "weights": weights[query].tolist(),
            "values": value.tolist(),
            "output": (weights[query] @ value).tolist(),
        }

    def view(state: dict) -> str:
        looks, mixes = [], []
        for token, score, weight, vector in zip(
            key_tokens, state["scores"], state["weights"], state["values"], strict=True
        ):
            name = token_html(token)
            looks.append(
                [name, two_decimals(score), two_decimals(score / scale), weight_bar(weight)]
            )
            mixes.append([name, vector_text(vector), vector_text([weight * v for v in vector])])
        return side_by_side(
            html_table(
                f"{token_html(tokens[state['query']])} looks around",
                ["key", "q·k", f"÷ {scale:.3g}", "weight"],
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

    def draw(state: dict) -> CourseFigure:
        name = display_token(tokens[state["query"]])
        return plot_attention(
            [state["weights"]],
            query_tokens=[tokens[state["query"]]],
            key_tokens=key_tokens,
            title=f"where {name} looks",
        )

    def describe(state: dict) -> str:
        shares = ", ".join(
            f"{display_token(t)} {w:.2f}" for t, w in zip(key_tokens, state["weights"], strict=True)
        )
        name = display_token(tokens[state["query"]])
        return f"query {name} takes {shares}; output {vector_text(state['output'])}"

    def still(_state: dict) -> CourseFigure:
        return plot_attention(
            weights, query_tokens=tokens, key_tokens=key_tokens, title="where each query looks"
        )

    names = [(f"{i}: {display_token(token)}", i) for i, token in enumerate(tokens)]
    return Explorer(
        {"query": make_slider("query", names, 0)},
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )
