# exercise = "multi_head_attention"
# verdict = "right"
#
# Two masks, in the order of nn.MultiheadAttention: the fourth argument is not the one meant.

import math

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q = self.split(self.q_proj(query))
        k = self.split(self.k_proj(key))
        v = self.split(self.v_proj(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
        if key_padding_mask is not None:  # here True is padding, (N, L_k)
            scores = scores.masked_fill(key_padding_mask[:, None, None], -math.inf)
        weights = scores.softmax(-1)
        if attn_mask is not None:
            weights = weights * attn_mask
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.out_proj(mixed), weights


answer = Layer
