"""Type a sentence and see what the heads of a real model do with it."""

import copy
from collections.abc import Callable
from functools import lru_cache
from html import escape

import torch
from torch import Tensor, nn

from course_utils.arguments import count_of, require_whole
from course_utils.data.minilm import MAX_CHARACTERS, Words, read_texts
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_attention, plot_heads
from course_utils.heatmaps.texts import display_token
from course_utils.sliders.controls import make_slider, make_switch, make_text
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import heat_tables, side_by_side

MAX_SHOWN = 24  # tokens; a map of more would not fit on a page
MAX_STILL_HEADS = 12  # in the picture that is stored with a notebook
SHARES = ("previous", "next", "itself", "[CLS]", "[SEP]")  # positions that a head may attend to


def explore_sentence(
    encoder: Callable[[Tensor, Tensor], tuple],
    text: str,
    *,
    layer: int = 0,
    head: int = 0,
    max_shown: int = MAX_SHOWN,
) -> Explorer:
    """Type a sentence and see any head of a model on it, and where the heads of a layer look.

    Args:
        encoder: takes ids (1, L) and mask (1, L), as ``tokenize`` makes them, and returns the
            hidden states and, for each layer, the weights (1, H, L, L). A module is copied.
        text: the text in the field at the start.
        layer: where its slider starts.
        head: where its slider starts.
        max_shown: how many tokens the map shows at most.

    Returns:
        An explorer with the controls ``text``, ``layer``, ``head`` and ``averaged``. Its state
        holds ``tokens`` (those shown), ``num_tokens`` (those read), ``left_out``, ``weights``
        (nested lists, (1, l, l)), ``shares`` (one row per head and one for their mean, one column
        for each of ``SHARES``) and ``notes``.

    Raises:
        ValueError: a text that is not a string, a layer or head that the encoder lacks, or an
            encoder that returns something else.
        ModelMissing: a package is missing; the message names it.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string, got {type(text).__name__}")
    max_shown = require_whole("max_shown", max_shown)
    shown = _Sentence(encoder, max_shown)
    for name, number, count in (("layer", layer, shown.layers), ("head", head, shown.heads)):
        if isinstance(number, bool) or number not in range(count):
            raise ValueError(f"{name} must be from 0 to {count - 1}, got {number!r}")
    return Explorer(
        {
            "text": make_text("text", text),
            "layer": make_slider("layer", range(shown.layers), layer),
            "head": make_slider("head", range(shown.heads), head),
            "averaged": make_switch("average over heads", False),
        },
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
    )


class _Sentence:
    """A model that reads whatever is typed.

    Args:
        encoder: see ``explore_sentence``.
        max_shown: how many tokens the map shows at most.
    """

    def __init__(self, encoder: Callable[[Tensor, Tensor], tuple], max_shown: int) -> None:
        if isinstance(encoder, nn.Module):  # later changes must not reach the explorer
            encoder = copy.deepcopy(encoder).eval()
        self.encoder, self.max_shown = encoder, max_shown
        self.read = lru_cache(maxsize=8)(self._read)  # moving a slider does not run the model again
        _, maps = self.read("a")
        self.layers, self.heads = maps.shape[:2]

    def _read(self, text: str) -> tuple[Words, Tensor]:
        words = read_texts([text[:MAX_CHARACTERS]])
        with torch.no_grad():
            return words, _stack(self.encoder(words.ids, words.mask), words.ids.shape[1])

    def compute(self, text: str, layer: int, head: int, averaged: bool) -> dict:
        words, maps = self.read(text)
        (tokens,) = words.tokens
        if len(tokens) <= 2:  # [CLS] and [SEP] alone
            raise ValueError("text is empty: type a sentence, in any language you like")
        of_layer = torch.cat([maps[layer], maps[layer].mean(0, keepdim=True)])  # heads, their mean
        chosen = of_layer[-1 if averaged else head]
        return {
            "text": text,
            "layer": layer,
            "head": head,
            "averaged": averaged,
            "tokens": tokens[: self.max_shown],
            "num_tokens": len(tokens),
            "left_out": words.left_out[0],
            "weights": chosen[None, : self.max_shown, : self.max_shown].tolist(),
            "shares": _shares(of_layer).tolist(),
            "notes": _notes(words, self.max_shown, len(text) > MAX_CHARACTERS),
        }

    def name(self, state: dict) -> str:
        if state["averaged"]:
            return f"layer {state['layer']}, mean of {count_of(self.heads, 'head')}"
        return f"layer {state['layer']}, head {state['head']}"

    def row(self, state: dict) -> int:
        """The row of the shares that belongs to the map: that of a head, or the mean below them."""
        return self.heads if state["averaged"] else state["head"]

    def view(self, state: dict) -> str:
        rows = [f"head {number}" for number in range(self.heads)] + ["mean"]
        rows[self.row(state)] = f"▸ {rows[self.row(state)]}"
        tables = (
            *heat_tables(
                state["weights"],
                state["tokens"],
                state["tokens"],
                [self.name(state)],
                upright=True,
            ),
            *heat_tables(
                [state["shares"]],
                rows,
                SHARES,
                [f"layer {state['layer']}: mean weight of a token on …"],
                corner="",
            ),
        )
        return "".join(f"<p>{escape(note)}</p>" for note in state["notes"]) + side_by_side(*tables)

    def draw(self, state: dict) -> CourseFigure:
        return plot_attention(
            state["weights"][0], query_tokens=state["tokens"], title=self.name(state)
        )

    def describe(self, state: dict) -> str:
        share, place = max(zip(state["shares"][self.row(state)], SHARES, strict=True))
        return (
            f"{self.name(state)} over {state['num_tokens']} tokens; "
            f"most weight on {place}, {share:.2f}"
        )

    def still(self, state: dict) -> CourseFigure:
        """The heads of the chosen layer, beside each other."""
        states = [
            self.compute(state["text"], state["layer"], head, False)
            for head in range(min(self.heads, MAX_STILL_HEADS))
        ]
        figure = plot_heads(
            [state["weights"][0] for state in states],
            query_tokens=state["tokens"],
            titles=list(map(self.name, states)),
        )
        figure.alt = "; ".join(map(self.describe, states))
        return figure


def _shares(maps: Tensor) -> Tensor:
    """Return the mean weight of a query on each of ``SHARES``: (H, L, L) to (H, 5).

    The first query has no previous token and the last query no next one; they are left out of
    these two means.
    """
    places = (maps.diagonal(step, dim1=-2, dim2=-1) for step in (-1, 1, 0))
    return torch.stack([x.mean(-1) for x in (*places, maps[..., 0], maps[..., -1])], dim=-1)


def _notes(words: Words, max_shown: int, is_cut: bool) -> list[str]:
    """Return sentences about what is not shown, and why, and about what [UNK] stands for."""
    count, left_out = len(words.tokens[0]), words.left_out[0]
    parts = []
    if left_out:
        parts.append(f"the model reads the first {count}, as it was made for no more")
    if count > max_shown:
        parts.append(
            f"the table shows the first {max_shown}, as many as fit on a page, so its rows need "
            "not sum to 1"
        )
    total = f"{'more than ' * is_cut}{count + left_out} tokens"
    notes = [f"Of {total} {', and '.join(parts)}."] if parts else []
    if unknown := list(dict.fromkeys(words.unknown[0])):
        some = ", ".join(f"“{display_token(word)}”" for word in unknown[:3])
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        notes.append(f"[UNK] stands for {some}{more}: not in the model's vocabulary.")
    return notes


def _stack(result: object, length: int) -> Tensor:
    """Return the weights that an encoder returned for one text, (layer, H, L, L)."""
    try:
        _, weights = result
        maps = torch.stack([of_layer.detach().float() for of_layer in weights])
    except (TypeError, ValueError, AttributeError, RuntimeError):
        maps = torch.empty(0)
    if maps.ndim != 5 or (maps.shape[1], *maps.shape[3:]) != (1, length, length):
        raise ValueError(
            "encoder must return the hidden states and a list with the weights of each layer, "
            f"(1, H, {length}, {length}); got {type(result).__name__}"
        )
    if not maps.isfinite().all():
        raise ValueError("encoder must return finite weights; some are NaN or infinite")
    return maps[:, 0]
