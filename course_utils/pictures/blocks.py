"""Numbers as blocks: how the queries of some tokens are split into heads and merged again.

A stage is a tensor with three axes: its cards stand beside each other, and each has rows and
columns. A block keeps its colour, the head that owns it, and its label, the token it comes from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.heatmaps.colours import head_colour
from course_utils.heatmaps.texts import display_token
from course_utils.pictures.shapes import Box, Line, Picture, Point, Shape, Text, arrow

WIDTH, HEIGHT = 832, 462
MAX_TOKENS, MAX_FEATURES = 3, 8  # what fits on a page
_BLOCK, _ROW = 52, 27  # width and height of a block
_GAP = 44  # between two cards beside each other
_TOP, _BETWEEN = 90, 56  # above the first stage, and between the two
_LEFT = 64  # in front of the first card, for the names of its rows


@dataclass(frozen=True)
class Stage:
    """Where all numbers stand after one step.

    Attributes:
        name: of the step.
        code: the step in torch.
        shape: with its axes, such as "(L, D) = (3, 8)".
        cards: (card, row, column), the number of the block that stands there.
        card_names: one above each card.
        row_names: one in front of each row.
        plain: whether the numbers belong to no head.
        prime: whether the numbers are new ones, mixed from several tokens.
        weight: the matrix that made each row from the row above it; "" if none did.
        mixes_rows: whether each number was mixed from all rows of its card.
        has_token_rows: whether row i of each card should hold numbers of token i alone.
    """

    name: str
    code: str
    shape: str
    cards: Sequence[Sequence[Sequence[int]]]
    card_names: Sequence[str]
    row_names: Sequence[str]
    plain: bool = False
    prime: bool = False
    weight: str = ""
    mixes_rows: bool = False
    has_token_rows: bool = False

    def strangers(self, num_features: int) -> list[int]:
        """The blocks that stand in the row of another token."""
        if not self.has_token_rows:
            return []
        return [
            block
            for card in self.cards
            for row, blocks in enumerate(card)
            for block in blocks
            if block // num_features != row
        ]


def blocks_picture(
    tokens: Sequence[str],
    num_features: int,
    head_dim: int,
    before: Stage,
    stage: Stage,
    *,
    fact: str = "",
    height: float = HEIGHT,
) -> Picture:
    """Draw a tensor and, below it, what a step makes of it: each number slides to its place.

    Numbers in the row of another token are framed.

    Args:
        tokens: L names; block i comes from token i // num_features.
        num_features: D.
        head_dim: d_h; the head that owns a block is the number of its feature // d_h.
        before: the tensor.
        stage: what the step makes of it.
        fact: one line, what there is to see.
        height: of the picture; left out, enough for any step of 3 tokens and 8 features.

    Returns:
        A picture 832 pixels wide.
    """
    label = _Label(tokens, num_features, head_dim)
    top = _TOP + _height(before) + _BETWEEN
    old, new = _places(before, _TOP), _places(stage, top)
    shapes: list[Shape] = [
        Text(x=2, y=15, text=stage.name, size=15, bold=True, anchor="start"),
        Text(x=104, y=15, text=stage.code, anchor="start"),
        Text(x=WIDTH - 4, y=15, text=f"{before.shape}  →  {stage.shape}", anchor="end"),
        Text(x=2, y=41, text=fact, anchor="start"),
        *_frames(before, _TOP),
        *_frames(stage, top),
    ]
    strangers = before.strangers(num_features)
    for i, place in old.items():
        shapes += _block(i, place, label, before, framed=i in strangers)
    strangers = stage.strangers(num_features)
    for i, (x, y) in new.items():
        # A new number comes straight from above, one that only moves from where it was.
        from_x, from_y = (x, y - top + _TOP) if stage.weight else old[i]
        motion = {"shift": (from_x - x, from_y - y), "motion": "slide"}
        shapes += _block(i, (x, y), label, stage, framed=i in strangers, **motion)
    if stage.weight:
        shapes += _by_weight(stage, top)
    if stage.mixes_rows:
        shapes += _within_cards(stage, top)
    return Picture(WIDTH, height, tuple(shapes))


def blocks_height(before: Stage, stage: Stage) -> float:
    """The height that a picture of this step needs."""
    return _TOP + _height(before) + _BETWEEN + _height(stage) + 14


# --- parts --------------------------------------------------------------------------------------


def _size(stage: Stage) -> tuple[int, int, bool]:
    """Rows and columns of a card, and whether all cards have room beside each other."""
    rows, columns = len(stage.cards[0]), len(stage.cards[0][0])
    width = len(stage.cards) * (columns * _BLOCK + _GAP)
    return rows, columns, _LEFT + width <= WIDTH


def _height(stage: Stage) -> float:
    rows, _, is_wide = _size(stage)
    return rows * _ROW if is_wide else len(stage.cards) * (rows * _ROW + 8) - 8


def _corners(stage: Stage, top: float) -> list[Point]:
    """The upper left corner of each card: beside each other, or below where that is too wide."""
    rows, columns, is_wide = _size(stage)
    if is_wide:
        return [(_LEFT + i * (columns * _BLOCK + _GAP), top) for i in range(len(stage.cards))]
    return [(_LEFT, top + i * (rows * _ROW + 8)) for i in range(len(stage.cards))]


def _places(stage: Stage, top: float) -> dict[int, Point]:
    """The upper left corner of each block."""
    return {
        block: (x + column * _BLOCK, y + row * _ROW)
        for card, (x, y) in zip(stage.cards, _corners(stage, top), strict=True)
        for row, blocks in enumerate(card)
        for column, block in enumerate(blocks)
    }


@dataclass(frozen=True)
class _Label:
    """What a block says of itself."""

    tokens: Sequence[str]
    num_features: int
    head_dim: int

    def colour(self, block: int) -> str:
        return head_colour(block % self.num_features // self.head_dim)

    def text(self, block: int, prime: bool) -> str:
        token, feature = divmod(block, self.num_features)
        return f"{display_token(self.tokens[token])}{'′' * prime} {feature}"


def _block(
    i: int, place: Point, label: _Label, stage: Stage, *, framed: bool = False, **motion
) -> list[Shape]:
    (x, y), colour = place, label.colour(i)
    look = {"fill": colour, "opacity": 0.24, "outline": colour}
    if stage.plain:
        look = {"fill": "card", "outline": "line"}
    box = {"x": x, "y": y, "width": _BLOCK - 3, "height": _ROW - 3, "radius": 5}
    if framed:
        look |= {"outline": "ink", "dash": (4, 2)}
    text, spot = label.text(i, stage.prime), {"x": x + _BLOCK / 2 - 1.5, "y": y + 16.5}
    return [Box(**box, **look, **motion), Text(**spot, text=text, size=12, bold=framed, **motion)]


def _frames(stage: Stage, top: float) -> list[Shape]:
    """A ground behind each card, and the names of cards and rows."""
    rows, columns, is_wide = _size(stage)
    side = {"size": 12, "colour": "soft"}
    shapes: list[Shape] = []
    for (x, y), name in zip(_corners(stage, top), stage.card_names, strict=True):
        ground = {"width": columns * _BLOCK + 5, "height": rows * _ROW + 5}
        shapes.append(Box(x=x - 4, y=y - 4, **ground, fill="card", radius=8))
        if is_wide:
            shapes.append(Text(x=x, y=y - 11, text=name, anchor="start", **side))
        row_names = stage.row_names if is_wide else [name]
        if x == _LEFT:
            for row, text in enumerate(row_names):
                spot = {"x": x - 10, "y": y + row * _ROW + 16.5}
                shapes.append(Text(**spot, text=text, anchor="end", **side))
    return shapes


def _by_weight(stage: Stage, top: float) -> list[Shape]:
    """On the right, from each row above to the row below that was made from all of it."""
    rows, columns, _ = _size(stage)
    right = _LEFT + columns * _BLOCK + 4
    shapes: list[Shape] = []
    for row in range(rows):
        start, end = (y + (row + 0.5) * _ROW - 1.5 for y in (_TOP, top))
        out = right + 84
        bend = ((right, start), (out, start), (out, end), (right + 8, end))
        look = {"colour": "soft", "motion": "draw"}
        shapes.append(Line(points=bend, curved=True, **look))
        shapes += arrow((right + 9, end), (right, end), colour="soft", motion="fade", wait=3)
    middle = (_TOP + top + rows * _ROW) / 2 + 4
    spot = {"x": right + 74, "y": middle, "anchor": "start"}
    shapes.append(Text(**spot, text=f"× {stage.weight}: from the whole row"))
    return shapes


def _within_cards(stage: Stage, top: float) -> list[Shape]:
    """On the right of each card, a curve between any two of its rows."""
    shapes: list[Shape] = []
    rows, columns, _ = _size(stage)
    for head, (x, y) in enumerate(_corners(stage, top)):
        right = x + columns * _BLOCK
        middles = [y + (row + 0.5) * _ROW - 1.5 for row in range(rows)]
        for i, start in enumerate(middles):
            for end in middles[i + 1 :]:
                out = right + 0.5 * (end - start)
                bend = ((right, start), (out, start), (out, end), (right, end))
                look = {"colour": head_colour(head), "width": 2, "motion": "draw", "wait": 5}
                shapes.append(Line(points=bend, curved=True, **look))
    return shapes
