"""The search for the mistakes that give exactly what a learner's code returned."""

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace

import torch
from torch import Tensor

from course_utils.exercises.registry import MISTAKES, REFERENCE, Answer, Mistake


@torch.no_grad()
def explain(
    steps: Sequence[str], observed: Sequence[tuple[dict[str, object], Answer | None]], most: int = 3
) -> list[tuple[Mistake, ...]]:
    """Find the fewest known mistakes that together give all that was observed.

    Args:
        steps: the steps of ``REFERENCE`` that the exercise consists of, in order.
        observed: for each input, what the first step starts from and what the learner's code
            returned, None if it raised an error. The first answer narrows the search down: let it
            be one to an input that tells many mistakes apart.
        most: how many mistakes to combine at most.

    Returns:
        Every smallest combination, its mistakes in the order of the steps; [] if there is none.
        As no smaller one fits, each mistake in it has an effect.
    """
    (given, answer), *others = sorted(observed, key=lambda pair: pair[1] is None)
    if answer is None:
        return []  # errors everywhere: there is no number to explain
    for size in range(most + 1):
        found = [
            mistakes
            for mistakes in _search(steps, MISTAKES, size, given, answer)
            # Where the learner's code raised an error, the same mistakes must raise one too.
            if all(mistakes in _search(steps, mistakes, size, g, a) for g, a in others if a)
        ]
        if found and size == 0:
            return []  # these very numbers are what the reference gives
        if found:  # more mistakes than these could only leave all numbers as they are
            # Where the learner's code raised an error, the same mistakes must raise one too.
            failed = [given for given, answer in others if not answer]
            return [
                mistakes
                for mistakes in found
                if not any(mistakes in _search(steps, mistakes, size, g, None) for g in failed)
            ]
    return []


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors agree in shape and, as far as float32 can tell, in every number."""
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def comparable(x: Tensor) -> Tensor:
    """In float64, with all that stands for minus infinity (-inf, -1e9, the lowest) made equal."""
    return x.detach().double().clamp(min=-1e8)


def _search(
    steps: Sequence[str],
    mistakes: Iterable[Mistake],
    size: int,
    given: dict[str, object],
    answer: Answer | None,
) -> Iterator[tuple[Mistake, ...]]:
    """Yield all combinations of up to ``size`` mistakes that give the answer (any, if None).

    Combinations share the steps before they part, and end with the first returned tensor that is
    not the learner's: this is what makes three at once affordable.
    """
    options = {step: [m for m in mistakes if m.step == step] for step in steps}

    def walk(done: int, state: dict[str, object], chosen: tuple[Mistake, ...]):
        if done == len(steps):
            yield chosen
            return
        step = steps[done]
        for mistake in (None, *options[step]) if len(chosen) < size else (None,):
            compute = mistake.variant if mistake else REFERENCE[step]
            try:
                after = {**state, step: compute(SimpleNamespace(**state))}
            except (RuntimeError, IndexError, TypeError, AttributeError):
                continue  # shapes that do not fit, or no such layer or num_heads here
            if answer is None or _agrees(step, after, answer):
                yield from walk(done + 1, after, (*chosen, mistake) if mistake else chosen)

    return walk(0, given, ())


def _agrees(step: str, state: dict[str, object], answer: Answer) -> bool:
    """Whether a step's result is the learner's, as far as it is returned."""
    order = state["order"]
    if step == "order":
        return len(order) == len(answer)
    return step not in order or same(comparable(state[step]), answer[order.index(step)])
