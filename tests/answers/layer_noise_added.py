# exercise = "multi_head_attention"
# verdict = "wrong"
# says = "something is random"
#
# Noise for regularisation that nobody switched off: it is random, and drops nothing.

import math

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.out_proj(mixed) + 0.01 * torch.randn_like(x), weights


answer = Layer
