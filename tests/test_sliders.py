"""Every explorer without a browser: controls, state, the HTML that is shown, and the still picture.

What stands in the HTML is parsed and compared with ``state``, and ``state`` with torch.
"""

import base64
import copy
import io
import json
import math
import random
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from ipywidgets import Checkbox, SelectionSlider
from ipywidgets.widgets import widget
from PIL import Image
from torch import nn
from torch.nn import functional as F

from course_utils.arguments import divisors
from course_utils.attention import MultiHeadAttention
from course_utils.heatmaps.colours import ramp, text_colour
from course_utils.heatmaps.texts import display_token, visible_token
from course_utils.sliders import (
    Explorer,
    explore_animal,
    explore_heads,
    explore_lines,
    explore_masks,
    explore_mixture,
    explore_query,
    explore_scale,
    explore_split,
    head_count_slider,
)
from course_utils.sliders.masks import MASKS
from course_utils.sliders.stills import head_counts_of_still
from course_utils.sliders.style import style_sheet
from course_utils.sliders.tables import heat_tables

ODD_TOKENS = [
    "<script>alert(1)</script>",
    "\"quoted\" and 'so'",
    "a&b",
    "&lt;",
    "مرحبا",
    "你好",
    "",
    "   ",
    "x" * 300,
    "\x00\x1b\u202e",
    "\ud800",  # half a surrogate pair, which cannot be sent to a browser
    "</td></table>",
]
ALLOWED = {"div", "table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
ALLOWED |= {"bdi", "span", "code", "p", "figure", "figcaption", "b", "img"}
ALLOWED |= {"svg", "path", "polygon", "circle", "rect", "text", "title"}


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def torch_layer(d, h, *, seed=0, **options):
    """A torch layer whose biases are not zero, so that they count."""
    layer = nn.MultiheadAttention(d, h, batch_first=True, dtype=torch.float64, **options).eval()
    with torch.no_grad():
        for i, parameter in enumerate(layer.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=seed + i) / d**0.5)
    return layer


def make_query(**options):
    return explore_query(normal(4, 6), normal(4, 6, seed=1), normal(4, 3, seed=2), **options)


LAYERS = {
    "torch": torch_layer(6, 3),
    "torch, with dropout": torch_layer(6, 3, dropout=0.1),
    "ours, while training": MultiHeadAttention(6, 3, dropout=0.2).double(),
}


def make_heads(layer="torch", **options):
    return explore_heads(LAYERS[layer], normal(4, 5, 6, seed=9), **options)


def make_masks(layer="torch", **options):
    return explore_masks(LAYERS[layer], normal(1, 4, 6, seed=9), **options)


MAKERS = {
    "query": make_query,
    "flow": lambda: explore_query(normal(4, 4), normal(4, 4, seed=1), normal(4, 2, seed=2)),
    "mixture": lambda: explore_mixture(normal(4, 4), normal(4, 4, seed=1), normal(4, 2, seed=2)),
    "lines": lambda: explore_lines(normal(2, 4, 4).softmax(-1)),
    "animal": explore_animal,
    "masks": make_masks,
    "masks of our layer": lambda: make_masks("ours, while training"),
    "scale": lambda: explore_scale(head_dims=(1, 4, 64), num_tokens=3),
    "split": lambda: explore_split(12, num_heads=4),
    "heads": make_heads,
    "heads with dropout": lambda: make_heads("torch, with dropout", dropout=0.3),
    "heads of our layer": lambda: make_heads("ours, while training", dropout=0.3),
}
each_explorer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


