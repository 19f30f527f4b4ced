"""The check of lesson 1: attention for one query."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import Trial, random_numbers


def check_one_row(fn: Callable | None) -> bool:
    """Check ``fn(query, key, value) -> (output, weights)`` for a single query.

    query is (d,), key (L, d) and value (L, d_v); output is (d_v,) and weights (L,).

    Raises:
        CheckFailed: it is wrong.
    """

    def truth(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.softmax(key @ query / math.sqrt(len(query)), dim=0)
        return weights @ value, weights

    def trials(fn: Callable) -> Iterator[Trial]:
        for length, d, d_v in ((3, 4, 4), (5, 7, 2)):
            inputs = {
                "query": random_numbers(d, seed=1),
                "key": random_numbers(length, d, seed=2),
                "value": random_numbers(length, d_v, seed=3),
            }
            given = {
                "returns": ("mixed", "returned_weights"),
                "heads": [x.double() for x in inputs.values()],
                "mask": None,
            }

            def call(**x: Tensor) -> object:
                result = fn(*x.values())
                if isinstance(result, tuple):  # the lesson's own loop makes lists of numbers
                    result = tuple(torch.tensor(r) if isinstance(r, list) else r for r in result)
                return result

            yield Trial(inputs, call, truth, given, gradients=False)

    return check("one_row", fn, trials, mistakes.ATTENTION, "3 keys and 5 keys")
