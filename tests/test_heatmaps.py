"""The still figures: what they show, that their texts are readable, and what they refuse.

nbval never compares pictures, so all that a picture must hold is asked of its artists here.
"""

import base64
import io
import itertools
import math
import re
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib import colormaps, font_manager
from matplotlib.text import Text
from matplotlib.transforms import Affine2D

from course_utils.arguments import require_weights
from course_utils.heatmaps import figure as figures
from course_utils.heatmaps import plot_attention, plot_curves, plot_head_split, plot_heads
from course_utils.heatmaps.colours import COLORMAP, HEAD_TINTS, ramp, text_colour
from course_utils.heatmaps.texts import display_token, token_labels

# A glyph that no font has, or a layout without room, is only a warning in matplotlib.
pytestmark = pytest.mark.filterwarnings("error")

SENTENCE = "The animal did not cross the street because it was too tired . Really not it"
WORDS = SENTENCE.split()
WIDE = ["W" * 20, "日本語" * 9, "internationalization", "<script>alert(1)</script>"] * 4
PNG = b"\x89PNG\r\n\x1a\n"


def random_weights(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(2 * torch.randn(shape, generator=generator), dim=-1)


def maps(figure):
    """The axes that hold a heatmap, in reading order; a colour bar holds none."""
    return [axes for axes in figure.axes if axes.images]


def labels(ticks):
    return [label.get_text() for label in ticks if label.get_text()]


def numbers(axes):
    return [text.get_text() for text in axes.texts]


def examples():
    """One figure of each kind."""
    yield plot_attention(random_weights(3, 3), query_tokens=WORDS[:3], title="who looks at whom")
    yield plot_attention(random_weights(26, 30))
    yield plot_heads(random_weights(2, 3, 4))
    yield plot_heads(random_weights(5, 9, 9))
    yield plot_head_split(12, 3)
    yield plot_curves([1, 2, 4], {"a": [1, 2, 3], "b": [3, 2, 1]}, x_label="x", y_label="y")


# --- what a figure shows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda w: w,
        lambda w: w.clone().requires_grad_(),
        lambda w: w.numpy(),
        lambda w: w.double().tolist(),
        list,
    ],
    ids=["tensor", "tensor with gradient", "array", "lists", "list of tensors"],
)
def test_one_map(convert):
    weights = random_weights(3, 5)
    figure = plot_attention(convert(weights), query_tokens=WORDS[:3], title="my head")
    (axes,) = maps(figure)
    assert figure.axes == [axes]
    assert np.array_equal(axes.images[0].get_array(), weights.double().numpy())
    assert axes.images[0].get_clim() == (0, 1)
    assert axes.images[0].get_cmap().name == COLORMAP
    assert axes.get_title() == "my head"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")
    assert labels(axes.get_yticklabels()) == WORDS[:3]
    assert labels(axes.get_xticklabels()) == ["0", "1", "2", "3", "4"]
    assert numbers(axes) == [f"{w:.2f}" for w in weights.flatten()]
    places = [text.get_position() for text in axes.texts]
    assert places == [(column, row) for row in range(3) for column in range(5)]


@pytest.mark.parametrize("num_heads", [1, 2, 3, 5, 8])
def test_several_maps_share_one_scale(num_heads):
    weights = random_weights(num_heads, 3, 4)
    weights[-1, 1, 2] = 1.6  # as dropout makes them
    figure = plot_heads(weights, query_tokens=WORDS[:3], key_tokens=WORDS[3:7])
    assert [axes.get_title() for axes in maps(figure)] == [f"head {h}" for h in range(num_heads)]
    assert figure.axes == maps(figure)  # no empty axes where the last row is not full
    for axes, head in zip(maps(figure), weights, strict=True):
        assert np.array_equal(axes.images[0].get_array(), head.double().numpy())
        assert axes.images[0].get_clim() == (0, pytest.approx(1.6))
        assert numbers(axes) == [f"{w:.2f}" for w in head.flatten()]
        # A map has its own names, or stands in line with one that has them.
        assert labels(axes.get_yticklabels()) in ([], WORDS[:3])
        assert labels(axes.get_xticklabels()) in ([], WORDS[3:7])
    assert labels(maps(figure)[0].get_yticklabels()) == WORDS[:3]
    assert labels(maps(figure)[-1].get_xticklabels()) == WORDS[3:7]


