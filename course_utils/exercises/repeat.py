"""Mistakes that no single result shows: what is random, and what is kept from call to call."""

import random
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from course_utils.exercises.calling import CheckFailed, Run
from course_utils.exercises.differences import Judged
from course_utils.exercises.search import Mistake, same
from course_utils.exercises.trial import Trial

DROPOUT = Mistake(
    id="dropout-in-eval",
    rows=("M31", "M33"),
    step="",
    variants=(),
    title="dropout is at work outside training",
    why="Once training is over, the same input must always give the same result.",
    look="what dropout is told about self.training",
)
DROPOUT_BEFORE_SOFTMAX = Mistake(
    id="dropout-before-softmax",
    rows=("M32",),
    step="",
    variants=(),
    title="dropout comes before the softmax",
    why="A score that is dropped becomes 0, which is an ordinary score; it still gets a weight.",
    look="the order of dropout and softmax",
)
KEPT = Mistake(
    id="kept-between-calls",
    step="",
    variants=(),
    title="something is kept from one call for the next, and changes its result",
    why="Two calls with the same input must give the same result, whatever came in between.",
    look="what is stored in self, or outside the function, while it runs",
)
IS_RANDOM = "the same input gives another result each time: something is random."


@dataclass(frozen=True)
class Repeated:
    """What running the code again has shown.

    Attributes:
        mistakes: those that were found.
        random: whether the same input gives another result each time, and dropout is not why.
        explained: answers that these mistakes explain, so that nothing else must.
    """

    mistakes: tuple[Mistake, ...]
    random: bool
    explained: tuple[Judged, ...] = ()


def run_again(answered: list[Judged], calm: Judged, build: Callable[[Trial], Run]) -> Repeated:
    """Run the code again, with its randomness and without, and with other numbers in between.

    Args:
        answered: the answers to all inputs.
        calm: one of them that was not in train mode.
        build: makes the code anew for an input, as it was before its first call.

    Raises:
        CheckFailed: the result changes in a way that cannot be taken out.
    """
    before = _random_states()
    if not calm.gives(calm.run.answer()):
        if before != _random_states():
            raise CheckFailed(IS_RANDOM)
        return Repeated((KEPT,), False)
    if _remembers(answered, calm, build):
        return Repeated((KEPT,), False)
    mistakes: tuple[Mistake, ...] = ()
    changes = not calm.gives(calm.run.answer(within=nullcontext()))
    if changes and calm.means.noise:
        raise CheckFailed(IS_RANDOM)
    if changes and (not calm.means.by_hand or calm.right):
        mistakes = (DROPOUT,)
    explained = tuple(judged for judged in answered if _dropped_too_early(judged))
    if explained:
        mistakes += (DROPOUT_BEFORE_SOFTMAX,)
    return Repeated(mistakes, changes and not mistakes, explained)


def _remembers(answered: list[Judged], calm: Judged, build: Callable[[Trial], Run]) -> bool:
    """Whether a result depends on the calls before it: on other numbers, or on a mask."""
    exercise, trial = calm.run.exercise, calm.run.trial
    numbers = {name: x.flip(-1) for name, x in trial.tensors.items() if x.is_floating_point()}
    other = replace(trial, arguments={**trial.arguments, **numbers})
    masks = dict.fromkeys(name for name, x in trial.tensors.items() if x.dtype == torch.bool)
    all_right = all(judged.right for judged in answered)
    try:
        used, new = (replace(run, trial=other).answer() for run in (calm.run, build(trial)))
        if not all(map(same, used, new)):
            return True
        # A function is not made anew. If it gives the same again, that was the first one's result.
        if calm.right and calm.gives(used) and not calm.gives(exercise.truth(**other.given)):
            return True
        if masks and trial.masked:
            without = replace(other, arguments={**other.arguments, **masks})
            with suppress(CheckFailed):
                used, new = (
                    replace(run, trial=without).answer() for run in (calm.run, build(trial))
                )
                expected = exercise.truth(**without.given)
                if not all(map(same, used, new)) or (
                    all_right and not all(map(same, used, expected))
                ):
                    return True
        return not all(calm.gives(calm.run.answer()) for _ in range(2))
    except CheckFailed:
        return False


def _dropped_too_early(judged: Judged) -> bool:
    """Whether dropout works on scores: on what has the shape of weights, and is none."""
    exercise, run = judged.run.exercise, judged.run
    if not exercise.weights or not run.trial.training or judged.expected is None:
        return False
    place = list(exercise.results).index(exercise.weights)
    weights = judged.expected[place]
    if any(x.shape == weights.shape and (x < 0).any() for x in judged.means.dropped):
        return True
    if not judged.means.by_hand or len(judged.answer) <= place:
        return False
    # Dropout after the softmax leaves rows that no longer sum to 1.
    random_weights = run.answer(within=nullcontext())[place]
    return (
        random_weights.shape == weights.shape
        and not same(random_weights, weights)
        and same(random_weights.sum(-1), weights.sum(-1))
    )


def _random_states() -> tuple[object, ...]:
    state: Tensor = torch.get_rng_state()
    numpys = sys.modules.get("numpy.random")  # whoever draws from it has loaded it
    return (
        state.numpy().tobytes(),
        random.getstate(),
        numpys.get_state()[1].tobytes() if numpys else b"",
    )
