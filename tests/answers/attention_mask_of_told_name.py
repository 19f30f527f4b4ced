# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
# mask = "allowed"
#
# The same, with the answer given.

import math

import torch


def answer(query, key, value, allowed=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if allowed is not None:
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if allowed is not None:
        weights = weights.masked_fill(~allowed, 0.0)
    return weights @ value, weights
