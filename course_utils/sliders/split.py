"""Choose a head count and see who gets which features."""

from dataclasses import dataclass
from html import escape

from ipywidgets import SelectionSlider

from course_utils.arguments import divisors, require_embed_dim, require_num_heads, require_whole
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.splits import describe_head_split, plot_head_split
from course_utils.sliders.controls import head_count_slider, make_switch
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import html_table


def explore_split(
    embed_dim: int, *, batch_size: int = 2, seq_len: int = 3, num_heads: int | None = None
) -> Explorer:
    """Change the head count and see who gets which features, and every shape on the way.

    Args:
        embed_dim: D.
        batch_size: N, for the shapes.
        seq_len: L, for the shapes.
        num_heads: where the slider starts; left out, 1.

    Returns:
        An explorer with the controls ``num_heads`` and ``any_number`` (a switch that also offers
        head counts that do not divide D, to show what the error says). Its state holds
        ``head_dim``, ``features`` (one list of feature numbers per head) and ``shapes``.

    Raises:
        ValueError: a size that is not a whole number of at least 1, or num_heads does not divide
            embed_dim.
    """
    batch_size = require_whole("batch_size", batch_size)
    seq_len = require_whole("seq_len", seq_len)
    embed_dim = require_embed_dim(embed_dim)
    slider = head_count_slider(embed_dim, value=num_heads)
    shown = _Split(embed_dim, batch_size, seq_len)
    return Explorer(
        {"num_heads": slider, "any_number": make_switch("allow any number", False)},
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
        adjust={"any_number": lambda any_number: _offer(slider, embed_dim, any_number)},
    )


def _offer(slider: SelectionSlider, embed_dim: int, any_number: bool) -> None:
    """Let the slider offer every number or the divisors; it stays, or goes to the one below."""
    wanted = range(1, embed_dim + 1) if any_number else divisors(embed_dim)
    value = max(num_heads for num_heads in wanted if num_heads <= slider.value)
    slider.options = list(wanted)  # moves the slider to the first of them
    slider.value = value


@dataclass(frozen=True)
class _Split:
    """The features of a token, cut into heads."""

    embed_dim: int
    batch_size: int
    seq_len: int

    def compute(self, num_heads: int, any_number: bool) -> dict:
        num_heads = require_num_heads(self.embed_dim, num_heads)
        head_dim = self.embed_dim // num_heads
        n, length, d = self.batch_size, self.seq_len, self.embed_dim
        return {
            "num_heads": num_heads,
            "any_number": any_number,
            "head_dim": head_dim,
            "features": [list(range(h * head_dim, (h + 1) * head_dim)) for h in range(num_heads)],
            "shapes": {
                "x": (n, length, d),
                "q = q_proj(x)": (n, length, d),
                "q.view(N, L, H, d_h)": (n, length, num_heads, head_dim),
                "….transpose(1, 2)": (n, num_heads, length, head_dim),
            },
        }

    def view(self, state: dict) -> str:
        axes = ["(N, L, D)", "(N, L, D)", "(N, L, H, d_h)", "(N, H, L, d_h)"]
        steps = [
            [f"<code>{escape(step)}</code>", names, f"<code>{shape}</code>"]
            for (step, shape), names in zip(state["shapes"].items(), axes, strict=True)
        ]
        caption = f"D = {self.embed_dim}, H = {state['num_heads']}, d_h = {state['head_dim']}"
        return _strip(state["features"], caption) + html_table(
            "every shape on the way", ["step", "axes", "shape"], steps
        )

    def draw(self, state: dict) -> CourseFigure:
        return plot_head_split(self.embed_dim, state["num_heads"])

    def describe(self, state: dict) -> str:
        return describe_head_split(self.embed_dim, state["num_heads"])

    def still(self, state: dict) -> CourseFigure:
        """The smallest head counts below each other."""
        counts = {*divisors(self.embed_dim)[:3], state["num_heads"]}
        return plot_head_split(self.embed_dim, sorted(counts))


def _strip(features: list[list[int]], caption: str) -> str:
    """The features of one token in a row, under the heads that take them."""
    heads = "".join(
        f'<th scope="colgroup" colspan="{len(own)}">{head}</th>'
        for head, own in enumerate(features)
    )
    cells = "".join(
        f'<td class="ac-h{head % 2}">{feature}</td>'
        for head, own in enumerate(features)
        for feature in own
    )
    return (
        f'<table class="ac ac-map ac-strip"><caption>the query of one token: {caption}</caption>'
        f'<thead><tr><th scope="row">head</th>{heads}</tr></thead>'
        f'<tbody><tr><th scope="row">feature</th>{cells}</tr></tbody></table>'
    )