def test_maps_can_be_named():
    figure = plot_heads(random_weights(2, 2, 2), titles=["前", "mean of 2 heads"])
    assert [axes.get_title() for axes in maps(figure)] == ["前", "mean of 2 heads"]


@pytest.mark.parametrize("weight", [1.5, 20.0, 1000.0])
def test_weights_above_one_stretch_the_scale(weight):
    figure = plot_attention([[weight, 0.0], [0.0, 0.5]])
    assert figure.axes[0].images[0].get_clim() == (0, weight)
    assert numbers(figure.axes[0])[0] == f"{weight:.2f}"


@pytest.mark.parametrize("shape", [(16, 16), (24, 24), (3, 40), (60, 1), (200, 200)])
def test_numbers_or_a_colour_bar(shape):
    """Where numbers would be too small, a scale beside the map tells the weights."""
    figure = plot_attention(random_weights(*shape))
    (axes,) = maps(figure)
    if axes.texts:
        assert len(axes.texts) == math.prod(shape)
        assert figure.axes == [axes]
    else:
        assert [other.get_ylabel() for other in figure.axes] == ["query", "weight"]


@pytest.mark.parametrize(("embed_dim", "num_heads"), [(1, 1), (8, 2), (14, 2), (24, 24), (512, 8)])
def test_split_of_one_token(embed_dim, num_heads):
    figure = plot_head_split(embed_dim, num_heads)
    (axes,) = figure.axes
    tints = [patch.get_facecolor() for patch in axes.patches]
    assert len(tints) == embed_dim
    head_dim = embed_dim // num_heads
    for feature in range(1, embed_dim):  # the tint changes where a head ends, only there
        assert (tints[feature] != tints[feature - 1]) == (feature % head_dim == 0)
    assert len(axes.lines) == num_heads  # and a line under each head, for those who see no tint
    point = embed_dim / (9 * 72)  # in features, as the picture is 9 inches wide
    assert axes.patches[0].get_linewidth() * point < 0.3  # edges do not hide the tints
    for one, other in itertools.pairwise(axes.lines):
        assert other.get_xdata()[0] - one.get_xdata()[1] > 0.5 * point
        assert one.get_solid_capstyle() == "butt"
    assert f"{num_heads} head{'s' * (num_heads > 1)} of {head_dim}" in axes.get_title()
    first = f"features 0 to {head_dim - 1}" if head_dim > 1 else "takes feature 0"
    assert first in figure.alt


