"""Pictures: what is drawn against what is computed, and that everybody can see it.

The shapes of a picture are compared with the state of its explorer, the state with torch, and the
SVG with what a stored view may hold.
"""

import itertools
import json
import math
import re
import runpy
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from helpers import ODD_TOKENS, every_state, normal
from matplotlib.colors import to_hex, to_rgb
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention, merge_heads, split_heads
from course_utils.data.animal import HEAD, LAYER, load_animal
from course_utils.heatmaps.colours import HEADS, contrast, head_colour, palette
from course_utils.heatmaps.texts import display_token, two_decimals
from course_utils.pictures.block import block_picture
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.flow import head_flow
from course_utils.pictures.layer import layer_picture
from course_utils.pictures.plane import values_plane
from course_utils.pictures.sentence import LEAST_LINE, LEAST_NUMBER, sentence_lines
from course_utils.pictures.shapes import Area, Box, Dot, Line, Picture, Text, arrow, text_width
from course_utils.pictures.svg import picture_html
from course_utils.sliders import (
    explore_animal,
    explore_average,
    explore_block,
    explore_blocks,
    explore_layer,
    explore_lines,
    explore_mixture,
    explore_query,
)
from course_utils.sliders.blocks import STEPS, WAYS
from course_utils.sliders.mixture import FACTORS

ROOT = Path(__file__).parent.parent
THEMES = ("light", "dark")
PAGE_WIDTH = 848  # pixels of an output at 1280 × 800, with the file browser open
MAX_VIEW = 28_000  # characters; all stops of an explorer are stored with a notebook

TOKENS = ["the", "cat", "sat", "because", "it", "slept"]
IT = TOKENS.index("it")


def lesson_1() -> dict:
    """The names that the cells of lesson 1 make, up to the values."""
    lesson = nbformat.read(ROOT / "notebooks" / "01_single_head_attention.ipynb", as_version=4)
    names = {"torch": torch}
    for cell in lesson.cells:
        if cell.id in ("tokens", "qkv"):
            exec(cell.source, names)
    return names


LESSON = lesson_1()
Q, K, V = (LESSON[name] for name in "QKV")


def of_kind(shapes, kind):
    return [shape for shape in shapes if isinstance(shape, kind)]


def texts(picture):
    return [shape.text for shape in of_kind(picture.shapes, Text)]


# --- colours ------------------------------------------------------------------------------------


def blend(colour: str, opacity: float, ground: str) -> str:
    return to_hex(opacity * np.array(to_rgb(colour)) + (1 - opacity) * np.array(to_rgb(ground)))


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_written_can_be_read(theme):
    colours = palette(theme)
    for text, ground in itertools.product(("ink", "soft"), ("paper", "card")):
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for head in range(8):
        assert contrast(colours[f"on-h{head}"], colours[f"h{head}"]) >= 4.5
    # What is written in ink on a weight of 1, and on a number of a key that counts.
    (weight,) = of_kind(sentence_lines(["a"], 0, [[1.0]], key_tokens=["b"]).shapes[-2:], Box)
    (block, *_) = (box for box in of_kind(flow_of(IT).shapes, Box) if box.outline == "h0")
    for shape, head in itertools.product((weight, block), range(8)):
        ground = blend(colours[f"h{head}"], shape.opacity, colours["paper"])
        assert contrast(colours["ink"], ground) >= 4.5, head


@pytest.mark.parametrize("theme", THEMES)
def test_lines_can_be_seen(theme):
    colours = palette(theme)
    for name, ground in itertools.product(
        ("line", *(f"h{head}" for head in range(8))), ("paper", "card")
    ):
        assert contrast(colours[name], colours[ground]) >= 3, (name, ground)


# How colours look without one of the three kinds of cones (Machado, Oliveira and Fernandes, 2009,
# severity 1), for linear light.
BLIND = {
    "nobody": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colours, who) -> np.ndarray:
    """CIELAB, where distances are about as large as people see them."""
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(BLIND[who]).T, 0, 1)
    t = seen @ TO_XYZ.T / TO_XYZ.sum(1)
    x, y, z = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("who", BLIND)
def test_heads_are_told_apart(theme, who):
    places = lab(HEADS[theme], who)
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert distances[~np.eye(8, dtype=bool)].min() > 12


def test_colours_repeat_beyond_eight_heads():
    assert [head_colour(head) for head in (0, 7, 8, 17)] == ["h0", "h7", "h0", "h1"]


# --- SVG ----------------------------------------------------------------------------------------

