"""Lesson 8: the tokens of a sentence become one vector."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Mistake, Step
from course_utils.exercises.trial import Trial, random_numbers


def _sum(s: SimpleNamespace) -> Tensor:
    return (s.x * s.counted_tokens[..., None]).sum(1)


def _mean_of_unit_tokens(s: SimpleNamespace) -> Tensor:
    unit_tokens = F.normalize(s.x, dim=-1)
    total = (unit_tokens * s.counted_tokens[..., None]).sum(1)
    return total / s.counted_tokens.sum(1, keepdim=True)


POOL_STEPS = (
    Step("counted_tokens", "(N, L), 1.0 for each token that counts", lambda s: s.mask.double()),
    Step("mean", "(N, D)", lambda s: _sum(s) / s.counted_tokens.sum(1, keepdim=True)),
    Step("unit", "(N, D), of length 1", lambda s: F.normalize(s.mean, dim=-1), "unit vectors"),
)

POOL_MISTAKES = (
    Mistake(
        id="pads-averaged-in",
        step="counted_tokens",
        variants=(lambda s: torch.ones_like(s.mask).double(),),
        title="the padding is averaged in",
        why="Padding is there to make rows equally long. It says nothing about the sentence.",
        look="what becomes of the argument mask",
    ),
    Mistake(
        id="pads-alone-averaged",
        step="counted_tokens",
        variants=(lambda s: (~s.mask).double(),),
        title="the mask is turned round: padding is kept, and tokens are left out",
        why="Here True means a token.",
        look="what is multiplied with the mask, or filled where it is True",
    ),
    Mistake(
        id="divided-by-length",
        step="mean",
        variants=(lambda s: _sum(s) / s.x.shape[1],),
        title="the sum is divided by L, padding included",
        why="A mean divides by as many as were added; the unit vector hides this slip.",
        look="the number that the sum is divided by",
    ),
    Mistake(
        id="divided-by-all-tokens",
        step="mean",
        variants=(lambda s: _sum(s) / s.counted_tokens.sum(),),
        title="every sum is divided by the number of tokens in the whole batch",
        why="Each sentence has its own length.",
        look="the axis that the mask is summed over",
    ),
    Mistake(
        id="pooled-as-a-sum",
        step="mean",
        variants=(_sum,),
        title="the tokens are added up, and never divided",
        why="A sum grows with the length of the sentence; the unit vector hides this slip.",
        look="how a sum becomes a mean",
    ),
    Mistake(
        id="cls-taken",
        step="mean",
        variants=(lambda s: s.x[:, 0],),
        title="the first token, [CLS], is taken for the whole sentence",
        why="Other models are used like that; this one was trained with the mean of all tokens.",
        look="which tokens go into the result",
    ),
    Mistake(
        id="tokens-normalised-first",
        step="mean",
        variants=(_mean_of_unit_tokens,),
        title="each token is brought to length 1 before the mean",
        why="Long vectors then count no more than short ones; the mean comes first.",
        look="the order of mean and normalising",
    ),
    Mistake(
        id="unit-over-batch",
        step="unit",
        variants=(lambda s: F.normalize(s.mean, dim=0),),
        title="the length is taken over the sentences (axis 0)",
        why=(
            "Each sentence has a length of its own: the root of its summed squares over D features."
        ),
        look="the dim of the norm",
    ),
    Mistake(
        id="unit-of-all-sentences",
        step="unit",
        variants=(lambda s: s.mean / s.mean.norm(),),
        title="there is one length for all sentences together",
        why="Each sentence has a length of its own.",
        look="whether the norm is told its axis",
    ),
    Mistake(
        id="not-normalised",
        step="unit",
        variants=(lambda s: s.mean,),
        title="the second result is not brought to length 1",
        why="Only for vectors of length 1 is the dot product the cosine.",
        look="the second thing returned",
    ),
    Mistake(
        id="divided-by-square",
        step="unit",
        variants=(lambda s: s.mean / s.mean.square().sum(-1, keepdim=True),),
        title="the mean is divided by its squared length",
        why="The length is the root of the summed squares.",
        look="how the norm is taken",
    ),
)


def _trials() -> Iterator[Trial]:
    for lengths, d in (((3,), 4), ((4, 2), 4), ((2, 5, 4), 7)):
        x = random_numbers(len(lengths), max(lengths), d, seed=1)
        yield Trial({"x": x, "mask": torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]})


def _truth(x: Tensor, mask: Tensor) -> Answer:
    mean = torch.stack([row[own].mean(0) for row, own in zip(x, mask, strict=True)])
    return mean, mean / mean.norm(dim=-1, keepdim=True)


MEAN_POOL = Exercise(
    name="mean_pool",
    steps=POOL_STEPS,
    mistakes=POOL_MISTAKES,
    results={"mean": "mean", "unit": "unit vector"},
    trials=_trials,
    truth=_truth,
    covered="with padding and without",
    gradients=False,
)


def check_mean_pool(fn: Callable | None) -> bool:
    """Check ``fn(x, mask) -> (mean, unit)``: a sentence's tokens become one vector.

    x is (N, L, D) and mask (N, L), boolean, True = a token. mean is (N, D), over the tokens without
    the padding, and unit (N, D) the same brought to length 1.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(MEAN_POOL, fn)
