# exercise = "multi_head_attention"
# verdict = "wrong"
# mistakes = ["no-scale"]
#
# As before, and the scale is forgotten.

import math

import torch
from torch import nn


def attend(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0)
    return weights @ v, weights


def shape_of_head(layer):
    return layer.W_Q.shape[-1]


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        shape = (num_heads, embed_dim, embed_dim // num_heads)
        self.W_Q = nn.Parameter(torch.randn(shape))
        self.W_K = nn.Parameter(torch.randn(shape))
        self.W_V = nn.Parameter(torch.randn(shape))
        self.W_O = nn.Parameter(torch.randn(shape).transpose(1, 2))

    def split(self, x):
        n, length, d = x.shape
        return x.view(n, length, self.num_heads, d // self.num_heads).transpose(1, 2)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q = torch.einsum("nld,hde->nhle", query, self.W_Q) * shape_of_head(self) ** 0.5
        k = torch.einsum("nld,hde->nhle", key, self.W_K)
        v = torch.einsum("nld,hde->nhle", value, self.W_V)
        heads, weights = attend(q, k, v, mask)
        merged = heads.transpose(1, 2).flatten(2)
        return merged @ self.W_O.flatten(0, 1), weights


answer = MultiHeadAttention
