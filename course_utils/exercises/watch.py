"""What a learner's code computes on the way, and the first step at which it leaves the reference.

While the code runs, every tensor that goes into an operation of torch, or comes out of one, is
kept. A step of the reference counts as reached if all its numbers are among those, in whatever
shape or order: a loop over heads reaches the same scores as one product. Where a step only
rearranges what the step before made, one kept tensor must be the step itself.
"""

import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

MOST = 4_000_000  # numbers kept, 32 MB: far more than an exercise makes of a check's small inputs
_AWAY = {  # where numbers leave torch, so that what becomes of them is not seen
    *(Tensor.tolist, Tensor.numpy, Tensor.item, Tensor.__float__, Tensor.__array__, Tensor.__int__),
}


@dataclass(frozen=True)
class Passed:
    """A step of the reference on one input.

    Attributes:
        name: as in ``CheckFailed.first_difference``.
        value: what the reference computes there, numbers in float64 or booleans.
        reads: names of the steps that it is computed from.
        ordered: whether the numbers must also stand in this order, in one tensor of this size:
            those steps that only rearrange have no numbers of their own.
    """

    name: str
    value: Tensor
    reads: frozenset[str] = frozenset()
    ordered: bool = False


class Watch:
    """A context in which all that torch computes is kept.

    Attributes:
        left_torch: whether numbers were taken out of torch, one by one or as an array.
    """

    def __init__(self) -> None:
        self.left_torch = False
        self._kept: list[Tensor] = []
        self._count = 0
        self._modes = (_SeenLeaving(self), _Keep(self))

    def __enter__(self) -> "Watch":
        for mode in self._modes:
            mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*error)

    def keep(self, things: Iterable[object]) -> None:
        """Keep a copy of every tensor of numbers or booleans among these, also inside lists."""
        for x in things:
            if isinstance(x, list | tuple):
                self.keep(x)
            elif isinstance(x, Tensor) and x.layout == torch.strided and not x.is_complex():
                self._count += x.numel()
                if self._count <= MOST:
                    kind = x.dtype if x.dtype == torch.bool else torch.float64
                    self._kept.append(x.detach().to(kind, copy=True))

    def reached(self, steps: Sequence[Passed]) -> set[str]:
        """Return the names of the steps whose values were computed."""
        pool = self.numbers()
        return {
            step.name
            for step in steps
            if (self._has(step.value) if step.ordered else among(step.value, pool))
        }

    def numbers(self) -> np.ndarray:
        """Return all numbers that were computed, sorted."""
        return numbers_of(self._kept)

    def like(self, value: Tensor) -> list[Tensor]:
        """Return the tensors that were kept and have the shape of this one."""
        return [x for x in self._kept if x.shape == value.shape]

    def _has(self, value: Tensor) -> bool:
        flat = value.flatten()
        return any(
            x.numel() == flat.numel()
            and x.dtype == flat.dtype
            and torch.allclose(x.flatten().double(), flat.double(), rtol=1e-4, atol=1e-5)
            for x in self._kept
        )


def first_difference(
    steps: Sequence[Passed], reached: set[str], returned: Collection[str] = ()
) -> tuple[tuple[str, ...], str | None]:
    """Find where the way parts.

    A step that was not reached is no difference if something computed from it was: a query that
    is scaled before the product never shows unscaled scores.

    Args:
        steps: in the order in which the reference computes them.
        reached: names of those that the learner's code computed as well.
        returned: names of those whose values come back, and must be right themselves.

    Returns:
        The names of the steps up to there that were reached, and of the first that was not; None
        if all were.
    """
    good: dict[str, bool] = {}
    for step in reversed(steps):  # what is computed from a step is known before the step itself
        follows = [later.name for later in steps if _uses(later, step)]
        led_on = step.name not in returned and any(good.get(name, False) for name in follows)
        good[step.name] = step.name in reached or led_on
    names = [step.name for step in steps]
    first = next((name for name in names if not good[name]), None)
    before = names[: names.index(first)] if first else names
    return tuple(name for name in before if name in reached), first


