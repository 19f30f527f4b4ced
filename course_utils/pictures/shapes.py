"""The shapes that a picture is made of.

A picture is a list of shapes on a sheet of so many pixels. ``svg.py`` turns it into SVG for an
explorer and ``figures.py`` paints it with matplotlib, so that both have the same geometry.

Colours are names of ``course_utils.heatmaps.colours.palette``. A shape with a ``title`` shows it
when the pointer rests on it. A ``motion`` says how the shape comes in when its view is new, one of
``MOTIONS``, and ``wait`` how many tenths of a second after the first. A shape that slides comes
from ``shift``, pixels to the right and down of where it stands. On paper nothing moves.
"""

import math
from dataclasses import dataclass

from course_utils.heatmaps.figure import TICK_SIZE as MEASURED_SIZE
from course_utils.heatmaps.figure import drawable, inches_of

Point = tuple[float, float]
TEXT_SIZE = 13  # pixels, unless a text says otherwise
# From its first point on, from the left, out of nothing, from another place.
MOTIONS = ("draw", "grow", "fade", "slide")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line through its points; if curved, from the first to the last of four (cubic Bézier)."""

    points: tuple[Point, ...]
    colour: str = "ink"
    width: float = 1.5
    opacity: float = 1
    curved: bool = False
    dash: tuple[float, ...] = ()
    title: str = ""
    motion: str = ""
    wait: int = 0


@dataclass(frozen=True, kw_only=True)
class Area:
    """A filled polygon, with no outline."""

    points: tuple[Point, ...]
    colour: str = "ink"
    opacity: float = 1
    motion: str = ""
    wait: int = 0


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle with round corners; ``fill`` or ``outline`` may be left out."""

    x: float
    y: float
    width: float
    height: float
    fill: str = ""
    opacity: float = 1  # of the fill
    outline: str = ""
    dash: tuple[float, ...] = ()
    radius: float = 0
    title: str = ""
    shift: Point = (0, 0)
    motion: str = ""
    wait: int = 0


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A circle; ``fill`` or ``outline`` may be left out."""

    x: float
    y: float
    radius: float
    fill: str = ""
    outline: str = ""
    width: float = 1.5  # of the outline
    title: str = ""
    motion: str = ""
    wait: int = 0


@dataclass(frozen=True, kw_only=True)
class Text:
    """A line of text whose foot is at y; anchor is "start", "middle" or "end"."""

    x: float
    y: float
    text: str
    colour: str = "ink"
    size: float = TEXT_SIZE
    anchor: str = "middle"
    bold: bool = False
    shift: Point = (0, 0)
    motion: str = ""
    wait: int = 0


Shape = Line | Area | Box | Dot | Text


@dataclass(frozen=True)
class Picture:
    """Shapes on a sheet, the first one at the back.

    Attributes:
        width: pixels.
        height: pixels.
        shapes: what is drawn, in this order.
    """

    width: float
    height: float
    shapes: tuple[Shape, ...]


def text_width(text: str, size: float = TEXT_SIZE) -> float:
    """About how many pixels wide a text is; most browsers' fonts are a little narrower."""
    return inches_of(drawable(text)) * 72 / MEASURED_SIZE * size


def arrow(start: Point, end: Point, *, head: float = 8, **look) -> list[Shape]:
    """A line that ends in a point; nothing where start and end (almost) meet.

    Args:
        start: where it comes from.
        end: where its point is.
        head: length of the point in pixels; a shorter arrow has a shorter one.
        look: colour, width, opacity, motion and wait, as of a ``Line``.
    """
    length = math.dist(start, end)
    if length < 1:
        return []
    head = min(head, length)
    (x, y), (dx, dy) = end, ((end[i] - start[i]) / length for i in (0, 1))
    back, side = (x - head * dx, y - head * dy), 0.42 * head
    tip = (
        end,
        (back[0] - side * dy, back[1] + side * dx),
        (back[0] + side * dy, back[1] - side * dx),
    )
    filled = {name: look[name] for name in ("colour", "opacity", "motion", "wait") if name in look}
    if filled.get("motion") == "draw":
        filled["motion"] = "fade"
    inner = (x - 0.7 * head * dx, y - 0.7 * head * dy)  # the line must not stick out at the point
    return [Line(points=(start, inner), **look), Area(points=tip, **filled)]
