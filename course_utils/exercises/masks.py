"""Lesson 6: the mask of padded sentences."""

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Compute, Mistake, Step
from course_utils.exercises.trial import Trial

# What goes wrong with padding goes wrong in cross-attention too.
PADDING_SEEN = "padding may be seen"
PADDING_TAKES_WEIGHT = "Real tokens then give part of their weight to padding."
FIRST_PADDING_SEEN = "the first padded key may be seen"
POSITIONS_FROM_0 = "Positions count from 0: a sentence of 3 tokens holds 0, 1 and 2."
NUMBERS = "the mask holds the numbers 0 and 1"


def _everything(s: SimpleNamespace) -> Tensor:
    return torch.ones(s.seq_len, s.seq_len, dtype=torch.bool)


def _if_causal(part: Callable[[Tensor], Tensor]) -> Compute:
    """Keep this part of (query, key) if the mask is to be causal, and everything if not."""
    return lambda s: part(_everything(s)) if s.causal else _everything(s)


MASK_STEPS = (
    Step("causal_part", "(L, L), boolean", _if_causal(torch.tril)),
    Step("real_tokens", "(N, L), boolean", lambda s: torch.arange(s.seq_len) < s.lengths[:, None]),
    Step(
        "padding_part",
        "(N, 1, 1, L), boolean; the last axis is the keys",
        lambda s: s.real_tokens[:, None, None, :],
    ),
    Step("joined_parts", "(N, 1, L, L), boolean", lambda s: s.causal_part & s.padding_part),
    Step("allowed", "(N, 1, L, L), boolean, True = may attend", lambda s: s.joined_parts),
    Step("mask", "(N, 1, L, L), boolean", lambda s: s.allowed),
)

MASK_MISTAKES = (
    Mistake(
        id="causal-without-itself",
        step="causal_part",
        variants=(_if_causal(lambda x: x.tril(-1)),),
        title="a token may not attend to itself",
        why="The causal mask blocks later tokens; the diagonal stays open, or row 0 sees nothing.",
        look="whether your triangle holds the diagonal",
    ),
    Mistake(
        id="causal-sees-the-next",
        step="causal_part",
        variants=(_if_causal(lambda x: x.tril(1)),),
        title="a token may attend to the one after it",
        why="That is the token which a language model is asked to guess.",
        look="the offset of your triangle, or a comparison of positions",
    ),
    Mistake(
        id="causal-turned-round",
        step="causal_part",
        variants=(
            _if_causal(torch.triu),
            _if_causal(lambda x: x.triu(1)),
        ),  # without the token itself
        title="tokens see what comes after them instead of what came before",
        why="Rows are queries and columns keys: what came before lies to the left of the diagonal.",
        look="which triangle you keep",
    ),
    Mistake(
        id="causal-ignored",
        step="causal_part",
        variants=(_everything,),
        title="later tokens are never blocked",
        why="With causal=True a token may see itself and what came before.",
        look="what becomes of the argument causal",
    ),
    Mistake(
        id="causal-always",
        step="causal_part",
        variants=(lambda s: _everything(s).tril(),),
        title="later tokens are blocked even with causal=False",
        why="Then every real token may be seen from everywhere.",
        look="what becomes of the argument causal",
    ),
    Mistake(
        id="padding-off-by-one",
        step="real_tokens",
        variants=(lambda s: torch.arange(s.seq_len) <= s.lengths[:, None],),
        title=FIRST_PADDING_SEEN,
        why=POSITIONS_FROM_0,
        look="the comparison with the lengths",
    ),
    Mistake(
        id="padding-at-the-start",
        step="real_tokens",
        variants=(lambda s: torch.arange(s.seq_len) >= s.seq_len - s.lengths[:, None],),
        title="the tokens at the start are taken for padding",
        why="Here the padding stands at the end.",
        look="which side of the comparison is real",
    ),
    Mistake(
        id="padding-ignored",
        step="real_tokens",
        variants=(lambda s: torch.ones(len(s.lengths), s.seq_len, dtype=torch.bool),),
        title=PADDING_SEEN,
        why=PADDING_TAKES_WEIGHT,
        look="what becomes of the lengths",
    ),
    Mistake(
        id="padding-turned-round",
        rows=("M18",),
        step="real_tokens",
        variants=(lambda s: torch.arange(s.seq_len) >= s.lengths[:, None],),
        title="padding may be seen, and real keys are blocked",
        why=(
            "True means may attend, in both parts of the mask; here the padding has it "
            "turned round."
        ),
        look="the comparison with the lengths",
    ),
    Mistake(
        id="queries-blocked-instead-of-keys",
        rows=("M24",),
        step="padding_part",
        variants=(lambda s: s.real_tokens[:, None, :, None],),
        title="padded queries are blocked, and padded keys are not",
        why="What nobody may look at are keys: columns. Padded rows are left out of the loss.",
        look="on which axis the padding ends up",
    ),
    Mistake(
        id="queries-blocked-too",
        rows=("M24",),
        step="padding_part",
        variants=(lambda s: s.real_tokens[:, None, :, None] & s.real_tokens[:, None, None, :],),
        title="padded queries are blocked as well as padded keys",
        why="Such a row sees nothing, and may be NaN. Block keys; leave padded rows to the loss.",
        look="on which axes the padding ends up",
    ),
    Mistake(
        id="masks-joined-by-or",
        step="joined_parts",
        variants=(
            lambda s: s.causal_part | s.padding_part,
            # Only where there is something to join.
            lambda s: (
                s.causal_part | s.padding_part
                if s.causal
                else s.padding_part.expand_as(s.causal_part & s.padding_part)
            ),
        ),
        title="a key may be seen if one of the two masks allows it",
        why="It must be allowed by both: not later, and no padding.",
        look="how the two masks are joined",
    ),
    Mistake(
        id="built-for-the-other-convention",
        rows=("M18",),
        step="allowed",
        variants=(lambda s: ~s.joined_parts,),
        title="the mask is inverted: True = blocked",
        why="This course and F.scaled_dot_product_attention take True for: may attend.",
        look="what True means in the mask that you return",
    ),
    Mistake(
        id="built-without-head-axis",
        rows=("M25",),
        step="allowed",
        variants=(lambda s: s.joined_parts[:, 0],),
        title="the head axis is missing: (N, L, L)",
        why="Against (N, H, L, L) that is read as (1, N, L, L): samples are taken for heads.",
        look="the number of axes of what you return",
    ),
    Mistake(
        id="built-of-zeros-and-ones",
        rows=("M19",),
        step="mask",
        variants=(
            lambda s: s.allowed.double(),
            # Only in the causal part.
            lambda s: s.allowed.double() if s.causal else s.allowed,
        ),
        title=NUMBERS,
        why="A mask of numbers is added to the scores: a key that gets 0 added is not blocked.",
        look="the dtype of what you return",
    ),
    Mistake(
        id="built-to-be-added",
        rows=("M19",),
        step="mask",
        variants=(lambda s: torch.where(s.allowed, 0.0, -math.inf).double(),),
        title="the mask holds 0 and -inf, or a very low number, to be added to the scores",
        why="That works in torch, but asked is a boolean mask.",
        look="the dtype of what you return",
    ),
)


