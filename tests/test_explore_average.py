"""How the maps of some heads become one."""

import re

import pytest
import torch
from helpers import body, normal, page
from torch import nn

from course_utils.sliders import explore_average
from course_utils.sliders.average import STEPS


def from_torch():
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 3, 8)
    with torch.no_grad():
        _, averaged = layer(x, x, x)
        _, per_head = layer(x, x, x, average_attn_weights=False)
    return per_head, averaged


def test_the_last_step_is_what_torch_returns_by_default():
    per_head, averaged = from_torch()
    explorer = explore_average(per_head)
    assert explorer.state["shape"] == "(N, H, L, L) = (2, 2, 3, 3)"
    explorer.controls["step"].value = STEPS[2]
    assert explorer.state["shape"] == "(N, L, L) = (2, 3, 3)"
    assert torch.allclose(torch.tensor(explorer.state["maps"]), averaged, atol=1e-6)
    apart = (per_head[:, 0] - per_head[:, 1]).abs().max()
    assert f"the heads were {apart:.2f} apart" in explorer.state["fact"]


@pytest.mark.parametrize("step", STEPS)
def test_the_tables_hold_the_maps(step):
    per_head, averaged = from_torch()
    explorer = explore_average(per_head, tokens=["a", "b", "<i>"])
    explorer.controls["step"].value = step
    maps = averaged if step == STEPS[2] else per_head.flatten(0, 1)
    tables = page(explorer).tables
    assert [body(table) for table in tables] == [
        [[f"{weight:.2f}" for weight in row] for row in weights] for weights in maps.tolist()
    ]


def test_maps_slide_to_one_place_and_carry_no_numbers_on_the_way():
    explorer = explore_average(normal(1, 2, 2, 2).softmax(-1))
    explorer.controls["step"].value = STEPS[1]
    assert explorer.html.count("ac-slide") == 8  # the cells
    drawing, _, _ = explorer.html.partition('<div class="ac-unseen">')
    assert not re.search(r">0\.\d\d</text>", drawing)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.eye(3), r"weights must have shape \(N, H, L, L\)|weights must be"),
        (torch.full((1, 1, 2, 3), 1 / 3), "weights must be .N, H, L, L.; got shape"),
        (torch.eye(2).expand(3, 1, 2, 2), "weights must hold 1 to 2 samples"),
        (torch.eye(2).expand(1, 5, 2, 2), "weights must hold 1 to 4 heads"),
        (torch.eye(5).expand(1, 1, 5, 5), "weights must hold 1 to 4 tokens"),
    ],
)
def test_what_cannot_be_drawn(weights, message):
    with pytest.raises(ValueError, match=message):
        explore_average(weights)