class Page(HTMLParser):
    """The tables of a view: caption, head and rows of texts, and the attributes of each cell."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tables, self.tags, self.alerts, self.open = [], [], [], []
        html.encode()  # what cannot be encoded never reaches the browser
        self.feed(html)
        self.close()
        assert self.open == []
        assert set(self.tags) <= ALLOWED

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "img":  # which has no end
            self.open.append(tag)
        if tag == "table":
            self.tables.append({"caption": "", "rows": [], "cells": [], "titles": []})
        elif tag == "tr":
            self.tables[-1]["rows"].append([])
            self.tables[-1]["cells"].append([])
        elif tag in ("td", "th"):
            self.tables[-1]["rows"][-1].append("")
            self.tables[-1]["cells"][-1].append(dict(attrs))
        elif tag == "bdi" and "figure" not in self.open:
            self.tables[-1]["titles"].append(dict(attrs)["title"])
        elif dict(attrs).get("role") == "alert":
            self.alerts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.tables[-1]["caption"] += data
        elif {"td", "th"} & set(self.open):
            self.tables[-1]["rows"][-1][-1] += data
        elif self.alerts:
            self.alerts[-1] += data


def page(explorer):
    return Page(explorer.html)


def body(table):
    """The numbers of a table, without its head and the names of its rows."""
    return [[cell.strip() for cell in row[1:]] for row in table["rows"][1:]]


def heatmap_tables(explorer):
    return [t for t in page(explorer).tables if t["rows"][0][0] == "query ↓ key →"]


def positions(control):
    """All indices of a slider, or both states of a switch, first what it stands at now."""
    if isinstance(control, SelectionSlider):
        return range(len(control.options))
    return (control.value, not control.value)


def put(control, position):
    if isinstance(control, SelectionSlider):
        control.index = position
    else:
        control.value = position


def every_state(explorer, names=None):
    """Move the controls through all their combinations; yield after each move."""
    names = list(explorer.controls) if names is None else names
    if not names:
        yield explorer.state
        return
    control = explorer.controls[names[0]]
    for position in positions(control):
        put(control, position)
        yield from every_state(explorer, names[1:])


def two(numbers):
    return [f"{x:z.2f}" for x in numbers]


def vector(numbers):
    return f"[{', '.join(two(numbers))}]"


def assert_close(ours, theirs):
    torch.testing.assert_close(
        torch.as_tensor(ours, dtype=torch.float64), theirs, rtol=0, atol=1e-12
    )


# --- the query explorer -------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [None, ["it", "cat", "mat", "the"]], ids=["positions", "words"])
def test_query_explorer(tokens):
    query, key, value = normal(4, 6), normal(4, 6, seed=1), normal(4, 3, seed=2)
    explorer = explore_query(query, key, value, tokens=tokens)
    names = tokens or list("0123")
    expected_output = F.scaled_dot_product_attention(query, key, value)
    expected_weights = F.scaled_dot_product_attention(query, key, torch.eye(4).double())
    options = explorer.controls["query"].options
    assert list(options) == [(f"{i}: {name}", i) for i, name in enumerate(names)]
    seen = []
    for state in every_state(explorer):
        i = state["query"]
        seen.append(i)
        assert_close(state["scores"], torch.einsum("d,kd->k", query[i], key))
        assert_close(state["weights"], expected_weights[i])
        assert_close(state["output"], expected_output[i])
        assert_close(state["values"], value)

        looks, mixes = page(explorer).tables
        assert looks["caption"] == f"{names[i]} looks around"
        columns = [state["scores"], [s / 6**0.5 for s in state["scores"]], state["weights"]]
        rows = [list(row) for row in zip(*map(two, columns), strict=True)]
        assert body(looks) == [*rows, ["", "", "1.00"]]
        parts = torch.tensor(state["weights"])[:, None] * value
        rows = [[vector(v), vector(part)] for v, part in zip(value, parts, strict=True)]
        assert body(mixes) == [*rows, ["", vector(state["output"])]]
        for table in (looks, mixes):
            assert [row[0] for row in table["rows"][1:]] == [*names, "sum"]

        (axes,) = explorer.figure().axes
        assert axes.images[0].get_array().tolist() == [state["weights"]]
        assert axes.get_title() == f"where {names[i]} looks"
        assert [label.get_text() for label in axes.get_yticklabels()] == [names[i]]
        assert [label.get_text() for label in axes.get_xticklabels()] == names
        assert f"query {names[i]} takes {names[0]} {state['weights'][0]:.2f}" in repr(explorer)
        assert repr(explorer).endswith(f"output {vector(state['output'])}")
    assert seen == [0, 1, 2, 3]


def test_no_number_is_minus_nothing():
    nearly = torch.tensor([[-1e-4]])
    explorer = explore_query(nearly, torch.ones(1, 1), nearly)
    assert "-0.00" not in explorer.html
    assert "-0.00" not in repr(explorer)


# --- the scale explorer -------------------------------------------------------------------------


def test_scale_explorer():
    explorer = explore_scale(head_dims=(1, 4, 16), num_tokens=5)
    assert list(explorer.controls["head_dim"].options) == [1, 4, 16]
    states = {}
    for state in every_state(explorer):
        states[state["head_dim"], state["scaled"]] = state
        scores = torch.tensor(state["scores"][0], dtype=torch.float64)
        weights = scores.softmax(-1)
        assert_close(state["weights"][0], weights)
        bits = torch.distributions.Categorical(probs=weights).entropy() / math.log(2)
        assert_close(state["entropy"], bits)
        for row, norm in zip(scores, state["gradient_norm"], strict=True):
            jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
            assert_close(norm, torch.linalg.matrix_norm(jacobian))

        score_table, weight_table, softness = page(explorer).tables
        assert body(score_table) == [[f"{s:z.1f}" for s in row] for row in scores.tolist()]
        assert score_table["caption"] == "scores, q·k" + " / √d_k" * state["scaled"]
        assert body(weight_table) == [two(row) for row in weights.tolist()]
        pairs = zip(state["entropy"], state["gradient_norm"], strict=True)
        means = [f"{state['mean_entropy']:.2f}", f"{state['mean_gradient_norm']:.3f}"]
        assert body(softness) == [*([f"{e:z.2f}", f"{g:.3f}"] for e, g in pairs), means]

        axes = explorer.figure().axes[0]
        assert axes.images[0].get_array().tolist() == state["weights"][0]
        assert axes.get_title() == (
            f"d_k = {state['head_dim']}, {'scaled' if state['scaled'] else 'not scaled'}"
        )
        assert f"mean entropy {state['mean_entropy']:.2f} bits" in repr(explorer)
    assert len(states) == 6
    for d in (1, 4, 16):
        plain, scaled = (torch.tensor(states[d, s]["scores"]) for s in (False, True))
        assert_close(plain / math.sqrt(d), scaled.double())


def test_the_scale_keeps_softmax_soft():
    means = {True: [], False: []}
    norms = {True: [], False: []}
    explorer = explore_scale()
    for state in every_state(explorer):
        means[state["scaled"]].append(state["mean_entropy"])
        norms[state["scaled"]].append(state["mean_gradient_norm"])
    assert len(means[True]) == 10
    assert max(means[True]) - min(means[True]) < 0.25
    assert means[False] == sorted(means[False], reverse=True)
    assert means[False][-1] < 0.3 < 1.5 < means[True][-1] < math.log2(6)
    assert norms[False][-1] < 0.1 < 0.25 < norms[True][-1]


def test_seeds_choose_the_numbers():
    first, again, other = (explore_scale(seed=seed).state for seed in (3, 3, 4))
    assert first == again
    assert first["weights"] != other["weights"]


# --- the split explorer -------------------------------------------------------------------------


@pytest.mark.parametrize("embed_dim", [1, 7, 8, 24])
def test_head_count_slider_offers_divisors_only(embed_dim):
    slider = head_count_slider(embed_dim)
    assert isinstance(slider, SelectionSlider)
    assert list(slider.options) == [h for h in range(1, embed_dim + 1) if embed_dim % h == 0]
    assert slider.value == 1
    for value in slider.options:
        assert head_count_slider(embed_dim, value=value).value == value


def test_split_explorer():
    explorer = explore_split(12, batch_size=5, seq_len=7)
    x = torch.zeros(5, 7, 12)
    seen = []
    for h in divisors(12):
        explorer.controls["num_heads"].value = h
        state, width = explorer.state, 12 // h
        seen.append(state["num_heads"])
        heads = x.view(5, 7, h, width)
        shapes = [tuple(t.shape) for t in (x, x, heads, heads.transpose(1, 2))]
        assert list(state["shapes"].values()) == shapes
        assert state["head_dim"] == width
        assert torch.tensor(state["features"]).tolist() == torch.arange(12).view(h, width).tolist()

        strip, steps = page(explorer).tables
        assert strip["rows"][0] == ["head", *map(str, range(h))]
        assert [cell["colspan"] for cell in strip["cells"][0][1:]] == [str(width)] * h
        assert strip["rows"][1] == ["feature", *map(str, range(12))]
        tints = [cell["class"] for cell in strip["cells"][1][1:]]
        assert tints == [f"ac-h{feature // width % 2}" for feature in range(12)]
        assert strip["caption"] == f"one token: D = 12, H = {h}, d_h = {width}"
        assert [row[-1] for row in steps["rows"][1:]] == list(map(str, shapes))

        (axes,) = explorer.figure().axes
        assert (len(axes.patches), len(axes.lines)) == (12, h)
    assert seen == [1, 2, 3, 4, 6, 12]


@pytest.mark.parametrize("start", [1, 2, 4, 8])
def test_any_number_of_heads_can_be_tried(start):
    explorer = explore_split(8, num_heads=start)
    slider, switch = explorer.controls["num_heads"], explorer.controls["any_number"]
    regular = explorer.state
    switch.value = True
    assert list(slider.options) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert slider.value == start  # opening the gate does not move the slider
    assert explorer.state == {**regular, "any_number": True}
    for h in range(1, 9):
        slider.value = h
        if 8 % h == 0:
            assert explorer.state["head_dim"] == 8 // h
            assert page(explorer).alerts == []
            continue
        message = f"embed_dim=8 cannot be split into num_heads={h}; try 1, 2, 4, 8"
        assert explorer.state == {"num_heads": h, "any_number": True, "error": message}
        assert page(explorer).alerts == [f"⚠ {message}"]
        assert page(explorer).tables == []
        assert repr(explorer) == f"Explorer: {message}"
        assert "image/png" not in explorer._repr_mimebundle_()[0]
        with pytest.raises(ValueError, match=re.escape(message)):
            explorer.figure()
        switch.value = False  # back to the next divisor below
        assert list(slider.options) == [1, 2, 4, 8]
        assert slider.value == max(d for d in divisors(8) if d < h)
        assert explorer.state["head_dim"] == 8 // slider.value
        assert page(explorer).alerts == []
        switch.value = True


def test_an_error_is_text_not_html():
    def compute(**values):
        raise ValueError("<b>bold</b> & <script>alert(1)</script>")

    explorer = Explorer(
        {"x": Checkbox()}, compute=compute, view=None, draw=None, describe=lambda state: ""
    )
    assert page(explorer).alerts == ["⚠ <b>bold</b> & <script>alert(1)</script>"]
    assert page(explorer).tags == ["p"]


# --- the heads explorer -------------------------------------------------------------------------


def torch_answer(layer, x, state, *, dropout=0.0, seed=0):
    """What torch's own layer says with the same weights, cut as the controls ask for."""
    cut = nn.MultiheadAttention(
        layer.embed_dim, state["num_heads"], dropout=dropout, batch_first=True, dtype=x.dtype
    )
    cut.load_state_dict(layer.state_dict())
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        return cut.train(state["training"])(x, x, x, average_attn_weights=state["averaged"])


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize(
    "options", [{}, {"dropout": 0}, {"dropout": 0.4, "seed": 5}], ids=["plain", "0", "0.4"]
)
def test_heads_explorer(batch_size, options):
    layer, x = torch_layer(6, 3), normal(batch_size, 5, 6, seed=9)
    tokens = ["the", "cat", "sat", "on", "it"]
    explorer = explore_heads(layer, x, tokens=tokens, **options)
    switches = ["averaged", "training"] * ("dropout" in options)
    assert list(explorer.controls) == ["num_heads", *["sample"] * (batch_size > 1), *switches]
    assert list(explorer.controls["num_heads"].options) == [1, 2, 3, 6]
    assert explorer.state["num_heads"] == 3  # the layer's own
    assert not any(c.value for n, c in explorer.controls.items() if n != "num_heads")

    seen = set()
    for state in every_state(explorer):
        h, sample = state["num_heads"], state["sample"]
        seen.add((h, sample, state["averaged"], state["training"]))
        output, weights = torch_answer(layer, x, state, **options)
        maps = weights[sample, None] if state["averaged"] else weights[sample]
        assert_close(state["weights"], maps)
        assert state["weights_shape"] == tuple(weights.shape)
        assert state["output_shape"] == tuple(output.shape) == (batch_size, 5, 6)
        assert state["head_dim"] == 6 // h
        assert state["parameters"] == sum(p.numel() for p in layer.parameters()) == 4 * (36 + 6)
        assert state["stored_weights"] == batch_size * h * 25
        low, high = weights.sum(-1).min(), weights.sum(-1).max()
        assert_close(state["row_sums"], torch.stack([low, high]))
        assert_shows_heads(explorer, tokens)
        if sample == 0 and h in (1, 3):
            assert_draws_heads(explorer)
    assert len(seen) == 4 * batch_size * 2 ** len(switches)


