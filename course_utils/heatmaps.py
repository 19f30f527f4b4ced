"""Still pictures of attention: weights, heads, head splits and curves.

Each function takes its data first and everything else by keyword, and returns a closed
``CourseFigure``: nothing is left open in pyplot, and the figure carries its own alt text.
"""

import base64
import io
import logging
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from course_utils.attention import check_num_heads

COLORMAP = "viridis"  # even steps of lightness, and told apart by colour-blind readers
MAX_LABEL = 14  # characters of a token that are shown; a longer one loses its middle
MAX_NUMBERS = 600  # cells of a figure that still get their number printed
NUMBER_WIDTH = 0.37  # inches a column needs for its number to be readable
CHARACTER_WIDTH = 0.09  # inches of a tick label
PAGE_WIDTH = 9  # inches
_PNG_DPI = 144
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
) -> CourseFigure:
    """Draw one head's weights: a row a query, a column a key.

    Args:
        weights: (L_q, L_k), at least 0; a tensor, an array or nested lists.
        query_tokens: one name a row; left out, the positions.
        key_tokens: one name a column; left out, the query tokens if the map is square.
        title: one line above the picture.

    Returns:
        A closed figure with one axes; colours run from 0 to 1, or to the largest weight if that
        is more than 1 (dropout divides by 1 - p).

    Raises:
        ValueError: weights of another rank, empty, negative, NaN or infinite, or a token list
            of another length.
    """
    weights = check_weights(weights, "(L_q, L_k)")
    rows, columns = token_labels(weights.shape, query_tokens, key_tokens)
    height, width = weights.shape
    figure = CourseFigure(
        figsize=(_clamp(1.6 + 0.6 * width, 3.2, PAGE_WIDTH), _clamp(1.3 + 0.42 * height, 2.4, 9))
    )
    axes = figure.subplots()
    column_width = figure.get_figwidth() / (width + 2)
    numbers = weights.size <= MAX_NUMBERS and column_width >= NUMBER_WIDTH
    highest = max(1.0, weights.max())
    image = _draw_heatmap(axes, weights, rows, columns, column_width, numbers, highest)
    if not numbers:
        figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    if title is not None:
        axes.set_title(**_drawable(title))
    figure.alt = f"{title or 'attention weights'}: {describe_weights(weights, rows, columns)}"
    return figure


def plot_heads(
    weights,
    *,
    query_tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
) -> CourseFigure:
    """Draw all heads of one sample, one small map a head, on one colour scale.

    Args:
        weights: (H, L_q, L_k), at least 0; a tensor, an array or nested lists.
        query_tokens: one name a row; left out, the positions.
        key_tokens: one name a column; left out, the query tokens if the maps are square.
        titles: one name a map; left out, "head 0", "head 1" and so on.

    Returns:
        A closed figure with H axes in reading order, at most four a row.

    Raises:
        ValueError: as ``plot_attention``, for (H, L_q, L_k); or titles of another number.
    """
    weights = check_weights(weights, "(H, L_q, L_k)")
    num_heads, height, width = weights.shape
    rows, columns = token_labels(weights.shape, query_tokens, key_tokens)
    if titles is None:
        titles = [f"head {head}" for head in range(num_heads)]
    titles = _check_names("titles", titles, num_heads, "one a head")

    if num_heads % 4 and num_heads % 3 == 0:
        per_row = 3
    else:
        per_row = min(num_heads, 4 if num_heads > 4 or width <= 4 else 2)
    map_width = min(PAGE_WIDTH / per_row, 4.2)
    column_width = map_width / (width + 2)  # two columns' worth for the row names
    numbers = weights.size <= MAX_NUMBERS and column_width >= NUMBER_WIDTH
    map_height = _clamp(0.9 + (0.36 if numbers else 0.2) * height, 1.9, 9 if numbers else 3)
    grid_rows = math.ceil(num_heads / per_row)
    figure = CourseFigure(figsize=(map_width * per_row, map_height * grid_rows))
    highest = max(1.0, weights.max())
    grid = list(figure.subplots(grid_rows, per_row, squeeze=False).flat)
    for axes, head, title in zip(grid, weights, titles, strict=False):
        image = _draw_heatmap(axes, head, rows, columns, column_width, numbers, highest)
        axes.set_title(**_drawable(title))
        if num_heads % per_row == 0:  # a full grid: names on its outer edges are enough
            axes.label_outer()
    for axes in grid[num_heads:]:
        axes.remove()
    if not numbers:
        figure.colorbar(image, ax=grid[:num_heads], label="weight", shrink=0.8, aspect=40)
    figure.alt = "; ".join(
        f"{title}: {describe_weights(head, rows, columns)}"
        for head, title in zip(weights[:4], titles, strict=False)
    )
    if num_heads > 4:
        figure.alt += f"; and {num_heads - 4} more heads"
    return figure


