# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# needs_mask = true
# mistakes = ["blocked-row-even"]
#
# The mask is added, as in the first BERT code.

import math

from torch.nn import functional as F


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + (1.0 - mask.float()) * -1e9
    weights = F.softmax(scores, dim=-1)
    return weights @ value, weights
