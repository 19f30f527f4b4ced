"""The explorer of one query: what it looks at, and the mixture of values that comes out."""

import math
import re

import numpy as np
import pytest
import torch
from helpers import (
    assert_close,
    body,
    every_state,
    make_query,
    normal,
    page,
    stored_maps,
    two,
    vector,
)
from torch.nn import functional as F

from course_utils.sliders import explore_query


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


def test_every_query_stands_in_the_stored_picture():
    explorer = make_query(tokens=["the", "cat", "sat", "on"])
    (shown,) = stored_maps(explorer).values()
    for query in range(4):
        explorer.controls["query"].value = query
        assert np.allclose(shown[query], explorer.state["weights"])


def test_slider_names_of_odd_tokens():
    explorer = make_query(tokens=["<b>", "", "x" * 50, "a\nb"])
    names = [name for name, _ in explorer.controls["query"].options]
    assert names == ["0: <b>", "1: ''", "2: xxxxxxxx…xxxxx", r"3: a\nb"]


Q, K, V = normal(4, 6), normal(4, 6, seed=1), normal(4, 3, seed=2)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
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
    ],
)
def test_wrong_arguments(call, parts):
    with pytest.raises(ValueError, match=f"^{re.escape(parts[0])}") as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
