"""Named steps to a right answer, known mistakes at these steps, and the search for them.

A mistake replaces one step, so mistakes at different steps combine without further code.
``explain`` looks for the fewest that together give what a learner's code returned.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import torch
from torch import Tensor

Answer = tuple[Tensor, ...]
Compute = Callable[[SimpleNamespace], object]
Seen = Callable[[str, object], bool]  # a step's name and a value: was it computed?
Observed = tuple[Mapping[str, object], Answer]  # what the steps start from, and what came back


class DoesNotFit(Exception):  # noqa: N818 - it says what happened
    """A step or variant does not apply to this input, or its shapes do not fit together."""


@dataclass(frozen=True)
class Step:
    """One step on the way to the right answer.

    Attributes:
        name: a noun. Later steps read the value under it: ``s.scores``.
        value: what the value is: a tensor's shape, or its type and meaning.
        compute: what the steps start from and the values of the steps before, to the value.
        called: what a message calls the value, where the name alone would not do.
    """

    name: str
    value: str
    compute: Compute
    called: str = ""

    @property
    def words(self) -> str:
        """What a message calls the value."""
        return self.called or self.name.replace("_", " ")


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One known mistake: what it computes, and what to say about it.

    Attributes:
        id: stable name, as in ``CheckFailed.mistakes``.
        rows: rows of the course's catalogue, for example ("M12", "M13").
        step: name of the step that goes wrong; "" if it shows only when the code is run.
        variants: what is computed there instead. Several are several ways to make this mistake.
        title: what was done, in one line. If the variants differ in this, it holds a ``{}``.
        details: what stands in place of ``{}``, for each variant; empty if there is none.
        why: why it is wrong.
        look: where in one's own code to look; never the finished code.
        needs_mask: whether it is named only if some input had a mask. Without any, another
            mistake gives the same numbers.
    """

    id: str
    rows: tuple[str, ...] = ()
    step: str
    variants: tuple[Compute, ...]
    title: str
    details: tuple[str, ...] = ()
    why: str
    look: str
    needs_mask: bool = False

    def ways(self) -> list["Mistake"]:
        """Return this mistake once for each variant, with the title that belongs to it."""
        if not self.details:
            return [replace(self, variants=(variant,)) for variant in self.variants]
        return [
            replace(self, variants=(variant,), title=self.title.format(detail), details=())
            for variant, detail in zip(self.variants, self.details, strict=True)
        ]


@torch.no_grad()
def explain(
    steps: Sequence[Step],
    mistakes: Sequence[Mistake],
    answered: Sequence[Observed],
    failed: Sequence[Mapping[str, object]] = (),
    most: int = 3,
    computed: Callable[[], Seen] | None = None,
) -> list[tuple[Mistake, ...]]:
    """Find the fewest known mistakes that together give all that was observed.

    Args:
        steps: the steps of the exercise, in order. The value of one called "returned" must be the
            names of the steps whose values come back.
        mistakes: those that may have been made.
        answered: what the steps start from, and what the learner's code returned. The search
            begins with the last of them: let it be an input that tells many mistakes apart.
        failed: what the steps start from, for each input on which the code raised an error.
        most: how many mistakes to combine at most.
        computed: makes what says whether the learner's code computed a step's value on the last
            answered input. With it, three mistakes at once are looked for along the learner's own
            way only, which is what makes them affordable.

    Returns:
        Every smallest combination, its mistakes in the order of the steps; [] if there is none.
        As no smaller one fits, each mistake in it has an effect.
    """
    if not answered:
        return []  # errors everywhere: there is no number to explain
    *others, (given, answer) = answered
    ways = [way for mistake in mistakes for way in mistake.ways()]
    for size in range(most + 1):
        seen = computed() if computed and size > 2 else None
        found = [
            chosen
            for chosen in _combinations(steps, ways, size, given, answer, seen)
            if all(_gives(steps, chosen, *observed) for observed in others)
            # Where the learner's code raised an error, the same mistakes must raise one too.
            and not (chosen and any(_runs(steps, chosen, given) for given in failed))
        ]
        if found:  # more mistakes than these could only leave all numbers as they are
            return _without_repetition(chosen for chosen in found if chosen)
    return []


