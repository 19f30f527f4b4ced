"""Heatmaps of attention weights, for one head or for several.

Each function takes its data first and everything else by keyword, and returns a closed
``CourseFigure``: nothing is left open in pyplot, and the figure carries its own alt text.
"""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from course_utils.arguments import require_blocked, require_names, require_text, require_weights
from course_utils.heatmaps.colours import COLORMAP, text_colour
from course_utils.heatmaps.dark import ON_COLOUR
from course_utils.heatmaps.figure import (
    LINE_INCHES,
    PAGE_WIDTH,
    SMALLEST_TEXT,
    TICK_SIZE,
    TITLE_SIZE,
    CourseFigure,
    clamp,
    drawable,
    inches_of,
    wrap_title,
)
from course_utils.heatmaps.texts import (
    describe_blocked,
    describe_weights,
    display_token,
    one_line,
    token_labels,
)

MAX_NUMBERS = 600  # a figure with more cells prints no numbers in them
_CELL = (0.7, 0.38)  # inches: width and height of a cell where there is enough room
_DIGIT = 0.095  # inches per character of a number, including the space around it
_BLOCKED = {"facecolor": "#ececec", "edgecolor": "#a0a0a0", "hatch": "///", "linewidth": 0}
_CORNERS = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])  # of a cell


