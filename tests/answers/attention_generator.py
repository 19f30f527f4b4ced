# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# says = "Is there a yield where a return is meant?"
#
# Output and weights are yielded.

import math

import torch


def attend(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0)
    return weights @ v, weights


def answer(query, key, value, mask=None):
    output, weights = attend(query, key, value, mask)
    yield output
    yield weights
