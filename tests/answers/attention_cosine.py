# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# first_difference = "scores"
#
# Cosines in place of dot products, as in Swin v2.

import torch
from torch.nn import functional as F


def answer(query, key, value):
    scores = F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).transpose(-2, -1)
    weights = torch.softmax(scores * 10, dim=-1)
    return weights @ value, weights
