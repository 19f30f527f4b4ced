"""Change the head count and see what of a layer changes, to scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.arguments import count_of, divisors, require_num_heads, require_whole
from course_utils.heatmaps.figure import CourseFigure
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.layer import MAX_FEATURES, MAX_TOKENS, layer_picture
from course_utils.pictures.shapes import Picture
from course_utils.pictures.svg import picture_html
from course_utils.sliders.controls import WIDE, make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import html_table

LEAST_WIDTH = 700  # pixels of a picture whose names can still be read


def explore_layer(embed_dim: int = 16, *, seq_len: int = 6, num_heads: int = 2) -> Explorer:
    """Choose a head count and see a whole layer to scale: only the maps multiply.

    Args:
        embed_dim: D, up to 16.
        seq_len: L, up to 6.
        num_heads: where the slider stands at first.

    Returns:
        An explorer with the control ``num_heads``. Its state holds ``head_dim``, ``shapes`` (the
        name of each tensor to its sizes, of one sample) and ``stored_weights``.

    Raises:
        ValueError: a size that is not a whole number of at least 1 or too large to be drawn, or
            num_heads does not divide embed_dim.
    """
    embed_dim, seq_len = require_whole("embed_dim", embed_dim), require_whole("seq_len", seq_len)
    for name, size, most in (
        ("embed_dim", embed_dim, MAX_FEATURES),
        ("seq_len", seq_len, MAX_TOKENS),
    ):
        if size > most:
            raise ValueError(f"{name} must be at most {most}, to be drawn; got {size}")
    num_heads = require_num_heads(embed_dim, num_heads)
    shown = _Layer(embed_dim, seq_len)
    slider = make_slider("heads H", divisors(embed_dim), num_heads, width=WIDE)
    return Explorer(
        {"num_heads": slider},
        compute=shown.compute,
        view=shown.view,
        draw=lambda state: shown.paint([state]),
        describe=shown.describe,
        still=shown.still,
    )


@dataclass(frozen=True)
class _Layer:
    """The sizes of a layer and of a sample."""

    embed_dim: int
    seq_len: int

    def compute(self, num_heads: int) -> dict:
        d, length, head_dim = self.embed_dim, self.seq_len, self.embed_dim // num_heads
        of_head = [num_heads, length, head_dim]
        return {
            "num_heads": num_heads,
            "head_dim": head_dim,
            "shapes": {
                "X": [length, d],
                **dict.fromkeys(("Q, in heads", "K, in heads", "V, in heads"), of_head),
                "weights": [num_heads, length, length],
                "weights · V, merged": [length, d],
                "W_O": [d, d],
                "output": [length, d],
            },
            "stored_weights": num_heads * length**2,
        }

    def picture(self, state: dict) -> Picture:
        return layer_picture(self.embed_dim, self.seq_len, state["num_heads"])

    def view(self, state: dict) -> str:
        name = f"A layer to scale: {self.describe(state)}"
        picture = picture_html(self.picture(state), name, least=LEAST_WIDTH)
        rows = [
            [tensor, f"({', '.join(map(str, sizes))})"] for tensor, sizes in state["shapes"].items()
        ]
        table = html_table("shapes for one sample", ["tensor", "shape"], rows)
        return f'{picture}<div class="ac-unseen">{table}</div>'

    def describe(self, state: dict) -> str:
        heads, length = state["num_heads"], self.seq_len
        return (
            f"{count_of(heads, 'head')} of {state['head_dim']}: Q, K and V are cut into "
            f"{count_of(heads, 'piece')}, and there {'is' if heads == 1 else 'are'} "
            f"{count_of(heads, 'map')} of {length} × {length}, {state['stored_weights']} weights; "
            f"the output stays ({length}, {self.embed_dim})"
        )

    def paint(self, states: Sequence[dict]) -> CourseFigure:
        return paint_pictures(
            list(map(self.picture, states)),
            titles=[f"H = {state['num_heads']}" for state in states],
            alt="; ".join(map(self.describe, states)),
        )

    def still(self, state: dict) -> CourseFigure:
        """The head count that is shown, and another one."""
        counts = divisors(self.embed_dim)
        after = counts[(counts.index(state["num_heads"]) + 1) % len(counts)]
        return self.paint([state, self.compute(after)])
