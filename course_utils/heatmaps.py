"""Still pictures of attention: weights, heads, head splits and curves.

Each function takes its data first and everything else by keyword, and returns a closed
``CourseFigure``: nothing is left open in pyplot, and the figure carries its own alt text.
"""

import base64
import io
import logging
import math
import reprlib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Outline

from course_utils.arguments import (
    count_of,
    require_blocked,
    require_embed_dim,
    require_names,
    require_num_heads,
    require_numbers,
    require_text,
    require_weights,
)

COLORMAP = "viridis"  # even steps of lightness, and told apart by colour-blind readers
MAX_LABEL = 14  # characters of a token that are shown; a longer one loses its middle
MAX_BOXES = 512  # features of a split that still get a box each
MAX_NUMBERS = 600  # cells of a figure that still get their number printed
PAGE_WIDTH = 9  # inches
_CELL = (0.7, 0.38)  # inches, width and height of a cell where there is room
_DIGIT = 0.095  # inches a character of a number needs, space around included
_LINE = 1.15 / 72  # inches a line of text needs for each point of its size
_TICK_SIZE, _SMALLEST, _TITLE_SIZE = 10, 7, 12  # points
_PNG_DPI = 144
_BLOCKED = {"facecolor": "#ececec", "edgecolor": "#a0a0a0", "hatch": "///", "linewidth": 0}
_CORNERS = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])  # of a cell
_SCREEN_DPI = 80  # a 7-inch figure is 560 pixels wide, and fits a narrow window


