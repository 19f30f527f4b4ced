"""The block of weights that belongs to one head: lessons 3 and 8."""

import torch

from course_utils.exercises import check_head_projection, check_remove_head
from course_utils.exercises.one_head import HEAD_PROJECTION, REMOVE_HEAD
from solutions.solution import Solution


def head_projection(*bugs):
    def fn(proj, num_heads, head):
        width = proj.out_features // num_heads
        if "always-head-0" in bugs:
            head = 0
        if "counts-heads-from-1" in bugs:
            head = head - 1
        own = [head * width + i for i in range(width)]
        if "block-interleaved" in bugs:
            own = [head + i * num_heads for i in range(width)]
        if "block-as-wide-as-head-count" in bugs:
            own = [head * num_heads + i for i in range(num_heads)]
        if "block-of-one-feature" in bugs:
            own = [head]
        if "block-open-at-one-end" in bugs:
            own = list(range(head * width, proj.out_features))
        weight = proj.weight[own]
        if "block-of-columns" in bugs:
            weight = proj.weight[:, own]
        if "block-of-columns-turned" in bugs:
            weight = proj.weight[:, own].T
        if "block-reads-a-slice" in bugs:
            weight = weight[:, own]
        return weight, proj.bias if "whole-bias" in bugs else proj.bias[own]

    return fn


def remove_head(*bugs):
    def fn(weight, bias, num_heads, head):
        width = len(weight) // num_heads
        if "counts-heads-from-1" in bugs:
            head -= 1
        if "always-head-0" in bugs:
            head = 0
        own = torch.arange(head * width, (head + 1) * width)
        if "block-interleaved" in bugs:
            own = torch.arange(head, len(weight), num_heads)
        if "block-as-wide-as-head-count" in bugs:
            own = torch.arange(head * num_heads, (head + 1) * num_heads)
        if "block-of-one-feature" in bugs:
            own = torch.tensor([head])
        if "block-open-at-one-end" in bugs:
            own = torch.arange(head * width, len(weight))
        cleared, kept = weight.clone(), bias.clone()
        if "others-scaled-up" in bugs:
            cleared *= num_heads / (num_heads - 1)
        if "block-of-fixed-width" in bugs:
            cleared[:, head * 32 : (head + 1) * 32] = 0
            return cleared, kept
        if "rows-cleared" in bugs:
            cleared[own] = 0
        elif "square-cleared" in bugs:
            cleared[own[:, None], own] = 0
        else:
            cleared[:, own] = 0
        if "rows-and-columns-cleared" in bugs:
            cleared[own] = 0
        if "others-cleared" in bugs:
            cleared = torch.zeros_like(weight)
            cleared[:, own] = weight[:, own]
        if "bias-cleared" in bugs:
            kept = kept * 0
        if "block-of-bias-cleared" in bugs:
            kept[own] = 0
        return cleared, kept

    return fn


PROJECTION = Solution(
    check=check_head_projection,
    make=head_projection,
    exercise=HEAD_PROJECTION,
    together=(("block-of-columns", "whole-bias"),),
)

REMOVAL = Solution(
    check=check_remove_head,
    make=remove_head,
    exercise=REMOVE_HEAD,
    together=(
        ("rows-cleared", "bias-cleared"),
        ("block-interleaved", "rows-cleared", "block-of-bias-cleared"),
    ),
)
