"""The explorer of the split into heads, and the slider that offers divisors."""

import re

import pytest
import torch
from helpers import page
from ipywidgets import SelectionSlider

from course_utils.arguments import divisors
from course_utils.sliders import (
    explore_split,
    head_count_slider,
)


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
        assert strip["caption"] == f"the query of one token: D = 12, H = {h}, d_h = {width}"
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


def test_several_splits_stand_in_the_stored_picture():
    explorer = explore_split(12, num_heads=6)
    figure = explorer.still()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        f"the query of one token: 12 features, {words}"
        for words in ("1 head of 12", "2 heads of 6", "3 heads of 4", "6 heads of 2")
    ]
    assert figure.alt.count("12 features in") == 4


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: head_count_slider(0), ("embed_dim", "at least 1", "got 0")),
        (lambda: head_count_slider(8.0), ("embed_dim", "whole number", "got 8.0")),
        (lambda: head_count_slider(8, value=3), ("embed_dim=8", "num_heads=3; try 1, 2, 4, 8")),
        (lambda: head_count_slider(8, value="2"), ("num_heads", "whole number", "got '2'")),
        (lambda: explore_split(0), ("embed_dim", "at least 1", "got 0")),
        (lambda: explore_split("8"), ("embed_dim", "whole number", "got '8'")),
        (lambda: explore_split(8, num_heads=3), ("embed_dim=8", "num_heads=3; try 1, 2, 4, 8")),
        (lambda: explore_split(8, batch_size=0), ("batch_size", "at least 1", "got 0")),
        (lambda: explore_split(8, batch_size="2"), ("batch_size", "whole number", "got '2'")),
        (lambda: explore_split(8, seq_len=-1), ("seq_len", "at least 1", "got -1")),
        (lambda: explore_split(8, seq_len=1.5), ("seq_len", "whole number", "got 1.5")),
    ],
)
def test_wrong_arguments(call, parts):
    with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
