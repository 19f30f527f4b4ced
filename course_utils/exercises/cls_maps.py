"""Lesson 9: where [CLS] looks, as maps over the image."""

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Mistake, Step
from course_utils.exercises.trial import Trial, random_maps


def _laid_out(s: SimpleNamespace) -> Tensor:
    return s.maps_by_head.unflatten(-1, (math.isqrt(s.weights.shape[-1]), -1))


CLS_MAPS_STEPS = (
    Step("cls_row", "(N, H, key)", lambda s: s.weights[:, :, 0]),
    Step("patch_weights", "(N, H, patch)", lambda s: s.cls_row[..., 1:]),
    Step("map_weights", "(N, H, patch), as they are", lambda s: s.patch_weights),
    Step("maps_by_head", "(N, H, patch)", lambda s: s.map_weights),
    Step("maps", "(N, H, grid row, grid column)", _laid_out),
)

CLS_MAPS_MISTAKES = (
    Mistake(
        id="column-of-cls",
        rows=("M17",),
        step="cls_row",
        variants=(lambda s: s.weights[..., 0],),
        title="this is the column of [CLS]: how much each token looks at it",
        why="Rows are queries. Asked is where [CLS] itself looks.",
        look="which of the last two axes is indexed",
    ),
    Mistake(
        id="rows-averaged",
        step="cls_row",
        variants=(
            lambda s: s.weights.mean(2),
            lambda s: s.weights[:, :, 1:].mean(2),
        ),  # of the patches alone
        title="the queries are averaged",
        why="Only the row of [CLS] reaches the answer; the others drown it here.",
        look="what becomes of the query axis",
    ),
    Mistake(
        id="row-of-a-patch",
        step="cls_row",
        variants=(lambda s: s.weights[:, :, 1],),
        title="this is the row of the first patch",
        why="[CLS] is token 0. If you leave it out among the keys, keep it among the queries.",
        look="the index of the query, and what was cut away before",
    ),
    Mistake(
        id="last-row",
        step="cls_row",
        variants=(lambda s: s.weights[:, :, -1],),
        title="this is the row of the last patch",
        why="[CLS] is token 0.",
        look="the index of the query",
    ),
    Mistake(
        id="cls-left-in",
        step="patch_weights",
        variants=(lambda s: s.cls_row[..., :-1],),
        title="the weight of [CLS] for itself is taken for patch 0, and the last patch is lost",
        why="Key 0 is [CLS]; the patches are keys 1 and up.",
        look="which key is left out",
    ),
    Mistake(
        id="maps-made-to-sum-to-one",
        step="map_weights",
        variants=(lambda s: s.patch_weights / s.patch_weights.sum(-1, keepdim=True),),
        title="the maps are divided by their sum",
        why="Then nobody sees how much [CLS] kept for itself; asked are the weights as they are.",
        look="the division",
    ),
    Mistake(
        id="maps-divided-by-their-largest",
        step="map_weights",
        variants=(lambda s: s.patch_weights / s.patch_weights.amax(-1, keepdim=True),),
        title="the maps are divided by their largest weight",
        why="Then a soft head looks as sharp as any; asked are the weights as they are.",
        look="the division",
    ),
    Mistake(
        id="cls-maps-averaged",
        rows=("M46",),
        step="maps_by_head",
        variants=(lambda s: s.map_weights.mean(1),),
        title="the maps are averaged over the heads",
        why="An average hides what single heads do; asked is (N, H, grid, grid).",
        look="what becomes of the head axis",
    ),
    Mistake(
        id="maps-turned",
        step="maps",
        variants=(lambda s: _laid_out(s).mT,),
        title="rows and columns of the map have changed places",
        why="Patches run row by row over the image, so the map is filled row by row.",
        look="what happens after the row of weights becomes a grid",
    ),
)


def _trials() -> Iterator[Trial]:
    for n, h, grid in ((2, 3, 2), (1, 4, 3), (5, 2, 4)):
        length = 1 + grid * grid
        yield Trial({"weights": random_maps(n, h, length, length)})


def _truth(weights: Tensor) -> Answer:
    grid = math.isqrt(weights.shape[-1])
    rows = [weights[:, :, 0, 1 + r * grid : 1 + (r + 1) * grid] for r in range(grid)]
    return (torch.stack(rows, dim=2),)


CLS_MAPS = Exercise(
    name="cls_maps",
    steps=CLS_MAPS_STEPS,
    mistakes=CLS_MAPS_MISTAKES,
    results={"maps": "the result"},
    trials=_trials,
    truth=_truth,
    covered="grids of 2, 3 and 4 patches a side",
    gradients=False,
)


def check_cls_maps(fn: Callable | None) -> bool:
    """Check ``fn(weights)``: (N, H, 1 + grid², 1 + grid²) to the maps of [CLS], (N, H, grid, grid).

    Raises:
        CheckFailed: it is wrong.
    """
    return check(CLS_MAPS, fn)
