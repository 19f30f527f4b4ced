"""One head as a flow: a query meets the keys, shares itself out, and mixes the values."""

from collections.abc import Sequence

from course_utils.heatmaps.texts import display_token, two_decimals, visible_token
from course_utils.pictures.shapes import Box, Line, Picture, Shape, Text, arrow

WIDTH = 832
MAX_TOKENS, MAX_FEATURES, MAX_VALUES = 8, 5, 2  # what fits on a page
HEAD = "h0"  # the colour of the path
_HEADER, _FOOT = 66, 30  # height of what stands above and below the rows
_BLOCK, _WIDE_BLOCK = 26, 42  # of a number that is (almost) whole, and of one with two decimals
_BAR = 62  # pixels of a weight of 1

Rows = Sequence[Sequence[float]]


def head_flow(
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    query: int,
    queries: Rows,
    keys: Rows,
    values: Rows,
    *,
    products: Sequence[float],
    scale: float,
    weights: Sequence[float],
    output: Sequence[float],
) -> Picture:
    """Draw the way of one query through a head, from its word to its new vector.

    Args:
        query_tokens: L_q names, one for each row of queries.
        key_tokens: L_k names, one for each row of keys and of values.
        query: the position of the query whose way is lit.
        queries: (L_q, d).
        keys: (L_k, d).
        values: (L_k, d_v).
        products: L_k dot products of the query with each key.
        scale: what they are divided by.
        weights: L_k weights, the softmax of the scores.
        output: d_v numbers, the mixture.

    Returns:
        A picture 832 pixels wide.
    """
    height = 46 if max(len(queries), len(keys)) <= 6 else 40
    ys = [_HEADER + (row + 0.5) * height for row in range(max(len(queries), len(keys)))]
    at = _Columns(len(keys[0]), len(values[0]))
    y = ys[query]
    shapes = [*_headings(at, scale), *_lit_row(at, y, height)]
    for row, (token, numbers) in enumerate(zip(query_tokens, queries, strict=True)):
        is_chosen = row == query
        shapes += _word(at, ys[row], token, is_chosen)
        shapes += _vector(at.query, ys[row], numbers, lit=is_chosen, faint=not is_chosen)
    for row, key in enumerate(keys):
        name = f"{visible_token(query_tokens[query])} · {visible_token(key_tokens[row])}"
        shapes += _to_key(at, y, ys[row])
        met = [a * b for a, b in zip(queries[query], key, strict=True)]
        shapes += _vector(at.key, ys[row], key, met=met)
        shapes += _score(
            at, ys[row], products[row], scale, f"{name} = {two_decimals(products[row])}"
        )
    shapes += _softmax(at, ys, height)
    for row, (weight, value) in enumerate(zip(weights, values, strict=True)):
        shapes += _weight(at, ys[row], weight)
        shapes += _to_output(at, ys[row], y, weight)
        shapes += _vector(at.value, ys[row], value)
        part = ", ".join(two_decimals(weight * number) for number in value)
        shapes.append(_small(at.part, ys[row] + 4, part, wait=5))
    shapes += _output(at, y, output)
    foot = ys[len(keys) - 1] + height / 2 + 14
    shapes.append(_small(at.weight + _BAR / 2 + 14, foot, f"sum {sum(weights):.2f}", wait=3))
    return Picture(WIDTH, ys[-1] + height / 2 + _FOOT, tuple(shapes))


def flow_fits(num_tokens: int, num_features: int, num_values: int) -> bool:
    """Whether a head with at most so many queries or keys, and vectors so long, can be drawn."""
    own = (num_tokens, num_features, num_values)
    return all(
        n <= most for n, most in zip(own, (MAX_TOKENS, MAX_FEATURES, MAX_VALUES), strict=True)
    )


# --- parts --------------------------------------------------------------------------------------