def _trials() -> Iterator[Trial]:
    for lengths, seq_len, causal in (
        ((3, 2), 3, False),
        ((4, 1, 2), 4, True),
        ((2, 5, 0), 5, True),
        ((4, 2, 1), 5, False),
        ((4, 2, 5), 5, True),
    ):
        yield Trial({"lengths": torch.tensor(lengths), "seq_len": seq_len, "causal": causal})


def _call(fn: Callable, lengths: Tensor, seq_len: int, causal: bool) -> object:
    """Write axes of size 1 out, and take numbers of any kind for a mask of numbers."""
    shape = (len(lengths), 1, seq_len, seq_len)
    mask = fn(lengths, seq_len, causal)
    if not isinstance(mask, Tensor):
        return mask
    if mask.ndim == 4 and all(m in (1, s) for m, s in zip(mask.shape, shape, strict=True)):
        mask = mask.expand(shape)
    return mask if mask.dtype == torch.bool else mask.double()


def _truth(lengths: Tensor, seq_len: int, causal: bool) -> Answer:
    rows = [
        [
            [key < length and not (causal and key > query) for key in range(seq_len)]
            for query in range(seq_len)
        ]
        for length in lengths.tolist()
    ]
    return (torch.tensor(rows)[:, None],)


ATTENTION_MASK = Exercise(
    name="attention_mask",
    steps=MASK_STEPS,
    mistakes=MASK_MISTAKES,
    results={"mask": "the mask"},
    trials=_trials,
    truth=_truth,
    call=_call,
    covered="with and without causal",
    gradients=False,
    boolean=True,
)


def check_attention_mask(fn: Callable | None) -> bool:
    """Check ``fn(lengths, seq_len, causal)``: the mask (N, 1, L, L) of padded sentences.

    It is boolean, True = may attend. lengths (N,) says how many tokens of each sentence are real,
    the first ones. An axis of size 1 that broadcasts is as good as one that is written out.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(ATTENTION_MASK, fn)
