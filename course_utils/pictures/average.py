"""The maps of all heads of some samples, and how their mean comes to be."""

from collections.abc import Sequence

from course_utils.heatmaps.colours import head_colour
from course_utils.heatmaps.texts import two_decimals
from course_utils.pictures.shapes import Box, Picture, Shape, Text, text_width

WIDTH = 848
MAX_SAMPLES, MAX_HEADS, MAX_TOKENS = 2, 4, 4
_NAMES, _GAP, _TOP, _HIGH, _WIDEST = 110, 36, 44, 38, 56  # pixels


def average_picture(
    maps: Sequence, tokens: Sequence[str], *, step: int, fact: str, shape: str
) -> Picture:
    """Draw maps side by side, on top of each other, or as one.

    Args:
        maps: (N, H, L, L), the weights of each head.
        tokens: L names.
        step: 0, each head for itself; 1, the heads of a sample on top of each other; 2, their mean.
        fact: a line below all of it.
        shape: what is written above: the shape of what is shown.
    """
    samples, heads, length = len(maps), len(maps[0]), len(tokens)
    wide = min(_WIDEST, ((WIDTH - _NAMES) / heads - _GAP) / length)
    across, middle = wide * length + _GAP, (heads - 1) / 2
    high = _HIGH * length + 62
    shapes: list[Shape] = [Text(x=4, y=18, text=shape, size=14, anchor="start", bold=True)]
    for sample, own in enumerate(maps):
        top = _TOP + sample * high + 40
        shapes.append(Text(x=4, y=top - 8, text=f"sample {sample}", anchor="start", bold=True))
        for i, name in enumerate(tokens):
            y = top + (i + 0.5) * _HIGH + 4
            shapes.append(Text(x=_NAMES - 8, y=y, text=name, size=12, anchor="end", colour="soft"))
        for head, weights in enumerate(own):
            place = middle if step else head
            left, shift = _NAMES + place * across, ((head - place) * across, 0)
            look = {"colour": head_colour(head), "shift": shift} if step < 2 else {}
            if step < 2:
                shapes += _map(
                    left, top, wide, weights, numbers=step == 0, slides=step == 1, **look
                )
            if step == 0:
                shapes += _heading(left, top, wide, tokens, f"head {head}")
        if step:
            shapes += _heading(_NAMES + middle * across, top, wide, tokens, _title(heads, step))
        if step == 2:
            mean = [
                [sum(column) / heads for column in zip(*rows, strict=True)]
                for rows in zip(*own, strict=True)
            ]
            shapes += _map(_NAMES + middle * across, top, wide, mean, colour="ink", numbers=True)
    height = _TOP + samples * high + 24
    shapes.append(Text(x=4, y=height - 10, text=fact, anchor="start"))
    return Picture(WIDTH, height, tuple(shapes))


def _title(heads: int, step: int) -> str:
    if step == 2:
        return f"mean of {heads} heads"
    return " on ".join(f"head {head}" for head in range(heads)) if heads < 3 else f"{heads} heads"


def _heading(
    left: float, top: float, wide: float, tokens: Sequence[str], title: str
) -> list[Shape]:
    shapes: list[Shape] = [Text(x=left + wide * len(tokens) / 2, y=top - 24, text=title, bold=True)]
    for j, name in enumerate(tokens):
        fits = text_width(name, 11) <= wide - 4
        place = {"x": left + (j + 0.5) * wide, "y": top - 7, "size": 11, "colour": "soft"}
        shapes.append(Text(text=name if fits else str(j), **place))
    return shapes


def _map(
    left: float,
    top: float,
    wide: float,
    weights: Sequence[Sequence[float]],
    *,
    colour: str,
    numbers: bool,
    slides: bool = False,
    shift: tuple[float, float] = (0, 0),
) -> list[Shape]:
    """One map: the fuller a cell's colour, the larger its weight."""
    move = {"shift": shift, "motion": "slide"} if slides else {}
    shapes: list[Shape] = []
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            x, y = left + j * wide, top + i * _HIGH
            cell = {"x": x + 1, "y": y + 1, "width": wide - 2, "height": _HIGH - 2, "radius": 3}
            look = {"fill": colour, "opacity": 0.04 + 0.36 * weight, "outline": "grid"}
            shapes.append(Box(**cell, **look, title=f"{weight:.4f}" if numbers else "", **move))
            if numbers:
                text = two_decimals(weight)
                faint = {"colour": "ink" if weight >= 0.005 else "soft"}
                shapes.append(Text(x=x + wide / 2, y=y + _HIGH / 2 + 4, text=text, **faint))
    return shapes