def plot_head_split(embed_dim: int, num_heads: int) -> CourseFigure:
    """Draw the D features of one token, and which head takes which.

    Args:
        embed_dim: D.
        num_heads: H, a divisor of D.

    Returns:
        A closed figure with one axes: D boxes in a row, in H groups.

    Raises:
        ValueError: H does not divide D.
    """
    num_heads = check_num_heads(embed_dim, num_heads)
    head_dim = embed_dim // num_heads
    figure = CourseFigure(figsize=(PAGE_WIDTH, 1.7))
    axes = figure.subplots()
    for feature in range(embed_dim):
        head = feature // head_dim
        axes.add_patch(
            Rectangle((feature, 0), 1, 1, facecolor=HEAD_TINTS[head % 2], edgecolor="#555555")
        )
        if embed_dim <= 32:
            axes.text(feature + 0.5, 0.5, str(feature), ha="center", va="center", fontsize=9)
    for head in range(num_heads):
        left = head * head_dim
        axes.plot([left + 0.08, left + head_dim - 0.08], [-0.15, -0.15], color="black")
        name = f"head {head}" if num_heads <= 8 else str(head)
        if num_heads <= 32:
            axes.text(left + head_dim / 2, -0.3, name, ha="center", va="top", fontsize=9)
    axes.set(xlim=(-0.2, embed_dim + 0.2), ylim=(-0.9, 1.1))
    axes.set_title(
        f"one token: {embed_dim} features, {_count(num_heads, 'head')} of {head_dim}", fontsize=10
    )
    axes.axis("off")
    figure.alt = describe_head_split(embed_dim, num_heads)
    return figure


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
        ValueError: a curve of another length than x, or values that are not finite.
    """
    x = np.asarray(x, dtype=float)
    figure = CourseFigure(figsize=(7, 3.6))
    axes = figure.subplots()
    described = []
    for (name, values), marker, style in zip(
        curves.items(), "osD^v", ("-", "--", "-.", ":", "-"), strict=False
    ):
        values = np.asarray(values, dtype=float)
        if values.shape != x.shape or not np.isfinite(values).all():
            raise ValueError(
                f"curves[{name!r}] must hold one finite number for each of the {x.size} x; "
                f"got {values.size}, {int(np.isfinite(values).sum())} of them finite"
            )
        axes.plot(x, values, marker=marker, linestyle=style, label=name)
        described.append(f"{name} goes from {values[0]:.3g} to {values[-1]:.3g}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"{tick:g}" for tick in x])
    axes.minorticks_off()
    if log_y:
        axes.set_yscale("log")
    axes.set(xlabel=x_label, ylabel=y_label)
    if title is not None:
        axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.alt = (
        f"{title or y_label}; while {x_label} goes from {x[0]:g} to {x[-1]:g}, "
        f"{', '.join(described)}"
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


def check_weights(weights, axes: str) -> np.ndarray:
    """Return weights as a float64 array with the given axes, for example "(L_q, L_k)".

    Raises:
        ValueError: another rank, no cells, or a cell that is negative, NaN or infinite.
    """
    if isinstance(weights, torch.Tensor):
        weights = weights.detach().cpu().double().numpy()
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"weights must be numbers of shape {axes}") from None
    wanted = axes.count(",") + 1
    if array.ndim != wanted:
        way_out = ""
        if array.ndim > wanted:
            way_out = f"; pick one with weights[{', '.join('0' * (array.ndim - wanted))}]"
        elif array.ndim == wanted - 1:
            way_out = "; add the missing axis with weights[None]"
        raise ValueError(f"weights must be {axes}, got shape {array.shape}{way_out}")
    if array.size == 0:
        raise ValueError(f"weights must have at least one query and one key, got {array.shape}")
    for what, bad in (
        ("NaN", np.isnan(array)),
        ("infinite", np.isinf(array)),
        ("negative", array < 0),
    ):
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            hint = "; are these scores, before softmax?" if what != "NaN" else ""
            raise ValueError(
                f"weights must be numbers of at least 0, got {array[where]} at {list(where)}, "
                f"and {_count(int(bad.sum()), what + ' cell')} in all{hint}"
            )
    return array


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
        query_tokens = _check_names("query_tokens", query_tokens, height, "one a query")
    if key_tokens is not None:
        key_tokens = _check_names("key_tokens", key_tokens, width, "one a key")
    elif height == width:
        key_tokens = query_tokens
    return (
        query_tokens or [str(i) for i in range(height)],
        key_tokens or [str(i) for i in range(width)],
    )


def display_token(token: str) -> str:
    """Return a token as it is shown: white space visible, control characters escaped, shortened."""
    if not token.strip():
        return repr(token)  # '' and ' ' would be invisible
    shown = "".join(c if c.isprintable() or c == "\u200d" else _escape(c) for c in token)
    if len(shown) > MAX_LABEL:
        shown = f"{shown[: MAX_LABEL - 6]}…{shown[-5:]}"
    return shown


def describe_weights(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Say in words where each query looks most (the first six rows)."""
    tops = [
        f"{display_token(row)} → {display_token(columns[int(line.argmax())])} {line.max():.2f}"
        for row, line in zip(rows[:6], weights, strict=False)
    ]
    more = ", …" if len(rows) > 6 else ""
    height, width = weights.shape
    size = f"{_count(height, 'query', 'queries')} by {_count(width, 'key')}"
    return f"{size}, largest weight a row {', '.join(tops)}{more}"