class _Noted(SimpleNamespace):
    """Values by name, which notes the names that are read."""

    def __getattribute__(self, name: str) -> object:
        if not name.startswith("_"):
            object.__getattribute__(self, "_read").add(name)
        return object.__getattribute__(self, name)


@torch.no_grad()
def traced(
    steps: Sequence[Step], given: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, frozenset[str]]]:
    """Compute all steps; return their values, and for each the names that it read."""
    state, reads = dict(given), {}
    for step in steps:
        noted: set[str] = set()
        state[step.name] = step.compute(_Noted(_read=noted, **state))
        reads[step.name] = frozenset(noted)
    return state, reads


def values_of(
    steps: Sequence[Step], given: Mapping[str, object], chosen: Sequence[Mistake] = ()
) -> dict[str, object]:
    """Compute all steps; mistakes of a single variant take the place of theirs.

    Raises:
        DoesNotFit: a step cannot be computed.
    """
    variants = {mistake.step: mistake.variants[0] for mistake in chosen}
    state = dict(given)
    for step in steps:
        state[step.name] = _value(variants.get(step.name, step.compute), state)
    return state


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors agree in shape, in kind and, as far as float32 can tell, in numbers."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype == torch.bool:
        return torch.equal(a, b)
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def comparable(x: Tensor) -> Tensor:
    """Numbers in float64, with all that stands for minus infinity (-1e9, the lowest) made equal.

    A boolean tensor stays as it is: a mask of numbers is another kind of answer.
    """
    return x if x.dtype == torch.bool else x.detach().double().clamp(min=-1e8)


def _value(compute: Compute, state: Mapping[str, object]) -> object:
    try:
        return compute(SimpleNamespace(**state))
    except (RuntimeError, IndexError) as error:
        # With these two torch refuses shapes and axes that do not fit. Their subclasses, and all
        # other errors, are slips in this package and must be seen.
        if type(error) not in (RuntimeError, IndexError):
            raise
        raise DoesNotFit(str(error)) from error


def _combinations(
    steps: Sequence[Step],
    ways: Sequence[Mistake],
    size: int,
    given: Mapping[str, object],
    answer: Answer,
    seen: Seen | None,
) -> Iterator[tuple[Mistake, ...]]:
    """Yield all combinations of up to ``size`` mistakes that give the answer.

    Combinations share the steps before they part, and end with the first returned tensor that is
    not the learner's, or with the first step that the learner did not compute.
    """
    options = {step.name: [way for way in ways if way.step == step.name] for step in steps}

    def walk(done: int, state: dict[str, object], chosen: tuple[Mistake, ...]) -> Iterator:
        if done == len(steps):
            yield chosen
            return
        step = steps[done]
        for way in (None, *options[step.name]) if len(chosen) < size else (None,):
            try:
                value = _value(way.variants[0] if way else step.compute, state)
            except DoesNotFit:
                continue
            if seen and not seen(step.name, value):
                continue
            after = {**state, step.name: value}
            if _agrees(step.name, after, answer):
                yield from walk(done + 1, after, (*chosen, way) if way else chosen)

    return walk(0, dict(given), ())


def _agrees(name: str, state: Mapping[str, object], answer: Answer) -> bool:
    """Whether a step's value is the learner's, as far as it is returned."""
    returned = state["returned"]
    if name == "returned":
        return len(returned) == len(answer)
    return name not in returned or same(comparable(state[name]), answer[returned.index(name)])


def _gives(
    steps: Sequence[Step],
    chosen: Sequence[Mistake],
    given: Mapping[str, object],
    answer: Answer,
) -> bool:
    try:
        state = values_of(steps, given, chosen)
    except DoesNotFit:
        return False
    return all(_agrees(step.name, state, answer) for step in steps)


def _runs(steps: Sequence[Step], chosen: Sequence[Mistake], given: Mapping[str, object]) -> bool:
    try:
        values_of(steps, given, chosen)
    except DoesNotFit:
        return False
    return True


def _without_repetition(found: Iterator[tuple[Mistake, ...]]) -> list[tuple[Mistake, ...]]:
    """Keep one of those that say the same, because they differ in their variants alone."""
    said = {tuple((m.id, m.title) for m in chosen): chosen for chosen in found}
    return list(said.values())
