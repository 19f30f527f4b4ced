"""Lesson 5: the bug hunt."""

from collections.abc import Callable

from torch import nn

from course_utils.exercises.calling import CheckFailed
from course_utils.exercises.judge import judge, whose
from course_utils.exercises.layer import MULTI_HEAD_ATTENTION

PLANTED = {  # number of the layer, and what went wrong in it
    1: "split-without-transpose",
    2: "scale-by-embed-dim",
    3: "merge-without-transpose",
    4: "softmax-over-heads",
    5: "query-key-swapped",
}


def check_repair(number: int, layer: Callable[[int, int], nn.Module]) -> bool:
    """Check one layer of the bug hunt, ``layer(embed_dim, num_heads)``, as a whole.

    As long as it has just the bug that was planted in it, this is no failure, so that a notebook
    runs on.

    Args:
        number: 1 to 5, which of the layers.
        layer: the class; see ``check_multi_head_attention``.

    Raises:
        CheckFailed: it is wrong in another way.
        ValueError: there is no such number.
    """
    if not isinstance(number, int) or number not in PLANTED:
        raise ValueError(f"number must be one of {', '.join(map(str, PLANTED))}, got {number!r}")
    try:
        judge(MULTI_HEAD_ATTENTION, layer)
    except CheckFailed as problem:
        if (PLANTED[number],) in problem.explanations:
            print(f"○ layer {number}: the old bug is still in there")
            return False
        raise problem.under(f"✗ layer {number}") from None
    print(f"✓ layer {number}{whose(layer)}: repaired")
    return True
