# exercise = "multi_head_attention"
# verdict = "right"
#
# Names of one word, as in Bloem's transformers from scratch; the last one is like no other.

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
        names = ("toqueries", "tokeys", "tovalues", "combine")
        for name in names:
            setattr(self, name, nn.Linear(embed_dim, embed_dim))

    def split(self, x):
        n, length, d = x.shape
        return x.view(n, length, self.num_heads, d // self.num_heads).transpose(1, 2)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q = self.split(self.toqueries(query))
        k = self.split(self.tokeys(key))
        v = self.split(self.tovalues(value))
        heads, weights = attend(q, k, v, mask)
        merged = heads.transpose(1, 2).flatten(2)
        return self.combine(merged), weights


answer = MultiHeadAttention
