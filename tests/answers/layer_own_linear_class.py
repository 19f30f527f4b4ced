# exercise = "multi_head_attention"
# verdict = "right"
#
# The linear layer of GPT-2, which stores (in, out).

import math

import torch
from torch import nn


class Conv1D(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) * 0.02)  # (in, out)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return torch.addmm(self.bias, x.flatten(0, -2), self.weight).view(x.shape)


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = Conv1D(embed_dim)
        self.k_proj = Conv1D(embed_dim)
        self.v_proj = Conv1D(embed_dim)
        self.out_proj = Conv1D(embed_dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        q = self.split(self.q_proj(x))
        k = self.split(self.k_proj(x))
        v = self.split(self.v_proj(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
        return self.out_proj(mixed), weights


answer = Layer
