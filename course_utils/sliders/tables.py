"""The HTML of live views: tables of weights and of facts."""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape

import numpy as np
from PIL import Image

from course_utils.heatmaps.colours import ramp, shade_of
from course_utils.heatmaps.texts import display_token, two_decimals, visible_token

MAX_NUMBERS = 1100  # with a number in more cells, a move would take 0.1 s or longer
# All maps of one stop are seen at once: an output beside the file browser is so wide at 1280 × 800,
# and so much of its height is left when the controls and the facts are in sight as well.
ROOM_WIDTH, ROOM_HEIGHT = 840, 450
GAP, CAPTION = 14, 22  # between maps that share their labels, and above each
MAX_CELL, READABLE = (
    24,
    29,
)  # sides of a cell, in pixels: the largest, and one that shows its number


@lru_cache(maxsize=4096)
def _cell(weight: str) -> tuple[str, str]:
    """Return the two ends of the cell of a weight with two decimals; its title goes between."""
    return f'<td class="ac-w{shade_of(float(weight))}"', f">{weight}</td>"


def heat_tables(
    weights: list,
    rows: Sequence[str],
    columns: Sequence[str],
    titles: Sequence[str],
    *,
    blocked: list | None = None,
    corner: str = "query ↓ key →",
    upright: bool = False,
) -> list[str]:
    """Make one heatmap table per head, so that all of them fit on a screen.

    Where numbers leave no room, cells are small squares, the names of rows and columns stand once
    for all maps, and a map that is pointed at or focused grows until its numbers can be read. With
    more than 1,100 cells, maps are pictures.

    Args:
        weights: nested lists, (H, L_q, L_k), each number from 0 to 1.
        rows: L_q names of queries; they are escaped here.
        columns: L_k names of keys.
        titles: H captions.
        blocked: nested lists, (L_q, L_k), True for a cell that a mask blocks. Its weight is 0:
            it is hatched and says "× 0".
        corner: says what the rows and the columns are.
        upright: whether the names of the columns stand upright, so that long ones need less width.

    Returns:
        H pieces of HTML, or one that holds all maps.
    """
    if (count := len(weights) * len(rows) * len(columns)) > MAX_NUMBERS:
        note = f'<p class="ac-note">{count:,} weights: too many to show each as a number.</p>'
        cell = min(_Room.of(rows, columns, upright=True).grid_of(len(weights), caption=52).cell, 14)
        maps = zip(titles, weights, strict=True)
        return [note, *(_small_map(title, own, rows, columns, cell) for title, own in maps)]
    columns_html = "".join(f'<th scope="col">{token_html(token)}</th>' for token in columns)
    head = f'<thead><tr><th scope="col">{escape(corner)}</th>{columns_html}</tr></thead>'
    names = [token_html(token) for token in rows]
    queries, keys = ([_whole_token(t) for t in tokens] for tokens in (rows, columns))
    room = _Room.of(rows, columns, upright)
    if room.height_of(len(weights)) > ROOM_HEIGHT and len(weights) > 1:
        grid = room.grid_of(len(weights))
        boxes, upright = map(grid.box, range(len(weights))), True
    else:
        grid, boxes = None, (room.box for _ in weights)
    kind = "ac ac-map ac-upright" if upright else "ac ac-map"
    tables = []
    for box, title, head_weights in zip(boxes, titles, weights, strict=True):
        lines = []
        for i, (row, name, query) in enumerate(zip(head_weights, names, queries, strict=True)):
            cells = []
            for j, (weight, key) in enumerate(zip(row, keys, strict=True)):
                if blocked and blocked[i][j]:
                    start, end = '<td class="ac-blocked"', ">× 0</td>"
                else:
                    start, end = _cell(f"{weight:.2f}")
                cells.append(f'{start} title="{query} → {key}: {weight:.4f}"{end}')
            lines.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
        tables.append(
            f'{box}<table class="{kind}">'
            f"<caption>{escape(title)}</caption>{head}<tbody>{''.join(lines)}</tbody></table></div>"
        )
    return [grid.around(tables)] if grid else tables


def maps_height(
    heads: int, rows: Sequence[str], columns: Sequence[str], *, upright: bool = False
) -> int:
    """Return about how many pixels high the maps of ``heat_tables`` are together."""
    room = _Room.of(rows, columns, upright)
    return min(room.height_of(heads), ROOM_HEIGHT + 2 * GAP) if heads > 1 else room.height


