# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
#
# The fourth argument is a probability, the fifth the mask.

import math

import torch
from torch.nn import functional as F


def answer(q, k, v, dropout_p=0.0, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask
    weights = F.dropout(weights, dropout_p)
    return weights @ v, weights
