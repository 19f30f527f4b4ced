"""What several test files share: random tensors, the explorers, and what their HTML holds."""

from functools import partial
from html.parser import HTMLParser
from xml.etree import ElementTree

import torch
from ipywidgets import Checkbox, RadioButtons, SelectionSlider, Text
from torch import nn

from course_utils.attention import MultiHeadAttention
from course_utils.sliders import (
    Explorer,
    explore_animal,
    explore_average,
    explore_block,
    explore_blocks,
    explore_digits,
    explore_head_counts,
    explore_heads,
    explore_layer,
    explore_lines,
    explore_masks,
    explore_mixture,
    explore_query,
    explore_scale,
    explore_sentence,
    explore_shared_heads,
    explore_split,
)
from course_utils.sliders.controls import make_slider, make_switch

IGNORE = "nbval-ignore-output"  # the tag of a cell whose output nbval does not compare

# --- Tensors, layers and models -----------------------------------------------------------------


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def torch_layer(d, h, *, seed=0, **options):
    """A torch layer whose biases are not zero, so that they count."""
    layer = nn.MultiheadAttention(d, h, batch_first=True, dtype=torch.float64, **options).eval()
    with torch.no_grad():
        for i, parameter in enumerate(layer.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=seed + i) / d**0.5)
    return layer


LAYERS = {
    "torch": torch_layer(6, 3),
    "torch, with dropout": torch_layer(6, 3, dropout=0.1),
    "ours, while training": MultiHeadAttention(6, 3, dropout=0.2).double(),
}


class SmallEncoder(nn.Module):
    """Two layers of three heads over random embeddings: quick, and each map is another."""

    def __init__(self, layers=2, heads=3):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Embedding(30522, 6)
        self.embedding.weight.data = torch.randn(30522, 6, generator=generator)
        self.layers = nn.ModuleList(MultiHeadAttention(6, heads) for _ in range(layers))
        for layer in self.layers:
            for x in layer.parameters():
                x.data = torch.randn(x.shape, generator=generator)

    def forward(self, ids, mask):
        states, maps = [self.embedding(ids)], []
        for layer in self.layers:
            x, weights = layer(states[-1], mask=mask[:, None, None])
            states.append(x)
            maps.append(weights)
        return states, maps


ENCODER = SmallEncoder()


class InkModel:
    """Makes scores and weights out of an image's ink, without training."""

    def __init__(self, num_heads):
        self.num_heads = num_heads

    def __call__(self, patches):
        n = len(patches)
        keys = torch.cat([patches.new_zeros(n, 1), patches.sum(-1)], dim=1)  # (N, 17)
        sharpness = 1.0 + torch.arange(self.num_heads)[:, None, None]  # (H, 1, 1)
        weights = torch.softmax(sharpness * keys[:, None, None], dim=-1)  # (N, H, 1, 17)
        return patches.sum((1, 2))[:, None] * torch.linspace(-1, 1, 10), weights


def trained(seed=0):
    """Accuracies and maps of two tasks, three head counts and three seeds."""
    torch.manual_seed(seed)
    lengths, counts, seeds = {"fetch": 5, "match": 6}, (1, 2, 4), 3
    accuracies = {task: {h: torch.rand(seeds) for h in counts} for task in lengths}
    maps = {
        task: {h: torch.randn(seeds, h, length).softmax(-1) for h in counts}
        for task, length in lengths.items()
    }
    return accuracies, maps


# --- An explorer of each kind -------------------------------------------------------------------


def make_query(**options):
    return explore_query(normal(4, 6), normal(4, 6, seed=1), normal(4, 3, seed=2), **options)


def make_heads(layer="torch", **options):
    return explore_heads(LAYERS[layer], normal(4, 5, 6, seed=9), **options)


def make_masks(layer="torch", **options):
    return explore_masks(LAYERS[layer], normal(1, 4, 6, seed=9), **options)


def make_digits():
    images = normal(2, 8, 8, dtype=torch.float32).sigmoid()
    return explore_digits({1: InkModel(1), 4: InkModel(4)}, images, [3, 5])


def make_head_counts():
    keys = {"fetch": ["red", "<b>", "2", "3", "4"]}
    return explore_head_counts(*trained(), embed_dim=8, keys=keys)


def make_values(explore):
    """One head whose values are two-dimensional, so that they can be drawn."""
    return explore(normal(4, 4), normal(4, 4, seed=1), normal(4, 2, seed=2))


