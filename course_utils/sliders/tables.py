"""The HTML of live views: tables of weights and of facts."""

import base64
import io
from collections.abc import Sequence
from functools import cache, lru_cache
from html import escape

import numpy as np
from PIL import Image

from course_utils.heatmaps.colours import ramp, shade_of
from course_utils.heatmaps.texts import display_token, two_decimals, visible_token

MAX_NUMBERS = 1100  # with a number in more cells, a move would take 0.1 s or longer


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
    """Make one heatmap table per head, with every number; with very many cells, small maps.

    Args:
        weights: nested lists, (H, L_q, L_k), each number from 0 to 1.
        rows: L_q names of queries; they are escaped here.
        columns: L_k names of keys.
        titles: H captions.
        blocked: nested lists, (L_q, L_k), True for a cell that a mask blocks. Its weight is 0:
            it is hatched and says "× 0".
        corner: says what the rows and the columns are.
        upright: whether the names of the columns stand upright, so that long ones need less width.
    """
    if (count := len(weights) * len(rows) * len(columns)) > MAX_NUMBERS:
        note = f'<p class="ac-note">{count:,} weights: too many to show each as a number.</p>'
        maps = zip(titles, weights, strict=True)
        return [note, *(_small_map(title, own, rows, columns) for title, own in maps)]
    columns_html = "".join(f'<th scope="col">{token_html(token)}</th>' for token in columns)
    head = f'<thead><tr><th scope="col">{escape(corner)}</th>{columns_html}</tr></thead>'
    names = [token_html(token) for token in rows]
    queries, keys = ([_whole_token(t) for t in tokens] for tokens in (rows, columns))
    # The browser does not draw a table that is out of sight, but needs its approximate size.
    lengths = [len(display_token(token)) for token in columns]
    longest_row = max(len(display_token(token)) for token in rows)
    widths = [35 if upright else max(35, 7 * length + 6) for length in lengths]
    width = 28 + 7 * max(8, longest_row) + sum(widths)
    height = 22 * len(rows) + 50 + (7 * max(lengths) if upright else 0)
    size = f"contain-intrinsic-size:{width}px {height}px"
    kind = "ac ac-map ac-upright" if upright else "ac ac-map"
    tables = []
    for title, head_weights in zip(titles, weights, strict=True):
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
            f'<div class="ac-box" style="{size}"><table class="{kind}">'
            f"<caption>{escape(title)}</caption>{head}<tbody>{''.join(lines)}</tbody></table></div>"
        )
    return tables


@cache
def _palette() -> list[int]:
    """Return red, green and blue of each shade from 0.00 to 1.00, in one list."""
    return [int(back[i : i + 2], 16) for back, _ in ramp(101) for i in (1, 3, 5)]


def _small_map(title: str, weights: list, rows: Sequence[str], columns: Sequence[str]) -> str:
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
        f'<img width="{14 * width}" height="{14 * height}" alt="map of {title}" src="{source}">'
        "</figure>"
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


def facts_table(caption: str, facts: Sequence[Sequence[str]]) -> str:
    """Make a table of (name, fact) pairs; all arguments are HTML already."""
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{fact}</td></tr>' for name, fact in facts)
    return f'<table class="ac"><caption>{caption}</caption><tbody>{rows}</tbody></table>'


def side_by_side(*parts: str) -> str:
    """Put tables into one row, which wraps where the page is narrow."""
    return f'<div class="ac-view">{"".join(parts)}</div>'


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