def test_curves():
    x, curves = [1, 2, 4, 8], {"with": [1, 1, 1.5, 1], "without": [1, 2, 4, 8]}
    figure = plot_curves(x, curves, x_label="d_k", y_label="variance", title="growth", log_y=True)
    (axes,) = figure.axes
    for line, (name, values) in zip(axes.lines, curves.items(), strict=True):
        assert line.get_label() == name
        assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == (x, values)
    assert len({line.get_marker() for line in axes.lines}) == 2  # not told apart by colour alone
    assert len({line.get_linestyle() for line in axes.lines}) == 2
    assert labels(axes.get_legend().get_texts()) == list(curves)
    assert labels(axes.get_xticklabels()) == ["1", "2", "4", "8"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("d_k", "variance")
    assert (axes.get_title(), axes.get_yscale()) == ("growth", "log")
    assert "without goes from 1 to 8" in figure.alt


# --- figures in a notebook ----------------------------------------------------------------------


def test_no_figure_is_left_open():
    plt.close("all")
    assert len(list(examples())) == 6
    assert plt.get_fignums() == []


def test_text_form_is_one_steady_line():
    for figure, again in zip(examples(), examples(), strict=True):
        assert repr(figure) == repr(again) == f"Figure: {figure.alt}"
        assert figure.alt
        assert "\n" not in repr(figure)
        assert not re.search(r"0x[0-9a-f]{4}", repr(figure))


def test_picture_form():
    for figure in examples():
        data, metadata = figure._repr_mimebundle_()
        assert set(data) == {"text/plain", "image/png"}
        assert data["text/plain"] == repr(figure)
        png = base64.b64decode(data["image/png"])
        assert png.startswith(PNG)
        height, width, _ = plt.imread(io.BytesIO(png)).shape
        assert metadata["image/png"]["alt"] == figure.alt
        assert width <= 9 * 144  # the page
        assert metadata["image/png"]["width"] == pytest.approx(width * 80 / 144, abs=1)
        assert height > 100


def test_the_same_data_gives_the_same_bytes():
    first, second = (plot_attention(random_weights(3, 3), title="a").png() for _ in range(2))
    assert first == second


def test_alt_text_names_where_each_query_looks():
    figure = plot_attention(
        [[0.9, 0.1], [0.25, 0.75]], query_tokens=["it", "cat"], title="two\n lines"
    )
    assert figure.alt == (
        "two lines: 2 queries by 2 keys, largest weight per row it → it 0.90, cat → cat 0.75"
    )
    figure = plot_heads([[[1.0]]] * 6)
    first = "head 0: 1 query by 1 key, largest weight per row 0 → 0 1.00; head 1"
    assert figure.alt.startswith(first)
    assert figure.alt.endswith("and 2 more heads")
    long = plot_attention(random_weights(7, 2), query_tokens=["x" * 99] * 7).alt
    assert long.endswith(", …")
    assert long.count("→") == 6


# --- colours ------------------------------------------------------------------------------------


def linear(colour):
    c = np.asarray(colour)[..., :3]
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return linear(colour) @ (0.2126, 0.7152, 0.0722)


def contrast(one, other):
    """The WCAG contrast ratio of two colours, from 1 to 21."""
    darker, lighter = np.sort([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def rgb(colour):
    return plt.matplotlib.colors.to_rgb(colour)


def test_colour_map_is_even_in_lightness():
    y = luminance(colormaps[COLORMAP](range(0, 256, 5)))
    lightness = np.where(y > (6 / 29) ** 3, 116 * np.cbrt(y) - 16, y * (29 / 3) ** 3)  # CIE L*
    steps = np.diff(lightness)
    assert steps.min() > 0
    assert steps.max() / steps.min() < 1.6
    assert lightness[-1] - lightness[0] > 70


def test_every_number_can_be_read():
    weights = np.linspace(0, 1, 30).reshape(5, 6)
    (axes,) = maps(plot_attention(weights))
    for text, weight in zip(axes.texts, weights.flat, strict=True):
        assert contrast(rgb(text.get_color()), colormaps[COLORMAP](weight)) >= 4.5
    for back, front in ramp(101):
        assert contrast(rgb(front), rgb(back)) >= 4.5
    assert [back for back, _ in ramp(101)] == [
        plt.matplotlib.colors.to_hex(colormaps[COLORMAP](i)) for i in np.linspace(0, 1, 101)
    ]
    for tint in HEAD_TINTS:
        assert contrast(rgb(tint), (0, 0, 0)) >= 4.5


def test_text_is_readable_on_any_colour():
    for colour in np.random.default_rng(0).random((300, 3)):
        assert contrast(rgb(text_colour(colour)), colour) >= 4.5


# --- room for every text ------------------------------------------------------------------------


def corners(text):
    """The four corners of a text on the canvas, turned as the text is."""
    angle = text.get_rotation()
    upright = text.get_window_extent().corners()[[0, 1, 3, 2]]
    if angle:
        text.set_rotation(0)
        upright = text.get_window_extent().corners()[[0, 1, 3, 2]]
        text.set_rotation(angle)
        anchor = text.get_transform().transform(text.get_unitless_position())
        upright = Affine2D().rotate_deg_around(*anchor, angle).transform(upright)
        box = text.get_window_extent()
        assert np.allclose(upright.min(0), box.min, atol=2)  # the reckoning is matplotlib's own
    return upright


def overlap(one, other):
    """Whether two convex shapes share more than a pixel: no side of either parts them."""
    for shape in (one, other):
        for side in np.roll(shape, -1, axis=0) - shape:
            normal = np.array([-side[1], side[0]]) / max(np.hypot(*side), 1e-9)
            a, b = one @ normal, other @ normal
            if a.max() <= b.min() + 1 or b.max() <= a.min() + 1:
                return False
    return True


def ticks_out_of_sight(figure):
    """Labels that exist but are not drawn: beyond the axis, or of axes without any."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not (axes.axison and low <= tick.get_loc() <= high):
                    yield from (tick.label1, tick.label2)


def assert_room_for_texts(figure):
    """No text is cut off at the edge, covers another, or leaves the cell it belongs to."""
    figure.draw_without_rendering()
    hidden = set(ticks_out_of_sight(figure))
    shown = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    shapes = {text: corners(text) for text in shown if text not in hidden}
    for text, shape in shapes.items():
        assert (shape >= -1).all(), f"cut off: {text}"
        assert (shape <= figure.bbox.max + 1).all(), f"cut off: {text}"
    cells = set()
    for axes in maps(figure):
        cells.update(axes.texts)
        rows, columns = axes.images[0].get_array().shape
        for text in axes.texts:
            size = np.ptp(shapes[text], axis=0)
            assert (size <= axes.bbox.size / (columns, rows)).all(), f"wider than its cell: {text}"
    free = [text for text in shapes if text not in cells]
    boxes = [(shapes[text].min(0), shapes[text].max(0)) for text in free]
    low, high = (np.array(side) for side in zip(*boxes, strict=True))
    near = ((high[:, None] > low + 1) & (low + 1 < high[:, None]).swapaxes(0, 1)).all(-1)
    for i, j in np.argwhere(np.triu(near, 1)):
        assert not overlap(shapes[free[i]], shapes[free[j]]), f"{free[i]} covers {free[j]}"
    assert free


@pytest.mark.slow  # drawing all of them takes its time
class TestRoomForTexts:
    @pytest.mark.parametrize(
        ("num_heads", "lengths"),
        [
            (1, (3, 8, 16)),
            (2, (3, 7, 16)),
            (3, (4, 11)),
            (4, (5, 16)),
            (5, (6,)),
            (6, (3, 14)),
            (8, (16,)),
            (12, (4,)),
            (16, (16,)),
        ],
    )
    def test_any_number_of_heads(self, num_heads, lengths):
        for length in lengths:
            weights = random_weights(num_heads, length, length)
            assert_room_for_texts(plot_heads(weights, query_tokens=WORDS[:length]))

    @pytest.mark.parametrize("num_heads", [4, 12])
    def test_wide_or_many_names_beside_many_heads(self, num_heads):
        assert_room_for_texts(plot_heads(random_weights(num_heads, 7, 7), query_tokens=WIDE[:7]))
        assert_room_for_texts(plot_heads(random_weights(num_heads, 22, 22)))

    @pytest.mark.parametrize(
        ("tokens", "lengths"),
        [(WORDS, (1, 2, 16, 24)), (WIDE, (1, 2, 5, 30)), (["a"], (3, 40))],
        ids=["words", "wide", "letters"],
    )
    def test_one_map(self, tokens, lengths):
        for length in lengths:
            weights, names = random_weights(length, length), (tokens * length)[:length]
            assert_room_for_texts(plot_attention(weights, query_tokens=names, title="who"))

    @pytest.mark.parametrize("shape", [(1, 6), (6, 1), (1, 1), (3, 20), (30, 3), (100, 2)])
    def test_maps_that_are_not_square(self, shape):
        assert_room_for_texts(plot_attention(10**6 * random_weights(*shape)))
        keys = WIDE * 8  # far wider than the names beside the rows
        assert_room_for_texts(plot_attention(random_weights(*shape), key_tokens=keys[: shape[1]]))

    @pytest.mark.parametrize(
        "title",
        ["short", "word " * 60, "x" * 300, "two\nlines", "where internatio…ation looks", "你" * 90],
    )
    def test_titles(self, title):
        figure = plot_attention(random_weights(2, 2), title=title)
        assert_room_for_texts(figure)
        shown = "".join(figure.axes[0].get_title().split())
        assert shown == "".join(title.split())
        assert_room_for_texts(plot_heads(random_weights(3, 1, 1), titles=[title, "b", title]))

    @pytest.mark.parametrize(
        ("embed_dim", "num_heads"),
        [(1, 1), (8, 2), (14, 7), (24, 8), (32, 32), (32, 1), (48, 12), (64, 64)],
    )
    def test_head_splits(self, embed_dim, num_heads):
        assert_room_for_texts(plot_head_split(embed_dim, num_heads))

    def test_curves(self):
        x = [2**i for i in range(10)]
        curves = {f"curve {i}": [v**i for v in x] for i in range(5)}
        figure = plot_curves(x, curves, x_label="d_k", y_label="y", title="t", log_y=True)
        assert_room_for_texts(figure)


# --- tokens of every kind -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("cat", "cat"),
        (" the", " the"),
        ("", "''"),
        ("   ", "'   '"),
        ("\t", r"'\t'"),
        ("\n\n", r"'\n\n'"),
        ("\xa0", r"'\xa0'"),
        ("\u200d", r"'\u200d'"),  # joins emoji, shows nothing alone
        ("a\nb", r"a\nb"),
        ("\x00\x1b[31m", r"\x00\x1b[31m"),
        ("a\u202eb", r"a\u202eb"),  # would turn the text around it
        ("\ud800", r"\ud800"),  # half a surrogate pair: no character at all
        ("<b>&amp;", "<b>&amp;"),
        ("$x^2$", "$x^2$"),
        ("$", "$"),
        ("$$", "$$"),
        (r"\frac{1}", r"\frac{1}"),
        ("x" * 14, "x" * 14),
        ("x" * 15, "xxxxxxxx…xxxxx"),
        ("x" * 100_000, "xxxxxxxx…xxxxx"),
        (" " * 1000, "'       …    '"),
        ("e\u0301", "e\u0301"),
        ("مرحبا", "مرحبا"),
        ("שלום", "שלום"),
        ("😀", "😀"),
    ],
)
def test_tokens_are_shown_as_they_are(token, shown):
    assert display_token(token) == shown
    assert display_token(np.array([token, "x" * 14])[0]) == shown or "\x00" in token
    figure = plot_attention([[1.0]], query_tokens=[token], title=token[:20])
    (axes,) = figure.axes
    assert labels(axes.get_xticklabels()) == labels(axes.get_yticklabels()) == [shown]
    figure.draw_without_rendering()
    assert f"{shown} → {shown} 1.00" in figure.alt


def drawn(token):
    """The picture of a token as a row's name: the pixels left of the map."""
    figure = plot_attention([[1.0]], query_tokens=[token], key_tokens=["k"])
    figure.draw_without_rendering()
    (label,) = figure.axes[0].get_yticklabels()
    box = label.get_window_extent()
    pixels = plt.imread(io.BytesIO(figure_png(figure)))[..., 0]
    top = pixels.shape[0] - math.ceil(box.y1)
    return pixels[top : top + math.ceil(box.height), math.floor(box.x0) : math.ceil(box.x1)], label


def figure_png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi)
    return buffer.getvalue()


@cache
def installed_fonts():
    return [font_manager.get_font(path) for path in font_manager.findSystemFonts()]


def installed_fonts_with(character):
    return {f.family_name for f in installed_fonts() if f.get_char_index(ord(character))}


@pytest.mark.parametrize("characters", ["你好世界学习", "日本語テキスト", "한국어"])
def test_a_font_that_has_the_characters_draws_them(characters):
    if not all(map(installed_fonts_with, characters)):
        pytest.skip("no installed font has these characters; Debian: fonts-wqy-microhei")
    pictures = []
    for character in characters:
        picture, label = drawn(character)
        assert label.get_text() == character
        assert installed_fonts_with(character) & set(label.get_fontfamily())
        pictures.append(picture.tobytes())
    assert len(set(pictures)) == len(characters)  # boxes would all look the same


def test_a_font_installed_after_matplotlib_made_its_list(monkeypatch):
    fonts = installed_fonts_with("你")
    if not fonts:
        pytest.skip("no installed font has this character; Debian: fonts-wqy-microhei")
    known = [f for f in font_manager.fontManager.ttflist if f.name not in fonts]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    font_manager.fontManager._findfont_cached.cache_clear()
    figures._font_with.cache_clear()
    (label,) = plot_attention([[1.0]], query_tokens=["你"]).axes[0].get_yticklabels()
    label.get_window_extent()  # a glyph that is missing would be a warning
    assert {f.name for f in font_manager.fontManager.ttflist} & fonts


def test_characters_that_matplotlib_itself_can_draw():
    pictures = [drawn(character)[0].tobytes() for character in "éßΩЖא→😀ب"]
    assert len(set(pictures)) == len(pictures)


def test_arabic_letters_join():
    def width(text):
        return drawn(text)[0].shape[1]

    assert width("مرحبا") < sum(map(width, "مرحبا")) - 5


def test_a_character_that_no_font_has_is_shown_as_its_code(monkeypatch):
    monkeypatch.setattr(figures, "_installed_fonts", tuple)
    figures._font_with.cache_clear()
    try:
        figure = plot_attention([[1.0]], query_tokens=["你a"], title="好")
        (axes,) = figure.axes
        assert labels(axes.get_yticklabels()) == labels(axes.get_xticklabels()) == [r"\u4f60a"]
        assert axes.get_title() == r"\u597d"
        assert "你a" in figure.alt  # words, not pictures: the alt text keeps the character
        assert figure.png().startswith(PNG)
        assert labels(plot_heads([[[1.0]]], titles=["😀你"]).axes[0].title.axes.texts) == ["1.00"]
    finally:
        figures._font_with.cache_clear()


def test_a_broken_font_is_passed_over(monkeypatch, tmp_path):
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    monkeypatch.setattr(figures, "_installed_fonts", lambda: (str(broken), str(tmp_path / "gone")))
    figures._font_with.cache_clear()
    try:
        figure = plot_attention([[1.0]], query_tokens=["你"])
        assert labels(figure.axes[0].get_yticklabels()) == [r"\u4f60"]
    finally:
        figures._font_with.cache_clear()


# --- what a figure refuses ----------------------------------------------------------------------

GOOD = [[0.5, 0.5], [0.2, 0.8]]


def assert_says(call, *parts):
    """A ValueError that starts with the argument's name and holds all the parts."""
    with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        (0.5, ("(L_q, L_k)", "got shape ()")),
        ([0.5, 0.5], ("(L_q, L_k)", "got shape (2,)", "weights[None]")),
        ([GOOD], ("(L_q, L_k)", "got shape (1, 2, 2)", "weights[0]")),
        (torch.rand(2, 2, 3, 3), ("(L_q, L_k)", "got shape (2, 2, 3, 3)", "weights[0, 0]")),
        ([], ("(L_q, L_k)", "got shape (0,)")),
        ([[]], ("at least one cell", "(1, 0)")),
        (torch.rand(0, 3), ("at least one cell", "(0, 3)")),
        ([[0.5, math.nan]], ("at least 0", "nan at [0, 1]", "1 NaN cell in all")),
        ([[0.5, None]], ("numbers", "(L_q, L_k)")),
        ([[math.inf, math.inf]], ("at least 0", "inf at [0, 0]", "2 infinite cells", "softmax?")),
        ([[0.5, -math.inf]], ("-inf at [0, 1]", "infinite", "softmax?")),
        ([[1.5, -0.5]], ("at least 0", "-0.5 at [0, 1]", "1 negative cell", "softmax?")),
        ([["0.5", "0.5"]], ("numbers", "(L_q, L_k)", "got list")),
        ("weights", ("numbers", "got str")),
        (None, ("numbers", "got NoneType")),
        ([[1.0], [0.5, 0.5]], ("numbers", "got list")),
        ([[0.5 + 1j]], ("numbers", "got list")),
        (torch.ones(1, 1, dtype=torch.complex64), ("numbers", "got torch.complex64")),
        (np.array([["a"]]), ("numbers", "got <U1")),
        ([torch.ones(2, requires_grad=True)], ("numbers", "got list")),
        ({"a": 1}, ("numbers", "got dict")),
    ],
)
def test_wrong_weights(weights, parts):
    assert_says(lambda: plot_attention(weights), "weights", *parts)
    assert_says(lambda: require_weights(weights, "(L_q, L_k)"), "weights", *parts)