def test_dropout_is_the_same_at_every_visit():
    explorer = explore_heads(torch_layer(6, 3), normal(1, 5, 6), dropout=0.5)
    explorer.controls["training"].value = True
    seen = []
    for num_heads in (2, 6, 2):  # the first visit to a head count builds its layer
        explorer.controls["num_heads"].value = num_heads
        seen.append(explorer.state["weights"])
    assert seen[0] == seen[2]


def assert_shows_heads(explorer, tokens):
    """The view and the figure show what the state holds."""
    state, h = explorer.state, explorer.state["num_heads"]
    titles = (
        [f"mean of {h} head{'s' * (h > 1)}"]
        if state["averaged"]
        else [f"head {i}" for i in range(h)]
    )
    tables = heatmap_tables(explorer)
    assert [table["caption"] for table in tables] == titles
    for table, weights in zip(tables, state["weights"], strict=True):
        assert table["rows"][0][1:] == [row[0] for row in table["rows"][1:]] == tokens
        assert body(table) == [two(row) for row in weights]
        for cells, row, query in zip(table["cells"][1:], weights, tokens, strict=True):
            for cell, weight, key in zip(cells[1:], row, tokens, strict=True):
                assert cell["class"] == f"ac-w{min(100, round(100 * float(f'{weight:.2f}')))}"
                assert cell["title"] == f"{query} → {key}: {weight:.4f}"

    facts = {row[0]: row[1] for row in page(explorer).tables[0]["rows"]}
    n, length, d = state["output_shape"]
    low, high = state["row_sums"]
    assert list(facts.values()) == [
        f"{d} / {h} = {state['head_dim']}",
        str(state["output_shape"]),
        str(state["weights_shape"]),
        f"{state['parameters']:,}",
        f"{n} · {h} · {length}² = {state['stored_weights']:,}",
        f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}",
    ]

    assert f"{h} head{'s' * (h > 1)} of {state['head_dim']}" in repr(explorer)
    assert ("train mode" in repr(explorer)) == state["training"]


