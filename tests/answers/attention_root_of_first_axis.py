# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# mistakes = ["scale-by-first-axis"]
#
# shape[0] was the width as long as there was one query.

import math

import torch


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[0])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
