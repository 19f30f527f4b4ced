"""The style sheet of all views."""

from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.colors import to_hex, to_rgb

from course_utils.heatmaps.colours import HEAD_TINTS, contrast, ramp
from course_utils.pictures.svg import picture_style


def faded(back: str, text: str) -> str:
    """The colour nearest to the background that can still be read on it, with a contrast of 4.5."""
    mixed = (
        tuple(share * t + (1 - share) * b for t, b in zip(to_rgb(text), to_rgb(back), strict=True))
        for share in np.linspace(0, 1, 101)
    )
    return to_hex(next(colour for colour in mixed if contrast(to_hex(colour), back) >= 4.5))


@cache
def style_sheet() -> str:
    """CSS for every view: the rules of ``explorer.css``, those of pictures, and classes of colours.

    JupyterLab serves a copy, which ``python -m course_utils.jupyter.sheet`` renews.

    The classes are ``ac-w0`` to ``ac-w100`` for weights from 0.00 to 1.00, and ``ac-h0`` and
    ``ac-h1`` for heads by turns. The number 0.00 stands back, so that the eye goes to the others.
    """
    rules = Path(__file__).with_name("explorer.css").read_text(encoding="utf-8")
    shades = ramp(101)
    weights = [
        f".ac-w{i} {{ background: {back}; color: {text}; }}"
        for i, (back, text) in enumerate(shades)
    ]
    weights[0] = f".ac-w0 {{ background: {shades[0][0]}; color: {faded(*shades[0])}; }}"
    heads = (
        f".ac-h{i} {{ background: {tint}; color: #000; }}" for i, tint in enumerate(HEAD_TINTS)
    )
    return "\n".join([rules, *weights, *heads, picture_style(), ""])
