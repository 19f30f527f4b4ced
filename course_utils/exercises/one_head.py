"""The block of weights that belongs to one head: as a layer of its own, and removed.

Lesson 3 cuts it out of an input projection, lesson 8 clears it in the output projection.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Mistake, Step
from course_utils.exercises.trial import Trial, random_numbers

_ROWS_ARE_OUTPUTS = "torch stores (out, in): columns are inputs, and a head reads all of the input."


def _head_dim(s: SimpleNamespace) -> int:
    return len(s.weight) // s.num_heads


def _rows(s: SimpleNamespace, head: int) -> Tensor:
    return head * _head_dim(s) + torch.arange(_head_dim(s))


def _other_rows(s: SimpleNamespace) -> Tensor:
    """The features that are not the head's own."""
    return torch.tensor([i for i in range(len(s.weight)) if i not in s.head_rows % len(s.weight)])


def _cleared(x: Tensor, axis: int, rows: Tensor) -> Tensor:
    return x.index_fill(axis, rows % x.shape[axis], 0.0)


def _cleared_weight(s: SimpleNamespace) -> Tensor:
    return _cleared(s.weight, 1, s.head_rows)


_HEAD_ROWS = Step("head_rows", "(d_h,), the features of one head", lambda s: _rows(s, s.head))

HEAD_ROWS_MISTAKES = (
    Mistake(
        id="block-interleaved",
        rows=("M10",),
        step="head_rows",
        variants=(lambda s: s.head + s.num_heads * torch.arange(_head_dim(s)),),
        title="the head takes every H-th row or column",
        why="Head h holds neighbours, features h·d_h to (h+1)·d_h.",
        look="the step of your slice",
    ),
    Mistake(
        id="always-head-0",
        step="head_rows",
        variants=(lambda s: _rows(s, 0),),
        title="it is always the block of head 0",
        why="Each head has a block of its own.",
        look="what becomes of the argument head",
    ),
    Mistake(
        id="counts-heads-from-1",
        step="head_rows",
        variants=(
            lambda s: _rows(s, s.head - 1),
            # In a slice, the block of head 0 is empty.
            lambda s: torch.arange(max(s.head - 1, 0) * _head_dim(s), s.head * _head_dim(s)),
        ),
        title="heads are counted from 1",
        why="head counts from 0, as everywhere in this course.",
        look="where the block of head 0 begins",
    ),
    Mistake(
        id="block-as-wide-as-head-count",
        step="head_rows",
        variants=(lambda s: s.head * s.num_heads + torch.arange(s.num_heads),),
        title="the block is H wide instead of d_h",
        why="H says how many blocks there are; each is d_h = D / H wide.",
        look="the width of the slice",
    ),
    Mistake(
        id="block-of-one-feature",
        step="head_rows",
        variants=(lambda s: torch.tensor([s.head]),),
        title="a single row or column is taken, the one whose number is that of the head",
        why="A head owns d_h = D / H features. Its number says which block, not which feature.",
        look="the width of the slice",
    ),
    Mistake(
        id="block-open-at-one-end",
        step="head_rows",
        variants=(
            lambda s: torch.arange(s.head * _head_dim(s), len(s.weight)),
            lambda s: torch.arange((s.head + 1) * _head_dim(s)),
        ),
        title="the block goes on to the end, or begins at 0",
        why="A head has d_h features; those before and behind belong to other heads.",
        look="both ends of the slice",
    ),
)

PROJECTION_MISTAKES = (
    *HEAD_ROWS_MISTAKES,
    Mistake(
        id="block-of-columns",
        rows=("M07",),
        step="head_weight",
        variants=(lambda s: s.weight[:, s.head_rows],),
        title="the block is made of columns",
        why=_ROWS_ARE_OUTPUTS,
        look="which axis of the weight is cut",
    ),
    Mistake(
        id="block-of-columns-turned",
        rows=("M07",),
        step="head_weight",
        variants=(lambda s: s.weight[:, s.head_rows].T,),
        title="the block is made of columns, turned round",
        why=_ROWS_ARE_OUTPUTS,
        look="which axis of the weight is cut",
    ),
    Mistake(
        id="block-reads-a-slice",
        rows=("M06",),
        step="head_weight",
        variants=(lambda s: s.weight[s.head_rows][:, s.head_rows],),
        title="the block is cut on both sides, (d_h, d_h)",
        why="A head is not a slice of the token: it reads all D features.",
        look="whether anything is cut from the inputs",
    ),
    Mistake(
        id="whole-bias",
        step="head_bias",
        variants=(lambda s: s.bias,),
        title="the bias is the whole one, (D,)",
        why="A head's own layer makes d_h features, and needs a bias for each of those.",
        look="the bias that is returned",
    ),
)

