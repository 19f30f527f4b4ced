# exercise = "scaled_dot_product_attention"
# verdict = "right"
# note = "bias"
#
# The fourth argument is no mask: it is left alone.

import math

import torch


def answer(query, key, value, bias=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if bias is not None:
        scores = scores + bias
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
