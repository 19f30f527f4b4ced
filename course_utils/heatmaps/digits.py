"""Images of digits, their patches, and what heads look at in them."""

import math
import reprlib
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle

from course_utils.arguments import (
    require_names,
    require_numbers,
    require_patch_size,
    require_weights,
)
from course_utils.heatmaps.colours import ramp, shade_of
from course_utils.heatmaps.dark import ON_COLOUR
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import two_decimals

LOW = 0.05  # smaller weights get no colour, so that the eye goes to the others
PAPER, INK = 255, 30  # grey levels of no ink and of full ink
_PLAIN = ("#ffffffbf", "#000000")  # background, a little transparent, and text of such a number


def plot_digits(
    images, *, titles: Sequence[str] | None = None, patch_size: int | None = None
) -> CourseFigure:
    """Draw images in a row, and where they are cut.

    Args:
        images: (M, height, width), ink from 0 to 1, at most eight.
        titles: one per picture; left out, none.
        patch_size: if given, the cuts are drawn as lines and each patch is numbered.

    Returns:
        A closed figure with M axes.

    Raises:
        ValueError: images of another rank or too many, another number of titles, or a patch_size
            that does not divide both sides.
    """
    images = _require_images(images)
    titles = _require_titles(titles, len(images))
    if patch_size is not None:
        patch_size = require_patch_size("patch_size", patch_size, images.shape)
    figure, panels = _panels(len(images))
    for axes, image, title in zip(panels, images, titles, strict=True):
        _draw_digit(axes, image, title)
        if patch_size:
            columns = image.shape[1] // patch_size
            for row, column in np.ndindex(image.shape[0] // patch_size, columns):
                corner = (column * patch_size - 0.5, row * patch_size - 0.5)
                _outline(axes, corner, patch_size, "#0072b2", 1.2)
                _pill(axes, corner, patch_size, str(row * columns + column), *_PLAIN)
    cut = f", cut into patches of {patch_size} by {patch_size} pixels" if patch_size else ""
    named = f": {', '.join(filter(None, titles))}" if any(titles) else ""
    figure.alt = f"{len(images)} of the digits{cut}{named}"
    return figure


def plot_over_digit(
    images, maps, *, titles: Sequence[str] | None = None, alt: str | None = None
) -> CourseFigure:
    """Lay maps of weights over digits: a number on each patch, a frame on the largest.

    Args:
        images: (8, 8), one for all maps, or (M, 8, 8); ink from 0 to 1.
        maps: (M, grid, grid) weights of the patches, from 0 to 1; at most eight.
        titles: one per map; left out, "head 0", "head 1" and so on.
        alt: the picture in words, if they must not hold its exact numbers.

    Returns:
        A closed figure with M axes, at most four per row.

    Raises:
        ValueError: images and maps that do not fit together, or another number of titles.
    """
    maps = require_weights(maps, "(M, grid, grid)")
    images = _require_images(images if np.ndim(images) == 3 else [images] * len(maps))
    if len(images) != len(maps):
        raise ValueError(
            f"images must be one, or one per map; got {len(images)} for {len(maps)} maps"
        )
    height, grid = images.shape[1], maps.shape[1]
    if images.shape[2] != height or maps.shape[2] != grid or height % grid:
        raise ValueError(
            f"maps must be a square grid that divides the image; got {maps.shape[1:]} for an image "
            f"of {images.shape[1:]}"
        )
    if maps.max() > 1 + 1e-6:
        raise ValueError(f"maps must be weights from 0 to 1, got {maps.max():.2f}")
    if titles is None:
        titles = [f"head {head}" for head in range(len(maps))]
    titles = _require_titles(titles, len(maps))
    size = height // grid
    figure, panels = _panels(len(maps))
    described = []
    for axes, image, weights, title in zip(panels, images, maps, titles, strict=True):
        _draw_digit(axes, image, title)
        for (row, column), weight in np.ndenumerate(weights):
            back, text = ramp(101)[shade_of(weight)] if weight >= LOW else _PLAIN
            corner = (column * size - 0.5, row * size - 0.5)
            _pill(axes, corner, size, two_decimals(weight), back, text)
        row, column = np.unravel_index(weights.argmax(), weights.shape)
        _outline(axes, (column * size - 0.5, row * size - 0.5), size, "#d55e00", 3)
        described.append(
            f"{title}: most on row {row}, column {column}, {two_decimals(weights.max())}"
        )
    figure.alt = alt or f"weights laid over a digit; {'; '.join(described)}"
    return figure


def plot_runs(
    groups: Mapping[str, Sequence[float]], *, x_label: str, alt: str | None = None
) -> CourseFigure:
    """Draw shares from 0 to 1 of several groups, one line per group and one mark per run.

    Args:
        groups: name to its numbers, one per run.
        x_label: what the numbers are.
        alt: the picture in words, if they must not hold its exact numbers.

    Returns:
        A closed figure with one axes.

    Raises:
        ValueError: no group, or numbers that do not lie between 0 and 1.
    """
    if not groups:
        raise ValueError("groups must hold at least one name with its numbers")
    figure = CourseFigure(figsize=(7, 0.9 + 0.34 * len(groups)))
    axes = figure.subplots()
    for line, (name, values) in enumerate(groups.items()):
        values = require_numbers(f"groups[{name!r}]", values, "one per run")
        if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
            came = reprlib.repr(values.tolist())
            raise ValueError(f"groups[{name!r}] must be numbers from 0 to 1, got {came}")
        axes.plot([min(values), max(values)], [line, line], color="#555555", linewidth=1)
        axes.plot(values, [line] * len(values), "o", color="#0072b2", mfc="none", mew=1.5)
        axes.annotate(
            two_decimals(sum(values) / len(values)),
            (1.0, line),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set(xlim=(-0.02, 1.02), ylim=(len(groups) - 0.4, -0.6), xlabel=x_label)
    axes.set_title("mean", loc="right", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    figure.alt = alt or "; ".join(
        f"{name}: {two_decimals(min(values))} to {two_decimals(max(values))}"
        for name, values in groups.items()
    )
    return figure


def _require_images(images) -> np.ndarray:
    images = require_numbers("images", images, "(M, height, width)")
    if images.ndim != 3 or not 1 <= len(images) <= 8:
        raise ValueError(f"images must be one to eight, (M, height, width); got {images.shape}")
    return images


def _require_titles(titles: Sequence[str] | None, wanted: int) -> list[str]:
    return (
        [""] * wanted
        if titles is None
        else require_names("titles", titles, wanted, "one per picture")
    )


def _panels(count: int) -> tuple[CourseFigure, list]:
    per_row = min(count, 4)
    rows = math.ceil(count / per_row)
    figure = CourseFigure(figsize=(2.25 * per_row, 2.5 * rows))
    panels = list(figure.subplots(rows, per_row, squeeze=False).flat)
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def _draw_digit(axes, image: np.ndarray, title: str) -> None:
    grey = (PAPER - (PAPER - INK) * image.clip(0, 1)) / 255
    axes.imshow(grey, cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=10, parse_math=False)


def _outline(axes, corner: tuple[float, float], size: int, colour: str, width: float) -> None:
    axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=colour, linewidth=width))


def _pill(axes, corner: tuple[float, float], size: int, text: str, back: str, colour: str) -> None:
    axes.text(
        corner[0] + size / 2,
        corner[1] + size / 2,
        text,
        ha="center",
        va="center",
        fontsize=8,
        color=colour,
        gid=ON_COLOUR,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": back, "edgecolor": "none"},
        in_layout=False,
    )
