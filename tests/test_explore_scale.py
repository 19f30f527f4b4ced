"""The explorer of the scale √d_k."""

import math
import re

import numpy as np
import pytest
import torch
from helpers import assert_close, body, every_state, page, stored_maps, two

from course_utils.sliders import explore_scale


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
        for row, norm in zip(scores, state["derivative_norm"], strict=True):
            jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
            assert_close(norm, torch.linalg.matrix_norm(jacobian))

        score_table, weight_table, softness = page(explorer).tables
        assert body(score_table) == [[f"{s:z.1f}" for s in row] for row in scores.tolist()]
        assert score_table["caption"] == "scores, q·k" + " / √d_k" * state["scaled"]
        assert body(weight_table) == [two(row) for row in weights.tolist()]
        pairs = zip(state["entropy"], state["derivative_norm"], strict=True)
        means = [f"{state['mean_entropy']:.2f}", f"{state['mean_derivative_norm']:.3f}"]
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
        norms[state["scaled"]].append(state["mean_derivative_norm"])
    assert len(means[True]) == 10
    assert max(means[True]) - min(means[True]) < 0.25
    assert means[False] == sorted(means[False], reverse=True)
    assert means[False][-1] < 0.3 < 1.5 < means[True][-1] < math.log2(6)
    assert norms[False][-1] < 0.1 < 0.25 < norms[True][-1]


def test_seeds_choose_the_numbers():
    first, again, other = (explore_scale(seed=seed).state for seed in (3, 3, 4))
    assert first == again
    assert first["weights"] != other["weights"]


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


@pytest.mark.parametrize(
    ("call", "parts"),
    [
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
    ],
)
def test_wrong_arguments(call, parts):
    with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
