"""A whole attention layer to scale: each tensor is a box whose sides are its sizes."""

from course_utils.heatmaps.colours import head_colour
from course_utils.pictures.shapes import Box, Line, Picture, Shape, Text, arrow, text_width

WIDTH, HEIGHT = 832, 506
MAX_FEATURES, MAX_TOKENS = 16, 6  # what fits on a page
_UNIT, _ROW = 11, 8  # pixels of a feature and of a token
_TOP, _MAPS, _FOOT = 52, 176, 312  # of the three rows of boxes
_X, _Q, _K, _V = 2, 222, 436, 650  # left sides in the first row
_MERGED, _MATRIX, _OUTPUT = 222, 436, 650  # and in the last


def layer_picture(embed_dim: int, seq_len: int, num_heads: int) -> Picture:
    """Draw one sample's way through a layer: projections, heads, maps, merge and W_O.

    Args:
        embed_dim: D, at most 16.
        seq_len: L, at most 6.
        num_heads: H, a divisor of D.

    Returns:
        A picture of 832 by 506 pixels, in which 11 pixels are a feature, and 8 a token.
    """
    sheet = _Sheet(embed_dim, seq_len, num_heads)
    whole = f"({seq_len}, {embed_dim})"
    cut = f"{num_heads} × ({seq_len}, {embed_dim // num_heads})"
    square = f"{num_heads} × ({seq_len}, {seq_len})"
    maps = sheet.maps()
    middle = (_FOOT + _FOOT + sheet.high) / 2
    return Picture(
        WIDTH,
        HEIGHT,
        (
            *sheet.links(maps),
            *_named(_X, _TOP, "X", whole),
            *sheet.tensor(_X, _TOP),
            *arrow((_X + sheet.wide + 4, _TOP + 24), (_Q - 5, _TOP + 24), colour="line"),
            *(
                shape
                for x, name in ((_Q, "Q = X W_Q"), (_K, "K = X W_K"), (_V, "V = X W_V"))
                for shape in (*_named(x, _TOP, name, cut), *sheet.heads(x, _TOP))
            ),
            *_named(max(maps[0] - 74, 2), _MAPS + (38 if maps[0] > 76 else -14), "weights", square),
            *(shape for head, x in enumerate(maps) for shape in sheet.map(head, x)),
            *_named(_MERGED, _FOOT + sheet.high + 40, "weights · V, merged", whole),
            *sheet.heads(_MERGED, _FOOT),
            Text(x=(_MERGED + sheet.wide + _MATRIX) / 2, y=middle + 5, text="×", size=16),
            *_named(_MATRIX, _FOOT, "W_O", f"({embed_dim}, {embed_dim})"),
            *sheet.blocks_of_matrix(),
            *arrow((_MATRIX + sheet.wide + 4, middle), (_OUTPUT - 5, middle), colour="line"),
            *_named(_OUTPUT, _FOOT, "output", whole),
            *sheet.tensor(_OUTPUT, _FOOT),
            *_lines(
                _OUTPUT,
                _FOOT + sheet.high + 22,
                "the sum over heads, each",
                "through its rows of W_O",
            ),
            *_lines(
                _X,
                _FOOT + 14,
                f"d_h = D / H = {embed_dim} / {num_heads} = {embed_dim // num_heads}",
                f"weights: H · L² = {num_heads * seq_len**2}",
                "All else keeps its size.",
            ),
        ),
    )


# --- parts --------------------------------------------------------------------------------------


def _named(x: float, top: float, name: str, shape: str) -> list[Shape]:
    """Name and shape of a tensor, above it; lines behind them are hidden."""
    width = max(text_width(name), text_width(shape, 12))
    return [
        Box(x=x - 2, y=top - 36, width=width + 6, height=34, fill="paper", opacity=0.85, radius=4),
        Text(x=x, y=top - 22, text=name, bold=True, anchor="start"),
        Text(x=x, y=top - 7, text=shape, size=12, colour="soft", anchor="start"),
    ]


def _lines(x: float, top: float, *texts: str) -> list[Shape]:
    """A few words, a line each."""
    return [
        Text(x=x, y=top + 20 * i, text=text, size=12, anchor="start")
        for i, text in enumerate(texts)
    ]


