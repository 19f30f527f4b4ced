# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
#
# An instance of nn.Module where a function is asked for.
# https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/52: such a module.

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        weights = self.dropout(weights)
        return weights @ value, weights


answer = Attention(dropout=0.1)
