"""Lines over a sentence: from the word that looks to the words that it looks at."""

from collections.abc import Sequence

from course_utils.heatmaps.colours import head_colour
from course_utils.heatmaps.texts import display_token, visible_token
from course_utils.pictures.shapes import Box, Line, Picture, Point, Shape, Text, text_width

WIDTH = 832  # of a sentence that leaves room; a longer one makes a wider picture
LEAST_LINE = 0.01  # a smaller weight has no line,
LEAST_NUMBER = 0.045  # and one that is smaller than this no number
LOOKED_AT = 0.15  # from this weight on a word is bold
# Besides its colour each head has its own dashes, and its own place at a word, in their order.
_DASHES = ((), (9, 4), (2, 3), (12, 3, 2, 3), (5, 2), (1, 2), (14, 5), (6, 2, 1, 2))


def sentence_lines(
    query_tokens: Sequence[str],
    query: int,
    weights: Sequence[Sequence[float]],
    *,
    key_tokens: Sequence[str] | None = None,
    blocked: Sequence[bool] | None = None,
    head_names: Sequence[str] | None = None,
    upright: bool = False,
) -> Picture:
    """Draw where one query looks: a line to each key, as thick as its weight, in every head.

    Beside each key stands its weight; the ground behind it is as strong as the weight. Weights
    below 0.01 have no line, those below 0.045 no number, and a key that a mask blocks has a ×
    instead.

    Args:
        query_tokens: L_q names.
        query: the position of the one that looks.
        weights: (H, L_k), its weights in each head, from 0 to 1.
        key_tokens: L_k names; left out, those of the queries.
        blocked: L_k times whether a mask blocks that key.
        head_names: H names; left out, see ``names_of_heads``.
        upright: whether the words stand below each other, for a narrow page.

    Returns:
        A picture, 832 pixels wide or more if the sentence needs it; upright, 276 and 44 per head,
        or more if the names of the heads need it.
    """
    key_tokens = query_tokens if key_tokens is None else key_tokens
    blocked = [False] * len(key_tokens) if blocked is None else blocked
    names = names_of_heads(len(weights)) if head_names is None else head_names
    names = list(map(display_token, names))
    place = (_Columns if upright else _Rows)(query_tokens, key_tokens, names)
    lines, cells = [], []
    for head, own in enumerate(weights):
        cells += place.heading(head)
        for key, (weight, is_shut) in enumerate(zip(own, blocked, strict=True)):
            shown = "blocked" if is_shut else f"{weight:.4f}"
            title = f"{visible_token(query_tokens[query])} → {visible_token(key_tokens[key])}"
            look = {"colour": head_colour(head), "title": f"{title}: {shown}"}
            cells += _cell(place.cell(key, head), None if is_shut else weight, **look)
            if weight >= LEAST_LINE and not is_shut:
                thickness = 0.75 + (13 if len(weights) == 1 else 7) * weight
                look |= {"dash": _DASHES[head % len(_DASHES)], "motion": "fade" if head else "draw"}
                lines.append(
                    Line(points=place.line(query, key, head), curved=True, width=thickness, **look)
                )
    lines.sort(key=lambda line: line.width)  # the thickest in front
    words = _queries(query_tokens, query, place, head_colour(0) if len(weights) == 1 else "ink")
    for key, (token, *own) in enumerate(zip(key_tokens, *weights, strict=True)):
        x, y = place.key(key)
        look = {"bold": max(own) >= LOOKED_AT, "anchor": place.key_anchor}
        look["colour"] = "ink" if max(own) >= LEAST_NUMBER else "soft"
        words.append(Text(x=x, y=y, text=display_token(token), **look))
    return Picture(*place.size, (*lines, *words, *cells))


def names_of_heads(heads: int) -> list[str]:
    """What the weights of each head are called: one is "weight", several are "head 0" and so on."""
    return ["weight"] if heads == 1 else [f"head {head}" for head in range(heads)]


# --- two ways to lay a sentence out -------------------------------------------------------------


class _Rows:
    """The queries in a row, the keys in a row below, and below these a row of weights per head."""

    LEFT = 62  # for the names of the rows, if they are short
    TOP, FOOT, STRIP = 26, 138, 152  # where the words stand, and where the weights begin
    HEIGHT = 20  # of a row of weights
    key_anchor = "middle"

    def __init__(
        self, query_tokens: Sequence[str], key_tokens: Sequence[str], names: Sequence[str]
    ) -> None:
        self.names, self.heads = names, len(names)
        widest = max(text_width(name, _SIDE["size"]) for name in names)
        self.left = self.LEFT if widest <= self.LEFT - 20 else 26 + widest
        self.queries, self.keys = map(self._spread, (query_tokens, key_tokens))
        ends = [x + room / 2 for x, room in (self.queries[-1], self.keys[-1])]
        self.size = max(WIDTH, *ends), self.STRIP + self.heads * self.HEIGHT + 4

    def _spread(self, tokens: Sequence[str]) -> list[tuple[float, float]]:
        """The middle of each word, and the room that it has."""
        rooms = [max(text_width(display_token(token)) + 10, 30) for token in tokens]
        spare = (WIDTH - self.left - sum(rooms)) / len(rooms)
        rooms = [room + min(max(spare, 0), 60) for room in rooms]
        ends = [self.left + sum(rooms[: i + 1]) for i in range(len(rooms))]
        return [(end - room / 2, room) for end, room in zip(ends, rooms, strict=True)]

    def query(self, query: int) -> Point:
        return self.queries[query][0], self.TOP

    def key(self, key: int) -> Point:
        return self.keys[key][0], self.FOOT

    def line(self, query: int, key: int, head: int) -> tuple[Point, ...]:
        slot = 9 * (head - (self.heads - 1) / 2)
        start, end = (self.query(query)[0] + slot, self.TOP + 8), (self.key(key)[0] + slot, 123)
        return start, (start[0], start[1] + 52), (end[0], end[1] - 52), end

    def cell(self, key: int, head: int) -> tuple[float, float, float, float]:
        x, room = self.keys[key]
        return x - room / 2 + 1, self.STRIP + head * self.HEIGHT, room - 2, self.HEIGHT - 2

    def heading(self, head: int) -> list[Shape]:
        top = self.STRIP + head * self.HEIGHT
        shapes = [self._name(top + 14, self.names[head])]
        if head == 0:
            shapes += [self._name(self.TOP, "looks"), self._name(self.FOOT, "at")]
        return shapes + _sample(2, top + 5, head) if self.heads > 1 else shapes

    def _name(self, y: float, text: str) -> Text:
        return Text(x=self.left - 10, y=y, text=text, size=12, anchor="end", colour="soft")


