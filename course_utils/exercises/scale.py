"""The checks of lesson 2: the scale, and the gradients behind the softmax."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import SIZES, Trial, _as_number, random_numbers


def check_attention_scale(fn: Callable | None) -> bool:
    """Check ``fn(embed_dim, num_heads)``: the factor that a layer's scores are multiplied by.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for _, _, d, h in SIZES:
            sizes = {"embed_dim": d, "num_heads": h}

            def call(d: int = d, h: int = h) -> object:
                factor = fn(d, h)
                return None if factor is None else _as_number("the factor", factor)

            def truth(d: int = d, h: int = h) -> tuple[Tensor]:
                return (torch.tensor(1 / math.sqrt(d / h), dtype=torch.float64),)

            given = {"returns": ("factor",), **sizes}
            yield Trial({}, call, truth, given, names=("the factor",))

    return check("attention_scale", fn, trials, mistakes.ATTENTION_SCALE)


def check_gradient_norms(fn: Callable | None) -> bool:
    """Check ``fn(query, key, upstream, scaled)``: how large a gradient reaches the scores.

    query is (Q, d), key (Q, L, d), upstream (Q, L), and the result (Q,): for each query the norm of
    the gradient at the scores that go into softmax, if upstream is the gradient at the weights.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for queries, length, d, scaled in ((3, 3, 8, False), (4, 5, 7, False), (4, 5, 7, True)):
            inputs = {
                "query": random_numbers(queries, d, seed=1),
                "key": random_numbers(queries, length, d, seed=2),
                "upstream": random_numbers(queries, length, seed=3),
            }

            def call(scaled: bool = scaled, **x: Tensor) -> object:
                return fn(*x.values(), scaled)

            def truth(
                query: Tensor, key: Tensor, upstream: Tensor, scaled: bool = scaled
            ) -> tuple[Tensor]:
                scores = torch.einsum("qd,qld->ql", query, key)
                scores = scores / (math.sqrt(query.shape[-1]) if scaled else 1)
                scores.requires_grad_()
                weights = torch.softmax(scores, dim=-1)
                return (torch.autograd.grad(weights, scores, upstream)[0].norm(dim=-1),)

            given = {name: x.double() for name, x in inputs.items()}
            given |= {"returns": ("norms",), "is_scaled": scaled}
            yield Trial(inputs, call, truth, given, names=("the result",), gradients=False)

    return check(
        "gradient_norms", fn, trials, mistakes.GRADIENT_NORMS, "with and without the scale"
    )
