# exercise = "multi_head_attention"
# verdict = "right"
#
# Four equal linear layers in a list; the last one is W_O (the Annotated Transformer's way).

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
        self.linears = nn.ModuleList(nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def split(self, x):
        n, length, d = x.shape
        return x.view(n, length, self.num_heads, d // self.num_heads).transpose(1, 2)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        inputs = zip(self.linears, (query, key, value), strict=False)
        q, k, v = (self.split(project(x)) for project, x in inputs)
        heads, weights = attend(q, k, v, mask)
        merged = heads.transpose(1, 2).flatten(2)
        return self.linears[-1](merged), weights


answer = MultiHeadAttention
