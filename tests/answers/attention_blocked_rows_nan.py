# exercise = "scaled_dot_product_attention"
# verdict = "right"
# note = "NaN"
#
# Right but in a blocked row, and lesson 1 does not ask for masks.

import math

import torch


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
