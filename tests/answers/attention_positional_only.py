# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
#
# Arguments without names for callers.

import math

import torch


def answer(query, key, value, /, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights
