"""The explorer of masks over one sentence."""

import copy
import re

import numpy as np
import pytest
import torch
from helpers import (
    LAYERS,
    assert_close,
    body,
    every_state,
    make_masks,
    normal,
    page,
    put,
    stored_maps,
    torch_layer,
    two,
)
from torch import nn

from course_utils.attention import MultiHeadAttention
from course_utils.sliders import explore_masks
from course_utils.sliders.masks import MASKS

TOKENS = ("the", "cat", "sat", "down")


def meant(state):
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
def test_masks_explorer(layer):
    x = normal(1, 4, 6, seed=9)
    explorer = explore_masks(LAYERS[layer], x, tokens=TOKENS)
    assert list(explorer.controls) == ["mask", "length", "inverted", "averaged"]
    assert explorer.controls["mask"].options == MASKS
    assert list(explorer.controls["length"].options) == [0, 1, 2, 3, 4]
    assert explorer.state["length"] == 2
    theirs = copy.deepcopy(LAYERS[layer]).eval()
    count = 0
    for state in every_state(explorer):
        count += 1
        may = torch.tensor(meant(state))
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
        assert_close(state["row_sums"], torch.tensor(state["weights"], dtype=torch.float64).sum(-1))
        assert state["sees"] == may.sum(-1).tolist()
    assert count == 4 * 5 * 2 * 2


def test_view_and_figure():
    explorer = explore_masks(LAYERS["torch"], normal(1, 4, 6, seed=9), tokens=TOKENS)
    for state in every_state(explorer):
        names = [*TOKENS[: state["length"]], *["pad"] * (4 - state["length"])]
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


def test_what_the_lesson_says_of_it():
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
def test_wrong_arguments(call, parts):
    with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
        call()
    assert all(part in str(caught.value) for part in parts)


def test_what_happens_to_layer_and_input_later_changes_nothing():
    layer, x = torch_layer(6, 3), normal(1, 4, 6)
    explorer, untouched = (explore_masks(layer, x) for _ in range(2))
    untouched.controls["mask"].value = "causal"
    with torch.no_grad():
        x.zero_()
        layer.in_proj_weight.zero_()
    explorer.controls["mask"].value = "causal"
    assert explorer.state == untouched.state


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


def test_a_mask_whose_scores_overflow_says_so_in_place():
    layer = MultiHeadAttention(8, 2).half()
    for projection in (layer.q_proj, layer.k_proj):
        projection.weight.data.fill_(-7500)
        projection.bias.data.fill_(60000)
    explorer = explore_masks(layer, torch.ones(1, 4, 8).half())
    (alert,) = page(explorer).alerts
    assert "weights must be finite" in alert
