"""Curves, spreads over seeds, and points with names."""

import reprlib
from collections.abc import Iterable, Mapping, Sequence

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.arguments import count_of, require_numbers, require_text
from course_utils.heatmaps.figure import TICK_SIZE, CourseFigure, drawable
from course_utils.heatmaps.texts import one_line, visible_token


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
            than x, values that the y axis cannot show, or a text that is not a string.
    """
    figure, axes, x = _log_axes(x, x_label, y_label, title)
    _require_series("curves", curves)
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
        marked: the x of a vertical line.

    Returns:
        A closed figure with one axes. Its alt text says where all runs stay above 0.8, and where
        all stay below.

    Raises:
        ValueError: x that are not positive, no scores or more than five, a list of another length
            than x or without runs, scores outside 0 to 1, marked that is not positive, or a text
            that is not a string.
    """
    figure, axes, x = _log_axes(x, x_label, y_label, title)
    _require_series("scores", scores)
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
            runs = []  # a single number, or a collection without order
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
        groups: name to (x, y), two lists of one length.
        x_label: what x is.
        y_label: what y is.
        title: one line above the picture.
        log_y: a log scale for y.
        names: text to the point (x, y) beside which it is written.

    Returns:
        A closed figure with one axes.

    Raises:
        ValueError: no group or more than six, x and y of different lengths, or numbers that the
            axes cannot show.
    """
    _require_series("groups", groups, most=6)
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
            **drawable(visible_token(require_text("each text in names", text)), "text"),
            xy=where,
            xytext=(18, 7),
            textcoords="offset points",
            fontsize=TICK_SIZE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.8},  # the line shows which point is meant
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


def _log_axes(
    x: Sequence[float], x_label: str, y_label: str, title: str | None
) -> tuple[CourseFigure, Axes, np.ndarray]:
    """An empty figure over an axis of doubling steps, and x as an array.

    Raises:
        ValueError: x that are not positive, or a text that is not a string.
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
    axes.set_xlabel(**drawable(require_text("x_label", x_label), "xlabel"))
    axes.set_ylabel(**drawable(require_text("y_label", y_label), "ylabel"))
    axes.set_title(**drawable(require_text("title", "" if title is None else title)))


def _require_series(name: str, series: Mapping, most: int = 5) -> None:
    if not isinstance(series, Mapping) or not 1 <= len(series) <= most:
        came = len(series) if isinstance(series, Mapping) else type(series).__name__
        limit = {5: "five", 6: "six"}[most]
        raise ValueError(
            f"{name} must be one to {limit}, by name, so that each has its marker; got {came}"
        )
    for key in series:
        require_text(f"each name in {name}", key)


def _name_lines(where: Axes | Figure, lines: list, names: Iterable[str], **look) -> None:
    """Draw a legend of any names; matplotlib would leave out one that starts with "_"."""
    texts = where.legend(lines, [" "] * len(lines), **look).get_texts()
    for text, name in zip(texts, names, strict=True):
        text.set(**drawable(visible_token(name), "text"))
