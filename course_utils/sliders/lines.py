"""Choose a word and see where it looks: lines over the sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from course_utils.arguments import require_blocked, require_names, require_position, require_weights
from course_utils.data.animal import Sentence, load_animal
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import display_token, token_labels, two_decimals
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.sentence import names_of_heads, sentence_lines
from course_utils.pictures.shapes import Picture
from course_utils.pictures.svg import by_room, picture_html
from course_utils.sliders.controls import WIDE, make_slider, make_switch
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import html_table, token_html

MAX_STILL = 3  # queries in the stored picture


def explore_lines(
    weights,
    *,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    query: int = 0,
    blocked=None,
    head_names: Sequence[str] | None = None,
) -> Explorer:
    """Choose a query and see its lines to the keys, as thick as its weights, in every head.

    Args:
        weights: (H, L_q, L_k), each from 0 to 1.
        query_tokens: L_q names; left out, the positions.
        key_tokens: L_k names; left out, those of the queries if there are as many.
        query: the position where the slider starts.
        blocked: (L_q, L_k) booleans, True where a mask blocks: no line leads there.
        head_names: H names; left out, "head 0" and so on.

    Returns:
        An explorer with the control ``query``; its state holds ``query_tokens``, ``key_tokens``,
        ``weights`` (H, L_k), those of the query, ``blocked`` (L_k) and ``head_names``.

    Raises:
        ValueError: weights of another rank, or not from 0 to 1; a number of tokens or of names, a
            query or a shape of ``blocked`` that does not fit them.
    """
    weights = require_weights(weights, "(H, L_q, L_k)")
    if weights.max() > 1.001:  # rounding may leave a little more than 1
        raise ValueError(f"weights must be numbers from 0 to 1, got {weights.max():.4g}")
    rows, columns = token_labels(weights.shape, query_tokens, key_tokens)
    blocked = require_blocked(blocked, weights.shape[-2:])
    require_position("query", query, len(rows))
    names = (
        names_of_heads(len(weights))
        if head_names is None
        else require_names("head_names", head_names, len(weights), "one per head")
    )
    shown = _Heads(rows, columns, weights.copy(), blocked.copy(), names)
    return Explorer(
        {"query": make_slider("query", _stops(rows), query, width=WIDE)},
        compute=shown.compute,
        view=_view,
        draw=lambda state: _paint([state]),
        describe=_describe,
        still=shown.still,
    )


def explore_animal() -> Explorer:
    """Choose a word of *The animal didn't cross the street because it was too tired*.

    The lines are those of a head of a real model (see ``course_utils.data.animal``).

    Returns:
        An explorer with the controls ``query``, a position, and ``wide``, for the sentence that
        says *wide* in place of *tired*. Its state is that of ``explore_lines``, and ``wide``.
    """
    shown = _Animal(*load_animal())
    tokens = shown.tired.tokens
    return Explorer(
        {
            "query": make_slider("word", _stops(tokens), tokens.index("it"), width=WIDE),
            "wide": make_switch("say “wide” instead of “tired”", False),
        },
        compute=shown.compute,
        view=_view,
        draw=lambda state: _paint([state]),
        describe=_describe,
        still=shown.still,
    )


@dataclass(frozen=True)
class _Heads:
    """All heads on one sentence, or from one to another, seen from one query at a time."""

    query_tokens: list[str]
    key_tokens: list[str]
    weights: np.ndarray  # (H, L_q, L_k)
    blocked: np.ndarray  # (L_q, L_k)
    head_names: list[str]

    def compute(self, query: int) -> dict:
        return {
            "query": query,
            "query_tokens": list(self.query_tokens),
            "key_tokens": list(self.key_tokens),
            "weights": self.weights[:, query].tolist(),
            "blocked": self.blocked[query].tolist(),
            "head_names": list(self.head_names),
        }

    def still(self, state: dict) -> CourseFigure:
        """The chosen query and those after it."""
        count = len(self.query_tokens)
        chosen = [(state["query"] + i) % count for i in range(min(MAX_STILL, count))]
        return _paint(list(map(self.compute, chosen)))


@dataclass(frozen=True)
class _Animal:
    """Two sentences that differ in one word, seen by one head."""

    tired: Sentence
    wide: Sentence

    def compute(self, query: int, wide: bool) -> dict:
        sentence = self.wide if wide else self.tired
        return {
            "query": query,
            "wide": wide,
            "query_tokens": list(sentence.tokens),
            "key_tokens": list(sentence.tokens),
            "weights": [list(sentence.weights[query])],
            "blocked": [False] * len(sentence.tokens),
            "head_names": names_of_heads(1),
        }

    def still(self, _state: dict) -> CourseFigure:
        it, cross = (self.tired.tokens.index(word) for word in ("it", "cross"))
        stops = ((it, False), (it, True), (cross, False))
        return _paint([self.compute(*stop) for stop in stops])


# --- what both show -----------------------------------------------------------------------------


def _stops(tokens: Sequence[str]) -> list[tuple[str, int]]:
    return [(f"{i}: {display_token(token)}", i) for i, token in enumerate(tokens)]


def _picture(state: dict, *, upright: bool = False) -> Picture:
    return sentence_lines(
        state["query_tokens"],
        state["query"],
        state["weights"],
        key_tokens=state["key_tokens"],
        blocked=state["blocked"],
        head_names=state["head_names"],
        upright=upright,
    )


def _view(state: dict) -> str:
    names = (escape(display_token(name)) for name in state["head_names"])
    keys = zip(state["key_tokens"], state["blocked"], *state["weights"], strict=True)
    rows = [
        [token_html(key), *("blocked" if is_shut else two_decimals(w) for w in weights)]
        for key, is_shut, *weights in keys
    ]
    looks = token_html(state["query_tokens"][state["query"]])
    table = html_table(f"{looks} looks at", ["key", *names], rows)
    name = f"Lines over the sentence: {_describe(state)}"
    pictures = (picture_html(_picture(state, upright=upright), name) for upright in (False, True))
    return f'{by_room(*pictures)}<div class="ac-unseen">{table}</div>'


def _describe(state: dict) -> str:
    heads = []
    for name, weights in zip(state["head_names"], state["weights"], strict=True):
        largest = sorted(zip(weights, state["key_tokens"], strict=True), key=lambda own: -own[0])
        shares = ", ".join(f"{display_token(key)} {weight:.2f}" for weight, key in largest[:3])
        heads.append(shares if name == "weight" else f"{display_token(name)}: {shares}")
    looks = display_token(state["query_tokens"][state["query"]])
    sentence = " ".join(map(display_token, state["key_tokens"]))
    return f"“{looks}” looks at {'; '.join(heads)} in: {sentence}"


def _paint(states: Sequence[dict]) -> CourseFigure:
    looks = (display_token(state["query_tokens"][state["query"]]) for state in states)
    return paint_pictures(
        list(map(_picture, states)),
        titles=[f"“{look}” looks" for look in looks],
        alt="; ".join(map(_describe, states)),
    )
