# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# says = "temperature"
#
# The class itself, which cannot be made without arguments: the check says what to pass.
# https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/177: such a module.

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, temperature, dropout):
        super().__init__()
        self.temperature = temperature
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / self.temperature
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        weights = self.dropout(weights)
        return weights @ value, weights


answer = Attention
