"""The explorer of an image model's heads, on models that need no training."""

import json
import math
import re

import numpy as np
import pytest
import torch
from helpers import InkModel, body, page, two

from course_utils.data.digits import cut_into_patches, load_digits
from course_utils.sliders import explore_digits


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture
def explorer(digits):
    models = {1: InkModel(1), 4: InkModel(4)}
    return explore_digits(models, digits.test_images[:3], digits.test_labels[:3], num_heads=4)


def test_state_is_what_the_model_says(explorer, digits):
    explorer.controls["image"].value = 2
    scores, weights = InkModel(4)(cut_into_patches(digits.test_images[2:3], 2))
    state = explorer.state
    assert state["label"] == digits.test_labels[2]
    assert state["prediction"] == scores.argmax()
    assert state["right"] is (state["prediction"] == state["label"])
    assert np.allclose(state["probabilities"], torch.softmax(scores[0], 0))
    assert np.allclose(state["weights"], weights[0, :, 0, 1:].view(4, 4, 4))
    assert np.allclose(state["cls_weights"], weights[0, :, 0, 0])
    assert np.allclose(state["pixels"], digits.test_images[2])
    json.dumps(state)


def test_controls(explorer):
    assert list(explorer.controls["num_heads"].options) == [1, 4]
    assert explorer.controls["num_heads"].value == 4
    assert [name for name, _ in explorer.controls["image"].options] == [
        "0: a 7",
        "1: a 6",
        "2: a 3",
    ]


@pytest.mark.parametrize("num_heads", [1, 4])
def test_the_view_shows_digit_and_weights(explorer, num_heads):
    explorer.controls["num_heads"].value = num_heads
    state = explorer.state
    probabilities, *maps = page(explorer).tables
    assert body(probabilities) == [[p] for p in two(state["probabilities"])]
    assert len(maps) == num_heads
    for table, weights in zip(maps, state["weights"], strict=True):
        assert [len(row) for row in table["rows"]] == [8] * 8
        for r, c in np.ndindex(8, 8):
            cell, text = table["cells"][r][c], table["rows"][r][c]
            grey = int(re.search(r"rgb\((\d+),", cell["style"])[1])
            assert abs(grey - (255 - 225 * state["pixels"][r][c])) <= 0.5
            weight = weights[r // 2][c // 2]
            first = r % 2 == c % 2 == 0
            assert text == (f"{weight:.2f}" if first else "")
            if first:
                shade = f"ac-w{round(100 * weight)}" if weight >= 0.05 else "ac-low"
                assert cell["inside"] == [shade]


def test_it_says_whether_the_model_is_right(explorer):
    explorer.controls["image"].value = 0
    state = explorer.state
    assert state["right"] is False
    assert f"the model says {state['prediction']}<br/>✗ wrong, it is a 7" in explorer.html
    assert repr(explorer) == (
        f"Explorer: 4 heads on image 0: the model says {state['prediction']}, wrong, it is a 7"
    )


def test_the_picture_is_of_the_same_state(explorer):
    figure = explorer.figure()
    assert len(figure.axes) == 4
    numbers = [text.get_text() for text in figure.axes[1].texts]
    assert numbers == [f"{w:.2f}" for row in explorer.state["weights"][1] for w in row]
    assert "image/png" in explorer._repr_mimebundle_()[0]


def test_the_stored_picture_shows_several_head_counts(explorer):
    explorer.controls["image"].value = 2
    figure = explorer.still()
    titles = [f"H = {h}, head {head}" for h in (1, 4) for head in range(h)]
    assert [axes.get_title() for axes in figure.axes] == titles
    numbers = [text.get_text() for text in figure.axes[2].texts]
    assert numbers == [f"{w:.2f}" for row in explorer.state["weights"][1] for w in row]
    assert figure.alt.endswith(repr(explorer).removeprefix("Explorer: "))


def test_later_changes_of_the_images_change_nothing(digits):
    images = digits.test_images[:2].clone()
    explorer = explore_digits({1: InkModel(1)}, images, digits.test_labels[:2])
    before = dict(explorer.state)
    images.zero_()
    explorer.controls["image"].value = 1
    explorer.controls["image"].value = 0
    assert explorer.state == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": {}}, "models must be"),
        ({"models": InkModel(2)}, "models must be"),
        ({"models": {3: InkModel(2)}}, r"models\[3\] must return"),
        ({"images": torch.zeros(8, 8)}, "images must be"),
        ({"labels": torch.zeros(4)}, "labels must be .* got 4 for 3"),
        ({"labels": [1, 2, 42]}, "labels must be one digit .* from 0 to 9"),
        ({"labels": None}, "labels must be numbers"),
        ({"images": torch.zeros(0, 8, 8)}, "images must be"),
        ({"images": torch.zeros(3, 8, 10)}, "images must be"),
        ({"images": torch.full((3, 8, 8), math.nan)}, "images must be finite"),
        ({"models": {True: InkModel(1)}}, "a key of models must be a whole number"),
        ({"num_heads": [1]}, "num_heads must be a whole number"),
        ({"models": {2: lambda x: InkModel(2)(x[:, :9])}}, r"models\[2\] must return"),
        ({"models": {2: lambda x: (InkModel(2)(x)[0] * math.nan, InkModel(2)(x)[1])}}, "finite"),
        ({"models": {2: lambda x: (InkModel(2)(x)[0], InkModel(2)(x)[1] * 20)}}, "from 0 to 1"),
        ({"num_heads": 3}, "num_heads=3 has no model; there are 2"),
    ],
)
def test_what_does_not_fit(change, said):
    arguments = {"models": {2: InkModel(2)}, "images": torch.zeros(3, 8, 8)}
    arguments |= {"labels": torch.zeros(3)} | change
    with pytest.raises(ValueError, match=said):
        explore_digits(**arguments)
