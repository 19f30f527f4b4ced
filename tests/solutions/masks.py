"""Masks and cross-attention: lesson 6."""

import math

import torch

from course_utils.exercises import check_attention_mask, check_cross_attention
from course_utils.exercises.cross_attention import CROSS_ATTENTION
from course_utils.exercises.masks import ATTENTION_MASK
from solutions.solution import Solution


def attention_mask(*bugs):
    def fn(lengths, seq_len, causal):
        last = lengths + ("padding-off-by-one" in bugs)
        may = torch.zeros(len(lengths), 1, seq_len, seq_len, dtype=torch.bool)
        if "causal-ignored" in bugs:
            causal = False
        if "causal-always" in bugs:
            causal = True
        for n, length in enumerate(last.tolist()):
            for i in range(seq_len):
                for j in range(seq_len):
                    real = j < length
                    if "padding-at-the-start" in bugs:
                        real = j >= seq_len - length
                    if "padding-turned-round" in bugs:
                        real = j >= length
                    if "padding-ignored" in bugs:
                        real = True
                    if "queries-blocked-instead-of-keys" in bugs:
                        real = i < length
                    if "queries-blocked-too" in bugs:
                        real = real and i < length
                    past = j <= i
                    if "causal-without-itself" in bugs:
                        past = j < i
                    if "causal-sees-the-next" in bugs:
                        past = j <= i + 1
                    if "causal-turned-round" in bugs:
                        past = j >= i
                    past = past or not causal
                    both = past or real if "masks-joined-by-or" in bugs else past and real
                    may[n, 0, i, j] = both
        if "built-for-the-other-convention" in bugs:
            may = may.logical_not()
        if "built-without-head-axis" in bugs:
            may = may.squeeze(1)
        if "built-of-zeros-and-ones" in bugs:
            return may.float()
        if "built-to-be-added" in bugs:
            return torch.zeros(may.shape).masked_fill(~may, -math.inf)
        return may

    return fn


def cross_attention(*bugs):
    def fn(layer, x, memory, lengths):
        last = lengths[:, None] + ("cross-padding-off-by-one" in bugs)
        blocked = torch.arange(memory.size(1)).expand(len(x), -1) >= last
        if "cross-mask-inverted" in bugs:
            blocked = blocked.logical_not()
        if "cross-mask-of-numbers" in bugs:
            blocked = blocked.float()
        if "cross-padding-ignored" in bugs:
            blocked = None
        query, key = x, memory
        if "cross-turned-round" in bugs:
            query, key = memory, x
        if "cross-looks-at-itself" in bugs:
            key = x
        if "cross-memory-at-itself" in bugs:
            query = memory
        each = "cross-weights-averaged" not in bugs
        if "cross-mask-repeated" in bugs:
            every = blocked.repeat(layer.num_heads, 1)[:, None].repeat(1, x.size(1), 1)
            return layer(query, key, key, attn_mask=every, average_attn_weights=not each)
        return layer(query, key, key, key_padding_mask=blocked, average_attn_weights=not each)

    return fn


MASK = Solution(
    check=check_attention_mask,
    make=attention_mask,
    exercise=ATTENTION_MASK,
    together=(
        ("built-for-the-other-convention", "causal-without-itself"),
        ("queries-blocked-instead-of-keys", "built-without-head-axis"),
        ("masks-joined-by-or", "built-of-zeros-and-ones"),
    ),
)

CROSS = Solution(
    check=check_cross_attention,
    make=cross_attention,
    exercise=CROSS_ATTENTION,
    together=(("cross-mask-inverted", "cross-weights-averaged"),),
)