class CourseFigure(Figure):
    """A figure that was never open in pyplot and describes itself.

    Attributes:
        alt: one line that says in words what the picture shows. It is the figure's text form in
            a notebook, and the picture's alt text where the page has one.
    """

    def __init__(self, *args, alt: str = "", **kwargs) -> None:
        kwargs.setdefault("layout", "constrained")
        super().__init__(*args, **kwargs)
        self.alt = alt

    def __repr__(self) -> str:
        return f"Figure: {self.alt}"

    def png(self) -> bytes:
        """The picture as PNG bytes."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_PNG_DPI, facecolor="white")
        return buffer.getvalue()

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        width = round(self.get_figwidth() * _SCREEN_DPI)
        return (
            {"text/plain": repr(self), "image/png": base64.b64encode(self.png()).decode()},
            {"image/png": {"alt": self.alt, "width": width}},
        )


def plot_attention(
    weights,
    *,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    title: str | None = None,
    blocked=None,
) -> CourseFigure:
    """Draw one head's weights: a row a query, a column a key.

    Args:
        weights: (L_q, L_k), at least 0; a tensor, an array or nested lists.
        query_tokens: one name a row; left out, the positions.
        key_tokens: one name a column; left out, the query tokens if the map is square.
        title: one line above the picture.
        blocked: (L_q, L_k) booleans, True where a mask blocks: those cells are hatched, with a
            × in place of a number.

    Returns:
        A closed figure with one axes; colours run from 0 to 1, or to the largest weight if that
        is more than 1 (dropout divides by 1 - p).

    Raises:
        ValueError: weights of another rank, empty, negative, NaN or infinite, a token list of
            another length, or blocked of another shape or dtype.
    """
    weights = require_weights(weights, "(L_q, L_k)")
    rows, columns = token_labels(weights.shape, query_tokens, key_tokens)
    blocked = require_blocked(blocked, weights.shape)
    title = require_text("title", "" if title is None else title)
    figure = _draw_maps(weights[None], rows, columns, [title], 1, blocked[None])
    name = one_line(title) or "attention weights"
    figure.alt = f"{name}: {describe_weights(weights, rows, columns)}{_describe_blocked(blocked)}"
    return figure


def plot_heads(
    weights,
    *,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    blocked=None,
) -> CourseFigure:
    """Draw all heads of one sample, one small map a head, on one colour scale.

    Args:
        weights: (H, L_q, L_k), at least 0; a tensor, an array or nested lists.
        query_tokens: one name a row; left out, the positions.
        key_tokens: one name a column; left out, the query tokens if the maps are square.
        titles: one name a map; left out, "head 0", "head 1" and so on.
        blocked: booleans, True where a mask blocks, (L_q, L_k) for all heads alike or
            (H, L_q, L_k); see ``plot_attention``.

    Returns:
        A closed figure with H axes in reading order, at most four a row.

    Raises:
        ValueError: as ``plot_attention``, for (H, L_q, L_k); or titles of another number.
    """
    weights = require_weights(weights, "(H, L_q, L_k)")
    num_heads, _, width = weights.shape
    rows, columns = token_labels(weights.shape, query_tokens, key_tokens)
    if titles is None:
        titles = [f"head {head}" for head in range(num_heads)]
    titles = require_names("titles", titles, num_heads, "one a head")
    blocked = require_blocked(blocked, weights.shape)

    if num_heads % 4 and num_heads % 3 == 0:
        per_row = 3
    else:
        per_row = min(num_heads, 4 if num_heads > 4 or width <= 4 else 2)
    figure = _draw_maps(weights, rows, columns, titles, per_row, blocked)
    figure.alt = "; ".join(
        f"{one_line(title)}: {describe_weights(head, rows, columns)}{_describe_blocked(shut)}"
        for head, shut, title in zip(weights[:4], blocked, titles, strict=False)
    )
    if num_heads > 4:
        figure.alt += f"; and {num_heads - 4} more heads"
    return figure


def plot_head_split(embed_dim: int, num_heads: int | Sequence[int]) -> CourseFigure:
    """Draw the D features of one token, and which head takes which.

    Args:
        embed_dim: D.
        num_heads: H, a divisor of D; or several, to see them below each other.

    Returns:
        A closed figure with one axes a head count: D boxes in a row, in H groups; from 513 features
        on, one box a head.

    Raises:
        ValueError: no head count, or one that does not divide D.
    """
    embed_dim = require_embed_dim(embed_dim)
    counts = num_heads if isinstance(num_heads, Sequence) and num_heads else [num_heads]
    counts = [require_num_heads(embed_dim, count) for count in counts]
    figure = CourseFigure(figsize=(PAGE_WIDTH, 1.7 * len(counts)))
    for axes, count in zip(figure.subplots(len(counts), squeeze=False).flat, counts, strict=True):
        _draw_split(axes, embed_dim, count)
    figure.alt = "; ".join(describe_head_split(embed_dim, count) for count in counts)
    return figure


def _draw_split(axes: Axes, embed_dim: int, num_heads: int) -> None:
    head_dim = embed_dim // num_heads
    width = 1 if embed_dim <= MAX_BOXES else head_dim
    for feature in range(0, embed_dim, width):
        head = feature // head_dim
        axes.add_patch(
            Rectangle(
                (feature, 0),
                width,
                1,
                facecolor=HEAD_TINTS[head % 2],
                edgecolor="#555555",
                linewidth=min(1, 32 / embed_dim),  # the edges must not hide the tints
            )
        )
        if embed_dim <= 32:
            axes.text(feature + 0.5, 0.5, str(feature), ha="center", va="center", fontsize=9)
    inset = min(0.3 * head_dim, 0.004 * embed_dim)
    for head in range(num_heads):
        left = head * head_dim
        ends = [left + inset, left + head_dim - inset]
        axes.plot(ends, [-0.15, -0.15], color="black", solid_capstyle="butt")
        name = f"head {head}" if num_heads <= 8 else str(head)
        if num_heads <= 32:
            axes.text(left + head_dim / 2, -0.3, name, ha="center", va="top", fontsize=9)
    axes.set(xlim=(-0.2, embed_dim + 0.2), ylim=(-0.9, 1.1))
    axes.set_title(
        f"one token: {count_of(embed_dim, 'feature')}, {count_of(num_heads, 'head')} of {head_dim}",
        fontsize=10,
    )
    axes.axis("off")


def plot_curves(
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    log_y: bool = False,
) -> CourseFigure:
    """Draw several curves over one x axis of doubling steps, told apart by marker and name.

    Args:
        x: positive positions, drawn on a base-2 log scale.
        curves: name to values, one for each x.
        x_label: what x is.
        y_label: what the values are.
        title: one line above the picture.
        log_y: a log scale for the values too.

    Returns:
        A closed figure with one axes.

    Raises:
        ValueError: x that are not positive, no curve or more than five, a curve of another length
            than x, values that the y axis cannot show, or a text that is none.
    """
    figure, axes, x = _log_axes(x, x_label, y_label, title)
    _check_series("curves", curves)
    lines, described = [], []
    for (name, values), marker, style in zip(
        curves.items(), "osD^v", ("-", "--", "-.", ":", "-"), strict=False
    ):
        values = require_numbers(f"curves[{name!r}]", values, f"one for each of the {x.size} x")
        if values.shape != x.shape or not np.isfinite(values).all():
            raise ValueError(
                f"curves[{name!r}] must hold one finite number for each of the {x.size} x; "
                f"got {values.size}, {int(np.isfinite(values).sum())} of them finite"
            )
        if log_y and values.min() <= 0:
            raise ValueError(f"curves[{name!r}] must be above 0 for log_y; got {values.min():g}")
        lines += axes.plot(x, values, marker=marker, linestyle=style, label=name)
        described.append(f"{visible_token(name)} goes from {values[0]:.3g} to {values[-1]:.3g}")
    if log_y:
        axes.set_yscale("log")
    _name_lines(axes, lines, curves)
    figure.alt = (
        f"{one_line(title or y_label)}; while {one_line(x_label)} goes from {x[0]:g} to {x[-1]:g}, "
        f"{', '.join(described)}"
    )
    return figure


def plot_spread(
    x: Sequence[float],
    scores: Mapping[str, Sequence[Sequence[float]]],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    marked: float | None = None,
) -> CourseFigure:
    """Draw scores of several runs over one x axis of doubling steps: every run, mean and spread.

    Args:
        x: positive positions, drawn on a base-2 log scale.
        scores: name to scores from 0 to 1, one list of runs for each x.
        x_label: what x is.
        y_label: what the scores are.
        title: one line above the picture.
        marked: an x to draw a line at.

    Returns:
        A closed figure with one axes. Its alt text says where all runs stay above 0.8, and where
        all stay below.

    Raises:
        ValueError: x that are not positive, no scores or more than five, a list of another length
            than x or without runs, scores outside 0 to 1, marked that is not positive, or a text
            that is none.
    """
    figure, axes, x = _log_axes(x, x_label, y_label, title)
    _check_series("scores", scores)
    if marked is not None:
        place = require_numbers("marked", marked, "one, an x")
        if place.shape or not 0 < place < np.inf:
            raise ValueError(f"marked must be a positive number, got {reprlib.repr(marked)}")
        axes.axvline(place, color="#888888", linestyle="--", linewidth=1)
    lines, described = [], []
    for i, ((name, runs), marker) in enumerate(zip(scores.items(), "osD^v", strict=False)):
        if getattr(runs, "shape", runs) == () or not isinstance(
            runs, Sequence | np.ndarray | torch.Tensor
        ):
            runs = []  # one number, or what has no order
        runs = [require_numbers(f"scores[{name!r}]", at_x, "one list for each x") for at_x in runs]
        if len(runs) != x.size or not all(at_x.ndim == 1 and at_x.size for at_x in runs):
            raise ValueError(
                f"scores[{name!r}] must hold one list of runs for each of the {x.size} x; "
                f"got {len(runs)} of sizes {[at_x.shape for at_x in runs]}"
            )
        if not all(((at_x >= 0) & (at_x <= 1)).all() for at_x in runs):
            raise ValueError(f"scores[{name!r}] must lie between 0 and 1")
        low, high = [at_x.min() for at_x in runs], [at_x.max() for at_x in runs]
        mean = [at_x.mean() for at_x in runs]
        style = ("-", "--", "-.", ":", "-")[i]
        (line,) = axes.plot(x, mean, linestyle=style, marker=marker, markersize=7, label=name)
        lines.append(line)
        look = {"color": line.get_color(), "linewidth": 0}
        axes.fill_between(x, low, high, alpha=0.2, **look)
        for place, at_x in zip(x, runs, strict=True):
            axes.plot(np.full(at_x.size, place), at_x, marker=marker, markersize=3, **look)
        above = [f"{place:g}" for place, lowest in zip(x, low, strict=True) if lowest > 0.8]
        below = [f"{place:g}" for place, highest in zip(x, high, strict=True) if highest < 0.8]
        described.append(
            f"{visible_token(name)}: all runs above 0.8 at {', '.join(above) or 'none'}, "
            f"all below at {', '.join(below) or 'none'}"
        )
    axes.set(ylim=(0, 1.05))
    _name_lines(axes, lines, scores)
    figure.alt = f"{one_line(title or y_label)} against {one_line(x_label)}; {'; '.join(described)}"
    return figure


def _log_axes(
    x: Sequence[float], x_label: str, y_label: str, title: str | None
) -> tuple[CourseFigure, Axes, np.ndarray]:
    """An empty figure over an axis of doubling steps, and x as an array.

    Raises:
        ValueError: x that are not positive, or a text that is none.
    """
    x = require_numbers("x", x, "in one list")
    if x.ndim != 1 or not x.size or not (np.isfinite(x) & (x > 0)).all():
        came = reprlib.repr(x.tolist()) if x.ndim == 1 else f"shape {x.shape}"
        raise ValueError(f"x must be positive numbers in one list, got {came}")
    figure = CourseFigure(figsize=(7, 3.6))
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"{tick:g}" for tick in x])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    _label_axes(axes, x_label, y_label, title)
    return figure, axes, x


def _label_axes(axes: Axes, x_label: str, y_label: str, title: str | None) -> None:
    axes.set_xlabel(**_drawable(require_text("x_label", x_label), "xlabel"))
    axes.set_ylabel(**_drawable(require_text("y_label", y_label), "ylabel"))
    axes.set_title(**_drawable(require_text("title", "" if title is None else title)))


def _check_series(name: str, series: Mapping, most: int = 5) -> None:
    if not isinstance(series, Mapping) or not 1 <= len(series) <= most:
        came = len(series) if isinstance(series, Mapping) else type(series).__name__
        limit = {5: "five", 6: "six"}[most]
        raise ValueError(
            f"{name} must be one to {limit}, by name, so that each has its marker; got {came}"
        )
    for key in series:
        require_text(f"each name in {name}", key)


def _name_lines(where: Axes | Figure, lines: list, names: Iterable[str], **look) -> None:
    """A legend of any names: one that starts with "_" would be left out otherwise."""
    texts = where.legend(lines, [" "] * len(lines), **look).get_texts()
    for text, name in zip(texts, names, strict=True):
        text.set(**_drawable(visible_token(name), "text"))


def plot_points(
    groups: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    log_y: bool = False,
    names: Mapping[str, tuple[float, float]] | None = None,
) -> CourseFigure:
    """Draw groups of points, told apart by marker, colour and legend.

    Args:
        groups: name to (x, y), two lists of the same length.
        x_label: what x is.
        y_label: what y is.
        title: one line above the picture.
        log_y: a log scale for y.
        names: texts to write beside single points, with where these are.

    Returns:
        A closed figure with one axes.

    Raises:
        ValueError: no group or more than six, x and y of different lengths, or numbers that the
            axes cannot show.
    """
    _check_series("groups", groups, most=6)
    figure = CourseFigure(figsize=(7.5, 4.4))
    axes = figure.subplots()
    colours = matplotlib.colormaps["cividis"](np.linspace(0, 0.95, len(groups)))
    points, described = [], []
    for (name, pair), marker, colour in zip(groups.items(), "osD^vX", colours, strict=False):
        x, y = (require_numbers(f"groups[{name!r}]", values, "as x and y") for values in pair)
        if x.ndim != 1 or x.shape != y.shape or not x.size:
            raise ValueError(
                f"groups[{name!r}] must hold as many x as y, at least one; got {x.shape} and "
                f"{y.shape}"
            )
        if not (np.isfinite(x) & np.isfinite(y)).all() or (log_y and y.min() <= 0):
            above = ", and y above 0 for log_y" if log_y else ""
            raise ValueError(f"groups[{name!r}] must be finite numbers{above}; got y {y.tolist()}")
        look = {"marker": marker, "color": colour, "edgecolor": "black", "linewidth": 0.5}
        points.append(axes.scatter(x, y, s=40, **look))
        described.append(
            f"{visible_token(name)}: {count_of(x.size, 'point')}, "
            f"x {x.min():.2g} to {x.max():.2g}, y {y.min():.2g} to {y.max():.2g}"
        )
    for text, where in (names or {}).items():
        axes.annotate(
            **_drawable(visible_token(require_text("each text in names", text)), "text"),
            xy=where,
            xytext=(18, 7),
            textcoords="offset points",
            fontsize=_TICK_SIZE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.8},  # a line says which point is meant
        )
    if log_y:
        axes.set_yscale("log")
    axes.margins(0.14, 0.1)  # room for the names
    _label_axes(axes, x_label, y_label, title)
    axes.grid(alpha=0.3)
    _name_lines(figure, points, groups, loc="outside right center", frameon=False)
    figure.alt = (
        f"{one_line(title or y_label)}; {one_line(y_label)} against {one_line(x_label)}; "
        f"{'; '.join(described)}"
    )
    return figure


# --- shared with the live explorers -------------------------------------------------------------

HEAD_TINTS = ("#fde7b0", "#b9dcf2")  # two light tints, by turns; black on both is easy to read


@lru_cache
def ramp(steps: int) -> tuple[tuple[str, str], ...]:
    """Background and text colour for ``steps`` values from 0 to 1, text always readable.

    The text is black or white, whichever contrasts more: at least 4.5:1 on any background.
    """
    colours = matplotlib.colormaps[COLORMAP](np.linspace(0, 1, steps))
    return tuple((matplotlib.colors.to_hex(c), text_colour(c)) for c in colours)


def text_colour(background) -> str:
    """Black or white, whichever contrasts more with ``background`` (WCAG relative luminance)."""
    channels = np.asarray(matplotlib.colors.to_rgb(background))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def token_labels(
    shape: Sequence[int],
    query_tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
) -> tuple[list[str], list[str]]:
    """Return a name for each row and column of weights whose shape ends in (L_q, L_k).

    Raises:
        ValueError: a token list of another length, a bare string, or tokens that are no strings.
    """
    height, width = shape[-2:]
    if query_tokens is not None:
        query_tokens = require_names("query_tokens", query_tokens, height, "one a query")
    if key_tokens is not None:
        key_tokens = require_names("key_tokens", key_tokens, width, "one a key")
    elif height == width:
        key_tokens = query_tokens
    return (
        query_tokens or [str(i) for i in range(height)],
        key_tokens or [str(i) for i in range(width)],
    )


def display_token(token: str) -> str:
    """Return a token as it is shown: white space visible, control characters escaped, shortened."""
    shown = visible_token(token)
    if len(shown) > MAX_LABEL:
        shown = f"{shown[: MAX_LABEL - 6]}…{shown[-5:]}"
    return shown


def visible_token(token: str) -> str:
    """Return a token with nothing invisible in it: blanks quoted, control characters escaped."""
    joiner = "\u200d"  # holds emoji together
    token = str(token)  # not NumPy's kind of string, whose repr is another
    if not token.replace(joiner, "").strip():
        return repr(token)
    return "".join(c if c.isprintable() or c == joiner else _escape(c) for c in token)


def one_line(text: str) -> str:
    """A text of any length in one line, with nothing invisible in it; blank, it is empty."""
    text = " ".join(text.split())
    return visible_token(text) if text else ""


def describe_weights(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Say in words where each query looks most (the first six rows)."""
    tops = [
        f"{display_token(row)} → {display_token(columns[int(line.argmax())])} {line.max():.2f}"
        for row, line in zip(rows[:6], weights, strict=False)
    ]
    more = ", …" if len(rows) > 6 else ""
    height, width = weights.shape
    size = f"{count_of(height, 'query', 'queries')} by {count_of(width, 'key')}"
    return f"{size}, largest weight a row {', '.join(tops)}{more}"


