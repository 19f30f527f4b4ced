"""The colours of weights and of heads, for figures and explorers alike."""

from functools import lru_cache

import matplotlib
import numpy as np

COLORMAP = "viridis"  # even steps of lightness, and told apart by colour-blind readers
HEAD_TINTS = ("#fde7b0", "#b9dcf2")  # two light tints, by turns; black on both is easy to read


@lru_cache
def ramp(steps: int) -> tuple[tuple[str, str], ...]:
    """Background and text colour for ``steps`` values from 0 to 1, text always readable.

    The text is black or white, whichever contrasts more: at least 4.5:1 on any background.
    """
    colours = matplotlib.colormaps[COLORMAP](np.linspace(0, 1, steps))
    return tuple((matplotlib.colors.to_hex(c), text_colour(c)) for c in colours)


def text_colour(background) -> str:
    """Black or white, whichever contrasts more with ``background`` (WCAG relative luminance)."""
    channels = np.asarray(matplotlib.colors.to_rgb(background))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def shade_of(weight: float) -> int:
    """Which of the 101 shades of the ramp a weight has; one above 1 has the last."""
    return min(round(100 * weight), 100)
