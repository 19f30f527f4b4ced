"""The colours of weights and of heads, for figures and explorers alike."""

from functools import lru_cache

import matplotlib
import numpy as np

COLORMAP = "viridis"  # even steps of lightness, and told apart by colour-blind readers
HEAD_TINTS = ("#fde7b0", "#b9dcf2")  # two light tints, by turns; black on both is easy to read

# One colour per head, the same in every lesson; beyond eight heads they repeat, and labels tell the
# heads apart. On the paper of its theme each has a contrast of at least 3:1, and any two of them
# differ for red-, green- and blue-blind readers as well (see tests/test_pictures.py).
HEADS = {
    "light": (
        *("#2c5be5", "#c4760a", "#0b6a4a", "#63308f"),
        *("#d4609f", "#1393dd", "#6b4d08", "#3d4657"),
    ),
    "dark": (
        *("#6f93ff", "#f5b93a", "#35d990", "#cbb8ff"),
        *("#e0608a", "#a4e8ee", "#c98a3a", "#7684ac"),
    ),
}
# What else a picture is made of: text, text that stands back, lines that matter, lines that need
# not be seen, the ground of a part, and the paper behind everything.
NEUTRALS = {
    "light": {
        "ink": "#1f2328",
        "soft": "#57606a",
        "line": "#838c97",
        "grid": "#d8dee4",
        "card": "#f3f5f8",
        "paper": "#ffffff",
    },
    "dark": {
        "ink": "#e6edf3",
        "soft": "#a3adb8",
        "line": "#7d8894",
        "grid": "#353c45",
        "card": "#1c2127",
        "paper": "#111111",
    },
}


@lru_cache
def palette(theme: str) -> dict[str, str]:
    """The colours of a picture by name, for the theme "light" or "dark".

    Besides the names of ``NEUTRALS`` there is ``h0`` to ``h7`` for the heads, and ``on-h0`` to
    ``on-h7`` for text on them.
    """
    heads = HEADS[theme]
    return {
        **NEUTRALS[theme],
        **{f"h{i}": colour for i, colour in enumerate(heads)},
        **{f"on-h{i}": text_colour(colour) for i, colour in enumerate(heads)},
    }


def head_colour(head: int) -> str:
    """The name of a head's colour in ``palette``."""
    return f"h{head % len(HEADS['light'])}"


@lru_cache
def ramp(steps: int) -> tuple[tuple[str, str], ...]:
    """Background and text colour for ``steps`` values from 0 to 1, text always readable.

    The text is black or white, whichever contrasts more: at least 4.5:1 on any background.
    """
    colours = matplotlib.colormaps[COLORMAP](np.linspace(0, 1, steps))
    return tuple((matplotlib.colors.to_hex(c), text_colour(c)) for c in colours)


def text_colour(background) -> str:
    """Black or white, whichever contrasts more with ``background``."""
    luminance = relative_luminance(background)
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def relative_luminance(colour) -> float:
    """How light a colour is, from 0 to 1, as WCAG reckons it."""
    channels = np.asarray(matplotlib.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(one, other) -> float:
    """The contrast of two colours, from 1 to 21, as WCAG reckons it."""
    low, high = sorted((relative_luminance(one), relative_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def shade_of(weight: float) -> int:
    """Which of the 101 shades of the ramp a weight has; one above 1 has the last."""
    return min(round(100 * weight), 100)
