# exercise = "scaled_dot_product_attention"
# verdict = "right"
# note = "89"
#
# Lesson 1 computes softmax like this; it overflows where scores are large.

import math

import torch


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    shares = torch.exp(scores)
    weights = shares / shares.sum(-1, keepdim=True)
    return weights @ value, weights
