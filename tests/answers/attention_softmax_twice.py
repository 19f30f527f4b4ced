# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# mistakes = ["softmax-twice"]

import math

import torch


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.softmax(-1)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
