# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
#
# The mask can only be passed by name.

import math

import torch


def answer(q, k, v, *, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights
