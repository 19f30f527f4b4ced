# exercise = "multi_head_attention"
# verdict = "right"
#
# One narrow nn.Linear for each head.

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
        width = embed_dim // num_heads
        heads = range(num_heads)
        self.queries = nn.ModuleList(nn.Linear(embed_dim, width) for _ in heads)
        self.keys = nn.ModuleList(nn.Linear(embed_dim, width) for _ in heads)
        self.values = nn.ModuleList(nn.Linear(embed_dim, width) for _ in heads)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        n, length, d = x.shape
        return x.view(n, length, self.num_heads, d // self.num_heads).transpose(1, 2)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q = torch.stack([project(query) for project in self.queries], dim=1)
        k = torch.stack([project(key) for project in self.keys], dim=1)
        v = torch.stack([project(value) for project in self.values], dim=1)
        heads, weights = attend(q, k, v, mask)
        merged = heads.transpose(1, 2).flatten(2)
        return self.out_proj(merged), weights


answer = MultiHeadAttention
