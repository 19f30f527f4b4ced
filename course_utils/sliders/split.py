"""Choose a head count and see who gets which features."""

from html import escape

from course_utils.arguments import divisors, require_embed_dim, require_num_heads, require_whole
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
        num_heads: where the slider stands at first; left out, 1.

    Returns:
        An explorer with the controls ``num_heads`` and ``any_number`` (a switch that lets head
        counts in that do not divide D, to show what the error says); its state holds
        ``head_dim``, ``features`` (one list of feature numbers a head) and ``shapes``.

    Raises:
        ValueError: a size that is not a whole number of at least 1, or num_heads does not divide
            embed_dim.
    """
    batch_size = require_whole("batch_size", batch_size)
    seq_len = require_whole("seq_len", seq_len)
    embed_dim = require_embed_dim(embed_dim)
    slider = head_count_slider(embed_dim, value=num_heads)
    switch = make_switch("allow any number", False)

    def offer(any_number: bool) -> None:
        wanted, value = range(1, embed_dim + 1), slider.value
        if not any_number:
            wanted = divisors(embed_dim)
            value = max(h for h in wanted if h <= value)
        slider.options = list(wanted)  # moves the slider to the first of them
        slider.value = value

    def compute(num_heads: int, any_number: bool) -> dict:
        num_heads = require_num_heads(embed_dim, num_heads)
        head_dim = embed_dim // num_heads
        n, length = batch_size, seq_len
        return {
            "num_heads": num_heads,
            "any_number": any_number,
            "head_dim": head_dim,
            "features": [list(range(h * head_dim, (h + 1) * head_dim)) for h in range(num_heads)],
            "shapes": {
                "x": (n, length, embed_dim),
                "q = q_proj(x)": (n, length, embed_dim),
                "q.view(N, L, H, d_h)": (n, length, num_heads, head_dim),
                "….transpose(1, 2)": (n, num_heads, length, head_dim),
            },
        }

    def view(state: dict) -> str:
        names = ["x", "q = q_proj(x)", "q.view(N, L, H, d_h)", "….transpose(1, 2)"]
        axes = ["(N, L, D)", "(N, L, D)", "(N, L, H, d_h)", "(N, H, L, d_h)"]
        shapes = [
            [f"<code>{escape(name)}</code>", axis, f"<code>{state['shapes'][name]}</code>"]
            for name, axis in zip(names, axes, strict=True)
        ]
        caption = f"D = {embed_dim}, H = {state['num_heads']}, d_h = {state['head_dim']}"
        return _split_strip(state["features"], caption) + html_table(
            "every shape on the way", ["step", "axes", "shape"], shapes
        )

    return Explorer(
        {"num_heads": slider, "any_number": switch},
        compute=compute,
        view=view,
        draw=lambda state: plot_head_split(embed_dim, state["num_heads"]),
        describe=lambda state: describe_head_split(embed_dim, state["num_heads"]),
        still=lambda state: plot_head_split(
            embed_dim, sorted({*divisors(embed_dim)[:3], state["num_heads"]})
        ),
        adjust={"any_number": offer},
    )


def _split_strip(features: list[list[int]], caption: str) -> str:
    """One token's features in a row, under the heads that take them."""
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
        f'<table class="ac ac-map ac-strip"><caption>one token: {caption}</caption>'
        f'<thead><tr><th scope="row">head</th>{heads}</tr></thead>'
        f'<tbody><tr><th scope="row">feature</th>{cells}</tr></tbody></table>'
    )