class _Sheet:
    """The sizes of everything."""

    def __init__(self, embed_dim: int, seq_len: int, num_heads: int) -> None:
        self.seq_len, self.num_heads = seq_len, num_heads
        self.wide, self.high = embed_dim * _UNIT, seq_len * _ROW  # of a tensor (L, D)
        self.strip = self.wide / num_heads  # width of a head
        self.side = seq_len * _ROW  # of a map

    def tensor(self, x: float, top: float) -> list[Shape]:
        """A tensor (L, D) that belongs to no head."""
        box = Box(x=x, y=top, width=self.wide, height=self.high, fill="card", outline="line")
        return [box, _seams(x, top, self.wide, self.high)]

    def heads(self, x: float, top: float) -> list[Shape]:
        """A tensor (L, D), cut into heads."""
        lefts = enumerate(x + head * self.strip for head in range(self.num_heads))
        return [
            Box(x=x, y=top, width=self.wide, height=self.high, fill="paper"),
            *(_tinted(left, top, self.strip, self.high, head) for head, left in lefts),
            _seams(x, top, self.wide, self.high),
        ]

    def maps(self) -> list[float]:
        """The left sides of the maps: below Q and K as far as there is room."""
        step = self.side + 20
        if 2 + self.num_heads * step > WIDTH:
            step = (WIDTH - 6 - self.side) / (self.num_heads - 1)
        whole = (self.num_heads - 1) * step + self.side
        left = min(max(_Q + (_K - _Q + self.wide - whole) / 2, 2), WIDTH - 4 - whole)
        return [left + head * step for head in range(self.num_heads)]

    def map(self, head: int, x: float) -> list[Shape]:
        side = self.side
        return [
            Box(x=x, y=_MAPS, width=side, height=side, fill="paper"),
            _tinted(x, _MAPS, side, side, head),
            _seams(x, _MAPS, side, side),
            _seams(x, _MAPS, side, side, upright=True),
        ]

    def blocks_of_matrix(self) -> list[Shape]:
        """W_O, cut into the rows of each head."""
        shapes: list[Shape] = []
        for head in range(self.num_heads):
            top = _FOOT + head * self.strip
            shapes.append(_tinted(_MATRIX, top, self.wide, self.strip, head))
            if self.strip >= 14:
                place = {"x": _MATRIX + self.wide / 2, "y": top + self.strip / 2 + 4}
                shapes.append(Text(**place, text=f"of head {head}", size=11))
        return shapes

    def links(self, maps: list[float]) -> list[Shape]:
        """The way of each head: its query and key to its map, map and value to its place."""
        shapes: list[Shape] = []
        below = _TOP + self.high
        for head, x in enumerate(maps):
            at, middle = (head + 0.5) * self.strip, x + self.side / 2
            place = (_MERGED + at, _FOOT)
            ways = (
                ((_Q + at, below), (middle - 6, _MAPS), 40),
                ((_K + at, below), (middle + 6, _MAPS), 40),
                ((middle, _MAPS + self.side), place, 40),
                ((_V + at, below), place, 150),
            )
            for start, end, reach in ways:
                bend = (start, (start[0], start[1] + reach), (end[0], end[1] - 45), end)
                look = {"colour": head_colour(head), "width": 1.6, "motion": "draw"}
                shapes.append(Line(points=bend, curved=True, **look))
        return shapes


def _tinted(x: float, y: float, width: float, height: float, head: int) -> Box:
    """A part of a head."""
    colour = head_colour(head)
    place = {"x": x, "y": y, "width": width, "height": height}
    return Box(**place, fill=colour, opacity=0.24, outline=colour)


def _seams(x: float, y: float, width: float, height: float, *, upright: bool = False) -> Line:
    """A thin line between any two tokens: one broad line, with a short dash for each of them."""
    start, end = (x, y + height / 2), (x + width, y + height / 2)
    if not upright:
        start, end = (x + width / 2, y), (x + width / 2, y + height)
    across = height if upright else width
    return Line(
        points=(start, end), colour="line", width=across, opacity=0.45, dash=(0.6, _ROW - 0.6)
    )
