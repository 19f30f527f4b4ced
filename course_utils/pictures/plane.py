"""Values as arrows in the plane, and their mixture: weight times value, tip to tail."""

import math
from collections.abc import Callable, Sequence

from course_utils.heatmaps.texts import display_token
from course_utils.pictures.shapes import (
    Area,
    Dot,
    Line,
    Picture,
    Point,
    Shape,
    Text,
    arrow,
    text_width,
)

HEAD = "h0"  # the colour of the head
_SIDE, _ABOVE = 66, 30  # around the values, for their names
_LEGEND = 48  # height of what says what is what
_MAX_GRID = 20  # units; a wider plane has no grid


def values_plane(
    tokens: Sequence[str],
    values: Sequence[Point],
    weights: Sequence[float],
    *,
    name: str,
    order: Sequence[int] | None = None,
    walk: Sequence[Point] = (),
    width: float = 480,
    height: float = 400,
    legend: bool = True,
) -> Picture:
    """Draw each value as an arrow, and how its share of each makes up the output.

    Args:
        tokens: L names of the values.
        values: (L, 2).
        weights: L weights that sum to 1.
        name: of the query, whose new vector is drawn.
        order: of the shares in the chain, L positions; left out, the largest weight comes first.
        walk: (steps, 2), where the output can be, as a dotted line from the mean of all values.
        width: of the picture in pixels.
        height: of the picture in pixels; the plane keeps its proportions.
        legend: whether it says below what the signs mean.
    """
    place = _scale(values, width, height - _LEGEND if legend else height)
    tips, origin = [place(value) for value in values], place((0, 0))
    shapes = [*_reach(tips), *_grid(values, place)]
    for tip in tips:
        shapes += arrow(origin, tip, colour="line", width=1.5, head=9)
    if walk:
        way = tuple(map(place, walk))
        shapes += [
            Line(points=way, width=2, dash=(1, 4)),
            Dot(**_at(way[0]), radius=3.5, fill="ink"),
        ]
    if order is None:
        order = sorted(range(len(weights)), key=lambda i: -weights[i])
    output, chain = (0.0, 0.0), []
    for i in order:
        start = output
        output = tuple(start[c] + weights[i] * values[i][c] for c in (0, 1))
        title = f"{display_token(tokens[i])}: {weights[i]:.4f} of its value"
        chain.append((place(start), place(output), title))
    shapes += _chain(chain)
    for token, value, tip, weight in zip(tokens, values, tips, weights, strict=True):
        shapes.append(_name(display_token(token), value, tip, bold=weight >= 0.2))
    shapes += _output(place(output), display_token(name))
    if legend:
        shapes += _legend(height - _LEGEND, display_token(name))
    return Picture(width, height, tuple(shapes))


# --- parts --------------------------------------------------------------------------------------


def _ranges(values: Sequence[Point]) -> list[tuple[float, float]]:
    """From where to where the plane goes: all values, and the origin."""
    return [
        (min(0, *own), max(0, *own)) for own in ([value[c] for value in values] for c in (0, 1))
    ]


def _scale(values: Sequence[Point], width: float, height: float) -> Callable[[Point], Point]:
    """From the plane to the sheet."""
    (left, right), (low, high) = _ranges(values)
    across, up = max(right - left, 1e-9), max(high - low, 1e-9)
    unit = min((width - 2 * _SIDE) / across, (height - 2 * _ABOVE) / up)
    x, y = (width - unit * across) / 2, (height + unit * up) / 2  # of the lower left corner
    return lambda point: (x + unit * (point[0] - left), y - unit * (point[1] - low))


def _grid(values: Sequence[Point], place: Callable[[Point], Point]) -> list[Shape]:
    """A line at each whole number; the axes are stronger."""
    (left, right), (low, high) = (
        (math.floor(start), math.ceil(end)) for start, end in _ranges(values)
    )
    if max(right - left, high - low) > _MAX_GRID:
        return []
    lines = [((x, low), (x, high), x) for x in range(left, right + 1)]
    lines += [((left, y), (right, y), y) for y in range(low, high + 1)]
    return [
        Line(points=(place(start), place(end)), colour="grid", width=1 if at else 2.5)
        for start, end, at in lines
    ]


def _reach(points: list[Point]) -> list[Shape]:
    """The ground between all values (their convex hull): no mixture of them is outside."""
    around: list[Point] = []
    ordered = sorted(set(points))
    for way in (ordered, ordered[::-1]):
        side: list[Point] = []
        for point in way:
            while len(side) > 1 and _turn(*side[-2:], point) <= 0:
                side.pop()
            side.append(point)
        around += side[:-1]
    if len(around) < 3:
        return []
    outline = Line(points=(*around, around[0]), colour="line", width=1, dash=(4, 4))
    return [Area(points=tuple(around), colour="card"), outline]


def _turn(a: Point, b: Point, c: Point) -> float:
    """Above 0 where the way from a by b to c turns left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _chain(steps: list[tuple[Point, Point, str]]) -> list[Shape]:
    """The shares tip to tail; a dot marks where one ends and the next begins."""
    seen = [step for step in steps if math.dist(*step[:2]) > 1]
    lines = [
        Line(points=(start, end), colour=HEAD, width=6, title=title) for start, end, title in seen
    ]
    joints = [end for _, end, _ in seen[:-1]]
    round_off = [Dot(**_at(joint), radius=3, fill=HEAD) for joint in joints]
    return [*lines, *round_off, *(Dot(**_at(joint), radius=1.6, fill="paper") for joint in joints)]


def _name(text: str, value: Point, tip: Point, *, bold: bool) -> Text:
    """A name beyond the tip of an arrow."""
    length = math.hypot(*value) or 1
    right, up = value[0] / length, value[1] / length
    # Beside a flat arrow it begins behind the tip, above a steep one it stands in the middle.
    x = tip[0] + 14 * right + max(-1, min(1, 2.2 * right)) * text_width(text) / 2
    return Text(x=x, y=tip[1] + 5 - 17 * up, text=text, bold=bold)


def _legend(top: float, name: str) -> list[Shape]:
    """What the signs mean, in two lines."""
    shapes: list[Shape] = []
    for row, texts in enumerate(
        (
            ("value", "weight × value, tip to tail"),
            (f"their sum, the new “{name}”", "from the mean of all values"),
        )
    ):
        y, first = top + 8 + 22 * row, 20 + text_width(texts[0], 12)
        for x, text in zip((20, first + 64), texts, strict=True):
            shapes.append(_small(x + 34, y + 4, text))
        x = first + 64
        if row == 0:
            shapes += arrow((20, y), (48, y), colour="line", width=1.5, head=9)
            shapes.append(Line(points=((x, y), (x + 28, y)), colour=HEAD, width=6))
        else:
            way = ((x, y), (x + 28, y))
            shapes.append(Dot(x=34, y=y, radius=7, outline="ink", width=2.5))
            shapes += [
                Dot(x=x, y=y, radius=3.5, fill="ink"),
                Line(points=way, width=2, dash=(1, 4)),
            ]
    return shapes


def _small(x: float, y: float, text: str) -> Text:
    return Text(x=x, y=y, text=text, size=12, colour="soft", anchor="start")


def _output(at: Point, name: str) -> list[Shape]:
    ring = Dot(**_at(at), radius=8, outline="ink", width=2.5, title=f"new vector of {name}")
    return [ring, Text(x=at[0], y=at[1] - 15, text=f"new “{name}”", bold=True)]


def _at(point: Point) -> dict[str, float]:
    return {"x": point[0], "y": point[1]}
