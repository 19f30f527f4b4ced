# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# says = "your code raised"
#
# A buffer of fixed size, as nanoGPT's block_size: longer texts do not fit.

import math

import torch


def answer(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is None:
        mask = torch.ones(32, 32, dtype=torch.bool)[: scores.shape[-2], : scores.shape[-1]]
        scores = scores.masked_fill(~mask, -1e9)
        weights = torch.softmax(scores, dim=-1)
        return weights @ value, weights
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1) * mask
    return weights @ value, weights
