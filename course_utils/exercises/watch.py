"""What a learner's code computes on the way, and the first step at which it leaves the reference.

While the code runs, every tensor of numbers that goes into an operation of torch, or comes out of
one, is kept. A step of the reference counts as reached if all its numbers are among those, in
whatever shape or order: a loop over heads reaches the same scores as one product. Where the order
is the point, as for merged heads, one kept tensor must be the step itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

MOST = 4_000_000  # numbers kept, 32 MB: far more than an exercise makes of a check's small inputs
_AWAY = {  # where numbers leave torch, so that what becomes of them is not seen
    *(Tensor.tolist, Tensor.numpy, Tensor.item, Tensor.__float__, Tensor.__array__, Tensor.__int__),
}


@dataclass(frozen=True)
class Step:
    """A step of the reference on one input.

    Attributes:
        name: as in ``CheckFailed.first_difference``.
        words: what a message calls it, for example "scores".
        value: what the reference computes there, float64.
        leads_to: names of the steps that are computed from it.
        ordered: whether the numbers must also stand in this order, in a tensor of this size.
    """

    name: str
    words: str
    value: Tensor
    leads_to: tuple[str, ...] = ()
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
        """Keep a copy of every tensor of numbers among these, also inside lists and tuples."""
        for x in things:
            if isinstance(x, list | tuple):
                self.keep(x)
            elif isinstance(x, Tensor) and x.is_floating_point() and x.layout == torch.strided:
                self._count += x.numel()
                if self._count <= MOST:
                    self._kept.append(x.detach().to(torch.float64, copy=True))

    def reached(self, steps: Sequence[Step]) -> set[str]:
        """Return the names of the steps whose numbers were all computed."""
        if not self._kept:
            return set()
        numbers = torch.cat([x.flatten() for x in self._kept])
        numbers = numbers[numbers.isfinite()].unique()  # sorted
        return {
            step.name
            for step in steps
            if (self._has(step.value) if step.ordered else _among(step.value, numbers))
        }

    def like(self, value: Tensor) -> list[Tensor]:
        """Return the tensors that were kept and have the shape of this one."""
        return [x for x in self._kept if x.shape == value.shape]

    def _has(self, value: Tensor) -> bool:
        flat = value.flatten()
        return any(
            x.numel() == flat.numel() and torch.allclose(x.flatten(), flat, rtol=1e-4, atol=1e-5)
            for x in self._kept
        )


def _among(value: Tensor, numbers: Tensor) -> bool:
    """Whether every number of a tensor is among sorted numbers, as far as float32 can tell."""
    wanted = value.flatten()
    if not len(numbers) or not wanted.isfinite().all():
        return False
    right = torch.searchsorted(numbers, wanted).clamp(max=len(numbers) - 1)
    nearest = torch.minimum(
        (numbers[right] - wanted).abs(), (numbers[(right - 1).clamp(min=0)] - wanted).abs()
    )
    return bool((nearest <= 2e-6 + 2e-5 * wanted.abs()).all())


def first_difference(steps: Sequence[Step], reached: set[str]) -> tuple[list[Step], Step | None]:
    """Find where the way parts.

    A step that was not reached is no difference if something computed from it was: a query that
    is scaled before the product never shows unscaled scores.

    Returns:
        The steps up to there that were reached, and the first that was not; None if all were.
    """
    good: dict[str, bool] = {}
    for step in reversed(steps):  # what follows a step is known before the step itself
        good[step.name] = step.name in reached or any(good.get(n, False) for n in step.leads_to)
    for place, step in enumerate(steps):
        if not good[step.name]:
            return [s for s in steps[:place] if s.name in reached], step
    return [s for s in steps if s.name in reached], None


class _Keep(TorchDispatchMode):
    """Sees every operation, also those inside torch's own layers."""

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