def _uses(later: Passed, step: Passed) -> bool:
    """Whether a step computes something new from another one, and does not just pass it on."""
    if step.name not in later.reads:
        return False
    return later.ordered or not among(later.value, numbers_of([step.value]))


def passed(
    names: Sequence[str],
    values: Mapping[str, object],
    reads: Mapping[str, frozenset[str]],
    always: Sequence[str] = (),
) -> list[Passed]:
    """Make steps to look for of what the reference computed.

    Args:
        names: of the steps, in order.
        values: step to its value. A list of tensors is looked for as a whole; what is no tensor,
            or holds the same number everywhere, cannot be looked for.
        reads: step to the names that it was computed from.
        always: names of steps that are looked for in any case.
    """
    steps: list[Passed] = []
    hidden: dict[str, frozenset[str]] = {}  # what stands behind a step that cannot be looked for
    for name in names:
        behind = frozenset().union(*({r} | hidden.get(r, frozenset()) for r in reads[name]))
        value = values[name] if name in always else _as_tensor(values[name])
        if value is None:
            hidden[name] = behind
            continue
        boolean = value.dtype == torch.bool
        before = [s.value for s in steps if s.name in behind]
        steps.append(
            Passed(name, value, behind, boolean or any(_rearranged(value, x) for x in before))
        )
    return steps


def _as_tensor(value: object) -> Tensor | None:
    if isinstance(value, list | tuple) and value and all(map(_holds_numbers, value)):
        value = torch.cat([x.flatten() for x in value])
    if not isinstance(value, Tensor) or value.numel() < 2 or not torch.isfinite(value).all():
        return None
    return None if (value == value.flatten()[0]).all() else value


def _holds_numbers(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _rearranged(value: Tensor, other: Tensor) -> bool:
    if value.numel() != other.numel() or value.dtype != other.dtype:
        return False
    return torch.equal(value.flatten().sort().values, other.flatten().sort().values)


def numbers_of(things: Iterable[object]) -> np.ndarray:
    """Return all finite numbers of the tensors among these, sorted, each once."""
    parts = [
        x.detach().flatten().double().numpy()
        for x in things
        if isinstance(x, Tensor) and x.dtype != torch.bool
    ]
    pool = np.concatenate(parts) if parts else np.zeros(0)
    return np.unique(pool[np.isfinite(pool)])


def among(value: Tensor, pool: np.ndarray) -> bool:
    """Whether every finite number of a tensor is in a pool, as far as float32 can tell.

    Args:
        value: any tensor of numbers.
        pool: as ``numbers_of`` makes it. With numpy, as torch's search costs more for so few.
    """
    if not len(pool):
        return False
    wanted = value.detach().flatten().double().numpy()
    wanted = wanted[np.isfinite(wanted)]
    # Most values are refused by their first number; a whole array is far slower to look up.
    return not wanted.size or (_near(wanted[0], pool) and _all_near(wanted, pool))


def _near(x: float, pool: np.ndarray) -> bool:
    place = bisect.bisect_left(pool, x)
    return any(abs(y - x) <= 2e-6 + 2e-5 * abs(x) for y in pool[max(place - 1, 0) : place + 1])


def _all_near(wanted: np.ndarray, pool: np.ndarray) -> bool:
    right = np.minimum(np.searchsorted(pool, wanted), len(pool) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.minimum(np.abs(pool[right] - wanted), np.abs(pool[left] - wanted))
    return bool((nearest <= 2e-6 + 2e-5 * np.abs(wanted)).all())


class _Keep(TorchDispatchMode):
    """Sees every operation, also those inside torch's own layers."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave torch's compiler alone: to tell it to skip this imports it, for seconds."""
        return False

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.watch.keep((args, result))
        return result


class _SeenLeaving(TorchFunctionMode):
    """Sees the calls that turn tensors into plain numbers or arrays."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _AWAY:
            self.watch.left_torch = True
        return func(*args, **(kwargs or {}))