def describe_head_split(embed_dim: int, num_heads: int) -> str:
    """Say in words which features belong to which head (the first and the last)."""
    head_dim = embed_dim // num_heads
    last = f", head {num_heads - 1} takes {embed_dim - head_dim} to {embed_dim - 1}"
    return (
        f"{embed_dim} features in {_count(num_heads, 'head')} of {head_dim}: head 0 takes "
        f"features 0 to {head_dim - 1}{last if num_heads > 1 else ''}"
    )


def _check_names(name: str, names: Sequence[str], wanted: int, each: str) -> list[str]:
    if isinstance(names, str):
        raise ValueError(f"{name} must be a list of strings, got one string; try {names.split()}")
    names = list(names)
    for item in names:
        if not isinstance(item, str):
            raise ValueError(f"{name} must be strings, got {item!r} of type {type(item).__name__}")
    if len(names) != wanted:
        raise ValueError(
            f"{name} must be {wanted} strings, {each}; got {len(names)} for {wanted}: {names[:8]}"
        )
    return names


def _draw_heatmap(
    axes: Axes,
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    column_width: float,
    numbers: bool,
    highest: float,
) -> AxesImage:
    image = axes.imshow(weights, cmap=COLORMAP, vmin=0, vmax=highest, aspect="auto")
    height, width = weights.shape
    _label_ticks(axes.xaxis, columns)
    _label_ticks(axes.yaxis, rows)
    longest = max(len(display_token(token)) for token in columns)
    if longest * CHARACTER_WIDTH > column_width:
        axes.tick_params(axis="x", labelrotation=45)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.tick_params(length=0)
    axes.set(xlabel="key", ylabel="query")
    for row in range(height if numbers else 0):
        for column in range(width):
            weight = weights[row, column]
            axes.text(
                column,
                row,
                f"{weight:.2f}",
                ha="center",
                va="center",
                fontsize=9 if width <= 6 else 7,
                color=text_colour(image.to_rgba(weight)),
            )
    return image


def _label_ticks(axis: Axis, tokens: Sequence[str], *, limit: int = 24) -> None:
    step = math.ceil(len(tokens) / limit)  # too many names would overlap: show every step-th
    shown = [_drawable(display_token(token)) for token in tokens[::step]]
    axis.set_ticks(range(0, len(tokens), step), [text["label"] for text in shown])
    for label, text in zip(axis.get_ticklabels(), shown, strict=True):
        label.set(fontfamily=text["fontfamily"], parse_math=False)


def _drawable(text: str) -> dict:
    """Text and fonts for matplotlib: a character that no installed font has becomes its code.

    Dollar signs are dollar signs here, not mathematics.
    """
    label, fonts = "", ["DejaVu Sans"]
    for character in text:
        font = "DejaVu Sans" if character in _charmap(_default_font()) else _font_with(character)
        label += character if font else _escape(character)
        if font and font not in fonts:
            fonts.append(font)
    return {"label": label, "fontfamily": fonts, "parse_math": False}


@lru_cache
def _default_font() -> str:
    return font_manager.findfont("DejaVu Sans")  # ships with matplotlib


@lru_cache
def _charmap(path: str) -> frozenset[str]:
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))


@lru_cache
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


@lru_cache
def _installed_fonts() -> tuple[str, ...]:
    def plain_first(path: str) -> tuple:
        name = Path(path).name.lower()
        fancy = any(word in name for word in ("bold", "italic", "oblique", "serif", "mono", "thin"))
        return fancy, "sans" not in name, "color" in name, name

    return tuple(sorted(font_manager.findSystemFonts(), key=plain_first))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def _clamp(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)
