"""One input for a learner's code, and the random numbers in it."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

SIZES = ((2, 3, 8, 2), (3, 5, 14, 2), (1, 4, 12, 3))  # N, L, D, H


@dataclass(frozen=True)
class Trial:
    """One input for a learner's code.

    Attributes:
        arguments: what the code is called with, by name and in order: tensors, numbers, modules.
            None stands for an argument that is not passed.
        sizes: what messages say of the input beside its arguments, such as the heads of a layer.
        start: what the steps start from beside the arguments, by name.
        masked: whether a mask of attention is passed. Inputs without one are also judged alone.
        padded: whether some of the input is padding. Inputs without any are also judged alone.
        float64: whether numbers are in float64. Code that makes float32 tensors of its own raises
            an error then, which does not count: the course uses no other.
        training: whether the layer is in train mode, where randomness is its own affair.
        parameters: of the learner's layer, by name; a gradient must reach each of them.
        form: what the input is in the words of the exercise, such as "one head, (L, d)".
    """

    arguments: Mapping[str, object]
    sizes: Mapping[str, int] = field(default_factory=dict)
    start: Mapping[str, object] = field(default_factory=dict)
    masked: bool = False
    padded: bool = False
    float64: bool = False
    training: bool = False
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    form: str = ""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Those of the arguments that are tensors."""
        return {name: x for name, x in self.arguments.items() if isinstance(x, Tensor)}

    @cached_property
    def given(self) -> dict[str, object]:
        """What the steps start from: the arguments in float64, and ``start``."""
        return {name: _exact(x) for name, x in self.arguments.items()} | dict(self.start)

    @property
    def label(self) -> str:
        """The input in words, for messages."""
        parts = [f"{name} {said}" for name, x in self.arguments.items() if (said := _in_words(x))]
        parts += [f"{name} {size}" for name, size in self.sizes.items()]
        said = ", ".join(parts + ["train mode"] * self.training)
        return f"{said}: {self.form}" if self.form else said

    @property
    def kind(self) -> tuple[bool, ...]:
        """What makes other lines of the code run: a mask, padding, an argument True or False."""
        switches = (x for x in self.arguments.values() if isinstance(x, bool))
        return self.masked, self.padded, *switches


def random_numbers(*shape: int, seed: int = 0) -> Tensor:
    """Normal random numbers, the same each time, without touching the global random state."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def random_maps(*shape: int) -> Tensor:
    """Random weights (..., L_q, L_k), of which each row sums to 1."""
    return torch.softmax(random_numbers(*shape), dim=-1)


def random_mask(*shape: int, open_row: int | None = 0) -> Tensor:
    """Return a mask with an open row, then a blocked one, then a partly blocked one, and others.

    Args:
        shape: (..., L_q, L_k).
        open_row: where the three begin; None, all rows are partly blocked.
    """
    mask = random_numbers(*shape) > 0
    if open_row is None:
        mask[..., 0], mask[..., 1] = True, False
        return mask
    is_open, is_blocked, is_partly = ((open_row + i) % shape[-2] for i in range(3))
    mask[..., is_open, :], mask[..., is_blocked, :] = True, False
    mask[..., is_partly, 0], mask[..., is_partly, 1] = True, False
    return mask


def with_random_parameters(module: nn.Module, std: float = 1.0) -> nn.Module:
    """Fill all weights and biases: zeros, as torch starts biases, would hide mistakes."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=std)
    return module


def _exact(x: object) -> object:
    if isinstance(x, nn.Module):
        return copy.deepcopy(x).double()
    if isinstance(x, Tensor) and x.is_floating_point():
        return x.detach().to(torch.float64, copy=True)
    return x


def _in_words(x: object) -> str:
    """A tensor's shape, or what a number or a row of integers is; "" for anything else."""
    if isinstance(x, Tensor):
        return str(tuple(x.shape) if x.is_floating_point() or x.ndim > 1 else x.tolist())
    return str(x) if isinstance(x, int) else ""
