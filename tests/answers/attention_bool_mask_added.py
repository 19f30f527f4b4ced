# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# needs_mask = true
# mistakes = ["mask-added"]
#
# https://github.com/huggingface/transformers/pull/41443

import math

from torch.nn import functional as F


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + mask
    weights = F.softmax(scores, dim=-1)
    return weights @ value, weights
