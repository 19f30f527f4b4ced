# exercise = "multi_head_attention"
# verdict = "wrong"
# says = "your code needs the argument context_length"
#
# A causal mask of a fixed size is made in advance. Nobody can know how long it should be.
# https://github.com/rasbt/LLMs-from-scratch/tree/main/ch03

import math

from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads, context_length):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, return_weights=True):
        q = self.split(self.q_proj(x))
        k = self.split(self.k_proj(x))
        v = self.split(self.v_proj(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
        output = self.out_proj(mixed)
        return (output, weights) if return_weights else output


answer = Layer
