# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# mistakes = ["weights-transposed"]

import math

import torch


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights.transpose(-1, -2)
