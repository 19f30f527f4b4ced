"""Which features of a token belong to which head, as boxes."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils.arguments import count_of, require_embed_dim, require_num_heads
from course_utils.heatmaps.colours import HEAD_TINTS
from course_utils.heatmaps.dark import ON_COLOUR
from course_utils.heatmaps.figure import PAGE_WIDTH, CourseFigure

MAX_BOXES = 512  # with more features, there is one box per head


def plot_head_split(embed_dim: int, num_heads: int | Sequence[int]) -> CourseFigure:
    """Draw the D features of one token, and which head takes which.

    Args:
        embed_dim: D.
        num_heads: H, a divisor of D; or several, which are drawn below each other.

    Returns:
        A closed figure with one axes per head count: D boxes in a row, in H groups; from 513
        features on, one box per head.

    Raises:
        ValueError: no head count, or one that does not divide D.
    """
    embed_dim = require_embed_dim(embed_dim)
    counts = num_heads if isinstance(num_heads, Sequence) and num_heads else [num_heads]
    counts = [require_num_heads(embed_dim, count) for count in counts]
    figure = CourseFigure(figsize=(PAGE_WIDTH, 1.7 * len(counts)))
    for axes, count in zip(figure.subplots(len(counts), squeeze=False).flat, counts, strict=True):
        _draw_split(axes, embed_dim, count)
    figure.alt = "; ".join(describe_head_split(embed_dim, count) for count in counts)
    return figure


def _draw_split(axes: Axes, embed_dim: int, num_heads: int) -> None:
    head_dim = embed_dim // num_heads
    width = 1 if embed_dim <= MAX_BOXES else head_dim
    for feature in range(0, embed_dim, width):
        head = feature // head_dim
        axes.add_patch(
            Rectangle(
                (feature, 0),
                width,
                1,
                facecolor=HEAD_TINTS[head % 2],
                edgecolor="#555555",
                linewidth=min(1, 32 / embed_dim),  # the edges must not hide the tints
                gid=ON_COLOUR,
            )
        )
        if embed_dim <= 32:
            look = {"ha": "center", "va": "center", "fontsize": 9, "gid": ON_COLOUR}
            axes.text(feature + 0.5, 0.5, str(feature), **look)
    inset = min(0.3 * head_dim, 0.004 * embed_dim)
    for head in range(num_heads):
        left = head * head_dim
        ends = [left + inset, left + head_dim - inset]
        axes.plot(ends, [-0.15, -0.15], color="black", solid_capstyle="butt")
        name = f"head {head}" if num_heads <= 8 else str(head)
        if num_heads <= 32:
            axes.text(left + head_dim / 2, -0.3, name, ha="center", va="top", fontsize=9)
    axes.set(xlim=(-0.2, embed_dim + 0.2), ylim=(-0.9, 1.1))
    features, heads = count_of(embed_dim, "feature"), count_of(num_heads, "head")
    axes.set_title(f"the query of one token: {features}, {heads} of {head_dim}", fontsize=10)
    axes.axis("off")


def describe_head_split(embed_dim: int, num_heads: int) -> str:
    """Say in words which features belong to the first head, and which to the last."""
    head_dim = embed_dim // num_heads
    first, last = (f"{start} to {start + head_dim - 1}" for start in (0, embed_dim - head_dim))
    if head_dim == 1:
        first, last = "0", f"{embed_dim - 1}"
    others = f", head {num_heads - 1} takes {last}" if num_heads > 1 else ""
    return (
        f"{count_of(embed_dim, 'feature')} in {count_of(num_heads, 'head')} of {head_dim}: head 0 "
        f"takes feature{'s' * (head_dim > 1)} {first}{others}"
    )
