# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# mistakes = ["always-causal"]

import math

import torch


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    past = torch.tril(torch.ones_like(scores))
    weights = torch.softmax(scores.masked_fill(past == 0, -1e9), dim=-1)
    return weights @ value, weights
