# exercise = "multi_head_attention"
# verdict = "right"
#
# Keys and values come from one projection, as in Perceiver-like code bases (to_kv).

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
        self.to_q = nn.Linear(embed_dim, embed_dim)
        self.to_kv = nn.Linear(embed_dim, 2 * embed_dim)
        self.to_out = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        n, length, d = x.shape
        return x.view(n, length, self.num_heads, d // self.num_heads).transpose(1, 2)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        k, v = map(self.split, self.to_kv(key).chunk(2, dim=-1))
        q = self.split(self.to_q(query))
        if value is not key:
            v = self.split(self.to_kv(value).chunk(2, dim=-1)[1])
        heads, weights = attend(q, k, v, mask)
        merged = heads.transpose(1, 2).flatten(2)
        return self.to_out(merged), weights


answer = MultiHeadAttention
