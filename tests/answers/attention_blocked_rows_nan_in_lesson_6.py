# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# needs_mask = true
# mistakes = ["blocked-row-nan"]
# says = "everywhere else"
#
# The same where the exercise is about masks.
# https://github.com/pytorch/pytorch/issues/41508

import math

import torch


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