MAKERS = {
    "query": make_query,
    "flow": partial(make_values, explore_query),
    "mixture": partial(make_values, explore_mixture),
    "lines": partial(explore_lines, normal(2, 4, 4).softmax(-1)),
    "animal": explore_animal,
    "average": partial(explore_average, normal(2, 2, 3, 3).softmax(-1)),
    "layer": partial(explore_layer, 4, seq_len=2),
    "block": partial(explore_block, 4, num_heads=2, seq_len=3),
    "blocks": partial(explore_blocks, ["a", "b"], embed_dim=4),
    "masks": make_masks,
    "masks of our layer": partial(make_masks, "ours, while training"),
    "scale": partial(explore_scale, head_dims=(1, 4, 64), num_tokens=3),
    "shared heads": partial(
        explore_shared_heads, normal(4, 3, 2), normal(4, 3, 2, seed=1), num_kv_heads=2
    ),
    "split": partial(explore_split, 12, num_heads=4),
    "heads": make_heads,
    "heads with dropout": partial(make_heads, "torch, with dropout", dropout=0.3),
    "heads of our layer": partial(make_heads, "ours, while training", dropout=0.3),
    "head counts": make_head_counts,
    "digits": make_digits,
    "sentence": partial(explore_sentence, ENCODER, "a cat", head=1),
}


def make_small(**options):
    """One slider and two switches, and a view of their values."""
    controls = {
        "size": make_slider("how large", [("small", 1), ("large", 2)], 2),
        "loud": make_switch("loudly", True),
        "fast": make_switch("quickly", False),
    }
    return Explorer(
        controls, compute=dict, view=str, draw=None, describe=lambda state: "", **options
    )


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


# --- Moving its controls ------------------------------------------------------------------------


def positions(control):
    """All indices of a slider or buttons; of a switch and of a text what it is now, and another."""
    if isinstance(control, SelectionSlider | RadioButtons):
        return range(len(control.options))
    if isinstance(control, Checkbox):
        return (control.value, not control.value)
    assert isinstance(control, Text)
    return (control.value, f"{control.value} too")


def put(control, position):
    if isinstance(control, SelectionSlider | RadioButtons):
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


# --- What its view holds ------------------------------------------------------------------------

TAGS = {"div", "table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
TAGS |= {"bdi", "span", "code", "p", "br", "figure", "figcaption", "b", "img"}
TAGS |= {"svg", "path", "polygon", "circle", "rect", "text", "title"}


class Page(HTMLParser):
    """A piece of HTML that holds nothing but what we put there ourselves.

    Attributes:
        tables: for each its ``caption``, its ``rows`` of texts, head and names included, its
            ``cells`` (the attributes of each of these, in rows as well; in ``inside`` the classes
            of the spans in it), and the ``titles`` of its tokens.
        tags: all of them, in order.
        paragraphs: their texts.
        alerts: the texts of those that are errors.
    """

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tables, self.tags, self.paragraphs, self.alerts, self.open = [], [], [], [], []
        self.in_alert = False
        html.encode()  # half a surrogate pair, for one, never reaches the browser
        self.feed(html)
        self.close()
        assert self.open == []
        assert set(self.tags) <= TAGS

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        assert not any(name.startswith("on") for name in attributes), attributes
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "table":
            self.tables.append({"caption": "", "rows": [], "cells": [], "titles": []})
        elif tag == "tr":
            self.tables[-1]["rows"].append([])
            self.tables[-1]["cells"].append([])
        elif tag in ("td", "th"):
            self.tables[-1]["rows"][-1].append("")
            self.tables[-1]["cells"][-1].append({**attributes, "inside": []})
        elif tag == "span":
            self.tables[-1]["cells"][-1][-1]["inside"].append(attributes["class"])
        elif tag == "bdi" and "table" in self.open:
            self.tables[-1]["titles"].append(attributes["title"])
        elif tag == "p":
            self.paragraphs.append("")
            self.in_alert = attributes.get("role") == "alert"
            self.alerts += [""] * self.in_alert

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.tables[-1]["caption"] += data
        elif {"td", "th"} & set(self.open):
            self.tables[-1]["rows"][-1][-1] += data
        elif "p" in self.open:
            self.paragraphs[-1] += data
            if self.in_alert:
                self.alerts[-1] += data


def page(explorer):
    ElementTree.fromstring(f"<div>{explorer.html}</div>")  # stored views are read as XML
    return Page(explorer.html)


def body(table):
    """The numbers of a table, without its head and the names of its rows."""
    return [[cell.strip() for cell in row[1:]] for row in table["rows"][1:]]


def row_names(table):
    return [row[0] for row in table["rows"][1:]]


def heatmap_tables(explorer):
    return [t for t in page(explorer).tables if t["rows"][0][0] == "query ↓ key →"]


# --- Numbers ------------------------------------------------------------------------------------


def two(numbers):
    return [f"{x:z.2f}" for x in numbers]


def vector(numbers):
    return f"[{', '.join(two(numbers))}]"


def assert_close(ours, theirs):
    ours = torch.as_tensor(ours, dtype=torch.float64)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def stored_maps(explorer) -> dict:
    """The maps of the picture that is stored with a notebook, by their titles."""
    axes = explorer.still().axes
    return {one.get_title().replace("\n", " "): one.images[0].get_array() for one in axes[:8]}
