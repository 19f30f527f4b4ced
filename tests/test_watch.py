"""What is computed on the way is seen, however it is written, and the first difference is found."""

import numpy as np
import torch
from torch import nn

from course_utils.exercises.watch import Passed, Watch, first_difference, passed

Q, K, V = torch.randn(3, 2, 5, 4, generator=torch.Generator().manual_seed(0)).double()
SCORES = Q @ K.mT
WEIGHTS = (SCORES / 2).softmax(-1)
VALUES = {
    "scores": SCORES,
    "scaled": SCORES / 2,
    "axis": -1,
    "weights": WEIGHTS,
    "mixed": WEIGHTS @ V,
    "merged": (WEIGHTS @ V).transpose(0, 1).flatten(1),
}
READS = {
    "scores": frozenset(),
    "scaled": frozenset({"scores"}),
    "axis": frozenset(),
    "weights": frozenset({"scaled", "axis"}),
    "mixed": frozenset({"weights"}),
    "merged": frozenset({"mixed"}),
}
STEPS = passed(tuple(VALUES), VALUES, READS)


def reached(code):
    with Watch() as watch:
        code(Q.float(), K.float(), V.float())
    return first_difference(STEPS, watch.reached(STEPS))


def whole(q, k, v):
    mixed = (q @ k.mT / 2).softmax(-1) @ v
    return mixed.transpose(0, 1).flatten(1).clone()


def by_head(q, k, v):
    parts = [torch.softmax(a @ b.T / 2, 1) @ c for a, b, c in zip(q, k, v, strict=True)]
    return torch.cat(parts, dim=1)


def query_scaled_first(q, k, v):
    return torch.cat(list(((q / 2) @ k.mT).softmax(-1) @ v), dim=1)


def test_right_code_reaches_the_end_however_it_is_written():
    for code in (whole, by_head, query_scaled_first):
        assert reached(code)[1] is None, code


def test_inside_torchs_own_functions_it_is_seen_too():
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.randn(2, 3, 4)
    weights = layer(x, x, x, average_attn_weights=False)[1].detach().double()
    with Watch() as watch:
        layer(x, x, x)  # what comes back is averaged
    assert watch.reached([Passed("weights", weights)]) == {"weights"}


def test_the_first_difference_is_found():
    def other_softmax(q, k, v):
        weights = (q @ k.mT / 2).softmax(-2)
        return (weights @ v).transpose(0, 1).flatten(1).clone()

    def merged_by_reshape(q, k, v):
        return ((q @ k.mT / 2).softmax(-1) @ v).reshape(5, 8).clone()

    assert reached(other_softmax) == (("scores", "scaled"), "weights")
    assert reached(merged_by_reshape) == (("scores", "scaled", "weights", "mixed"), "merged")


def test_a_step_that_only_rearranges_must_be_met_in_its_order():
    assert {step.name for step in STEPS if step.ordered} == {"merged"}


def test_it_is_noticed_when_numbers_leave_torch():
    for code in (one_number, lambda x: x.tolist(), np.asarray, lambda x: x.numpy()):
        with Watch() as watch:
            code(torch.ones(2))
        assert watch.left_torch, code
    with Watch() as watch:
        torch.ones(2).sum()
    assert not watch.left_torch


def one_number(x):
    return float(x[0])
