# exercise = "scaled_dot_product_attention"
# verdict = "right"
#
# functools.partial has filled in one argument.

from functools import partial

import torch
from torch.nn import functional as F


def attend(query, key, value, mask=None, scale=None, dropout=0.0):
    scores = query @ key.transpose(-2, -1) * (scale or query.shape[-1] ** -0.5)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = F.dropout(torch.softmax(scores, dim=-1), dropout)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights


answer = partial(attend, dropout=0.0)