@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        (GOOD, ("(H, L_q, L_k)", "got shape (2, 2)", "weights[None]")),
        (torch.rand(2, 2, 3, 3), ("(H, L_q, L_k)", "got shape (2, 2, 3, 3)", "weights[0]")),
        (torch.rand(0, 3, 3), ("at least one cell", "(0, 3, 3)")),
        ([[[0.5, math.nan]]], ("nan at [0, 0, 1]",)),
        ([[[1.5, -0.5]]], ("-0.5 at [0, 0, 1]",)),
        ([[["1"]]], ("numbers", "(H, L_q, L_k)")),
    ],
)
def test_wrong_weights_of_several_heads(weights, parts):
    assert_says(lambda: plot_heads(weights), "weights", *parts)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float16, torch.bfloat16])
def test_weights_of_any_number_type(dtype):
    (axes,) = plot_attention(torch.eye(2, dtype=dtype)).axes
    assert axes.images[0].get_array().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("name", ["query_tokens", "key_tokens"])
@pytest.mark.parametrize(
    ("tokens", "parts"),
    [
        ("ab", ("list of strings", "one string", "['ab']")),
        (["a"], ("2 strings", "got 1 for 2", "['a']")),
        (["a", "b", "c"], ("2 strings", "got 3 for 2")),
        ([], ("2 strings", "got 0 for 2")),
        (["a", 5], ("strings", "got 5 of type int")),
        (["a", None], ("strings", "got None of type NoneType")),
        ([["a"], ["b"]], ("strings", "got ['a'] of type list")),
        (torch.arange(2), ("strings", "of type Tensor")),
        (5, ("list of strings", "got int")),
        (True, ("list of strings", "got bool")),
        (b"ab", ("list of strings", "got bytes")),
        ({"a", "b"}, ("list of strings", "got set")),  # in no order
        ({"a": 0, "b": 1}, ("list of strings", "got dict")),
    ],
)
def test_wrong_tokens(name, tokens, parts):
    assert_says(lambda: plot_attention(GOOD, **{name: tokens}), name, *parts)
    assert_says(lambda: plot_heads([GOOD], **{name: tokens}), name, *parts)


