# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
#
# NaN is made, and replaced: the numbers are right.

import math

import torch


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ value, weights
