"""Lines over a sentence: from the word that looks to the words that it looks at."""

from collections.abc import Sequence

from course_utils.heatmaps.colours import head_colour
from course_utils.heatmaps.texts import display_token, visible_token
from course_utils.pictures.shapes import Box, Line, Picture, Shape, Text, text_width

WIDTH = 832  # of a sentence that leaves room; a longer one makes a wider picture
LEFT = 62  # for the names of the rows
LEAST_LINE = 0.01  # a smaller weight has no line,
LEAST_NUMBER = 0.045  # and one that is smaller than this no number
_TOP, _BOTTOM, _STRIP = 26, 138, 152  # where the words stand, and where the numbers begin
_ROW = 20  # height of a head's numbers
# Besides its colour each head has its own dashes, and its own place at a word, from left to right.
_DASHES = ((), (9, 4), (2, 3), (12, 3, 2, 3), (5, 2), (1, 2), (14, 5), (6, 2, 1, 2))


def sentence_lines(
    query_tokens: Sequence[str],
    query: int,
    weights: Sequence[Sequence[float]],
    *,
    key_tokens: Sequence[str] | None = None,
    blocked: Sequence[bool] | None = None,
) -> Picture:
    """Draw where one query looks: a line to each key, as thick as its weight, in every head.

    Below each key stands its weight; the ground behind it is as strong as the weight. Weights below
    0.01 have no line, those below 0.045 no number, and a key that a mask blocks has a × instead.

    Args:
        query_tokens: L_q names.
        query: the position of the one that looks.
        weights: (H, L_k), its weights in each head, from 0 to 1.
        key_tokens: L_k names; left out, those of the queries.
        blocked: L_k times whether a mask blocks that key.

    Returns:
        A picture, 832 pixels wide or more if the sentence needs it.
    """
    key_tokens = query_tokens if key_tokens is None else key_tokens
    blocked = [False] * len(key_tokens) if blocked is None else blocked
    top, bottom = _lay_out(query_tokens), _lay_out(key_tokens)
    width = max(WIDTH, *(spots[-1][0] + spots[-1][1] / 2 for spots in (top, bottom)))
    is_alone = len(weights) == 1
    looks = visible_token(query_tokens[query])

    lines, strips = [], []
    for head, own in enumerate(weights):
        foot, colour = _STRIP + head * _ROW, head_colour(head)
        name = "weight" if is_alone else f"head {head}"
        strips.append(_name(foot + 14, name))
        if not is_alone:  # the colour of its lines
            strips.append(Box(x=2, y=foot + 5, width=8, height=8, radius=2, fill=colour))
        slot = 9 * (head - (len(weights) - 1) / 2)
        for (x, room), weight, is_shut, key in zip(bottom, own, blocked, key_tokens, strict=True):
            title = f"{looks} → {visible_token(key)}: {'blocked' if is_shut else f'{weight:.4f}'}"
            strips += _cell(x, room, foot, "×" if is_shut else weight, colour, title)
            if weight >= LEAST_LINE and not is_shut:
                start, end = (top[query][0] + slot, _TOP + 8), (x + slot, _BOTTOM - 15)
                line = {"points": _bend(start, end), "curved": True, "title": title}
                line |= {"colour": colour, "width": 0.75 + (13 if is_alone else 7) * weight}
                line |= {"dash": _DASHES[head % len(_DASHES)], "motion": "fade" if head else "draw"}
                lines.append(Line(**line))
    lines.sort(key=lambda line: line.width)  # the thickest in front

    most = [max(own) for own in zip(*weights, strict=True)]
    keys = [
        Text(
            x=x,
            y=_BOTTOM,
            text=display_token(key),
            bold=weight >= 0.15,
            colour="ink" if weight >= LEAST_NUMBER else "soft",
        )
        for (x, _), key, weight in zip(bottom, key_tokens, most, strict=True)
    ]
    shapes = (
        *lines,
        *_queries(query_tokens, top, query, head_colour(0) if is_alone else "ink"),
        *(_name(_TOP, "looks"), _name(_BOTTOM, "at")),
        *(*keys, *strips),
    )
    return Picture(width, _STRIP + len(weights) * _ROW + 4, shapes)


def _lay_out(tokens: Sequence[str]) -> list[tuple[float, float]]:
    """The middle of each word and the room that it has, spread over the width."""
    rooms = [max(text_width(display_token(token)) + 10, 30) for token in tokens]
    spare = (WIDTH - LEFT - sum(rooms)) / len(rooms)
    rooms = [room + min(max(spare, 0), 60) for room in rooms]
    ends = [LEFT + sum(rooms[: i + 1]) for i in range(len(rooms))]
    return [(end - room / 2, room) for end, room in zip(ends, rooms, strict=True)]


def _name(y: float, text: str) -> Text:
    """The name of a row, in front of it."""
    return Text(x=LEFT - 10, y=y, text=text, size=12, anchor="end", colour="soft")


def _queries(
    tokens: Sequence[str], spots: list[tuple[float, float]], query: int, colour: str
) -> list[Shape]:
    """The row of queries, the one that looks in a coloured box."""
    x, _ = spots[query]
    half = text_width(display_token(tokens[query])) / 2 + 9
    box = Box(x=x - half, y=_TOP - 17, width=2 * half, height=25, radius=12.5, fill=colour)
    on_box = "paper" if colour == "ink" else f"on-{colour}"
    return [
        box,
        *(
            Text(
                x=x,
                y=_TOP,
                text=display_token(token),
                bold=i == query,
                colour=on_box if i == query else "soft",
            )
            for i, (token, (x, _)) in enumerate(zip(tokens, spots, strict=True))
        ),
    ]


def _bend(start: tuple[float, float], end: tuple[float, float]) -> tuple[tuple[float, float], ...]:
    """A curve that leaves and arrives upright."""
    (left, top), (right, foot) = start, end
    return start, (left, top + 52), (right, foot - 52), end


def _cell(x: float, room: float, top: float, shown: float | str, colour: str, title: str) -> list:
    """A weight as a tinted cell, with its number if it is large enough; or a × in an empty one."""
    place = {"x": x - room / 2 + 1, "y": top, "width": room - 2, "height": _ROW - 2, "radius": 3}
    number = {"x": x, "y": top + 14, "size": 12}
    if shown == "×":
        cell = Box(**place, outline="line", dash=(2, 2), title=title)
        return [cell, Text(**number, text=shown, colour="soft")]
    # Never so strong that a number in ink could not be read on it.
    cell = Box(**place, fill=colour, opacity=0.04 + 0.36 * shown, title=title)
    if shown < LEAST_NUMBER:
        return [cell]
    return [cell, Text(**number, text=f"{shown:.2f}", bold=shown >= 0.15)]