def _describe_blocked(blocked: np.ndarray) -> str:
    """Say in words how much a mask blocks, if anything."""
    return f"; {blocked.sum()} of {blocked.size} cells blocked" if blocked.any() else ""


def describe_head_split(embed_dim: int, num_heads: int) -> str:
    """Say in words which features belong to which head (the first and the last)."""
    head_dim = embed_dim // num_heads
    first, last = (f"{start} to {start + head_dim - 1}" for start in (0, embed_dim - head_dim))
    if head_dim == 1:
        first, last = "0", f"{embed_dim - 1}"
    others = f", head {num_heads - 1} takes {last}" if num_heads > 1 else ""
    return (
        f"{count_of(embed_dim, 'feature')} in {count_of(num_heads, 'head')} of {head_dim}: head 0 "
        f"takes feature{'s' * (head_dim > 1)} {first}{others}"
    )


def _draw_maps(
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    titles: Sequence[str],
    per_row: int,
    blocked: np.ndarray,
) -> CourseFigure:
    """Draw (H, L_q, L_k) as H maps whose size follows from the room that their texts need."""
    num_maps, height, width = weights.shape
    highest = max(1.0, weights.max())
    row_names, column_names = ([_drawable(display_token(t)) for t in x] for x in (rows, columns))
    left = 0.45 + max(map(_inches, row_names))  # inches, with the word "query"
    gap = 0.12

    def room(beside: float) -> float:  # inches for one map
        return (PAGE_WIDTH - left - beside) / per_row - gap

    numbers = (
        weights.size <= MAX_NUMBERS
        and height <= 40
        and room(0) / width >= _DIGIT * len(f"{highest:.2f}")
    )
    bar = 0 if numbers else 0.75
    cell = min(room(bar) / width, _CELL[0])
    title_width = max(_inches(_drawable(title)) for title in titles) * _TITLE_SIZE / _TICK_SIZE
    map_width = max(cell * width, min(title_width, room(bar)), 0.8)
    cell = map_width / width
    titles = [_wrap(title, map_width) for title in titles]
    if numbers:
        map_height = max(0.8, min(_CELL[1] * height, 7.5))
    else:
        map_height = max(0.8, min(_clamp(cell, 0.15, _CELL[1]) * height, max(2.4, map_width)))

    name_widths = [_inches(name) for name in column_names]
    size, angle, step = _fit_columns(cell, name_widths, gap if per_row > 1 else left)
    names_height = max(name_widths) * size / _TICK_SIZE * math.sin(angle)
    below = 0.4 + names_height + size * _LINE * math.cos(angle)  # inches, with the word "key"
    title_height = max(title.count("\n") + 1 for title in titles) * _TITLE_SIZE * _LINE
    grid_rows = math.ceil(num_maps / per_row)
    ragged = num_maps % per_row > 0  # then the last row but one has names below it too
    figure = CourseFigure(
        figsize=(
            left + bar + per_row * (map_width + gap),
            grid_rows * (map_height + title_height + gap) + below * (1 + ragged),
        )
    )
    grid = list(figure.subplots(grid_rows, per_row, squeeze=False).flat)
    for i, (axes, title) in enumerate(zip(grid, titles, strict=False)):
        image = axes.imshow(weights[i], cmap=COLORMAP, vmin=0, vmax=highest, aspect="auto")
        axes.set_title(**_drawable(title), fontsize=_TITLE_SIZE)
        axes.tick_params(length=0)
        # Names on the outer edges of the grid are enough.
        if i % per_row == 0:
            row_size, row_step = _fit_rows(map_height / height)
            _name_ticks(axes.yaxis, row_names, row_step, fontsize=row_size)
            axes.set_ylabel("query", fontsize=_TICK_SIZE)
        else:
            axes.set_yticks([])
        if i + per_row >= num_maps:
            look = {"fontsize": size}
            if angle:
                look |= {"rotation": math.degrees(angle), "rotation_mode": "anchor", "ha": "right"}
                look["va"] = "top" if angle < 1 else "center"
            _name_ticks(axes.xaxis, column_names, step, **look)
            axes.set_xlabel("key", fontsize=_TICK_SIZE)
        else:
            axes.set_xticks([])
        if numbers:
            _write_numbers(axes, weights[i], image, 9 if cell >= 0.5 else _SMALLEST, blocked[i])
        if blocked[i].any():  # one path for all cells: hatching each one for itself is slow
            corners = np.argwhere(blocked[i])[:, None, ::-1] + _CORNERS  # (cell, corner, xy)
            codes = [Outline.MOVETO, *3 * [Outline.LINETO]] * len(corners)
            path = Outline(corners.reshape(-1, 2), codes)
            axes.add_patch(PathPatch(path, **_BLOCKED, in_layout=False))
    for axes in grid[num_maps:]:
        axes.remove()
    if not numbers:
        figure.colorbar(image, ax=grid[:num_maps], label="weight", shrink=0.8, fraction=0.03)
    return figure


