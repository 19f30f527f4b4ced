"""Pictures on paper: the same shapes, painted with matplotlib."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path as Outline

from course_utils.heatmaps.colours import palette
from course_utils.heatmaps.figure import PAGE_WIDTH, CourseFigure, drawable
from course_utils.pictures.shapes import Area, Dot, Line, Picture, Shape, Text

COLOURS = palette("light")  # paper is white
TITLE_HEIGHT = 0.3  # inches
GAP = 0.15  # inches between two pictures
_CURVE = (Outline.MOVETO, Outline.CURVE4, Outline.CURVE4, Outline.CURVE4)


def paint_pictures(
    pictures: Sequence[Picture], *, titles: Sequence[str], alt: str, columns: int = 1
):
    """Paint pictures of one size beside and below each other.

    Args:
        pictures: at least one; all are as large as the first.
        titles: a line above each.
        alt: what the figure shows, in words.
        columns: how many stand beside each other.

    Returns:
        A closed ``CourseFigure`` as wide as a page, with one axes for each picture.
    """
    first, rows = pictures[0], math.ceil(len(pictures) / columns)
    width = (PAGE_WIDTH - GAP * (columns - 1)) / columns  # inches of one picture
    height = width * first.height / first.width + TITLE_HEIGHT
    total = rows * height + GAP * (rows - 1)
    figure = CourseFigure(figsize=(PAGE_WIDTH, total), alt=alt, layout="none")
    for i, (picture, title) in enumerate(zip(pictures, titles, strict=True)):
        row, column = divmod(i, columns)
        axes = figure.add_axes(
            (
                column * (width + GAP) / PAGE_WIDTH,
                1 - (row * (height + GAP) + height) / total,
                width / PAGE_WIDTH,
                (height - TITLE_HEIGHT) / total,
            )
        )
        axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))
        axes.set_title(**drawable(title), loc="left", fontsize=10, fontweight="bold")
        axes.axis("off")
        for order, shape in enumerate(picture.shapes):
            _paint(axes, shape, order, points=72 * width / picture.width)
    return figure


def _paint(axes: Axes, shape: Shape, order: int, points: float) -> None:
    """Paint a shape; ``points`` are typographic points per pixel of the picture."""
    if isinstance(shape, Text):
        axes.text(
            shape.x,
            shape.y,
            **drawable(shape.text, "s"),
            color=COLOURS[shape.colour],
            fontsize=shape.size * points,
            fontweight="bold" if shape.bold else "normal",
            ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
            va="baseline",
            zorder=order,
        )
        return
    look = {"zorder": order, "facecolor": "none", "edgecolor": "none"}
    if isinstance(shape, Line):
        look |= {"edgecolor": (COLOURS[shape.colour], shape.opacity)}
        look |= {"linewidth": shape.width * points, "capstyle": "butt"}
        codes = _CURVE if shape.curved else None
        patch = PathPatch(Outline(shape.points, codes), **look)
    elif isinstance(shape, Area):
        patch = Polygon(
            shape.points, **look | {"facecolor": (COLOURS[shape.colour], shape.opacity)}
        )
    else:
        if shape.fill:
            look["facecolor"] = (COLOURS[shape.fill], getattr(shape, "opacity", 1))
        if shape.outline:
            look["edgecolor"] = COLOURS[shape.outline]
            look["linewidth"] = (
                getattr(shape, "width", 1) * points if isinstance(shape, Dot) else points
            )
        if isinstance(shape, Dot):
            patch = Circle((shape.x, shape.y), shape.radius, **look)
        else:
            style = f"round,pad=0,rounding_size={shape.radius or 0.01}"
            corner, size = (shape.x, shape.y), (shape.width, shape.height)
            patch = FancyBboxPatch(corner, *size, boxstyle=style, **look)
    if getattr(shape, "dash", ()):
        # matplotlib multiplies dashes by the width of their line.
        patch.set_linestyle((0, [n * points / patch.get_linewidth() for n in shape.dash]))
    axes.add_patch(patch)