def test_wrong_titles():
    assert_says(lambda: plot_attention(GOOD, title=5), "title", "string", "got 5")
    for titles in ("ab", ["a"], ["a", 5], 5):
        assert_says(lambda titles=titles: plot_heads([GOOD, GOOD], titles=titles), "titles")


@pytest.mark.parametrize("tokens", [("a", "b"), iter(["a", "b"]), np.array(["a", "b"])])
def test_tokens_in_any_ordered_form(tokens):
    assert token_labels((2, 2), tokens, None) == (["a", "b"], ["a", "b"])


def test_default_names():
    assert token_labels((2, 3), ["a", "b"], None) == (["a", "b"], ["0", "1", "2"])
    assert token_labels((2, 2), None, ["a", "b"]) == (["0", "1"], ["a", "b"])
    assert token_labels((4, 2, 3), None, None) == (["0", "1"], ["0", "1", "2"])


def test_wrong_splits():
    message = "embed_dim=8 cannot be split into num_heads=3; try 1, 2, 4, 8"
    assert_says(lambda: plot_head_split(8, 3), message)
    assert_says(lambda: plot_head_split(8, 0), "num_heads", "got 0")
    assert_says(lambda: plot_head_split(0, 1), "embed_dim", "got 0")


@pytest.mark.parametrize(
    ("x", "curves", "parts"),
    [
        ([], {"a": []}, ("x", "positive", "got []")),
        ([1, 0], {"a": [1, 2]}, ("x", "positive", "got [1.0, 0.0]")),
        ([1, math.nan], {"a": [1, 2]}, ("x", "positive")),
        ([[1, 2]], {"a": [[1, 2]]}, ("x", "one list")),
        ([1, 2], {}, ("curves", "one to five", "got 0")),
        ([1, 2], {str(i): [1, 2] for i in range(6)}, ("curves", "one to five", "got 6")),
        ([1, 2], {"a": [1, 2, 3]}, ("curves['a']", "each of the 2 x", "got 3")),
        ([1, 2], {"a": [1, math.inf]}, ("curves['a']", "finite", "1 of them finite")),
        ([1, 2], {"a": [1, 0]}, ("curves['a']", "above 0 for log_y", "got 0")),
    ],
)
def test_wrong_curves(x, curves, parts):
    assert_says(lambda: plot_curves(x, curves, x_label="x", y_label="y", log_y=True), *parts)
