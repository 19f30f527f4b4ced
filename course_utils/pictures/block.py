"""The block around an attention layer: residual stream, attention, MLP and LayerNorm."""

from typing import NamedTuple

from course_utils.arguments import count_of
from course_utils.heatmaps.colours import head_colour
from course_utils.pictures.shapes import Area, Box, Dot, Line, Picture, Shape, Text, arrow

WIDTH, HEIGHT = 832, 336
MAX_HEADS = 16  # that fit into the box of the attention
_STREAM, _BOX, _HIGH, _WORDS = 66, 122, 96, 262  # tops, and the height of a box
_NORMS = ((316, 90), (706, 90))  # left side and width of both LayerNorms
_BRANCHES = ((76, 282), (434, 672))  # where attention and MLP leave the stream, and come back


class Step(NamedTuple):
    """One step through the block.

    Attributes:
        name: of the part that is at work.
        code: the words of lesson 8's layer that do it.
        says: what happens.
        factor: how many times D features a token has then.
    """

    name: str
    code: str
    says: str
    factor: int = 1


STEPS = (
    Step("input", "x", "one row per token: the residual stream"),
    Step(
        "attention",
        "attended, weights = self.attention(x, mask)",
        "the only step in which a token sees other tokens",
    ),
    Step(
        "first sum",
        "x + attended",
        "a residual connection: what was there stays, and the result is added",
    ),
    Step(
        "first LayerNorm",
        "x = self.norm_1(x + attended)",
        "each token by itself: mean 0, variance 1, then a learned scale and shift",
    ),
    Step(
        "MLP, widened",
        "F.gelu(self.widen(x))",
        "each token by itself: four times as many features, and a nonlinearity",
        4,
    ),
    Step("MLP, narrowed", "self.narrow(F.gelu(self.widen(x)))", "back to D features per token"),
    Step(
        "second sum",
        "x + self.narrow(F.gelu(self.widen(x)))",
        "the second residual connection",
    ),
    Step(
        "second LayerNorm",
        "self.norm_2(x + self.narrow(F.gelu(self.widen(x))))",
        "the output, in the shape of the input: the next block can follow",
    ),
)


def block_picture(step: int, *, embed_dim: int, num_heads: int, seq_len: int) -> Picture:
    """Draw a block with a LayerNorm after each sum: what has run is dark, what runs is blue.

    Args:
        step: which of ``STEPS`` runs.
        embed_dim: D.
        num_heads: H, at most 16.
        seq_len: L.
    """
    now = STEPS[step]
    size = f"({seq_len}, {now.factor * embed_dim})"
    return Picture(
        WIDTH,
        HEIGHT,
        (
            *_stream(step),
            *_branch(step, 1, 2, _BRANCHES[0]),
            *_branch(step, 4, 6, _BRANCHES[1]),
            *_attention(step, num_heads),
            *_mlp(step),
            *_norm(step, 3, *_NORMS[0]),
            *_norm(step, 7, *_NORMS[1]),
            Text(x=2, y=_WORDS, text=f"{step + 1}. {now.name}", size=15, bold=True, anchor="start"),
            Text(x=2, y=_WORDS + 24, text=now.code, anchor="start"),
            Text(x=2, y=_WORDS + 46, text=now.says, anchor="start"),
            Text(x=2, y=_WORDS + 68, text=f"shape {size}", colour="soft", anchor="start"),
        ),
    )


# --- parts --------------------------------------------------------------------------------------


def _shade(step: int, own: int) -> str:
    """The colour of a line that step ``own`` draws."""
    return "grid" if step < own else "h0" if step == own else "ink"


