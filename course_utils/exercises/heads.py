"""Splitting into heads and merging them again: lessons 3 and 4."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Mistake, Step
from course_utils.exercises.trial import SIZES, Trial, random_numbers

# Three tensors are split in a layer, and all in the same way: these two steps say how.
SPLIT_STEPS = (
    Step(
        "feature_cut",
        "function: (N, L, D) to (N, L, H, d_h)",
        lambda s: lambda x: x.unflatten(-1, (s.num_heads, -1)),
    ),
    Step(
        "axis_order",
        "function: (N, L, H, d_h) to (N, H, L, d_h)",
        lambda s: lambda x: x.transpose(1, 2),
    ),
)
MERGE_STEPS = (
    Step("heads_behind_tokens", "(N, L_q, H, d_h)", lambda s: s.head_outputs.transpose(1, 2)),
    Step("merged", "(N, L_q, D)", lambda s: s.heads_behind_tokens.flatten(2), "merged heads"),
)

SPLIT_MISTAKES = (
    Mistake(
        id="split-interleaved",
        rows=("M10",),
        step="feature_cut",
        variants=(lambda s: lambda x: x.unflatten(-1, (-1, s.num_heads)).mT,),
        title="the heads are interleaved: head h takes every H-th feature",
        why="Head h holds neighbours, features h·d_h to (h+1)·d_h; saved weights rely on that.",
        look="the order of num_heads and head_dim where the features are cut",
    ),
    Mistake(
        id="split-without-transpose",
        rows=("M02",),
        step="axis_order",
        variants=(lambda s: lambda x: x.reshape(x.shape[0], x.shape[2], x.shape[1], x.shape[3]),),
        title="view goes straight to (N, H, L, d_h), without a transpose",
        why="view moves no number, so pieces of one token are taken for several tokens.",
        look="which axis holds the tokens before the view, and which after it",
    ),
    Mistake(
        id="heads-stay-behind-tokens",
        rows=("M37",),
        step="axis_order",
        variants=(lambda s: lambda x: x,),
        title="the heads stay behind the tokens: (N, L, H, d_h)",
        why="Attention works on the last two axes: now heads would attend to heads.",
        look="the order of the axes after the cut",
    ),
    Mistake(
        id="split-heads-before-batch",
        step="axis_order",
        variants=(lambda s: lambda x: x.permute(2, 0, 1, 3),),
        title="the heads come before the batch: (H, N, L, d_h)",
        why="The batch is the first axis everywhere; if N = H, no shape warns of this.",
        look="the axis along which the heads are stacked",
    ),
)

MERGE_MISTAKES = (
    Mistake(
        id="merge-without-transpose",
        rows=("M03",),
        step="heads_behind_tokens",
        variants=(
            lambda s: s.head_outputs.reshape(*(s.head_outputs.shape[i] for i in (0, 2, 1, 3))),
        ),
        title="the heads are merged without transposing back",
        why="reshape moves no number, so one row gets the features of several tokens.",
        look="the order of the axes just before the reshape",
    ),
    Mistake(
        id="merge-joins-tokens",
        rows=("M37",),
        step="heads_behind_tokens",
        variants=(lambda s: s.head_outputs,),
        title="the last two axes are joined as they are",
        why="Of (N, H, L, d_h), those are tokens and features; to join are heads and features.",
        look="the order of the axes just before they are joined",
    ),
    Mistake(
        id="merge-transposes-features",
        rows=("M37",),
        step="heads_behind_tokens",
        variants=(
            lambda s: s.head_outputs.transpose(1, 3).reshape(
                *(s.head_outputs.shape[i] for i in (0, 2, 1, 3))
            ),
        ),
        title="heads change places with features instead of with tokens",
        why="Of (N, H, L, d_h), H and L must swap, so that a token has its heads together.",
        look="the two axes of the transpose",
    ),
    Mistake(
        id="merge-heads-before-batch",
        step="heads_behind_tokens",
        variants=(lambda s: s.head_outputs.permute(1, 2, 0, 3),),
        title="the first axis is taken for the heads, and the second for the batch",
        why="The heads are axis 1; if N = H, no shape warns of this.",
        look="the axis along which the heads are taken apart",
    ),
    Mistake(
        id="merge-interleaved",
        rows=("M10",),
        step="merged",
        variants=(lambda s: s.heads_behind_tokens.mT.flatten(2),),
        title="the heads are interleaved: one feature of each head in turn",
        why="Merging undoes splitting: all features of head 0, then all of head 1.",
        look="the order of the head axis and the feature axis just before they are joined",
    ),
    Mistake(
        id="heads-averaged",
        rows=("M09",),
        step="merged",
        variants=(lambda s: s.heads_behind_tokens.mean(2),),
        title="the heads are averaged instead of put side by side",
        why="An average has d_h features instead of D, and forgets which head gave what.",
        look="how H vectors of d_h features become one of D",
    ),
    Mistake(
        id="heads-summed",
        rows=("M09",),
        step="merged",
        variants=(lambda s: s.heads_behind_tokens.sum(2),),
        title="the heads are added up instead of put side by side",
        why="A sum has d_h features instead of D, and forgets which head gave what.",
        look="how H vectors of d_h features become one of D",
    ),
)


def _split_trials() -> Iterator[Trial]:
    for n, length, d, h in SIZES:
        yield Trial({"x": random_numbers(n, length, d), "num_heads": h})


def _split_truth(x: Tensor, num_heads: int) -> Answer:
    return (torch.stack(x.chunk(num_heads, dim=-1), dim=1),)


def _merge_trials() -> Iterator[Trial]:
    for n, length, d, h in SIZES:
        yield Trial({"x": random_numbers(n, h, length, d // h)})


def _merge_truth(x: Tensor) -> Answer:
    return (torch.cat(x.unbind(1), dim=-1),)


SPLIT_HEADS = Exercise(
    name="split_heads",
    steps=(
        *SPLIT_STEPS,
        Step("split", "(N, H, L, d_h)", lambda s: s.axis_order(s.feature_cut(s.x)), "split heads"),
    ),
    mistakes=SPLIT_MISTAKES,
    results={"split": "result"},
    trials=_split_trials,
    truth=_split_truth,
)

MERGE_HEADS = Exercise(
    name="merge_heads",
    steps=(Step("head_outputs", "(N, H, L, d_h)", lambda s: s.x), *MERGE_STEPS),
    mistakes=MERGE_MISTAKES,
    results={"merged": "result"},
    trials=_merge_trials,
    truth=_merge_truth,
)


def check_split_heads(fn: Callable | None) -> bool:
    """Check ``fn(x, num_heads)``: (N, L, D) to (N, H, L, d_h).

    Not attempted is: None in place of a function, a body of nothing but a docstring and ``...``,
    ``return ...``, or ``raise NotImplementedError``. A function that returns None is wrong.

    Returns:
        True if it is right, False if it is not attempted yet, after one printed line.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(SPLIT_HEADS, fn)


def check_merge_heads(fn: Callable | None) -> bool:
    """Check ``fn(x)``: (N, H, L, d_h) to (N, L, D), the inverse of ``split_heads``.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(MERGE_HEADS, fn)
