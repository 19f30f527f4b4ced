"""The style sheet of all views."""

from functools import cache
from pathlib import Path

from course_utils.heatmaps.colours import HEAD_TINTS, ramp
from course_utils.pictures.svg import picture_style


@cache
def style_sheet() -> str:
    """CSS for every view: the rules of ``explorer.css``, those of pictures, and classes of colours.

    JupyterLab serves a copy, which ``python -m course_utils.jupyter.sheet`` renews.

    The classes are ``ac-w0`` to ``ac-w100`` for weights from 0.00 to 1.00, and ``ac-h0`` and
    ``ac-h1`` for heads by turns.
    """
    rules = Path(__file__).with_name("explorer.css").read_text(encoding="utf-8")
    weights = (
        f".ac-w{i} {{ background: {back}; color: {text}; }}"
        for i, (back, text) in enumerate(ramp(101))
    )
    heads = (
        f".ac-h{i} {{ background: {tint}; color: #000; }}" for i, tint in enumerate(HEAD_TINTS)
    )
    return "\n".join([rules, *weights, *heads, picture_style(), ""])
