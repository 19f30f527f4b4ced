"""Go through the block around an attention layer, one step at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.arguments import require_embed_dim, require_num_heads, require_whole
from course_utils.heatmaps.figure import CourseFigure
from course_utils.pictures.block import MAX_HEADS, STEPS, block_picture
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.shapes import Picture
from course_utils.pictures.svg import picture_html
from course_utils.sliders.controls import WIDE, make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import html_table

LEAST_WIDTH = 700  # pixels of a picture whose names can still be read
STILL = (1, 5)  # steps of the stored picture: attention and MLP


def explore_block(embed_dim: int = 384, *, num_heads: int = 12, seq_len: int = 16) -> Explorer:
    """Go through a transformer block step by step: attention, sum, LayerNorm, MLP, sum, LayerNorm.

    It is the block of BERT, whose LayerNorms come after the sums.

    Args:
        embed_dim: D, the width of the residual stream.
        num_heads: H, up to 16.
        seq_len: L.

    Returns:
        An explorer with the control ``step``, from 0. Its state holds the step's ``part`` and
        ``code``, what it ``says``, and ``sizes``: of each step, the (L, features) it gives.

    Raises:
        ValueError: a size that is not a whole number of at least 1, num_heads that does not divide
            embed_dim, or too many heads to be drawn.
    """
    embed_dim, seq_len = require_embed_dim(embed_dim), require_whole("seq_len", seq_len)
    num_heads = require_num_heads(embed_dim, num_heads)
    if num_heads > MAX_HEADS:
        raise ValueError(f"num_heads must be at most {MAX_HEADS}, to be drawn; got {num_heads}")
    shown = _Block(embed_dim, num_heads, seq_len)
    stops = [(step.name, number) for number, step in enumerate(STEPS)]
    return Explorer(
        {"step": make_slider("step", stops, 0, width=WIDE)},
        compute=shown.compute,
        view=shown.view,
        draw=lambda state: shown.paint([state]),
        describe=shown.describe,
        still=lambda state: shown.paint(list(map(shown.compute, STILL))),
    )


@dataclass(frozen=True)
class _Block:
    """The sizes of a block and of a sample."""

    embed_dim: int
    num_heads: int
    seq_len: int

    def compute(self, step: int) -> dict:
        now = STEPS[step]
        return {
            "step": step,
            "part": now.name,
            "code": now.code,
            "says": now.says,
            "sizes": [[self.seq_len, own.factor * self.embed_dim] for own in STEPS],
        }

    def picture(self, state: dict) -> Picture:
        return block_picture(
            state["step"],
            embed_dim=self.embed_dim,
            num_heads=self.num_heads,
            seq_len=self.seq_len,
        )

    def view(self, state: dict) -> str:
        name = f"The block around the attention: {self.describe(state)}"
        picture = picture_html(self.picture(state), name, least=LEAST_WIDTH)
        rows = [
            [step.name, step.code, _shape(size)]
            for step, size in zip(STEPS, state["sizes"], strict=True)
        ]
        table = html_table("the steps of a block", ["step", "code", "shape"], rows)
        return f'{picture}<div class="ac-unseen">{table}</div>'

    def describe(self, state: dict) -> str:
        size = _shape(state["sizes"][state["step"]])
        return f"{state['step'] + 1}. {state['part']}, {state['code']}: {state['says']}; {size}"

    def paint(self, states: Sequence[dict]) -> CourseFigure:
        return paint_pictures(
            list(map(self.picture, states)),
            titles=[state["part"] for state in states],
            alt="; ".join(map(self.describe, states)),
        )


def _shape(size: Sequence[int]) -> str:
    return f"({', '.join(map(str, size))})"
