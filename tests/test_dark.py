"""Figures on dark paper."""

import base64
import io

import numpy as np
import pytest
import torch
from matplotlib import colors
from matplotlib.text import Text
from PIL import Image

from course_utils.heatmaps import (
    plot_attention,
    plot_curves,
    plot_digits,
    plot_head_split,
    plot_heads,
    plot_over_digit,
    plot_points,
    plot_runs,
    plot_spread,
)
from course_utils.heatmaps.colours import contrast, palette
from course_utils.heatmaps.dark import ON_COLOUR, in_dark, on_dark_paper

PAPER = palette("dark")["paper"]
WEIGHTS = torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(0)).softmax(-1)
MASK = torch.tensor([[True, False, False, False]]).expand(4, 4)
IMAGES = torch.linspace(0, 1, 128).view(2, 8, 8)
FIGURES = {
    "attention": lambda: plot_attention(WEIGHTS[0]),
    "large": lambda: plot_attention(torch.eye(40)),
    "heads": lambda: plot_heads(WEIGHTS),
    "split": lambda: plot_head_split(8, [2, 4]),
    "curves": lambda: plot_curves([1, 2], {"a": [1, 2], "b": [2, 1]}, x_label="x", y_label="y"),
    "spread": lambda: plot_spread([1, 2], {"a": [[0.1, 0.9]] * 2}, x_label="x", y_label="y"),
    "points": lambda: plot_points({"a": ([1], [2]), "b": ([2], [1])}, x_label="x", y_label="y"),
    "runs": lambda: plot_runs({"a": [0.1, 0.2]}, x_label="x"),
    "digits": lambda: plot_digits(IMAGES, titles=["a", "b"], patch_size=2),
    "over a digit": lambda: plot_over_digit(IMAGES, WEIGHTS),
}
each_figure = pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)


def colours_of(figure):
    texts = [artist.get_color() for artist in figure.findobj(Text)]
    patches = [patch.get_edgecolor() for axes in figure.axes for patch in axes.patches]
    return [colors.to_hex(colour, keep_alpha=True) for colour in (*texts, *patches)]


@each_figure
def test_text_can_be_read_on_dark_paper_and_is_as_before_afterwards(make):
    figure = make()
    figure.png()  # which makes the tick labels
    before = colours_of(figure)
    with on_dark_paper(figure) as paper:
        assert colors.to_hex(paper) == PAPER
        texts = [text for text in figure.findobj(Text) if text.get_text()]
        for text in texts:
            assert text.get_gid() == ON_COLOUR or contrast(text.get_color(), PAPER) >= 4.5
        assert any(text.get_gid() != ON_COLOUR for text in texts)
        assert colours_of(figure) != before
    assert colours_of(figure) == before


@each_figure
def test_numbers_on_colours_keep_their_own(make):
    figure = make()
    light = [text.get_color() for text in figure.findobj(Text) if text.get_gid() == ON_COLOUR]
    with on_dark_paper(figure):
        dark = [text.get_color() for text in figure.findobj(Text) if text.get_gid() == ON_COLOUR]
    assert light == dark


def test_both_pictures_are_stored_and_one_is_dark():
    data, metadata = plot_attention(WEIGHTS[0])._repr_mimebundle_()
    light, dark = data["image/png"], metadata["image/png"]["dark"]
    corners = []
    for picture in (light, dark):
        with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
            corners.append((image.size, image.convert("RGB").getpixel((0, 0))))
    assert corners == [(corners[0][0], (255, 255, 255)), (corners[0][0], (17, 17, 17))]


@pytest.mark.parametrize("colour", ["#440154", "navy", "#0072b2", "#d55e00", "red", "black", "0.4"])
def test_what_is_drawn_can_be_told_from_the_paper(colour):
    assert contrast(in_dark(colour), PAPER) >= 3


def test_a_colour_keeps_its_opacity_and_its_name():
    assert in_dark((1, 1, 1, 0.25))[3] == 0.25
    assert in_dark("none") == "none"
    for name in ("h0", "h7", "grid"):
        found = in_dark(palette("light")[name])
        assert np.allclose(found[:3], colors.to_rgb(palette("dark")[name]))
