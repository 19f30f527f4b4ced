"""The bug hunt of lesson 5."""

import math

import pytest
from torch import nn

from course_utils.exercises import CheckFailed, check_repair
from course_utils.exercises.bug_hunt import PLANTED


class Layer(nn.Module):
    bug = None

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim))

    def forward(self, x):
        n, length, d = x.shape
        h, bug = self.num_heads, self.bug

        def split(t):
            if bug == "split-without-transpose":
                return t.reshape(n, h, length, d // h)
            return t.reshape(n, length, h, d // h).transpose(1, 2)

        q, k, v = (split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        if bug == "query-key-swapped":
            q, k = k, q
        scores = q @ k.mT / math.sqrt(d if bug == "scale-by-embed-dim" else d // h)
        weights = scores.softmax(1 if bug == "softmax-over-heads" else -1)
        mixed = weights @ v
        if bug != "merge-without-transpose":
            mixed = mixed.transpose(1, 2)
        return self.out_proj(mixed.reshape(n, length, d)), weights


@pytest.mark.parametrize("number", PLANTED)
def test_the_planted_bug_is_known_and_its_repair_too(number, capsys):
    buggy = type("Buggy", (Layer,), {"bug": PLANTED[number]})
    assert check_repair(number, buggy) is False
    assert check_repair(number, Layer) is True
    assert capsys.readouterr().out == (
        f"○ layer {number}: the old bug is still in there\n✓ layer {number}: repaired\n"
    )


def test_another_bug_is_a_failure():
    buggy = type("Buggy", (Layer,), {"bug": PLANTED[2]})
    with pytest.raises(CheckFailed, match="layer 1") as failed:
        check_repair(1, buggy)
    assert failed.value.mistakes == (PLANTED[2],)


def test_a_layer_that_is_not_there():
    with pytest.raises(ValueError, match="number must be one of 1, 2, 3, 4, 5, got 6"):
        check_repair(6, Layer)
