# exercise = "multi_head_attention"
# verdict = "wrong"
# mistakes = ["query-key-swapped", "projections-swapped"]
#
# The order of another code base: [K; Q; V].

import math

from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        k, q, v = map(self.split, self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
        return self.proj(mixed), weights


answer = Layer