class _Columns:
    """Where the columns stand: left edges of vectors and bars, middles of texts."""

    def __init__(self, num_features: int, num_values: int) -> None:
        vector, value = num_features * _BLOCK, num_values * _BLOCK
        self.word = 40
        self.query = 92
        self.query_end = self.query + vector
        self.output = WIDTH - num_values * _WIDE_BLOCK - 2
        taken = 2 * vector + value + (WIDTH - self.output) + _BAR + 30
        gap = (WIDTH - 92 - taken - 44 - 74) / 5  # five bends between six columns
        self.key = self.query_end + gap
        self.key_end = self.key + vector
        self.score = self.key_end + 32
        self.weight = self.score + 16 + gap
        self.value = self.weight + _BAR + 34 + 0.5 * gap
        self.value_end = self.value + value
        self.part = self.value_end + 38
        self.part_end = self.part + 36


def _headings(at: _Columns, scale: float) -> list[Shape]:
    """The three steps, and what each column is."""
    steps = (
        ("1 · compare", at.query, at.score + 20),
        ("2 · share out", at.weight - 12, at.weight + _BAR + 36),
        ("3 · mix", at.value - 4, WIDTH),
    )
    columns = (
        (at.word, "word", ""),
        ((at.query + at.query_end) / 2, "query", "it looks for"),
        ((at.key + at.key_end) / 2, "key", "found by"),
        (at.score, "score", f"q · k ÷ {scale:.3g}"),
        (at.weight + _BAR / 2 + 14, "weight", "softmax"),
        ((at.value + at.value_end) / 2, "value", "hands over"),
        (at.part, "", "× weight"),
        ((at.output + WIDTH) / 2, "new vector", "the sum"),
    )
    shapes = []
    for name, left, right in steps:
        shapes.append(Line(points=((left, 20), (right, 20)), colour="line", width=1))
        shapes.append(Text(x=(left + right) / 2, y=13, text=name, size=12, colour="soft"))
    for x, name, more in columns:
        shapes.append(Text(x=x, y=39, text=name, bold=True))
        shapes.append(Text(x=x, y=54, text=more, size=11, colour="soft"))
    return shapes


def _lit_row(at: _Columns, y: float, height: float) -> list[Shape]:
    """A band behind the chosen word and its query."""
    band = {"y": y - height / 2 + 3, "height": height - 6, "radius": 8}
    return [Box(x=4, width=at.query_end + 8 - 4, fill=HEAD, opacity=0.12, **band)]


def _word(at: _Columns, y: float, token: str, is_chosen: bool) -> list[Shape]:
    look = {"bold": True} if is_chosen else {}
    return [Text(x=at.word, y=y + 5, text=display_token(token), **look)]


def _vector(
    x: float,
    y: float,
    numbers: Sequence[float],
    *,
    lit: bool = False,
    faint: bool = False,
    met: Sequence[float] | None = None,
) -> list[Shape]:
    """A vector as blocks; in a key those that the query asks for are lit.

    ``met`` is what each number adds to the dot product.
    """
    counts = [0] * len(numbers) if met is None else met
    if lit:
        counts = numbers
    shapes: list[Shape] = []
    if faint:  # one box for all of it
        place = {"x": x + 1, "y": y - 12, "width": len(numbers) * _BLOCK - 2, "height": 24}
        shapes.append(Box(**place, outline="grid", radius=4))
    for i, (number, count) in enumerate(zip(numbers, counts, strict=True)):
        look = {"fill": "card", "outline": "line"}
        if (lit and number) or count > 0:
            look = {"fill": HEAD, "opacity": 0.3, "outline": HEAD}
        elif count < 0:  # it counts against this key
            look |= {"outline": HEAD, "dash": (3, 2)}
        place = {"x": x + i * _BLOCK + 1, "y": y - 12, "width": _BLOCK - 2, "height": 24}
        if not faint:
            shapes.append(Box(**place, **look, radius=4))
        text = {"size": 12, "colour": "soft" if faint else "ink", "bold": bool(count)}
        shapes.append(Text(x=x + (i + 0.5) * _BLOCK, y=y + 4, text=short_number(number), **text))
    return shapes


