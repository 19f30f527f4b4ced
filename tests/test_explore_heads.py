"""The explorer of the heads of a layer."""

import base64
import io
import math
import re

import numpy as np
import pytest
import torch
from helpers import (
    assert_close,
    body,
    every_state,
    heatmap_tables,
    make_query,
    normal,
    page,
    stored_maps,
    torch_layer,
    two,
)
from PIL import Image
from torch import nn

from course_utils.attention import MultiHeadAttention
from course_utils.heatmaps.colours import ramp
from course_utils.sliders import (
    explore_heads,
    explore_query,
)
from course_utils.sliders.stills import head_counts_of_still


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


def test_dropout_is_the_same_at_every_visit():
    explorer = explore_heads(torch_layer(6, 3), normal(1, 5, 6), dropout=0.5)
    explorer.controls["training"].value = True
    seen = []
    for num_heads in (2, 6, 2):  # the first visit to a head count builds its layer
        explorer.controls["num_heads"].value = num_heads
        seen.append(explorer.state["weights"])
    assert seen[0] == seen[2]


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


def test_scores_that_overflow_are_said_in_place():
    layer = MultiHeadAttention(8, 8, bias=False)
    for parameter in layer.parameters():
        parameter.data = torch.eye(8)
    explorer = explore_heads(layer, torch.full((1, 3, 8), 1.2e19))
    explorer.controls["num_heads"].value = 1
    assert explorer.state["error"] == "weights of 1 head must be finite numbers, got nan"
    assert 'role="alert"' in explorer.html


LAYER, X = MultiHeadAttention(12, 3).double(), normal(2, 5, 12)


def broken_layer():
    layer = MultiHeadAttention(12, 3).double()
    with torch.no_grad():
        layer.q_proj.weight[0, 0] = math.nan
    return layer


@pytest.mark.parametrize(
    ("call", "parts"),
    [
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
