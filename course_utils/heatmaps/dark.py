"""A figure on dark paper: what is black turns light, and colours stay what they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from matplotlib import colors
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from course_utils.heatmaps.colours import contrast, palette

ON_COLOUR = "on colour"  # the gid of what stands on a colour of its own, and keeps its own
_LIGHT, _DARK = palette("light"), palette("dark")
_PAIRS = {_LIGHT[name]: _DARK[name] for name in _LIGHT if not name.startswith("on-")}
_INK, _PAPER = (np.array(colors.to_rgb(_DARK[name])) for name in ("ink", "paper"))


@contextmanager
def on_dark_paper(figure: Figure) -> Iterator[str]:
    """Give a figure its dark colours for a while, and say which colour its paper has then."""
    before = []
    for artist in figure.findobj(lambda artist: artist.get_gid() != ON_COLOUR):
        for get, change in _colours_of(artist):
            before.append((change, old := get()))
            change(_all_in_dark(old))
    try:
        yield in_dark("white")
    finally:
        for change, old in before:
            change(old)


def in_dark(colour: object) -> str | tuple:
    """A colour's counterpart on dark paper, with the same opacity; "none" and "auto" as they are.

    A colour of ``palette`` has the one of the same name. Greys change sides. Other colours stay, or
    become lighter until they can be told from the paper, with a contrast of 3:1.
    """
    if isinstance(colour, str) and colour in ("none", "auto"):
        return colour
    return _in_dark(tuple(map(float, colors.to_rgba(colour))))


@cache
def _in_dark(colour: tuple) -> tuple:
    *light, opacity = colour
    if pair := _PAIRS.get(colors.to_hex(light)):
        return (*colors.to_rgb(pair), opacity)
    if max(light) - min(light) < 0.05:
        dark = _INK + (_PAPER - _INK) * light[0]
    else:
        share = next(x for x in np.linspace(0, 1, 21) if contrast(_lighter(light, x), _PAPER) >= 3)
        dark = _lighter(light, share)
    return (*map(float, dark), opacity)


def _lighter(colour: list, share: float) -> np.ndarray:
    return np.array(colour) * (1 - share) + share


def _all_in_dark(value: object) -> object:
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return [in_dark(row) for row in value]
    return in_dark(value)


def _has_a_map(artist: object) -> bool:
    """Whether the colours of an artist stand for numbers."""
    return isinstance(artist, Collection) and artist.get_array() is not None


def _colours_of(artist: object) -> list[tuple[Callable, Callable]]:
    """How to read and how to set each colour that an artist has of its own."""
    names = ()
    if isinstance(artist, Text):
        names = ("color",)
    elif isinstance(artist, Line2D):
        names = ("color", "markerfacecolor", "markeredgecolor")
    elif isinstance(artist, Patch | Collection) and not _has_a_map(artist):
        names = ("facecolor", "edgecolor")
    return [(getattr(artist, f"get_{name}"), getattr(artist, f"set_{name}")) for name in names]
