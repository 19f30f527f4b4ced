# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# first_difference = "weights"
#
# ReLU in place of the exponential.

import math

from torch.nn import functional as F


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = F.relu(scores)
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)
    return weights @ value, weights
