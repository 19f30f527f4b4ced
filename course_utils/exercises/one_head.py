"""Checks about the block of weights that belongs to one head."""

import copy
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import Trial, random_numbers


def check_head_projection(fn: Callable | None) -> bool:
    """Check ``fn(proj, num_heads, head)``: weight (d_h, D) and bias (d_h,) of one head's own layer.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, h, head in ((8, 2, 0), (14, 2, 1), (12, 3, 1)):
            proj = nn.Linear(d, d)

            def call(proj: nn.Linear = proj, h: int = h, head: int = head) -> object:
                return fn(copy.deepcopy(proj), h, head)

            def truth(proj: nn.Linear = proj, h: int = h, head: int = head) -> tuple:
                return proj.weight.double().chunk(h)[head], proj.bias.double().chunk(h)[head]

            given = {"weight": proj.weight.double(), "bias": proj.bias.double(), "num_heads": h}
            given |= {"returns": ("own_weight", "own_bias"), "head": head}
            yield Trial({}, call, truth, given, names=("weight", "bias"))

    return check("head_projection", fn, trials, mistakes.HEAD_PROJECTION, "two heads and three")


def check_remove_head(fn: Callable | None) -> bool:
    """Check ``fn(weight, bias, num_heads, head) -> (weight, bias)``: out_proj without one head.

    weight is (D, D) and bias (D,), as in ``out_proj``; what comes back are new tensors, with which
    the layer gives what it gave, less what this head added.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, h, head in ((8, 2, 0), (14, 2, 1), (12, 3, 1)):
            inputs = {"weight": random_numbers(d, d, seed=1), "bias": random_numbers(d, seed=2)}

            def call(weight: Tensor, bias: Tensor, h: int = h, head: int = head) -> object:
                return fn(weight, bias, h, head)

            def truth(weight: Tensor, bias: Tensor, h: int = h, head: int = head) -> tuple:
                blocks = list(weight.chunk(h, dim=1))
                blocks[head] = torch.zeros_like(blocks[head])
                return torch.cat(blocks, dim=1), bias

            given = {name: x.double() for name, x in inputs.items()}
            given |= {"returns": ("cleared", "kept_bias"), "num_heads": h, "head": head}
            names = ("weight", "bias")
            yield Trial(inputs, call, truth, given, names=names, gradients=False)

    return check("remove_head", fn, trials, mistakes.REMOVE_HEAD, "two heads and three")