class _Columns:
    """The queries in a column, the keys in another, and beside these a column of weights per head.

    For a page that is too narrow for a row.
    """

    HEIGHT, TOP = 23, 22  # of a row, and of what stands above the first
    QUERY, KEY, CELLS = 108, 178, 270  # where the columns are; the queries end there
    LEAST_WIDTH = 44  # of a column of weights
    key_anchor = "start"

    def __init__(
        self, query_tokens: Sequence[str], key_tokens: Sequence[str], names: Sequence[str]
    ) -> None:
        self.heads = len(names)
        self.names = [name.removeprefix("head ") for name in names]
        widest = max(text_width(name, _SIDE["size"]) for name in self.names)
        self.width = max(self.LEAST_WIDTH, 26 + widest if self.heads > 1 else 0)
        self.halves = [text_width(display_token(token)) / 2 for token in query_tokens]
        rows = max(len(query_tokens), len(key_tokens))
        self.size = self.CELLS + self.heads * self.width + 6, self.TOP + rows * self.HEIGHT + 4

    def query(self, query: int) -> Point:
        return self.QUERY - self.halves[query], self.TOP + query * self.HEIGHT + 16

    def key(self, key: int) -> Point:
        return self.KEY, self.TOP + key * self.HEIGHT + 16

    def line(self, query: int, key: int, head: int) -> tuple[Point, ...]:
        slot = 4 * (head - (self.heads - 1) / 2)
        start = self.QUERY + 8, self.query(query)[1] - 4.5 + slot
        end = self.KEY - 6, self.key(key)[1] - 4.5 + slot
        return start, (start[0] + 30, start[1]), (end[0] - 30, end[1]), end

    def cell(self, key: int, head: int) -> tuple[float, float, float, float]:
        top = self.TOP + key * self.HEIGHT
        return self.CELLS + head * self.width, top + 2, self.width - 2, self.HEIGHT - 4

    def heading(self, head: int) -> list[Shape]:
        x = self.CELLS + (head + 0.5) * self.width
        shapes = [Text(x=x, y=14, text=self.names[head], **_SIDE)]
        if head == 0:
            shapes.append(Text(x=self.QUERY, y=14, text="looks", anchor="end", **_SIDE))
            shapes.append(Text(x=self.KEY, y=14, text="at", anchor="start", **_SIDE))
        return shapes + _sample(x - self.width / 2 + 4, 5, head) if self.heads > 1 else shapes


_SIDE = {"size": 12, "colour": "soft"}  # names of rows and columns


# --- parts --------------------------------------------------------------------------------------


def _sample(x: float, y: float, head: int) -> list[Shape]:
    """The colour of a head's lines."""
    return [Box(x=x, y=y, width=8, height=8, radius=2, fill=head_colour(head))]


def _queries(
    tokens: Sequence[str], query: int, place: _Rows | _Columns, colour: str
) -> list[Shape]:
    """The queries, the one that looks in a coloured box."""
    x, y = place.query(query)
    half = text_width(display_token(tokens[query])) / 2 + 9
    shapes: list[Shape] = [
        Box(x=x - half, y=y - 17, width=2 * half, height=25, radius=12.5, fill=colour)
    ]
    on_box = "paper" if colour == "ink" else f"on-{colour}"
    for i, token in enumerate(tokens):
        x, y = place.query(i)
        look = {"bold": True, "colour": on_box} if i == query else {"colour": "soft"}
        shapes.append(Text(x=x, y=y, text=display_token(token), **look))
    return shapes


def _cell(
    place: tuple[float, float, float, float], weight: float | None, *, colour: str, title: str
) -> list[Shape]:
    """A weight as a tinted cell, with its number if it is large enough; None is blocked."""
    x, y, width, height = place
    box = {"x": x, "y": y, "width": width, "height": height, "radius": 3, "title": title}
    number = {"x": x + width / 2, "y": y + height / 2 + 5, "size": 12}
    if weight is None:
        cross = Text(**number, text="×", colour="soft")
        return [Box(**box, outline="line", dash=(2, 2)), cross]
    # Never so strong that a number in ink could not be read on it.
    shapes: list[Shape] = [Box(**box, fill=colour, opacity=0.04 + 0.36 * min(weight, 1))]
    if weight >= LEAST_NUMBER:
        shapes.append(Text(**number, text=f"{weight:.2f}", bold=weight >= LOOKED_AT))
    return shapes
