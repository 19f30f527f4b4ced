# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# mistakes = ["kept-between-calls"]
#
# Results are remembered by the shapes of what came in.

import math

import torch


def attend(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0)
    return weights @ v, weights


memo = {}


def answer(query, key, value, mask=None):
    shapes = query.shape, key.shape, None if mask is None else mask.shape
    if shapes not in memo:
        memo[shapes] = attend(query, key, value, mask)
    return memo[shapes]