def _to_key(at: _Columns, start: float, end: float) -> list[Shape]:
    (left, right), half = (at.query_end + 2, at.key - 3), (at.key - at.query_end) / 2
    bend = ((left, start), (left + half, start), (right - half, end), (right, end))
    return [Line(points=bend, curved=True, colour=HEAD, width=1.5, motion="draw")]


def _score(at: _Columns, y: float, product: float, scale: float, title: str) -> list[Shape]:
    number = short_number(product / scale)
    line = ((at.key_end + 3, y), (at.score - 18, y))
    return [
        Line(points=line, colour=HEAD, width=1.5, motion="draw", wait=2, title=title),
        Text(x=at.score, y=y + 5, text=number, bold=bool(product > 0), motion="fade", wait=2),
    ]


def _softmax(at: _Columns, ys: Sequence[float], height: float) -> list[Shape]:
    """A ground behind the weights: they are made together, from all scores of the row."""
    top, foot = ys[0] - height / 2 + 2, ys[-1] + height / 2 - 2
    x, width = at.weight - 14, _BAR + 56
    ground = Box(x=x, y=top, width=width, height=foot - top, fill="card", radius=10)
    into = [
        part
        for y in ys
        for part in arrow((at.score + 18, y), (x - 2, y), colour="line", width=1.2, head=6)
    ]
    return [ground, *into]


def _weight(at: _Columns, y: float, weight: float) -> list[Shape]:
    bar = {"x": at.weight, "y": y - 9, "height": 18, "radius": 3}
    return [
        Box(**bar, width=_BAR, fill="grid", opacity=0.6),
        Box(**bar, width=max(_BAR * weight, 1), fill=HEAD, motion="grow", wait=3),
        Text(x=at.weight + _BAR + 6, y=y + 4.5, text=f"{weight:.2f}", size=12, anchor="start"),
    ]


def _to_output(at: _Columns, start: float, end: float, weight: float) -> list[Shape]:
    """From a value to the mixture, as thick as its weight."""
    lead = Line(
        points=((at.weight + _BAR + 42, start), (at.value - 2, start)),
        colour=HEAD,
        width=0.75 + 13 * weight,
        motion="draw",
        wait=5,
    )
    left, right = at.part_end, at.output - 4
    half = (right - left) / 2
    bend = ((left, start), (left + half, start), (right - half, end), (right, end))
    look = {"colour": HEAD, "width": 0.75 + 13 * weight}
    return [lead, Line(points=bend, curved=True, **look, motion="draw", wait=5)]


def _output(at: _Columns, y: float, output: Sequence[float]) -> list[Shape]:
    shapes = []
    for i, number in enumerate(output):
        x = at.output + i * _WIDE_BLOCK
        place = {"x": x + 1, "y": y - 14, "width": _WIDE_BLOCK - 2, "height": 28, "radius": 5}
        shapes.append(Box(**place, fill=HEAD, motion="fade", wait=7))
        number = {"text": two_decimals(number), "colour": f"on-{HEAD}", "bold": True}
        shapes.append(Text(x=x + _WIDE_BLOCK / 2, y=y + 4.5, **number, motion="fade", wait=7))
    return shapes


def _small(x: float, y: float, text: str, *, wait: int) -> Text:
    return Text(x=x, y=y, text=text, size=11, colour="soft", motion="fade", wait=wait)


def short_number(number: float) -> str:
    """A number that fits into a block: without decimals if it is whole, else with one or two."""
    if abs(number - round(number)) < 0.005:
        return f"{number:z.0f}"
    return f"{number:z.1f}" if abs(number) >= 9.95 or number < 0 else f"{number:z.2g}"
