# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
#
# A lambda around a function whose mask has no default.

import math

import torch


def attend(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights


answer = lambda q, k, v, mask=None: attend(q, k, v, mask)
