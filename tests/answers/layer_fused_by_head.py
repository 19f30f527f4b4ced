# exercise = "multi_head_attention"
# verdict = "wrong"
# mistakes = ["qkv-cut-by-head"]
#
# q, k and v of head 0, then of head 1: torch stacks all of Q first.
# The layout of UvA's tutorials and of GPT-NeoX.

import math

from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        n, length, _ = x.shape
        qkv = self.qkv(x).reshape(n, length, self.num_heads, 3 * self.head_dim)
        q, k, v = qkv.permute(0, 2, 1, 3).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
        return self.o_proj(mixed), weights


answer = Layer