def _write_numbers(
    axes: Axes, weights: np.ndarray, image, size: float, blocked: np.ndarray
) -> None:
    backgrounds = image.to_rgba(weights)
    for (row, column), weight in np.ndenumerate(weights):
        shut = blocked[row, column]
        axes.text(
            column,
            row,
            "×" if shut else f"{weight:.2f}",
            ha="center",
            va="center",
            fontsize=size,
            color="black" if shut else text_colour(backgrounds[row, column]),
            in_layout=False,  # it lies inside its cell, and asking each one is slow
        )


def _fit_columns(cell: float, widths: Sequence[float], beside: float) -> tuple[float, float, int]:
    """Size, angle and step of the names below columns ``cell`` inches wide.

    Slanted names may stick out to the left of the map by ``beside`` inches.
    """
    if max(widths) + 0.1 <= cell:
        return _TICK_SIZE, 0, 1
    for angle in (math.pi / 4, math.pi / 2):
        size = min(cell * math.sin(angle) / _LINE, _TICK_SIZE)
        lengths = [width * size / _TICK_SIZE * math.cos(angle) for width in widths]
        sticks_out = max(length - (i + 0.5) * cell for i, length in enumerate(lengths))
        if size >= _SMALLEST and sticks_out <= beside:
            return size, angle, 1
    return max(size, _SMALLEST), math.pi / 2, math.ceil(_SMALLEST / size)


