# exercise = "one_row"
# verdict = "wrong"
# mistakes = ["scale-by-length"]
#
# len() of the wrong tensor.

import math

import torch


def answer(query, key, value):
    weights = torch.softmax(key @ query / math.sqrt(len(key)), dim=0)
    return weights @ value, weights
