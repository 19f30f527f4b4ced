"""Lesson 1: one attention for a single query."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_utils.exercises.attention_steps import (
    ATTENTION_MISTAKES,
    ATTENTION_STEPS,
    HEADS,
    divisor_of,
)
from course_utils.exercises.exercise import Exercise, in_order
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Step
from course_utils.exercises.trial import Trial, random_numbers

_NO_MASK = Step("mask", "None", lambda s: None)


def _row_trials() -> Iterator[Trial]:
    for length, d, d_v in ((3, 4, 4), (5, 7, 2)):
        yield Trial(
            {
                "query": random_numbers(d, seed=1),
                "key": random_numbers(length, d, seed=2),
                "value": random_numbers(length, d_v, seed=3),
            }
        )


def _row_truth(query: Tensor, key: Tensor, value: Tensor) -> Answer:
    weights = torch.softmax(key @ query / math.sqrt(len(query)), dim=0)
    return weights @ value, weights


def _call_for_row(fn: Callable, **arguments: Tensor) -> object:
    """Take lists for tensors: the lesson's own loop makes lists of numbers."""
    result = in_order(fn, **arguments)
    if isinstance(result, tuple):
        result = tuple(torch.tensor(r) if isinstance(r, list) else r for r in result)
    return result


ONE_ROW = Exercise(
    name="one_row",
    steps=(HEADS, _NO_MASK, *ATTENTION_STEPS),
    mistakes=ATTENTION_MISTAKES,
    results={"head_outputs": "output", "returned_weights": "weights"},
    weights="returned_weights",
    learn=divisor_of,
    trials=_row_trials,
    truth=_row_truth,
    call=_call_for_row,
    covered="3 keys and 5 keys",
    gradients=False,
)


def check_one_row(fn: Callable | None) -> bool:
    """Check ``fn(query, key, value) -> (output, weights)`` for a single query.

    query is (d,), key (L, d) and value (L, d_v); output is (d_v,) and weights (L,).

    Raises:
        CheckFailed: it is wrong.
    """
    return check(ONE_ROW, fn)
