# exercise = "one_row"
# verdict = "right"
#
# Number by number, as lesson 1 does it.

import math

import torch


def answer(query, key, value):
    scores = [float(query @ k) / math.sqrt(len(query)) for k in key]
    shares = [math.exp(s) for s in scores]
    weights = torch.tensor([s / sum(shares) for s in shares])
    return weights @ value, weights
