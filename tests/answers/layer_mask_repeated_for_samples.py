# exercise = "multi_head_attention"
# verdict = "wrong"
# first_difference = "weights"
#
# Heads come before samples, and the mask has them the other way round.
# https://github.com/lsdefine/attention-is-all-you-need-keras/issues/36

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

    def forward(self, query, key, value, mask=None):
        n, h = len(query), self.num_heads
        q = torch.cat(self.q_proj(query).chunk(h, dim=-1))  # (H·N, L, d_h), head by head
        k = torch.cat(self.k_proj(key).chunk(h, dim=-1))
        v = torch.cat(self.v_proj(value).chunk(h, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if mask is not None:
            mask = mask.expand(n, h, q.shape[1], k.shape[1]).flatten(0, 1)  # sample by sample
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights * mask
        output = torch.cat((weights @ v).chunk(h), dim=-1)
        return self.out_proj(output), weights.unflatten(0, (h, n)).transpose(0, 1)


answer = Layer
