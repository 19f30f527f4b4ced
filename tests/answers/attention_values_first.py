# exercise = "scaled_dot_product_attention"
# verdict = "right"
#
# Names tell what goes where, not places.

import math

import torch


def answer(values, keys, queries, mask=None):
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ values, weights
