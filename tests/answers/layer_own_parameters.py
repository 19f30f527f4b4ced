# exercise = "multi_head_attention"
# verdict = "right"
#
# Matrices of one's own, (in, out): x @ W is right here, where nn.Linear computes x @ W.T.

import math

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Parameter(torch.randn(embed_dim, embed_dim))
        self.k_proj = nn.Parameter(torch.randn(embed_dim, embed_dim))
        self.v_proj = nn.Parameter(torch.randn(embed_dim, embed_dim))
        self.out_proj = nn.Parameter(torch.randn(embed_dim, embed_dim))

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        q = self.split(x @ self.q_proj)
        k = self.split(x @ self.k_proj)
        v = self.split(x @ self.v_proj)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
        return mixed @ self.out_proj, weights


answer = Layer
