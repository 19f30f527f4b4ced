# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# needs_mask = true
# says = "mask='allowed'"
#
# Nobody can know that this is the mask: the check asks.

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
