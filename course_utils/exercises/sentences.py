"""The check of pooling the tokens of a sentence."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import Trial, random_numbers


def check_mean_pool(fn: Callable | None) -> bool:
    """Check ``fn(x, mask) -> (mean, unit)``: a sentence's tokens become one vector.

    x is (N, L, D) and mask (N, L), boolean, True = a token. mean is (N, D), over the tokens without
    the padding, and unit (N, D) the same brought to length 1.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for lengths, d in (((3,), 4), ((4, 2), 4), ((2, 5, 4), 7)):
            inputs = {
                "x": random_numbers(len(lengths), max(lengths), d, seed=1),
                "is_token": torch.arange(max(lengths)) < torch.tensor(lengths)[:, None],
            }

            def truth(x: Tensor, is_token: Tensor) -> tuple[Tensor, Tensor]:
                mean = torch.stack([row[own].mean(0) for row, own in zip(x, is_token, strict=True)])
                return mean, mean / mean.norm(dim=-1, keepdim=True)

            given = {"x": inputs["x"].double(), "is_token": inputs["is_token"]}
            given["returns"] = ("pooled", "unit")
            names = ("mean", "unit vector")
            yield Trial(
                inputs,
                lambda x, is_token: fn(x, is_token),
                truth,
                given,
                names=names,
                gradients=False,
                called={"is_token": "mask"},  # a mask by name would be one of attention
            )

    return check("mean_pool", fn, trials, mistakes.MEAN_POOL, "with padding and without")