ELEMENTS = {"div", "svg", "path", "polygon", "rect", "circle", "text", "title", "table", "caption"}
ELEMENTS |= {"thead", "tbody", "tfoot", "tr", "th", "td", "bdi", "span"}
ATTRIBUTES = {"class", "style", "role", "aria-label", "viewbox", "width", "height", "font-size"}
ATTRIBUTES |= {"text-anchor", "d", "stroke-width", "stroke-opacity", "stroke-dasharray", "rx", "x"}
ATTRIBUTES |= {"pathlength", "points", "fill-opacity", "cx", "cy", "r", "y", "scope", "title"}


class View(HTMLParser):
    """A view, all of whose parts may be stored with a notebook."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        html.encode()
        self.open, self.names, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in ELEMENTS
        for name, value in attrs:
            assert name in ATTRIBUTES
            assert "url(" not in value
            if name == "class":
                assert all(one.startswith("ac") for one in value.split())
        if tag == "svg":
            self.names.append(dict(attrs)["aria-label"])
            assert dict(attrs)["role"] == "img"
        self.open.append(tag)
        if tag == "text":
            self.texts.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "text":
            self.texts[-1] += data


def make_lines(num_heads=1, tokens=None, masked=False):
    size = len(tokens or TOKENS)
    blocked = torch.ones(size, size).triu(1).bool() if masked else torch.zeros(size, size).bool()
    # As if the mask had been forgotten: what is blocked has weight, and still no line.
    weights = (3 * normal(num_heads, size, size)).softmax(-1)
    return explore_lines(
        weights, query_tokens=tokens or TOKENS, blocked=blocked if masked else None
    )


def make_flow(tokens=None):
    tokens = TOKENS if tokens is None else tokens
    size = len(tokens)
    return explore_query(
        normal(size, 4), normal(size, 4, seed=1), normal(size, 2, seed=2), tokens=tokens
    )


def make_mixture(tokens=None):
    tokens = TOKENS if tokens is None else tokens
    size = len(tokens)
    return explore_mixture(
        normal(size, 4), normal(size, 4, seed=1), normal(size, 2, seed=2), tokens=tokens
    )


PICTURES = {
    "animal": explore_animal,
    "lines": make_lines,
    "lines of four heads, masked": lambda: make_lines(4, masked=True),
    "lines of named heads": lambda: explore_lines(
        normal(2, 4, 4).softmax(-1), head_names=["head 0.2", "layer 11, head 10"]
    ),
    "flow": make_flow,
    "flow of lesson 1": lambda: explore_query(Q, K, V, tokens=TOKENS, chosen=IT),
    "mixture": make_mixture,
    "mixture of lesson 1": lambda: explore_mixture(Q, K, V, tokens=TOKENS, chosen=IT),
    "average": lambda: explore_average(normal(2, 2, 3, 3).softmax(-1)),
    "average of four heads": lambda: explore_average(
        normal(1, 4, 4, 4).softmax(-1), tokens=["notwithstanding", "a", "b", "c"]
    ),
    "blocks": explore_blocks,
    "layer": explore_layer,
    "block": explore_block,
}
each_picture = pytest.mark.parametrize("make", PICTURES.values(), ids=PICTURES)


@each_picture
def test_a_view_may_be_stored_and_has_one_size(make):
    explorer, sizes = make(), set()
    for _ in every_state(explorer):
        view = View(explorer.html)
        assert all(repr(explorer).removeprefix("Explorer: ") in name for name in view.names)
        sizes.add(tuple(re.findall(r'viewBox="0 0 (\d+) (\d+)"', explorer.html)))
        assert len(explorer.html) <= MAX_VIEW
    (sizes,) = sizes  # nothing below the explorer moves
    for width, height in sizes:
        assert int(width) <= PAGE_WIDTH
        assert int(height) <= 640 - 70  # two rows of controls


@pytest.mark.parametrize("make", [make_flow, make_mixture, lambda tokens: make_lines(2, tokens)])
@pytest.mark.parametrize("first", range(0, len(ODD_TOKENS), 4))
def test_odd_tokens_are_drawn_not_run(make, first):
    tokens = ODD_TOKENS[first : first + 4]
    explorer = make(tokens=tokens)
    for _ in every_state(explorer):
        shown = View(explorer.html).texts
        assert set(map(display_token, tokens)) <= set(shown)
    explorer.still().draw_without_rendering()


@pytest.mark.parametrize("first", range(0, len(ODD_TOKENS), 3))
def test_odd_tokens_on_blocks(first):
    tokens = ODD_TOKENS[first : first + 3]
    explorer = explore_blocks(tokens, embed_dim=2)
    for _ in every_state(explorer):
        shown = View(explorer.html).texts
        assert set(map(display_token, tokens)) <= set(shown)
    explorer.still().draw_without_rendering()


def test_shapes_as_svg():
    shapes = (
        Line(points=((1, 2), (3, 4.26)), colour="h1", dash=(2, 3), title="a < b"),
        Line(points=((0, 0), (1, 0), (2, 1), (3, 1)), curved=True, motion="draw", wait=3),
        Area(points=((0, 0), (1, 0), (0, 1)), opacity=0.5),
        Box(x=1, y=2, width=3, height=4, fill="card", outline="line", radius=2),
        Dot(x=1, y=2, radius=3, outline="ink"),
        Text(x=-0.01, y=2, text="<i>", bold=True, size=11, anchor="end", colour="soft"),
    )
    html = picture_html(Picture(20, 10, shapes), 'say "so"', least=5)
    assert html == (
        '<div class="ac-pic" style="--least:5px"><svg role="img" aria-label="say &quot;so&quot;" '
        'viewBox="0 0 20 10" width="20" height="10" font-size="13" text-anchor="middle">'
        '<path d="M1 2L3 4.3" stroke-width="1.5" class="ac-l ac-s-h1" stroke-dasharray="2 3">'
        "<title>a &lt; b</title></path>"
        '<path d="M0 0C1 0 2 1 3 1" stroke-width="1.5" pathLength="1" '
        'class="ac-draw ac-wait-3 ac-l ac-s-ink"/>'
        '<polygon points="0,0 1,0 0,1" class="ac-f-ink" fill-opacity="0.5"/>'
        '<rect x="1" y="2" width="3" height="4" rx="2" class="ac-f-card ac-s-line"/>'
        '<circle cx="1" cy="2" r="3" stroke-width="1.5" class="ac-l ac-s-ink"/>'
        '<text x="0" y="2" class="ac-f-soft ac-b" font-size="11" text-anchor="end">&lt;i&gt;</text>'
        "</svg></div>"
    )
    figure = paint_pictures([Picture(20, 10, shapes)], titles=["$a$"], alt="six shapes")
    (axes,) = figure.axes
    assert (len(axes.patches), len(axes.texts), axes.get_title("left")) == (5, 1, "$a$")
    assert figure.alt == "six shapes"


def test_an_arrow_ends_where_it_should():
    line, tip = arrow((0, 0), (30, 40), colour="line", head=10)
    assert tip.points[0] == (30, 40)
    assert line.points[0] == (0, 0)
    assert math.dist((0, 0), line.points[1]) < 50
    assert arrow((5, 5), (5, 5.5)) == []


# --- lines over the sentence --------------------------------------------------------------------


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("make", [explore_animal, lambda: make_lines(3, masked=True)])
def test_lines_are_as_thick_as_the_weights(make, upright):
    for state in every_state(make()):
        picture = sentence_lines(
            state["query_tokens"],
            state["query"],
            state["weights"],
            blocked=state["blocked"],
            upright=upright,
        )
        heads = len(state["weights"])
        looks = state["query_tokens"][state["query"]]
        wanted = sorted(
            (weight, head_colour(head), f"{looks} → {key}: {weight:.4f}")
            for head, weights in enumerate(state["weights"])
            for weight, key, shut in zip(
                weights, state["key_tokens"], state["blocked"], strict=True
            )
            if weight >= LEAST_LINE and not shut
        )
        lines = of_kind(picture.shapes, Line)
        assert len(lines) == len(wanted)
        slope = 13 if heads == 1 else 7
        drawn = sorted(((line.width - 0.75) / slope, line.colour, line.title) for line in lines)
        for (width, *look), (weight, *expected) in zip(drawn, wanted, strict=True):
            assert (width, *look) == (pytest.approx(weight), *expected)
        assert len({line.dash for line in lines}) <= heads

        rows = [
            f"{weight:.2f}" if not shut else "×"
            for weights in state["weights"]
            for weight, shut in zip(weights, state["blocked"], strict=True)
            if shut or weight >= LEAST_NUMBER
        ]
        assert [text for text in texts(picture) if re.fullmatch(r"[\d.]{4}|×", text)] == rows


def test_lines_lead_from_the_query_to_each_key():
    weights = torch.eye(6).tolist()
    for key in range(6):
        across, down = (
            sentence_lines(TOKENS, IT, [weights[key]], upright=upright) for upright in (False, True)
        )
        (line,) = of_kind(across.shapes, Line)
        places = {"it": [], TOKENS[key]: []}
        for text in of_kind(across.shapes, Text):
            if text.text in places:
                places[text.text].append(text.x)
        assert line.points[0][0] == places["it"][0]  # the first is in the row of queries
        assert line.points[-1][0] == places[TOKENS[key]][-1]
        (line,) = of_kind(down.shapes, Line)
        rows = [text.y for text in of_kind(down.shapes, Text) if text.anchor == "start"][:6]
        assert line.points[0][1] == pytest.approx(rows[IT] - 4.5)
        assert line.points[-1][1] == pytest.approx(rows[key] - 4.5)


def test_lines_between_two_sentences():
    weights = normal(2, 3, 5).softmax(-1)
    explorer = explore_lines(weights, query_tokens=list("abc"), key_tokens=list("vwxyz"), query=2)
    for state in every_state(explorer):
        assert state["weights"] == weights[:, state["query"]].tolist()
        shown = View(explorer.html).texts
        assert set("abcvwxyz") <= set(shown)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: explore_lines(torch.ones(2, 2)), "weights must be (H, L_q, L_k)"),
        (lambda: explore_lines(torch.full((1, 2, 2), 1.5)), "weights must be numbers from 0 to 1"),
        (
            lambda: explore_lines(torch.eye(2)[None], query=2),
            "query must be a position from 0 to 1",
        ),
        (lambda: explore_lines(torch.eye(2)[None], query_tokens=["a"]), "query_tokens must be 2"),
        (lambda: explore_lines(torch.eye(2)[None], blocked=[True]), "blocked must be (2, 2)"),
        (lambda: explore_query(Q, K, V, chosen=True), "chosen must be a position from 0 to 5"),
        (lambda: explore_mixture(Q, K, V, chosen=6), "chosen must be a position from 0 to 5"),
        (lambda: explore_mixture(Q, K, Q), "value must be (L, 2), to lie in a plane"),
        (lambda: explore_mixture(Q[None], K[None], V[None]), "query must be (L, d), one head"),
        (lambda: explore_mixture(Q, K, V / 0), "value must be finite numbers"),
        (lambda: explore_mixture(Q, K, V, tokens=["a"]), "tokens must be 6 strings"),
    ],
)
def test_wrong_arguments(call, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        call()


@pytest.mark.parametrize("upright", [False, True])
def test_heads_have_the_names_they_are_given(upright):
    names = ["layer 11, h 10", "<b>", "head 3"]
    explorer = explore_lines(
        normal(3, 4, 4).softmax(-1), query_tokens=list("abcd"), query=1, head_names=names
    )
    assert explorer.state["head_names"] == names
    assert all(f"{name}: " in repr(explorer) for name in names)
    assert "&lt;b&gt;" in explorer.html
    state = explorer.state
    picture = sentence_lines(
        state["query_tokens"],
        state["query"],
        state["weights"],
        head_names=names,
        upright=upright,
    )
    names[2] = "3" if upright else "head 3"  # a narrow column has room for the number alone
    shown = {text.text: text for text in of_kind(picture.shapes, Text)}
    cells = [box for box in of_kind(picture.shapes, Box) if box.title]
    first = min(box.x for box in cells)
    for head, name in enumerate(names):
        width = text_width(name, shown[name].size)
        sample = [box for box in of_kind(picture.shapes, Box) if (box.width, box.height) == (8, 8)]
        if upright:  # above its column of weights, behind its sample
            left = shown[name].x - width / 2
            assert left > sample[head].x + 8
            assert shown[name].x + width / 2 < first + (head + 1) * (picture.width - first) / 3
        else:  # between its sample and its row of weights
            assert sample[head].x + 8 <= shown[name].x - width < shown[name].x < first


def test_a_name_per_head():
    with pytest.raises(ValueError, match=r"^head_names must be 2 strings, one per head; got 1"):
        explore_lines(normal(2, 3, 3).softmax(-1), head_names=["one"])


# --- the sentence of the first picture ----------------------------------------------------------


def encoder() -> dict:
    """The names that lesson 8 makes, up to its encoder with the real weights."""
    lesson = nbformat.read(ROOT / "notebooks" / "08_heads_of_a_real_model.ipynb", as_version=4)
    wanted = ("setup", "attention", "encoder-layer", "encoder", "fill", "fill-all")
    names: dict = {}
    threads = torch.get_num_threads()
    for cell in lesson.cells:
        if cell.id in wanted:
            exec(cell.source, names)
    torch.set_grad_enabled(True)
    torch.set_num_threads(threads)
    torch.set_printoptions(profile="default")
    return names


def test_the_stored_weights_are_those_of_the_real_model():
    names = encoder()
    sentences = load_animal()
    assert [s.text.split()[-1] for s in sentences] == ["tired.", "wide."]
    for sentence in sentences:
        words = names["tokenize"](sentence.text)
        assert words.tokens == [sentence.tokens]
        with torch.no_grad():
            _, maps = names["encoder"](words.ids, words.mask)
        real = maps[LAYER][0, HEAD]  # (query, key)
        torch.testing.assert_close(torch.tensor(sentence.weights), real, rtol=0, atol=1e-4)


def test_what_lesson_1_says_of_it():
    tired, wide = load_animal()
    it, animal, street = (tired.tokens.index(word) for word in ("it", "animal", "street"))
    assert two_decimals(max(tired.weights[it])) == two_decimals(tired.weights[it][animal]) == "0.68"
    assert [two_decimals(wide.weights[it][key]) for key in (animal, street)] == ["0.28", "0.12"]
    explorer = explore_animal()
    assert explorer.state["query"] == it
    assert not explorer.state["wide"]
    explorer.controls["wide"].value = True
    assert explorer.state["weights"] == [wide.weights[it]]
    assert "wide" in View(explorer.html).texts
    assert "tired" not in View(explorer.html).texts


def test_its_file_is_small():
    assert (ROOT / "course_utils" / "data" / "animal.json").stat().st_size < 10_000


# --- one head as a flow -------------------------------------------------------------------------


def test_the_flow_shows_what_torch_computes():
    explorer = explore_query(Q, K, V, tokens=TOKENS, chosen=IT)
    assert explorer.state["query"] == IT
    weights = F.scaled_dot_product_attention(Q, K, torch.eye(6))
    output = F.scaled_dot_product_attention(Q, K, V)
    for state in every_state(explorer):
        i = state["query"]
        shown = View(explorer.html).texts
        scores = (Q[i] @ K.T / 2).tolist()
        assert [text for text in shown if text in TOKENS] == TOKENS
        for number in (*weights[i].tolist(), *output[i].tolist()):
            assert two_decimals(number) in shown
        for score in scores:
            assert f"{score:z.0f}" in shown or f"{score:z.1f}" in shown
        for weight, value in zip(weights[i], V, strict=True):
            assert ", ".join(two_decimals(x) for x in (weight * value).tolist()) in shown
        assert f"sum {1:.2f}" in shown


def flow_of(i):
    weights = F.scaled_dot_product_attention(Q, K, torch.eye(6))
    return head_flow(
        TOKENS,
        TOKENS,
        i,
        Q.tolist(),
        K.tolist(),
        V.tolist(),
        products=(Q[i] @ K.T).tolist(),
        scale=2,
        weights=weights[i].tolist(),
        output=(weights[i] @ V).tolist(),
    )


@pytest.mark.parametrize("i", range(6))
def test_lit_are_the_numbers_of_a_key_that_the_query_asks_for(i):
    blocks = [box for box in of_kind(flow_of(i).shapes, Box) if box.outline]
    lit = sum(box.fill == "h0" for box in blocks)
    against = sum(bool(box.dash) for box in blocks)
    products = Q[i] * K  # (key, feature)
    assert lit == (Q[i] != 0).sum() + (products > 0).sum()
    assert against == (products < 0).sum()


@pytest.mark.parametrize("i", range(6))
def test_the_ways_into_the_new_vector_are_as_thick_as_the_weights(i):
    weights = F.scaled_dot_product_attention(Q, K, torch.eye(6))[i]
    curves = [line for line in of_kind(flow_of(i).shapes, Line) if line.curved]
    to_keys, to_output = curves[:6], curves[6:]
    assert len({line.points[0] for line in to_keys}) == 1
    assert len({line.points[-1] for line in to_output}) == 1
    # The new vector stands in the row of its word.
    assert to_output[0].points[-1][1] == to_keys[0].points[0][1]
    widths = torch.tensor([line.width for line in to_output])
    torch.testing.assert_close((widths - 0.75) / 13, weights)


@pytest.mark.parametrize("size", [(9, 4, 2), (4, 6, 2), (4, 4, 3)])
def test_a_head_that_is_too_large_to_draw_is_shown_as_tables(size):
    tokens, features, values = size
    explorer = explore_query(
        normal(tokens, features), normal(tokens, features, seed=1), normal(tokens, values, seed=2)
    )
    assert "<svg" not in explorer.html
    assert explorer.html.count("<table") == 2
    assert explorer.figure().axes[0].images


# --- the vector moves ---------------------------------------------------------------------------


def test_the_mixture_is_torchs():
    explorer = explore_mixture(Q, K, V, tokens=TOKENS, chosen=IT)
    assert explorer.state["factor"] == 1
    factors = []
    for state in every_state(explorer):
        factors.append(state["factor"])
        louder = F.scaled_dot_product_attention(state["factor"] * Q, K, V)[IT]
        torch.testing.assert_close(torch.tensor(state["output"]), louder)
        weights = torch.tensor(state["weights"])
        torch.testing.assert_close(weights.sum(), torch.tensor(1.0))
        torch.testing.assert_close(torch.tensor(state["shares"]), weights[:, None] * V)
        torch.testing.assert_close(
            torch.tensor(state["scores"]), state["factor"] * (Q[IT] @ K.T) / 2
        )
    assert tuple(factors) == FACTORS


def test_the_vector_walks_from_the_mean_to_the_cat():
    outputs = {
        state["factor"]: torch.tensor(state["output"])
        for state in every_state(explore_mixture(Q, K, V, tokens=TOKENS, chosen=IT))
    }
    cat = V[TOKENS.index("cat")]
    torch.testing.assert_close(outputs[0], V.mean(dim=0))
    assert (outputs[max(FACTORS)] - cat).norm() < 0.01
    away = [(output - cat).norm() for output in outputs.values()]
    assert away == sorted(away, reverse=True)


def test_the_values_of_lesson_1_can_be_told_apart_in_the_plane():
    assert V.shape == (6, 2)
    assert len({tuple(value) for value in V.tolist()}) == 6
    assert (V.norm(dim=-1) > 1).all()
    assert (torch.cdist(V, V.mean(dim=0)[None]) > 0.5).all()


def plane_of(weights, **options):
    return values_plane(TOKENS, V.tolist(), weights, name="it", **options)


def ring(picture):
    (ring,) = [dot for dot in of_kind(picture.shapes, Dot) if "new vector" in dot.title]
    return ring.x, ring.y


@pytest.mark.parametrize("factor", FACTORS)
def test_the_chain_of_shares_leads_from_the_origin_to_the_output(factor):
    weights = (factor * (Q[IT] @ K.T) / 2).softmax(0)
    picture = plane_of(weights.tolist())
    origin = ring(plane_of([0] * 6))
    tips = {i: ring(plane_of(torch.eye(6)[i].tolist())) for i in range(6)}
    # The sheet is the plane, moved and scaled: two values fix where the output must be.
    unit = (tips[1][0] - origin[0]) / V[1, 0].item()
    output = (weights @ V).tolist()
    wanted = origin[0] + unit * output[0], origin[1] - unit * output[1]
    assert ring(picture) == pytest.approx(wanted)
    chain = [line for line in of_kind(picture.shapes, Line) if "of its value" in line.title]
    assert chain[0].points[0] == pytest.approx(origin)
    assert math.dist(chain[-1].points[1], wanted) < 7  # pieces below a pixel are left out
    for before, after in itertools.pairwise(chain):
        assert math.dist(before.points[1], after.points[0]) < 7
    for line in chain:
        i = TOKENS.index(line.title.partition(":")[0])
        piece = unit * weights[i].item() * V[i].norm().item()
        assert math.dist(*line.points) == pytest.approx(piece)
    for i, (x, y) in tips.items():
        assert (x, y) == pytest.approx(
            (origin[0] + unit * V[i, 0].item(), origin[1] - unit * V[i, 1].item())
        )


def test_no_output_leaves_the_ground_between_the_values():
    picture = plane_of([1 / 6] * 6)
    (ground,) = [area for area in of_kind(picture.shapes, Area) if area.colour == "card"]
    corners = list(itertools.pairwise((*ground.points, ground.points[0])))
    for weights in normal(50, 6).mul(3).softmax(-1).tolist():
        x, y = ring(plane_of(weights))
        sides = [(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) for a, b in corners]
        assert min(sides) > 0 or max(sides) < 0
    assert len(ground.points) == 6


@pytest.mark.parametrize(
    "values", [[[0, 0]] * 2, [[1, 1], [2, 2]], [[1e6, 0], [0, 1e-6]], [[-1, -1], [-3, -2]]]
)
def test_odd_values_are_drawn(values):
    picture = values_plane(["a", "b"], values, [0.5, 0.5], name="a", walk=values)
    for line in of_kind(picture.shapes, Line):
        for x, y in line.points:
            assert -1 <= x <= picture.width + 1
            assert -1 <= y <= picture.height + 1
    assert len(picture.shapes) < 100


# --- the split moves ----------------------------------------------------------------------------

LABELS = torch.arange(24.0).view(1, 3, 8)  # (N, L, D): block i is feature i % 8 of token i // 8


def go_to(explorer, **stops):
    for name, value in stops.items():
        explorer.controls[name].value = value
    return explorer.state


@pytest.mark.parametrize("num_heads", [1, 2, 4, 8])
def test_blocks_stand_where_torch_puts_the_numbers(num_heads):
    q, heads = LABELS[0], split_heads(LABELS, num_heads)  # (L, D), (1, H, L, d_h)
    length, head_dim = 3, 8 // num_heads
    after = {
        "right": heads[0],
        "view only": q.view(num_heads, length, head_dim),
        "interleaved": q.view(length, head_dim, num_heads).permute(2, 0, 1),
        "transpose too early": q.T.reshape(num_heads, length, head_dim),
    }
    explorer = explore_blocks()
    for way, wanted in after.items():
        for step in ("transpose", "attend"):
            state = go_to(explorer, num_heads=num_heads, way=way, step=step)
            assert state["cards"] == wanted.tolist()
            assert state["shape"] == f"(H, L, d_h) = {tuple(wanted.shape)}"
            rows = torch.arange(3)[:, None].expand(wanted.shape)
            away = wanted[wanted // 8 != rows].int().tolist()
            assert state["strangers"] == away
        state = go_to(explorer, step="merge")
        assert state["cards"] == merge_heads(wanted[None]).tolist()
        is_right = torch.equal(wanted, heads[0])
        assert state["fact"].startswith("✓ " if is_right else "✗ ")
    state = go_to(explorer, way="right", step="view")
    assert state["cards"] == q.view(length, num_heads, head_dim).tolist()


def test_every_step_of_every_way_holds_every_number_once():
    for state in every_state(explore_blocks()):
        blocks = [block for card in state["cards"] for row in card for block in row]
        assert sorted(blocks) == list(range(24))


def boxes_of(picture):
    """Texts of the blocks, above and below, with their boxes."""
    texts = [
        t for t in of_kind(picture.shapes, Text) if re.fullmatch(r"(the|cat|sat)′? \d", t.text)
    ]
    places = {(box.x, box.y): box for box in of_kind(picture.shapes, Box) if box.radius == 5}
    assert len(texts) == 48
    found = [(text, places[text.x - 24.5, text.y - 16.5]) for text in texts]
    return found[:24], found[24:]


def test_blocks_keep_colour_and_label_and_slide_from_where_they_were():
    explorer = explore_blocks()
    for state in every_state(explorer):
        head_dim = 8 // state["num_heads"]
        picture = explorer._view.__self__.picture(state)
        above, below = boxes_of(picture)
        was = {text.text.replace("′", ""): box for text, box in above}
        for text, box in below:
            feature = int(text.text[-1])
            if state["step"] != "W_O":
                assert box.outline == head_colour(feature // head_dim) or box.dash
            before = was[text.text.replace("′", "")]
            assert text.shift == box.shift
            if state["step"] != "W_O":
                assert (box.x + box.shift[0], box.y + box.shift[1]) == (before.x, before.y)
        dashed = sum(bool(box.dash) for box in of_kind(picture.shapes, Box))
        assert dashed >= len(state["strangers"])
        assert (dashed == 0) == (state["strangers"] == []) or state["step"] == "W_O"


def test_only_interleaved_heads_keep_every_token_whole():
    explorer = explore_blocks()
    strangers = {
        way: len(go_to(explorer, num_heads=2, step="transpose", way=way)["strangers"])
        for way in WAYS
    }
    assert [bool(n) for n in strangers.values()] == [False, True, False, True]
    assert strangers["view only"] == 16
    assert "16 of 24 numbers" in explorer_fact(explorer, way="view only")
    assert tuple(explorer.controls["step"].options) == tuple((step, step) for step in STEPS)


def explorer_fact(explorer, **stops):
    return go_to(explorer, **stops)["fact"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: explore_blocks(["a"] * 4), "tokens must be 1 to 3, to be drawn; got 4"),
        (lambda: explore_blocks([]), "tokens must be 1 to 3, to be drawn; got 0"),
        (lambda: explore_blocks("abc"), "tokens must be a list of strings"),
        (lambda: explore_blocks(3), "tokens must be a list of strings"),
        (lambda: explore_blocks(embed_dim=9), "embed_dim must be at most 8, to be drawn; got 9"),
        (lambda: explore_blocks(num_heads=3), "embed_dim=8 cannot be split into num_heads=3"),
    ],
)
def test_wrong_blocks(call, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        call()


# --- the layer to scale -------------------------------------------------------------------------


def test_shapes_of_the_layer_are_torchs():
    for state in every_state(explore_layer(12, seq_len=5)):
        h = state["num_heads"]
        layer, x = MultiHeadAttention(12, h), torch.zeros(1, 5, 12)
        output, weights = layer(x)
        shapes = {name: tuple(shape) for name, shape in state["shapes"].items()}
        assert shapes["X"] == tuple(x.shape[1:])
        for name in "QKV":
            assert shapes[f"{name}, in heads"] == tuple(split_heads(layer.q_proj(x), h).shape[1:])
        assert shapes["weights"] == tuple(weights.shape[1:])
        assert shapes["W_O"] == tuple(layer.out_proj.weight.shape)
        assert shapes["weights · V, merged"] == shapes["output"] == tuple(output.shape[1:])
        assert state["stored_weights"] == weights.numel()
        assert state["head_dim"] == 12 // h


@pytest.mark.parametrize("h", [1, 2, 4, 8, 16])
def test_boxes_of_the_layer_are_to_scale(h):
    picture = layer_picture(16, 6, h)
    sizes = {}
    for box in of_kind(picture.shapes, Box):
        if box.outline:
            sizes.setdefault((box.width, box.height), []).append(box.outline)
    feature, token = 11, 8
    of_head = (16 // h * feature, 6 * token)
    block = (16 * feature, 16 // h * feature)
    heads = [head_colour(head) for head in range(h)]
    assert sizes.pop((6 * token, 6 * token)) == heads  # one map per head
    assert sizes.pop(block) == heads  # the rows of W_O
    whole = sizes.pop((16 * feature, 6 * token))
    # Q, K, V and what is merged: with one head these are whole tensors, as X and the output are.
    assert (whole + sizes.pop(of_head, [])).count("line") == 2
    assert sorted({*whole} - {"line"}) == (["h0"] if h == 1 else [])
    assert sizes == {}
    ways = [line for line in of_kind(picture.shapes, Line) if line.curved]
    assert [line.colour for line in ways] == [colour for colour in heads for _ in range(4)]
    for box in of_kind(picture.shapes, Box):
        assert box.x >= 0
        assert box.x + box.width <= picture.width
        assert box.y + box.height <= picture.height


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: explore_layer(17), "embed_dim must be at most 16, to be drawn; got 17"),
        (lambda: explore_layer(seq_len=7), "seq_len must be at most 6, to be drawn; got 7"),
        (lambda: explore_layer(8, num_heads=3), "embed_dim=8 cannot be split into num_heads=3"),
        (lambda: explore_layer(0), "embed_dim must be a whole number of at least 1"),
    ],
)
def test_wrong_layers(call, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        call()


# --- the block around the attention -------------------------------------------------------------


def test_the_block_says_what_the_layer_of_lesson_8_does():
    lesson = nbformat.read(ROOT / "notebooks" / "08_heads_of_a_real_model.ipynb", as_version=4)
    (layer,) = [cell.source for cell in lesson.cells if cell.id == "encoder-layer"]
    explorer = explore_block(384, num_heads=12, seq_len=5)
    names = encoder()
    block, x = names["encoder"].layers[0], torch.zeros(1, 5, 384)
    with torch.no_grad():
        wide = names["F"].gelu(block.widen(x))
        output, _ = block(x, torch.ones(1, 5, dtype=torch.bool))
    for state in every_state(explorer):
        assert state["code"] in layer
        wanted = wide if "widened" in state["part"] else output
        assert tuple(state["sizes"][state["step"]]) == tuple(wanted.shape[1:])
        assert state["code"] in View(explorer.html).texts


@pytest.mark.parametrize("step", range(8))
def test_what_runs_in_the_block_has_a_colour_and_what_is_to_come_is_faint(step):
    picture = block_picture(step, embed_dim=8, num_heads=1, seq_len=2)
    parts = [box for box in of_kind(picture.shapes, Box) if box.radius]
    runs = [box.outline for box in parts]  # attention, MLP, and both LayerNorms
    faint = [step < own for own in (1, 4, 3, 7)]
    assert [outline == "grid" for outline in runs] == faint
    assert [outline == "h0" for outline in runs] == [step in own for own in ({1}, {4, 5}, {3}, {7})]
    plus = [dot.outline for dot in of_kind(picture.shapes, Dot)]
    assert [outline == "h0" for outline in plus] == [step == 2, step == 6]
    for box in parts:
        assert 0 <= box.x < box.x + box.width <= picture.width


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: explore_block(8, num_heads=3), "embed_dim=8 cannot be split into num_heads=3"),
        (lambda: explore_block(32, num_heads=32), "num_heads must be at most 16, to be drawn"),
        (lambda: explore_block(seq_len=0), "seq_len must be a whole number of at least 1"),
    ],
)
def test_wrong_blocks_around_the_attention(call, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        call()


# --- on paper -----------------------------------------------------------------------------------


@each_picture
def test_still_figures_have_the_look_of_the_view(make):
    explorer = make()
    figure, still = explorer.figure(), explorer.still()
    assert figure.alt == repr(explorer).removeprefix("Explorer: ")
    assert len(figure.axes) == 1
    assert len(still.axes) >= 2  # several stops
    shown = set(View(explorer.html).texts)
    assert {text.get_text() for text in figure.axes[0].texts} <= shown
    assert all(axes.get_title("left") for axes in still.axes)
    assert still.alt.count(";") >= len(still.axes) - 1
    json.dumps(explorer.state)


def test_the_picture_in_the_readme_is_what_its_tool_draws():
    tool = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "moving.py"))
    drawn = tool["moving"]()
    assert tool["FILE"].read_text(encoding="utf-8") == drawn, "python tools/moving.py"
    assert drawn.count('<g class="slide"') == 3
    assert not re.search("<script|href", drawn)  # an image, and nothing else
