# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# needs_mask = true
# mistakes = ["blocked-row-even"]
# says = "everywhere else"

import math

import torch


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