@dataclass(frozen=True)
class _Room:
    """What one map with numbers takes, in pixels."""

    queries: int
    keys: int
    names: int  # of the queries
    upright_names: int  # of the keys
    width: int
    height: int

    @classmethod
    def of(cls, rows: Sequence[str], columns: Sequence[str], upright: bool) -> "_Room":
        lengths = [len(display_token(token)) for token in columns]
        names = 7 * max(8, *(len(display_token(token)) for token in rows), 0)
        upright_names = 7 * max(lengths)
        widths = [35 if upright else max(35, 7 * length + 6) for length in lengths]
        return cls(
            len(rows),
            len(columns),
            names,
            upright_names,
            width=28 + names + sum(widths),
            height=22 * len(rows) + 50 + upright_names * upright,
        )

    @property
    def box(self) -> str:
        """The start of a map's box, with its size for a browser that does not draw it yet."""
        size = f"contain-intrinsic-size:{self.width}px {self.height}px"
        return f'<div class="ac-box" style="{size}">'

    def height_of(self, maps: int) -> int:
        """The height of maps beside and below each other."""
        in_a_row = max(1, (ROOM_WIDTH + 20) // (self.width + 20))
        return math.ceil(maps / in_a_row) * (self.height + 12)

    def grid_of(self, maps: int, caption: int = CAPTION) -> "_Grid":
        """The grid with the largest cells, below captions of that height."""
        grids = []
        for columns in range(1, maps + 1):
            rows = math.ceil(maps / columns)
            width = ROOM_WIDTH - self.names - 20 - GAP * (columns - 1)
            height = ROOM_HEIGHT - self.upright_names - rows * caption
            cell = min(width // (columns * self.keys), height // (rows * self.queries), MAX_CELL)
            grids.append(_Grid(columns, rows, max(cell, 4), max(self.queries, self.keys)))
        return max(grids, key=lambda grid: grid.cell)


@dataclass(frozen=True)
class _Grid:
    """Maps in columns and rows that share the names of queries and keys."""

    columns: int
    rows: int
    cell: int  # the side of a cell, in pixels
    length: int  # cells along the longer side of a map

    def box(self, head: int) -> str:
        """The start of a map's box; its classes say which names it shows and where it grows to."""
        row, column = divmod(head, self.columns)
        kinds = ["ac-box", "ac-mini"]
        kinds += ["ac-under"] * (row > 0) + ["ac-inner"] * (column > 0)
        kinds += ["ac-low"] * (2 * row >= self.rows) + ["ac-right"] * (2 * column >= self.columns)
        return f'<div class="{" ".join(kinds)}" tabindex="0">'

    def around(self, tables: Sequence[str]) -> str:
        grow = max(1, min(READABLE, ROOM_HEIGHT / self.length) / self.cell)
        style = (
            f"grid-template-columns:repeat({self.columns},max-content);"
            f"--ac-cell:{self.cell}px;--ac-grow:{grow:.2f}"
        )
        return f'<div class="ac-grid" style="{style}">{"".join(tables)}</div>'


@cache
def _palette() -> list[int]:
    """Return red, green and blue of each shade from 0.00 to 1.00, in one list."""
    return [int(back[i : i + 2], 16) for back, _ in ramp(101) for i in (1, 3, 5)]


def _small_map(
    title: str, weights: list, rows: Sequence[str], columns: Sequence[str], cell: int
) -> str:
    """Make a map of colours without numbers, and say its largest weight in words."""
    largest, i, j = max((w, i, j) for i, row in enumerate(weights) for j, w in enumerate(row))
    words = f"most {largest:.2f}: {token_html(rows[i])} → {token_html(columns[j])}"
    shades = np.rint(100 * np.array(weights)).clip(0, 100).astype(np.uint8)
    picture = Image.fromarray(shades).convert("P")
    picture.putpalette(_palette())
    picture.save(png := io.BytesIO(), "PNG", compress_level=1)
    height, width = shades.shape
    source = f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"
    title = escape(title, quote=True)
    return (
        f'<figure class="ac ac-small"><figcaption><b>{title}</b><div>{words}</div></figcaption>'
        f'<img width="{cell * width}" height="{cell * height}" alt="map of {title}" '
        f'src="{source}"/></figure>'
    )


def html_table(caption: str, head: Sequence[str], rows: Sequence, total: Sequence = ()) -> str:
    """Make a table whose first column names the rows; all arguments are HTML already."""
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)

    def line(cells: Sequence[str]) -> str:
        rest = "".join(f'<td class="ac-num">{cell}</td>' for cell in cells[1:])
        return f'<tr><th scope="row">{cells[0]}</th>{rest}</tr>'

    body = "".join(map(line, rows))
    foot = f"<tfoot>{line(total)}</tfoot>" if total else ""
    return (
        f'<table class="ac"><caption>{caption}</caption><thead><tr>{columns}</tr></thead>'
        f"<tbody>{body}</tbody>{foot}</table>"
    )


def facts_table(caption: str, facts: Sequence[Sequence[str]], *, strip: bool = False) -> str:
    """Make a table of (name, fact) pairs; all arguments are HTML already.

    As a strip it takes the whole width of the view, one fact beside the other.
    """
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{fact}</td></tr>' for name, fact in facts)
    kind = "ac ac-facts" if strip else "ac"
    return f'<table class="{kind}"><caption>{caption}</caption><tbody>{rows}</tbody></table>'


def side_by_side(*parts: str, height: float = 0) -> str:
    """Put tables into one row, which wraps where the page is narrow.

    Args:
        parts: HTML.
        height: pixels that are kept free at least, so that what stands below does not jump when a
            control is moved.
    """
    reserved = f' style="min-height:{height:.0f}px"' if height else ""
    return f'<div class="ac-view"{reserved}>{"".join(parts)}</div>'


def token_html(token: str) -> str:
    """Return a token as HTML: escaped, and isolated from the direction of the text around it."""
    return f'<bdi title="{_whole_token(token)}">{escape(display_token(token))}</bdi>'


def _whole_token(token: str) -> str:
    """Return a token in full, as the value of an HTML attribute."""
    return escape(visible_token(token), quote=True)


def weight_bar(weight: float) -> str:
    """Return a weight as a bar beside its number."""
    bar = f'<span class="ac-bar" style="width:{5 * weight:.2f}em"></span>'
    return f'<span class="ac-track">{bar}</span> {weight:.2f}'


def vector_text(x: Sequence[float]) -> str:
    """Return a vector as the tables show it, such as "[0.28, 1.72]"."""
    return f"[{', '.join(map(two_decimals, x))}]"
