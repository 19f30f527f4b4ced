"""Checks about reading the weights of each head."""

import copy
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import SIZES, Trial, random_numbers


def check_per_head_weights(fn: Callable | None, block: Callable[[int, int], nn.Module]) -> bool:
    """Check ``fn(block, x)``: the weights of each head, (N, H, L, L), inside a block.

    Args:
        fn: the learner's function.
        block: makes a block from embed_dim and num_heads. Its ``attention``, an
            ``nn.MultiheadAttention``, attends within what its ``norm`` makes of x (N, L, D).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, d, h in SIZES:
            made = block(d, h).eval()
            for x in made.parameters():
                nn.init.normal_(x, std=1 / math.sqrt(d))
            exact = copy.deepcopy(made).double()

            def maps(seen: Tensor, exact: nn.Module = exact) -> Tensor:
                return exact.attention(seen, seen, seen, average_attn_weights=False)[1]

            def truth(x: Tensor, exact: nn.Module = exact, maps: Callable = maps) -> tuple[Tensor]:
                return (maps(exact.norm(x)),)

            inputs = {"x": random_numbers(n, length, d)}
            given = {"returns": ("returned_maps",), "x": inputs["x"].double(), "num_heads": h}
            given |= {"normed": exact.norm(given["x"]), "maps_of": maps}

            def call(x: Tensor, made: nn.Module = made) -> object:
                return fn(made, x)

            yield Trial(inputs, call, truth, given, names=("the result",), gradients=False)

    return check("per_head_weights", fn, trials, mistakes.PER_HEAD_WEIGHTS)


def check_previous_token(fn: Callable | None) -> bool:
    """Check ``fn(weights)``: (N, H, L, L) to (H,), each head's mean weight on the token before.

    The mean is over the samples and over the queries but the first, which has no token before it.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, _, h in SIZES:
            weights = torch.softmax(random_numbers(n, h, length, length), dim=-1)

            def truth(weights: Tensor) -> tuple[Tensor]:
                length = weights.shape[-1]
                before = [weights[:, :, query, query - 1] for query in range(1, length)]
                return (torch.stack(before).mean((0, 1)),)

            given = {"returns": ("head_scores",), "attention": weights.double(), "num_heads": h}
            yield Trial(
                {"weights": weights},
                lambda weights: fn(weights),
                truth,
                given,
                names=("the result",),
                gradients=False,
            )

    return check("previous_token", fn, trials, mistakes.PREVIOUS_TOKEN)
