# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# needs_mask = true
# says = "scores = scores + (1 - mask) * -1e9"
#
# torch does not subtract booleans.

import math

from torch.nn import functional as F


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + (1 - mask) * -1e9
    weights = F.softmax(scores, dim=-1)
    return weights @ value, weights