def plot_attention(
    weights,
    *,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    title: str | None = None,
    blocked=None,
) -> CourseFigure:
    """Draw one head's weights: one row per query, one column per key.

    Args:
        weights: (L_q, L_k), at least 0; a tensor, an array or nested lists.
        query_tokens: one name per row; left out, the positions.
        key_tokens: one name per column; left out, the query tokens if the map is square.
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
    figure.alt = f"{name}: {describe_weights(weights, rows, columns)}{describe_blocked(blocked)}"
    return figure


def plot_heads(
    weights,
    *,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    blocked=None,
) -> CourseFigure:
    """Draw all heads of one sample, one small map per head, all on one colour scale.

    Args:
        weights: (H, L_q, L_k), at least 0; a tensor, an array or nested lists.
        query_tokens: one name per row; left out, the positions.
        key_tokens: one name per column; left out, the query tokens if the maps are square.
        titles: one name per map; left out, "head 0", "head 1" and so on.
        blocked: booleans, True where a mask blocks, (L_q, L_k) for all heads alike or
            (H, L_q, L_k); see ``plot_attention``.

    Returns:
        A closed figure with H axes in reading order, at most four per row.

    Raises:
        ValueError: as for ``plot_attention``, with (H, L_q, L_k); or another number of titles.
    """
    weights = require_weights(weights, "(H, L_q, L_k)")
    num_heads, _, width = weights.shape
    rows, columns = token_labels(weights.shape, query_tokens, key_tokens)
    if titles is None:
        titles = [f"head {head}" for head in range(num_heads)]
    titles = require_names("titles", titles, num_heads, "one per head")
    blocked = require_blocked(blocked, weights.shape)

    if num_heads % 4 and num_heads % 3 == 0:
        per_row = 3
    else:
        per_row = min(num_heads, 4 if num_heads > 4 or width <= 4 else 2)
    figure = _draw_maps(weights, rows, columns, titles, per_row, blocked)
    figure.alt = "; ".join(
        f"{one_line(title)}: {describe_weights(head, rows, columns)}{describe_blocked(shut)}"
        for head, shut, title in zip(weights[:4], blocked, titles, strict=False)
    )
    if num_heads > 4:
        figure.alt += f"; and {num_heads - 4} more heads"
    return figure


def _draw_maps(
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    titles: Sequence[str],
    per_row: int,
    blocked: np.ndarray,
) -> CourseFigure:
    """Draw (H, L_q, L_k) as H maps, as large as their texts need."""
    num_maps, height, width = weights.shape
    highest = max(1.0, weights.max())
    row_names, column_names = ([drawable(display_token(t)) for t in x] for x in (rows, columns))
    left = 0.45 + max(map(inches_of, row_names))  # inches, including the word "query"
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
    title_width = max(inches_of(drawable(title)) for title in titles) * TITLE_SIZE / TICK_SIZE
    map_width = max(cell * width, min(title_width, room(bar)), 0.8)
    cell = map_width / width
    titles = [wrap_title(title, map_width) for title in titles]
    if numbers:
        map_height = max(0.8, min(_CELL[1] * height, 7.5))
    else:
        map_height = max(0.8, min(clamp(cell, 0.15, _CELL[1]) * height, max(2.4, map_width)))

    name_widths = [inches_of(name) for name in column_names]
    size, angle, step = _fit_columns(cell, name_widths, gap if per_row > 1 else left)
    names_height = max(name_widths) * size / TICK_SIZE * math.sin(angle)
    # Inches below the maps, including the word "key".
    below = 0.4 + names_height + size * LINE_INCHES * math.cos(angle)
    title_height = max(title.count("\n") + 1 for title in titles) * TITLE_SIZE * LINE_INCHES
    grid_rows = math.ceil(num_maps / per_row)
    ragged = num_maps % per_row > 0  # the last row but one then has names below it as well
    figure = CourseFigure(
        figsize=(
            left + bar + per_row * (map_width + gap),
            grid_rows * (map_height + title_height + gap) + below * (1 + ragged),
        )
    )
    grid = list(figure.subplots(grid_rows, per_row, squeeze=False).flat)
    for i, (axes, title) in enumerate(zip(grid, titles, strict=False)):
        image = axes.imshow(weights[i], cmap=COLORMAP, vmin=0, vmax=highest, aspect="auto")
        axes.set_title(**drawable(title), fontsize=TITLE_SIZE)
        axes.tick_params(length=0)
        # Maps inside the grid share the names on its outer edges.
        if i % per_row == 0:
            row_size, row_step = _fit_rows(map_height / height)
            _name_ticks(axes.yaxis, row_names, row_step, fontsize=row_size)
            axes.set_ylabel("query", fontsize=TICK_SIZE)
        else:
            axes.set_yticks([])
        if i + per_row >= num_maps:
            look = {"fontsize": size}
            if angle:
                look |= {"rotation": math.degrees(angle), "rotation_mode": "anchor", "ha": "right"}
                look["va"] = "top" if angle < 1 else "center"
            _name_ticks(axes.xaxis, column_names, step, **look)
            axes.set_xlabel("key", fontsize=TICK_SIZE)
        else:
            axes.set_xticks([])
        if numbers:
            _write_numbers(axes, weights[i], image, 9 if cell >= 0.5 else SMALLEST_TEXT, blocked[i])
        if blocked[i].any():  # one path for all cells, because hatching each cell is slow
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
            gid=None if shut else ON_COLOUR,
            in_layout=False,  # it lies inside its cell, and measuring every text is slow
        )


def _fit_columns(cell: float, widths: Sequence[float], beside: float) -> tuple[float, float, int]:
    """Size, angle and step of the names below columns ``cell`` inches wide.

    Slanted names may stick out to the left of the map by ``beside`` inches.
    """
    if max(widths) + 0.1 <= cell:
        return TICK_SIZE, 0, 1
    for angle in (math.pi / 4, math.pi / 2):
        size = min(cell * math.sin(angle) / LINE_INCHES, TICK_SIZE)
        lengths = [width * size / TICK_SIZE * math.cos(angle) for width in widths]
        sticks_out = max(length - (i + 0.5) * cell for i, length in enumerate(lengths))
        if size >= SMALLEST_TEXT and sticks_out <= beside:
            return size, angle, 1
    return max(size, SMALLEST_TEXT), math.pi / 2, math.ceil(SMALLEST_TEXT / size)


def _fit_rows(cell: float) -> tuple[float, int]:
    """Size and step of the names beside rows ``cell`` inches high."""
    size = cell / LINE_INCHES
    return clamp(size, SMALLEST_TEXT, TICK_SIZE), math.ceil(SMALLEST_TEXT / size)


def _name_ticks(axis: Axis, names: Sequence[dict], step: int, **look) -> None:
    axis.set_ticks(range(0, len(names), step), [name["label"] for name in names[::step]])
    for label, name in zip(axis.get_ticklabels(), names[::step], strict=True):
        label.set(fontfamily=name["fontfamily"], parse_math=False, **look)