def _fit_rows(cell: float) -> tuple[float, int]:
    """Size and step of the names beside rows ``cell`` inches high."""
    size = cell / _LINE
    return _clamp(size, _SMALLEST, _TICK_SIZE), math.ceil(_SMALLEST / size)


def _name_ticks(axis: Axis, names: Sequence[dict], step: int, **look) -> None:
    axis.set_ticks(range(0, len(names), step), [name["label"] for name in names[::step]])
    for label, name in zip(axis.get_ticklabels(), names[::step], strict=True):
        label.set(fontfamily=name["fontfamily"], parse_math=False, **look)


def _inches(name: dict) -> float:
    """Width of a text at the size of tick labels."""
    return _text_inches(name["label"], tuple(name["fontfamily"]))


@lru_cache(maxsize=4096)
def _text_inches(text: str, fonts: tuple[str, ...]) -> float:
    artist = Figure(dpi=144).text(
        0, 0, text, fontfamily=list(fonts), fontsize=_TICK_SIZE, parse_math=False
    )
    return artist.get_window_extent().width / 144


def _wrap(title: str, width: float) -> str:
    """Break a title that is wider than so many inches into lines."""
    lines = []
    for line in title.splitlines() or [""]:
        inches = _inches(_drawable(line)) * _TITLE_SIZE / _TICK_SIZE
        per_line = len(line) if inches <= width else int(0.9 * len(line) * width / inches)
        lines += textwrap.wrap(line, max(per_line, 1)) or [""]
    return "\n".join(lines)


