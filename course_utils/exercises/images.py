"""The checks of lesson 9: images, their patches, and the maps of [CLS]."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import Trial, random_numbers


def check_cut_into_patches(fn: Callable | None) -> bool:
    """Check ``fn(images, size)``: (N, height, width) to (N, patches, size²).

    Patches run row by row over the image, and pixels row by row over the patch.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, side, size in ((3, 8, 4), (2, 12, 3), (5, 8, 2)):
            images = random_numbers(n, side, side)

            def call(images: Tensor, size: int = size) -> object:
                return fn(images, size)

            def truth(images: Tensor, size: int = size) -> tuple[Tensor]:
                # torch's own: (N, 1, height, width) to (N, size², patches)
                return (F.unfold(images[:, None], size, stride=size).mT,)

            given = {"returns": ("cut_patches",), "images": images.double(), "size": size}
            yield Trial(
                {"images": images}, call, truth, given, names=("the result",), gradients=False
            )

    covered = "8 and 12 pixels a side, patches of 2, 3 and 4"
    return check("cut_into_patches", fn, trials, mistakes.CUT_INTO_PATCHES, covered)


def check_add_places(fn: Callable | None) -> bool:
    """Check ``fn(tokens, cls, positions)``: [CLS] in front, then a position for each token.

    tokens is (N, P, D), cls (D,), positions (1 + P, D), and the result (N, 1 + P, D).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, patches, d in ((1, 4, 5), (10, 9, 4), (3, 16, 6)):  # N = 1 + P tempts to mix them up
            inputs = {
                "tokens": random_numbers(n, patches, d, seed=1),
                "cls": random_numbers(d, seed=2),
                "positions": random_numbers(1 + patches, d, seed=3),
            }

            def truth(tokens: Tensor, cls: Tensor, positions: Tensor) -> tuple[Tensor]:
                rows = [torch.stack([cls, *sample]) + positions for sample in tokens]
                return (torch.stack(rows),)

            given = {name: x.double() for name, x in inputs.items()} | {"returns": ("placed",)}

            def call(**x: Tensor) -> object:
                return fn(*x.values())

            yield Trial(inputs, call, truth, given, names=("the result",))

    return check("add_places", fn, trials, mistakes.ADD_PLACES, "4, 9 and 16 patches")


def check_cls_maps(fn: Callable | None) -> bool:
    """Check ``fn(weights)``: (N, H, 1 + grid², 1 + grid²) to the maps of [CLS], (N, H, grid, grid).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, h, grid in ((2, 3, 2), (1, 4, 3), (5, 2, 4)):
            length = 1 + grid * grid
            weights = torch.softmax(random_numbers(n, h, length, length), dim=-1)

            def truth(weights: Tensor, grid: int = grid) -> tuple[Tensor]:
                rows = [weights[:, :, 0, 1 + r * grid : 1 + (r + 1) * grid] for r in range(grid)]
                return (torch.stack(rows, dim=2),)

            given = {"returns": ("laid_out",), "maps": weights.double()}
            inputs = {"weights": weights}
            yield Trial(
                inputs,
                lambda weights: fn(weights),
                truth,
                given,
                names=("the result",),
                gradients=False,
            )

    return check("cls_maps", fn, trials, mistakes.CLS_MAPS, "grids of 2, 3 and 4 patches a side")