def assert_draws_heads(explorer):
    maps = [axes for axes in explorer.figure().axes if axes.images]
    assert [axes.get_title() for axes in maps] == [t["caption"] for t in heatmap_tables(explorer)]
    assert [axes.images[0].get_array().tolist() for axes in maps] == explorer.state["weights"]


def test_a_cell_is_rounded_like_every_other_number():
    value = 0.005  # 0.005 * 100 is 0.5, and 0.5 rounds to 0; but 0.005 prints as 0.01
    (html,) = heat_tables([[[value, 1 - value]] * 2], "ab", "ab", ["head 0"])
    (table,) = Page(html).tables
    assert body(table) == [["0.01", "0.99"]] * 2
    assert [cell["class"] for cell in table["cells"][1][1:]] == ["ac-w1", "ac-w99"]


def test_very_many_cells_are_small_maps_with_their_largest_weight_in_words():
    explorer = explore_heads(torch_layer(8, 1), normal(1, 14, 8), tokens=["<i>", *"bcdefghijklmn"])
    for h in (2, 4, 8):
        explorer.controls["num_heads"].value = h
        weights = torch.tensor(explorer.state["weights"])  # (H, L, L)
        titles = [
            cell.get("title")
            for t in heatmap_tables(explorer)
            for row in t["cells"][1:]
            for cell in row[1:]
        ]
        html = explorer.html
        pictures = re.findall(r'alt="map of head (\d+)" src="data:image/png;base64,([^"]+)"', html)
        if h * 14 * 14 <= 1100:
            assert len(titles) == h * 14 * 14
            assert all(titles)
            assert not pictures
            continue
        assert not titles
        assert f"{h * 14 * 14:,} weights" in html
        assert [int(head) for head, _ in pictures] == list(range(h))
        colours = {back: level for level, (back, _) in enumerate(ramp(101))}
        for own, (_, png) in zip(weights, pictures, strict=True):
            pixels = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
            shown = [
                [
                    colours["#{:02x}{:02x}{:02x}".format(*pixels.getpixel((key, query)))]
                    for key in range(14)
                ]
                for query in range(14)
            ]
            assert torch.equal(torch.tensor(shown), (100 * own).round().long())
            assert f"most {own.max():.2f}: " in html
        assert "<i>" not in html.replace("<i></i>", "")


def test_what_happens_to_layer_and_input_later_changes_nothing():
    for make_layer in (lambda: torch_layer(12, 3), lambda: MultiHeadAttention(12, 3).double()):
        layer, x = make_layer(), normal(2, 5, 12)
        explorer, before = explore_heads(layer, x), {}
        explorer.controls["num_heads"].value = 6
        before[6] = explorer.state
        untouched = explore_heads(layer, x)
        with torch.no_grad():
            x.zero_()
            for parameter in layer.parameters():
                parameter.mul_(-3)
        for h in (4, 6):
            explorer.controls["num_heads"].value = untouched.controls["num_heads"].value = h
            assert explorer.state == untouched.state
        assert explorer.state == before[6]
    query, key, value = normal(4, 6), normal(4, 6, seed=1), normal(4, 3, seed=2)
    explorer = explore_query(query, key, value)
    for tensor in (query, key, value):
        tensor.zero_()
    explorer.controls["query"].value = 2
    fresh = make_query()
    fresh.controls["query"].value = 2
    assert explorer.state == fresh.state


def test_a_training_layer_is_left_as_it_was():
    for layer in (torch_layer(12, 3, dropout=0.5).train(), MultiHeadAttention(12, 3).double()):
        explorer = explore_heads(layer, normal(2, 5, 12))
        explorer.controls["num_heads"].value = 6
        assert layer.training
        assert layer.num_heads == 3
        assert explorer.state["row_sums"] == pytest.approx((1, 1))  # no train mode was asked for


# --- the masks explorer -------------------------------------------------------------------------