def _drawable(text: str, called: str = "label") -> dict:
    """Text and fonts for matplotlib: a character that no installed font has becomes its code.

    Dollar signs are dollar signs here, not mathematics. ``called`` is matplotlib's name for text.
    """
    label, fonts = "", ["DejaVu Sans"]
    for character in text:
        if character == "\n":
            label += character
            continue
        font = "DejaVu Sans" if character in _charmap(_default_font()) else _font_with(character)
        label += character if font else _escape(character)
        if font and font not in fonts:
            fonts.append(font)
    return {called: label, "fontfamily": fonts, "parse_math": False}


@cache
def _default_font() -> str:
    return font_manager.findfont("DejaVu Sans")  # ships with matplotlib


@cache
def _charmap(path: str) -> frozenset[str]:
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))


@cache
def _font_with(character: str) -> str | None:
    """Name of an installed font that can draw a character, the plain ones first."""
    for path in _installed_fonts():
        try:
            if character in _charmap(path) and font_manager.get_font(path).scalable:
                font_manager.fontManager.addfont(path)
                return font_manager.get_font(path).family_name
        except (OSError, RuntimeError, ValueError) as error:  # a font that matplotlib cannot read
            logging.getLogger(__name__).debug("font %s: %s", path, error)
    return None


@cache
def _installed_fonts() -> tuple[str, ...]:
    def plain_first(path: str) -> tuple:
        name = Path(path).name.lower()
        fancy = any(word in name for word in ("bold", "italic", "oblique", "serif", "mono", "thin"))
        return fancy, "sans" not in name, name

    def draws(path: str) -> bool:  # colour fonts come out blank, "last resort" fonts as boxes
        name = Path(path).name.lower().replace(" ", "")
        return "color" not in name and "lastresort" not in name

    return tuple(sorted(filter(draws, font_manager.findSystemFonts()), key=plain_first))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _clamp(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)
