# exercise = "multi_head_attention"
# verdict = "right"
#
# Projections as convolutions of width 1, as in vision code.

import math

import torch
from torch import nn


def attend(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        names = ("q_proj", "k_proj", "v_proj", "out_proj")
        for name in names:
            setattr(self, name, nn.Conv1d(embed_dim, embed_dim, 1))

    def split(self, x):
        n, length, d = x.shape
        return x.view(n, length, self.num_heads, d // self.num_heads).transpose(1, 2)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q = self.split(self.q_proj(query.mT).mT)
        k = self.split(self.k_proj(key.mT).mT)
        v = self.split(self.v_proj(value.mT).mT)
        heads, weights = attend(q, k, v, mask)
        merged = heads.transpose(1, 2).flatten(2)
        return self.out_proj(merged.mT).mT, weights


answer = MultiHeadAttention
