"""Where a wrong result leaves the reference, for mistakes that have no name."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from course_utils.exercises.chance import Means
from course_utils.exercises.differences import Judged, axis_of_sums
from course_utils.exercises.search import comparable, same, traced
from course_utils.exercises.watch import Watch, among, first_difference, numbers_of, passed


@dataclass(frozen=True)
class Place:
    """Where the first difference is.

    Attributes:
        step: the name of the first step whose numbers are not the reference's; None if the steps
            cannot be watched.
        words: a sentence that says so.
    """

    step: str | None
    words: str


class _Watched(Means):
    """Nothing random, and all that is computed is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()

    def __enter__(self) -> "_Watched":
        self.watch.__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.watch.__exit__(*error)


def computed_values(judged: Judged) -> Callable[[str, object], bool]:
    """Run the code once more, and return what says whether it computed a step's value."""
    within = _Watched()
    judged.run.answer(within=within)
    pool = within.watch.numbers()

    def seen(name: str, value: object) -> bool:
        if name not in judged.run.exercise.watched:
            return True
        parts = value if isinstance(value, tuple) else (value,)
        return all(among(x, pool) for x in parts if isinstance(x, Tensor))

    return seen


def locate(judged: Judged) -> Place:
    """Run the code once more and watch it.

    Args:
        judged: a wrong answer, of the number of results that was asked for or of fewer.
    """
    exercise = judged.run.exercise
    words = {step.name: step.words for step in exercise.steps}
    values, reads = traced(exercise.steps, exercise.start(judged.run.trial))
    steps = passed(list(reads), values, reads, always=tuple(exercise.results))
    within = _Watched()
    judged.run.answer(within=within)
    watch = within.watch
    handed_over = numbers_of(judged.run.trial.given.values())
    inputs = {step.name for step in steps if among(step.value, handed_over)}
    reached = watch.reached(steps)
    for name, got in zip(exercise.results, judged.answer, strict=False):
        reached.discard(name)
        if same(got, comparable(values[name])):
            reached.add(name)
    before, first = first_difference(steps, reached, exercise.results)
    if watch.left_torch and not set(before) - inputs - set(exercise.results):
        return Place(
            None,
            "Your code takes the numbers out of torch (item, tolist, float, NumPy), so its steps "
            "cannot be watched.",
        )
    if first is None:  # the numbers of every step were computed, but other ones came back
        return Place(None, "")
    said = f"first difference is in the {words[first]}{_detail(first, values, judged, watch)}."
    computed = [name for name in before if name not in inputs]
    if not computed:
        return Place(first, f"The {said}")
    return Place(first, f"Up to the {words[computed[-1]]} your numbers are right; the {said}")


def _detail(first: str, values: dict[str, object], judged: Judged, watch: Watch) -> str:
    """Say what is special about the numbers that differ."""
    right = values[first]
    results = dict(zip(judged.run.exercise.results, judged.answer, strict=False))
    if first in results and _rearranged(results[first], comparable(right)):
        return ": all numbers are there, in another order"
    if first != "weights":
        return ""
    for made in watch.like(right):
        if made.min() >= 0 and (axis := axis_of_sums(made)):
            told = (
                "each row sums to 1, over the keys"
                if axis == "key"
                else (f"they sum to 1 over the {axis} axis, not over the keys")
            )
            return f": {told}"
    return ": nothing of their shape sums to 1"


def _rearranged(got: Tensor, want: Tensor) -> bool:
    if got.numel() != want.numel() or got.dtype != want.dtype:
        return False
    return same(got.flatten().sort().values, want.flatten().sort().values)
