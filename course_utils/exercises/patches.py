"""Lesson 9: images become patches, and patches get positions."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Compute, Mistake, Step
from course_utils.exercises.trial import Trial, random_numbers


def _sides_cut(s: SimpleNamespace) -> Tensor:
    """Both sides of the image in two: (N, grid row, pixel row, grid column, pixel column)."""
    return s.images.unflatten(2, (-1, s.size)).unflatten(1, (-1, s.size))


def _sides_cut_the_other_way(s: SimpleNamespace) -> Tensor:
    """As if a side of the image were (size, grid)."""
    return s.images.unflatten(2, (s.size, -1)).unflatten(1, (s.size, -1))


def _squares(s: SimpleNamespace) -> Tensor:
    return _sides_cut(s).transpose(2, 3)


def _swapped(pair: tuple[int, int]) -> Compute:
    return lambda s: _sides_cut(s).transpose(*pair).reshape(_squares(s).shape)


def _patches(s: SimpleNamespace) -> Tensor:
    return s.ordered_pixels.flatten(3).flatten(1, 2)


PATCH_STEPS = (
    Step("squares", "(N, grid row, grid column, pixel row, pixel column)", _squares),
    Step(
        "ordered_squares",
        "(N, grid row, grid column, pixel row, pixel column)",
        lambda s: s.squares,
    ),
    Step(
        "ordered_pixels",
        "(N, grid row, grid column, pixel row, pixel column)",
        lambda s: s.ordered_squares,
    ),
    Step("patches", "(N, patch, pixel)", _patches),
)

PATCH_MISTAKES = (
    Mistake(
        id="patches-are-runs-of-pixels",
        step="squares",
        variants=(lambda s: s.images.reshape(_squares(s).shape),),
        title="the image is only reshaped, so a patch is a run of pixels from one or two rows",
        why="reshape moves no number: neighbours in memory stay together, and those are rows.",
        look="which axis moves between the two reshapes",
    ),
    Mistake(
        id="patches-from-afar",
        step="squares",
        variants=(lambda s: _sides_cut_the_other_way(s).permute(0, 2, 4, 1, 3),),
        title="a patch takes pixels from all over the image, at equal steps",
        why="A side of the image is (grid, size): the pixels of one patch are neighbours.",
        look="the order of grid and size where a side of the image is cut",
    ),
    Mistake(
        id="size-and-count-swapped",
        step="squares",
        variants=(
            lambda s: _sides_cut_the_other_way(s).transpose(2, 3).reshape(_squares(s).shape),
        ),
        title="size and number of patches have changed places",
        why="A side of the image is cut into patches first, and each of those holds size pixels.",
        look="the order of the two numbers where a side of the image is cut",
    ),
    Mistake(
        id="other-axes-swapped",
        step="squares",
        variants=tuple(map(_swapped, ((1, 2), (1, 3), (1, 4), (2, 4), (3, 4)))),
        title="two of the five axes change places, but not the two that should",
        why="Grid row and grid column must come side by side, and so must the two of the pixels.",
        look="the names of the five axes, before and after the swap",
    ),
    Mistake(
        id="patches-column-by-column",
        step="ordered_squares",
        variants=(lambda s: s.squares.transpose(1, 2),),
        title="the patches run down the columns of the image",
        why="Patch 1 is the right neighbour of patch 0; positions count in that order.",
        look="the order of grid row and grid column",
    ),
    Mistake(
        id="pixels-column-by-column",
        step="ordered_pixels",
        variants=(lambda s: s.ordered_squares.mT,),
        title="within a patch the pixels run down the columns",
        why="All pixels run row by row, as in the image.",
        look="the order of pixel row and pixel column",
    ),
    Mistake(
        id="patches-and-pixels-swapped",
        step="patches",
        variants=(lambda s: _patches(s).mT,),
        title="the result is (N, pixel, patch)",
        why="Tokens come before features: a patch is a token, and its pixels are the features.",
        look="the last two axes",
    ),
    Mistake(
        id="patches-of-all-images-in-one-row",
        step="patches",
        variants=(lambda s: _patches(s).flatten(0, 1),),
        title="the patches of all images lie in one long row",
        why="Each sample keeps its own tokens: the batch is the first axis.",
        look="the first axis of the last reshape",
    ),
)


def _cls_for_each(s: SimpleNamespace) -> Tensor:
    """[CLS] as (N, 1, D), the same for each sample."""
    return s.cls.expand(len(s.tokens), 1, -1)


def _positions_for_patches(which: slice) -> Compute:
    def compute(s: SimpleNamespace) -> Tensor:
        cls, patches = s.tokens_with_cls[:, :1], s.tokens_with_cls[:, 1:]
        return torch.cat([cls, patches + s.positions[which]], dim=1)

    return compute


PLACE_STEPS = (
    Step(
        "tokens_with_cls",
        "(N, 1 + P, D)",
        lambda s: torch.cat([_cls_for_each(s), s.tokens], dim=1),
    ),
    Step("placed_tokens", "(N, 1 + P, D)", lambda s: s.tokens_with_cls + s.positions),
)

PLACE_MISTAKES = (
    Mistake(
        id="cls-at-the-end",
        step="tokens_with_cls",
        variants=(lambda s: torch.cat([s.tokens, _cls_for_each(s)], dim=1),),
        title="[CLS] stands behind the patches",
        why="It is read as token 0, and takes position 0.",
        look="the order of the two in cat",
    ),
    Mistake(
        id="cls-forgotten",
        step="placed_tokens",
        variants=(lambda s: s.tokens + s.positions[1:],),
        title="there is no [CLS] token in the result",
        why="Somebody must ask for the whole image; the result has one token more than patches.",
        look="the number of tokens that come out",
    ),
    Mistake(
        id="cls-without-position",
        step="placed_tokens",
        variants=(_positions_for_patches(slice(1, None)), _positions_for_patches(slice(None, -1))),
        title="[CLS] gets no position",
        why="There is one position for each token, and [CLS] is token 0.",
        look="whether positions are added before [CLS] is there, or after",
    ),
    Mistake(
        id="positions-shifted",
        step="placed_tokens",
        variants=(lambda s: s.tokens_with_cls + s.positions.roll(1, 0),),
        title="[CLS] gets the last position, and patch 0 that of [CLS]",
        why="Position i belongs to token i, and [CLS] is token 0.",
        look="which rows of positions go to the patches",
    ),
    Mistake(
        id="positions-left-out",
        rows=("M39",),
        step="placed_tokens",
        variants=(lambda s: s.tokens_with_cls,),
        title="no position is added",
        why="Attention alone cannot tell a patch at the top from the same patch at the bottom.",
        look="what becomes of the argument positions",
    ),
    Mistake(
        id="positions-along-the-batch",
        step="placed_tokens",
        variants=(lambda s: s.tokens_with_cls + s.positions[:, None],),
        title="the positions run along the batch: image i gets position i",
        why="Position belongs to the token; the batch axis is the one to repeat it over.",
        look="where positions gets its new axis",
    ),
    Mistake(
        id="positions-beside",
        step="placed_tokens",
        variants=(
            lambda s: torch.cat(
                [s.tokens_with_cls, s.positions.expand_as(s.tokens_with_cls)], dim=-1
            ),
        ),
        title="the positions stand beside the features, which makes 2·D of them",
        why="They are added: the width of a token stays D.",
        look="whether positions meet the tokens in cat or in a sum",
    ),
)


def _patch_trials() -> Iterator[Trial]:
    for n, height, width, size in ((3, 8, 8, 4), (7, 6, 12, 3), (5, 8, 6, 2)):
        yield Trial({"images": random_numbers(n, height, width), "size": size})


def _patch_truth(images: Tensor, size: int) -> Answer:
    # torch's own: (N, 1, height, width) to (N, size², patches)
    return (F.unfold(images[:, None], size, stride=size).mT,)


def _place_trials() -> Iterator[Trial]:
    for n, patches, d in ((1, 4, 5), (10, 9, 4), (3, 16, 6)):  # N = 1 + P tempts to mix them up
        yield Trial(
            {
                "tokens": random_numbers(n, patches, d, seed=1),
                "cls": random_numbers(d, seed=2),
                "positions": random_numbers(1 + patches, d, seed=3),
            }
        )


def _place_truth(tokens: Tensor, cls: Tensor, positions: Tensor) -> Answer:
    return (torch.stack([torch.stack([cls, *sample]) + positions for sample in tokens]),)


CUT_INTO_PATCHES = Exercise(
    name="cut_into_patches",
    steps=PATCH_STEPS,
    mistakes=PATCH_MISTAKES,
    results={"patches": "the result"},
    trials=_patch_trials,
    truth=_patch_truth,
    covered="square images and others, patches of 2, 3 and 4",
    gradients=False,
)

ADD_PLACES = Exercise(
    name="add_places",
    steps=PLACE_STEPS,
    mistakes=PLACE_MISTAKES,
    results={"placed_tokens": "the result"},
    trials=_place_trials,
    truth=_place_truth,
    covered="4, 9 and 16 patches",
)


def check_cut_into_patches(fn: Callable | None) -> bool:
    """Check ``fn(images, size)``: (N, height, width) to (N, patches, size²).

    Patches run row by row over the image, and pixels row by row over the patch.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(CUT_INTO_PATCHES, fn)


def check_add_places(fn: Callable | None) -> bool:
    """Check ``fn(tokens, cls, positions)``: [CLS] in front, then a position for each token.

    tokens is (N, P, D), cls (D,), positions (1 + P, D), and the result (N, 1 + P, D).

    Raises:
        CheckFailed: it is wrong.
    """
    return check(ADD_PLACES, fn)