def _stream(step: int) -> list[Shape]:
    """The thick line from left to right, in pieces between the parts."""
    plus = [end for _, end in _BRANCHES]
    (norm_1, wide_1), (norm_2, wide_2) = _NORMS
    pieces = (
        (0, 20, plus[0] - 11),
        (2, plus[0] + 11, norm_1),
        (3, norm_1 + wide_1, plus[1] - 11),
        (6, plus[1] + 11, norm_2),
        (7, norm_2 + wide_2, WIDTH - 2),
    )
    return [
        Text(x=2, y=_STREAM - 32, text="residual stream", size=12, colour="soft", anchor="start"),
        Text(x=9, y=_STREAM + 5, text="x", size=15, bold=True),
        *(
            Line(points=((start, _STREAM), (end, _STREAM)), colour=_shade(step, own), width=5)
            for own, start, end in pieces
        ),
    ]


def _branch(step: int, leaves: int, joins: int, ends: tuple[float, float]) -> list[Shape]:
    """The way down to a part and back up to the sum."""
    start, end = ends
    middle = _BOX + _HIGH / 2
    down, back = _shade(step, leaves), _shade(step, joins)
    return [
        Line(points=((start, _STREAM), (start, middle)), colour=down, width=2),
        *arrow((start - 1, middle), (start + 26, middle), colour=down, width=2),
        Line(points=((end - 26, middle), (end + 1, middle)), colour=back, width=2),
        *arrow((end, middle), (end, _STREAM + 12), colour=back, width=2),
        Dot(x=end, y=_STREAM, radius=11, fill="paper", outline=back, width=2),
        Text(x=end, y=_STREAM + 6, text="+", size=17, bold=True),
    ]


def _part(step: int, own: int, x: float, y: float, width: float, height: float) -> Box:
    """The box of a part: tinted while it works."""
    place = {"x": x, "y": y, "width": width, "height": height, "radius": 6}
    if step == own:
        return Box(**place, fill="h0", opacity=0.22, outline="h0")
    return Box(**place, fill="card", outline="line" if step > own else "grid")


def _norm(step: int, own: int, x: float, width: float) -> list[Shape]:
    middle = x + width / 2
    return [
        _part(step, own, x, _STREAM - 21, width, 42),
        Text(x=middle, y=_STREAM + 5, text="LayerNorm", bold=True),
    ]


def _attention(step: int, num_heads: int) -> list[Shape]:
    """The box of the attention, with a strip for each head."""
    start, end = _BRANCHES[0]
    x, width = start + 28, end - start - 56
    middle, strip = x + width / 2, (width - 24) / num_heads
    return [
        _part(step, 1, x, _BOX, width, _HIGH),
        Text(x=middle, y=_BOX + 24, text="attention", bold=True),
        *(
            Box(
                x=x + 12 + head * strip,
                y=_BOX + 36,
                width=strip,
                height=26,
                fill=head_colour(head),
                opacity=0.24,
                outline=head_colour(head),
            )
            for head in range(num_heads)
        ),
        Text(x=middle, y=_BOX + 82, text=count_of(num_heads, "head"), size=12),
    ]


def _mlp(step: int) -> list[Shape]:
    """The box of the MLP: D features become 4 D, and D again; heights are to scale."""
    start, end = _BRANCHES[1]
    x, width = start + 28, end - start - 56
    middle, foot = x + width / 2, _BOX + 57
    shapes: list[Shape] = [
        _part(step, 4 if step == 4 else 5, x, _BOX, width, _HIGH),
        Text(x=middle, y=_BOX + 20, text="MLP", bold=True),
    ]
    for own, left, high_left, high_right in ((4, x + 12, 12, 48), (5, middle, 48, 12)):
        right = left + width / 2 - 12
        outline = (
            (left, foot - high_left / 2),
            (right, foot - high_right / 2),
            (right, foot + high_right / 2),
            (left, foot + high_left / 2),
        )
        colour = "line" if step != own else "h0"
        shapes.append(Area(points=outline, colour=colour, opacity=0.55 if step == own else 0.3))
    centre = {"y": foot + 4, "size": 12}
    return [
        *shapes,
        Text(x=x + width / 4, text="widen", **centre),
        Text(x=x + 3 * width / 4, text="narrow", **centre),
        Line(points=((middle, foot - 24), (middle, foot + 24)), colour="ink", width=2),
        Text(x=middle, y=_BOX + 93, text="GELU", size=11),
    ]
