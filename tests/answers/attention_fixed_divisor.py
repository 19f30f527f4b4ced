# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# mistakes = ["fixed-divisor"]
#
# A temperature that was tuned once.

import torch


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / 3.7
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