class TestMasks:
    tokens = ("the", "cat", "sat", "down")

    def meant(self, state):
        """The mask as it is meant, cell by cell; True = may attend."""
        return [
            [
                not ("causal" in state["mask"] and key > query)
                and not ("padding" in state["mask"] and key >= state["length"])
                for key in range(4)
            ]
            for query in range(4)
        ]

    @pytest.mark.parametrize("layer", ["torch", "ours, while training"])
    def test_numbers(self, layer):
        x = normal(1, 4, 6, seed=9)
        explorer = explore_masks(LAYERS[layer], x, tokens=self.tokens)
        assert list(explorer.controls) == ["mask", "length", "inverted", "averaged"]
        assert [value for _, value in explorer.controls["mask"].options] == list(MASKS)
        assert list(explorer.controls["length"].options) == [0, 1, 2, 3, 4]
        assert explorer.state["length"] == 2
        theirs = copy.deepcopy(LAYERS[layer]).eval()
        count = 0
        for state in every_state(explorer):
            count += 1
            may = torch.tensor(self.meant(state))
            if state["inverted"] and state["mask"] != "none":
                may = ~may
            assert state["blocked"] == (~may).tolist()
            padded = torch.cat([x[:, : state["length"]], 0 * x[:, state["length"] :]], dim=1)
            with torch.no_grad():
                if layer == "torch":  # there True = blocked, and a row without a key is NaN
                    options = {"attn_mask": ~may, "average_attn_weights": False}
                    _, weights = theirs(padded, padded, padded, **options)
                else:
                    _, weights = theirs(padded, mask=may)
            blind = [i for i in range(4) if not may[i].any()]
            assert state["blind"] == blind
            if layer == "torch":
                assert weights[0].isnan().any(-1).any(0).nonzero().flatten().tolist() == blind
            weights = weights[0].nan_to_num(0)
            real = weights[:, : state["length"]]
            for name, keys in (
                ("to_padding", real[..., state["length"] :]),
                ("to_later", real[..., : state["length"]].triu(1)),
            ):
                share = keys.sum() / (3 * max(state["length"], 1))
                assert_close(state[name], share)
            assert_close(state["weights"], weights.mean(0)[None] if state["averaged"] else weights)
            assert_close(
                state["row_sums"], torch.tensor(state["weights"], dtype=torch.float64).sum(-1)
            )
            assert state["sees"] == may.sum(-1).tolist()
        assert count == 4 * 5 * 2 * 2

    def test_view_and_figure(self):
        explorer = explore_masks(LAYERS["torch"], normal(1, 4, 6, seed=9), tokens=self.tokens)
        for state in every_state(explorer):
            names = [*self.tokens[: state["length"]], *["pad"] * (4 - state["length"])]
            titles = ["mean of 3 heads"] if state["averaged"] else ["head 0", "head 1", "head 2"]
            *maps, sums, facts = page(explorer).tables
            assert [table["caption"] for table in maps] == titles
            for table, weights in zip(maps, state["weights"], strict=True):
                assert table["rows"][0][1:] == [row[0] for row in table["rows"][1:]] == names
                for cells, texts, row, blocked in zip(
                    table["cells"][1:], body(table), weights, state["blocked"], strict=True
                ):
                    shut = [cell["class"] == "ac-blocked" for cell in cells[1:]]
                    assert shut == blocked
                    for text, weight, b in zip(texts, row, blocked, strict=True):
                        assert text == ("× 0" if b else f"{weight:.2f}")
                        assert weight == 0 or not b
            assert sums["rows"][0] == ["query", "may see", *titles]
            for row, name, sees, own in zip(
                sums["rows"][1:],
                names,
                state["sees"],
                zip(*state["row_sums"], strict=True),
                strict=True,
            ):
                assert row == [name, f"{sees} of 4" if sees else "⚠ nothing", *two(own)]
            assert [row[1] for row in facts["rows"]] == [
                "True = blocked" if state["inverted"] else "True = may attend",
                "True = may attend",
                f"{sum(map(sum, state['blocked']))} of 16",
                *two([state["to_padding"], state["to_later"]]),
            ]
            note = re.search(r"May attend to nothing: (.*?)\. ", explorer.html)
            assert bool(note) == bool(state["blind"])
            if note and len(state["blind"]) < 4:
                rows = re.findall(r"\(row (\d)\)", note[1])
                assert [*map(int, rows)] == state["blind"]
            if state["length"] == 2:
                figure = explorer.figure()
                drawn = [axes for axes in figure.axes if axes.images]
                assert [axes.get_title() for axes in drawn] == titles
                hatched = [p.get_path() for p in drawn[0].patches if p.get_hatch()]
                cells = sum(len(path.vertices) // 4 for path in hatched)
                assert cells == sum(map(sum, state["blocked"]))

    def test_what_the_lesson_says_of_it(self):
        explorer = make_masks()
        put(explorer.controls["mask"], MASKS.index("causal"))
        explorer.controls["length"].value = 2
        assert explorer.state["to_padding"] == 0  # padding at the end lies in the future
        explorer.controls["mask"].value = "padding"
        explorer.controls["inverted"].value = True
        assert explorer.state["to_padding"] == pytest.approx(1)
        explorer.controls["length"].value = 4
        assert explorer.state["blind"] == [0, 1, 2, 3]
        assert "may attend to nothing: all rows" in repr(explorer)
        explorer.controls["mask"].value = "causal"
        assert explorer.state["blind"] == [3]
        assert "may attend to nothing: 3 (row 3)" in repr(explorer)

    @pytest.mark.parametrize(
        ("call", "parts"),
        [
            (lambda: explore_masks(nn.Linear(6, 6), normal(1, 4, 6)), ("layer", "got Linear")),
            (lambda: make_masks(tokens=["a"]), ("tokens", "4 strings", "got 1 for 4")),
            (
                lambda: explore_masks(LAYERS["torch"], normal(2, 4, 6)),
                ("x", "one sentence, (1, L, D)", "(2, 4, 6)"),
            ),
            (lambda: explore_masks(LAYERS["torch"], normal(4, 6)), ("x", "(N, L, D)", "(4, 6)")),
            (lambda: explore_masks(LAYERS["torch"], None), ("x", "torch tensor")),
        ],
    )
    def test_wrong_arguments(self, call, parts):
        with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
            call()
        assert all(part in str(caught.value) for part in parts)

    def test_what_happens_to_layer_and_input_later_changes_nothing(self):
        layer, x = torch_layer(6, 3), normal(1, 4, 6)
        explorer, untouched = (explore_masks(layer, x) for _ in range(2))
        untouched.controls["mask"].value = "causal"
        with torch.no_grad():
            x.zero_()
            layer.in_proj_weight.zero_()
        explorer.controls["mask"].value = "causal"
        assert explorer.state == untouched.state


# --- all explorers ------------------------------------------------------------------------------


@each_explorer
def test_every_move_updates_state_and_view(make):
    explorer = make()
    for control in explorer.controls.values():
        assert isinstance(control, SelectionSlider | Checkbox)
        for position in [*positions(control)][::-1]:
            before, html = explorer.state, explorer.html
            changes = control.value
            put(control, position)
            if control.value != changes:
                assert explorer.state != before
                assert explorer.html != html or "any_number" in explorer.state
            for name, other in explorer.controls.items():
                assert explorer.state[name] == other.value
            json.dumps(explorer.state)  # a plain dict


@each_explorer
def test_what_a_notebook_stores(make):
    explorer, twin = make(), make()
    before = len(widget._instances)
    data, metadata = explorer._repr_mimebundle_()
    assert len(widget._instances) == before
    assert set(data) == {"text/plain", "image/png", "application/vnd.jupyter.widget-view+json"}
    view = data["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == explorer.model_id
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG\r\n\x1a\n")
    assert metadata["image/png"]["alt"] == explorer.still().alt
    assert data["text/plain"] == repr(explorer)
    for name, control in explorer.controls.items():
        before = repr(explorer)
        put(control, positions(control)[-1])
        text = repr(explorer)
        assert (text == before) == (name == "any_number")
        assert text.startswith("Explorer: ")
        assert "\n" not in text
        assert not re.search(r"0x[0-9a-f]{4}|IPY_MODEL", text)
    for name, control in twin.controls.items():
        control.value = explorer.controls[name].value
    assert repr(twin) == repr(explorer)


# --- the stored picture: several stops of the controls, side by side ------------------------------


def stored_maps(explorer) -> dict:
    axes = explorer.still().axes
    return {one.get_title().replace("\n", " "): one.images[0].get_array() for one in axes[:8]}


def test_every_query_stands_in_the_stored_picture():
    explorer = make_query(tokens=["the", "cat", "sat", "on"])
    (shown,) = stored_maps(explorer).values()
    for query in range(4):
        explorer.controls["query"].value = query
        assert np.allclose(shown[query], explorer.state["weights"])


@pytest.mark.parametrize("sample", [0, 3])
def test_several_head_counts_stand_in_the_stored_picture(sample):
    explorer = explore_heads(torch_layer(12, 4), normal(4, 5, 12))
    explorer.controls["sample"].value = sample
    shown = stored_maps(explorer)
    assert list(shown) == [f"H = {h}, head {head}" for h in (1, 2, 4) for head in range(h)]
    for h in (1, 2, 4):
        explorer.controls["num_heads"].value = h
        for head in range(h):
            assert np.allclose(shown[f"H = {h}, head {head}"], explorer.state["weights"][head])


def test_a_stop_that_cannot_be_drawn_leaves_the_picture_of_the_one_that_is_shown():
    layer = MultiHeadAttention(8, 2).half()
    for projection in (layer.q_proj, layer.k_proj):
        projection.weight.data.fill_(20)
    explorer = explore_heads(layer, torch.ones(1, 3, 8).half())
    data, metadata = explorer._repr_mimebundle_()  # one head alone has scores above float16
    assert "image/png" in data
    assert metadata["image/png"]["alt"] == explorer.figure().alt


def test_the_stop_that_is_shown_stands_in_the_stored_picture():
    assert head_counts_of_still([1, 2, 4, 8], 8) == [8]
    assert head_counts_of_still([1, 2, 3, 6], 3) == [1, 2, 3]
    assert head_counts_of_still([8, 4], 4) == [4]
    assert head_counts_of_still([16, 1], 1) == [1]


@pytest.mark.parametrize(
    ("head_dims", "chosen"),
    [((1, 2, 4, 8, 16, 32, 64, 128, 256, 512), (1, 8, 64, 512)), ((4, 2), (4, 2)), ((3,), (3,))],
)
def test_several_d_k_stand_in_the_stored_picture(head_dims, chosen):
    explorer = explore_scale(head_dims=head_dims)
    shown, alt = stored_maps(explorer), explorer.still().alt
    ways = {"not scaled": False, "scaled": True}
    assert list(shown) == [f"d_k = {d}, {way}" for way in ways for d in chosen]
    for title, weights in shown.items():
        head_dim, way = re.fullmatch(r"d_k = (\d+), (.*)", title).groups()
        explorer.controls["head_dim"].value = int(head_dim)
        explorer.controls["scaled"].value = ways[way]
        assert np.allclose(weights, explorer.state["weights"][0])
        assert repr(explorer).removeprefix("Explorer: ") in alt.split("; ")


def test_several_splits_stand_in_the_stored_picture():
    explorer = explore_split(12, num_heads=6)
    figure = explorer.still()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        f"one token: 12 features, {words}"
        for words in ("1 head of 12", "2 heads of 6", "3 heads of 4", "6 heads of 2")
    ]
    assert figure.alt.count("12 features in") == 4


@pytest.mark.parametrize("length", [2, 4])
def test_every_mask_stands_in_the_stored_picture(length):
    explorer = make_masks()
    explorer.controls["length"].value = length
    figure, shown = explorer.still(), stored_maps(explorer)
    masks = ("none", "causal", "padding", "causal + padding")
    assert list(shown) == [f"{mask}, head {head}" for mask in masks for head in (0, 1)]
    for place, title in enumerate(shown):
        mask, head = title.split(", head ")
        explorer.controls["mask"].value = mask
        assert np.allclose(shown[title], explorer.state["weights"][int(head)])
        hatched = [p.get_path() for p in figure.axes[place].patches if p.get_hatch()]
        cells = sum(len(path.vertices) // 4 for path in hatched)
        assert cells == sum(map(sum, explorer.state["blocked"]))
        assert repr(explorer).removeprefix("Explorer: ") in figure.alt


@each_explorer
def test_global_random_state_is_left_alone(make):
    def states():
        numpy_state = np.random.get_state()
        return torch.get_rng_state().tolist(), random.getstate(), numpy_state[1].tolist()

    before = states()
    explorer = make()
    for control in explorer.controls.values():
        for position in positions(control):
            put(control, position)
            assert states() == before
    explorer.figure().draw_without_rendering()
    assert states() == before


@each_explorer
def test_changing_a_state_does_not_change_the_explorer(make):
    explorer = make()
    control = next(iter(explorer.controls.values()))
    before, start = json.dumps(explorer.state), control.index
    for held in explorer.state.values():
        if isinstance(held, list):
            held.clear()
    put(control, (start + 1) % len(control.options))
    put(control, start)
    assert json.dumps(explorer.state) == before


@pytest.mark.parametrize("make", [make_query, make_heads, make_masks])
@pytest.mark.parametrize("first", range(0, len(ODD_TOKENS), 4))
def test_odd_tokens_are_shown_not_run(make, first):
    tokens = ODD_TOKENS[first : first + 4]
    if make is make_heads:
        tokens = [*tokens, "cat"]
    explorer = make(tokens=tokens)
    if make is make_masks:
        explorer.controls["length"].value = 4  # no padding: all names are shown
    control = next(iter(explorer.controls.values()))
    for position in positions(control):
        put(control, position)
        shown = page(explorer)  # which refuses any tag that is not ours
        tables = [table for table in shown.tables if table["titles"]]
        assert tables
        for table in tables:
            names = [row[0] for row in table["rows"][1:]]
            assert [n for n in names if n != "sum"] == list(map(display_token, tokens))
            assert set(table["titles"]) <= set(map(visible_token, tokens))
    for cells in heatmap_tables(explorer)[0]["cells"][1:] if make is make_heads else ():
        for cell, key in zip(cells[1:], tokens, strict=True):
            assert f"→ {visible_token(key)}: 0." in cell["title"]
    text = repr(explorer)
    text.encode()
    assert "\n" not in text
    explorer.figure().draw_without_rendering()


def test_slider_names_of_odd_tokens():
    explorer = make_query(tokens=["<b>", "", "x" * 50, "a\nb"])
    names = [name for name, _ in explorer.controls["query"].options]
    assert names == ["0: <b>", "1: ''", "2: xxxxxxxx…xxxxx", r"3: a\nb"]


def test_colours_of_cells():
    pattern = r"\.ac-w(\d+) \{ background: (#\w{6}); color: (#\w{6}); \}"
    rules = re.findall(pattern, style_sheet())
    assert [int(number) for number, _, _ in rules] == list(range(101))
    for _, back, front in rules:
        assert front == text_colour(back)
    assert len({back for _, back, _ in rules}) > 90


# --- wrong arguments ----------------------------------------------------------------------------

Q, K, V = normal(4, 6), normal(4, 6, seed=1), normal(4, 3, seed=2)
LAYER, X = MultiHeadAttention(12, 3).double(), normal(2, 5, 12)


def broken_layer():
    layer = MultiHeadAttention(12, 3).double()
    with torch.no_grad():
        layer.q_proj.weight[0, 0] = math.nan
    return layer


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: head_count_slider(0), ("embed_dim", "at least 1", "got 0")),
        (lambda: head_count_slider(8.0), ("embed_dim", "whole number", "got 8.0")),
        (lambda: head_count_slider(8, value=3), ("embed_dim=8", "num_heads=3; try 1, 2, 4, 8")),
        (lambda: head_count_slider(8, value="2"), ("num_heads", "whole number", "got '2'")),
        # explore_query
        (lambda: explore_query(Q[None], K[None], V[None]), ("query", "(L, d)", "(1, 4, 6)")),
        (lambda: explore_query(Q, K[:, :2], V), ("key", "as many features", "(4, 2)")),
        (lambda: explore_query(Q, K, V[:2]), ("value", "one row for each key", "(2, 3)")),
        (lambda: explore_query(Q.tolist(), K, V), ("query", "torch tensor", "got list")),
        (lambda: explore_query(Q.long(), K, V), ("query", "floating-point", "torch.int64")),
        (lambda: explore_query(Q, K.float(), V), ("key", "dtype", "torch.float32")),
        (lambda: explore_query(Q * math.nan, K, V), ("query", "finite", "got nan")),
        (lambda: explore_query(Q, K * math.inf, V), ("key", "finite", "inf")),
        (lambda: explore_query(Q, K, V / 0), ("value", "finite", "inf")),
        (lambda: explore_query(Q[:0], K, V), ("query", "empty", "(0, 6)")),
        (lambda: explore_query(Q, K[:0], V[:0]), ("key", "empty", "(0, 6)")),
        (lambda: explore_query(Q, K, V[:, :0]), ("value", "empty", "(4, 0)")),
        (lambda: explore_query(Q, K, V, tokens=["a"]), ("tokens", "4 strings", "got 1 for 4")),
        (lambda: explore_query(Q, K, V, tokens="abcd"), ("tokens", "list of strings")),
        (lambda: explore_query(Q, K, V, tokens=[1, 2, 3, 4]), ("tokens", "got 1 of type int")),
        (lambda: explore_query(Q, K, V, tokens=4), ("tokens", "list of strings", "got int")),
        (lambda: explore_query(Q[:2], K, V, tokens=["a", "b"]), ("tokens", "got 2 for 4")),
        # explore_scale
        (lambda: explore_scale(head_dims=()), ("head_dims", "list of sizes", "got []")),
        (lambda: explore_scale(head_dims=8), ("head_dims", "list of sizes", "got 8")),
        (lambda: explore_scale(head_dims=(1, 0)), ("head_dims[1]", "at least 1", "got 0")),
        (lambda: explore_scale(head_dims=(1.5,)), ("head_dims[0]", "whole number", "got 1.5")),
        (lambda: explore_scale(head_dims="12"), ("head_dims[0]", "whole number", "got '1'")),
        (lambda: explore_scale(head_dims=(True,)), ("head_dims[0]", "got True")),
        (lambda: explore_scale(num_tokens=1), ("num_tokens", "at least 2", "got 1")),
        (lambda: explore_scale(num_tokens=-3), ("num_tokens", "got -3")),
        (lambda: explore_scale(num_tokens=2.5), ("num_tokens", "whole number", "got 2.5")),
        (lambda: explore_scale(seed="a"), ("seed", "int", "got 'a'")),
        # explore_split
        (lambda: explore_split(0), ("embed_dim", "at least 1", "got 0")),
        (lambda: explore_split("8"), ("embed_dim", "whole number", "got '8'")),
        (lambda: explore_split(8, num_heads=3), ("embed_dim=8", "num_heads=3; try 1, 2, 4, 8")),
        (lambda: explore_split(8, batch_size=0), ("batch_size", "at least 1", "got 0")),
        (lambda: explore_split(8, batch_size="2"), ("batch_size", "whole number", "got '2'")),
        (lambda: explore_split(8, seq_len=-1), ("seq_len", "at least 1", "got -1")),
        (lambda: explore_split(8, seq_len=1.5), ("seq_len", "whole number", "got 1.5")),
        # explore_heads
        (lambda: explore_heads(nn.Linear(12, 12), X), ("layer", "got Linear")),
        (lambda: explore_heads(None, X), ("layer", "got NoneType")),
        (lambda: explore_heads(LAYER, None), ("x", "torch tensor", "got NoneType")),
        (lambda: explore_heads(LAYER, X.tolist()), ("x", "torch tensor", "got list")),
        (lambda: explore_heads(LAYER, X[0]), ("x", "(N, L, D)", "(5, 12)")),
        (lambda: explore_heads(LAYER, X[..., :6]), ("x", "12 features", "got 6")),
        (lambda: explore_heads(LAYER, X.float()), ("x", "torch.float64", "torch.float32")),
        (lambda: explore_heads(LAYER, X.long()), ("x", "floating-point", "torch.int64")),
        (lambda: explore_heads(LAYER, X[:0]), ("x", "empty", "(0, 5, 12)")),
        (lambda: explore_heads(LAYER, X[:, :0]), ("x", "empty", "(2, 0, 12)")),
        (lambda: explore_heads(LAYER, X * math.nan), ("x", "finite", "got nan")),
        (lambda: explore_heads(broken_layer(), X), ("layer", "weights", "finite", "got nan")),
        (
            lambda: explore_heads(nn.MultiheadAttention(12, 3, kdim=5).double(), X),
            ("x", "does not fit", "5 features"),
        ),
        (
            lambda: explore_heads(nn.MultiheadAttention(12, 3, add_bias_kv=True), X),
            ("module", "add_bias_kv"),
        ),
        (lambda: explore_heads(LAYER, X, tokens=["a"]), ("tokens", "5 strings", "got 1 for 5")),
        (lambda: explore_heads(LAYER, X, tokens="abcde"), ("tokens", "list of strings")),
        (lambda: explore_heads(LAYER, X, dropout=1), ("dropout", "from 0", "got 1")),
        (lambda: explore_heads(LAYER, X, dropout=-0.1), ("dropout", "from 0", "got -0.1")),
        (lambda: explore_heads(LAYER, X, dropout="a"), ("dropout", "from 0", "got 'a'")),
        (lambda: explore_heads(LAYER, X, dropout=True), ("dropout", "from 0", "got True")),
        (lambda: explore_heads(LAYER, X, seed=0.5), ("seed", "int", "got 0.5")),
    ],
)
def test_wrong_arguments(call, parts):
    with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


def test_a_subclass_is_refused():
    """It may compute something else, and the explorer would show what the plain layer does."""

    class Causal(MultiHeadAttention):
        pass

    with pytest.raises(ValueError, match="ours or torch's, got Causal"):
        explore_heads(Causal(8, 2), torch.randn(1, 3, 8))


def test_a_mask_whose_scores_overflow_says_so_in_place():
    layer = MultiHeadAttention(8, 2).half()
    for projection in (layer.q_proj, layer.k_proj):
        projection.weight.data.fill_(-7500)
        projection.bias.data.fill_(60000)
    explorer = explore_masks(layer, torch.ones(1, 4, 8).half())
    (alert,) = page(explorer).alerts
    assert "weights must be finite" in alert


def test_scores_that_overflow_are_said_in_place():
    layer = MultiHeadAttention(8, 8, bias=False)
    for parameter in layer.parameters():
        parameter.data = torch.eye(8)
    explorer = explore_heads(layer, torch.full((1, 3, 8), 1.2e19))
    explorer.controls["num_heads"].value = 1
    assert explorer.state["error"] == "weights of 1 head must be finite numbers, got nan"
    assert 'role="alert"' in explorer.html