REMOVAL_MISTAKES = (
    *HEAD_ROWS_MISTAKES,
    Mistake(
        id="rows-cleared",
        step="cleared_weight",
        variants=(lambda s: _cleared(s.weight, 0, s.head_rows),),
        title="rows of out_proj.weight are cleared instead of columns",
        why="torch stores (out, in), and heads come in; to a row, all heads add.",
        look="which axis of the weight is cut",
    ),
    Mistake(
        id="rows-and-columns-cleared",
        step="cleared_weight",
        variants=(lambda s: _cleared(_cleared_weight(s), 0, s.head_rows),),
        title="rows and columns are both cleared",
        why="The rows take something from every head; only the columns belong to this one.",
        look="how often the weight is cut",
    ),
    Mistake(
        id="square-cleared",
        step="cleared_weight",
        variants=(
            lambda s: s.weight - _cleared(_cleared(s.weight, 0, _other_rows(s)), 1, _other_rows(s)),
        ),
        title="only a square of the block is cleared, (d_h, d_h)",
        why="A head writes to all D features of the output, so its block has D rows.",
        look="whether anything is cut from the outputs",
    ),
    Mistake(
        id="others-cleared",
        step="cleared_weight",
        variants=(lambda s: s.weight - _cleared_weight(s),),
        title="this head alone is kept, and all others are removed",
        why="Asked is the layer without this head.",
        look="what is kept, and what is cleared",
    ),
    Mistake(
        id="others-scaled-up",
        step="cleared_weight",
        variants=(lambda s: _cleared_weight(s) * s.num_heads / (s.num_heads - 1),),
        title="the other heads are multiplied by H / (H - 1)",
        why="Heads are added, not averaged: without one, the others add what they added before.",
        look="each factor on the columns that stay",
    ),
    Mistake(
        id="block-of-fixed-width",
        step="cleared_weight",
        variants=(
            lambda s: _cleared(
                s.weight, 1, torch.arange(len(s.weight))[s.head * 32 : (s.head + 1) * 32]
            ),
        ),
        title="the block is always 32 wide, as in the model of lesson 8",
        why="A head is d_h = D / H wide, and other layers have another D and H.",
        look="where the width of the slice comes from: the arguments, or the notebook",
    ),
    Mistake(
        id="bias-cleared",
        rows=("M09",),
        step="kept_bias",
        variants=(lambda s: torch.zeros_like(s.bias),),
        title="the bias is cleared as well",
        why="The bias is added once for all heads together; it is not this head's.",
        look="what becomes of the bias",
    ),
    Mistake(
        id="block-of-bias-cleared",
        rows=("M09",),
        step="kept_bias",
        variants=(lambda s: _cleared(s.bias, 0, s.head_rows),),
        title="a block of the bias is cleared as well",
        why="The bias belongs to the output, to which every head adds; none of it is this head's.",
        look="what becomes of the bias",
    ),
)


_WHICH = ((8, 2, 0), (14, 2, 1), (12, 3, 1))  # D, H, head


def _projection_trials() -> Iterator[Trial]:
    for d, h, head in _WHICH:
        yield Trial({"proj": nn.Linear(d, d), "num_heads": h, "head": head})


def _projection_truth(proj: nn.Linear, num_heads: int, head: int) -> Answer:
    return proj.weight.chunk(num_heads)[head], proj.bias.chunk(num_heads)[head]


def _removal_trials() -> Iterator[Trial]:
    for d, h, head in _WHICH:
        weight, bias = random_numbers(d, d, seed=1), random_numbers(d, seed=2)
        yield Trial({"weight": weight, "bias": bias, "num_heads": h, "head": head})


def _removal_truth(weight: Tensor, bias: Tensor, num_heads: int, head: int) -> Answer:
    blocks = list(weight.chunk(num_heads, dim=1))
    blocks[head] = torch.zeros_like(blocks[head])
    return torch.cat(blocks, dim=1), bias


HEAD_PROJECTION = Exercise(
    name="head_projection",
    steps=(
        Step("weight", "(D, D)", lambda s: s.proj.weight),
        Step("bias", "(D,)", lambda s: s.proj.bias),
        _HEAD_ROWS,
        Step("head_weight", "(d_h, D)", lambda s: s.weight[s.head_rows]),
        Step("head_bias", "(d_h,)", lambda s: s.bias[s.head_rows]),
    ),
    mistakes=PROJECTION_MISTAKES,
    results={"head_weight": "weight", "head_bias": "bias"},
    trials=_projection_trials,
    truth=_projection_truth,
    covered="two heads and three",
)

REMOVE_HEAD = Exercise(
    name="remove_head",
    steps=(
        _HEAD_ROWS,
        Step("cleared_weight", "(D, D)", _cleared_weight),
        Step("kept_bias", "(D,)", lambda s: s.bias),
    ),
    mistakes=REMOVAL_MISTAKES,
    results={"cleared_weight": "weight", "kept_bias": "bias"},
    trials=_removal_trials,
    truth=_removal_truth,
    covered="two heads and three",
    gradients=False,
)


def check_head_projection(fn: Callable | None) -> bool:
    """Check ``fn(proj, num_heads, head)``: weight (d_h, D) and bias (d_h,) of one head's own layer.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(HEAD_PROJECTION, fn)


def check_remove_head(fn: Callable | None) -> bool:
    """Check ``fn(weight, bias, num_heads, head) -> (weight, bias)``: out_proj without one head.

    weight is (D, D) and bias (D,), as in ``out_proj``; what comes back are new tensors, with which
    the layer gives what it gave, less what this head added.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(REMOVE_HEAD, fn)
