# exercise = "multi_head_attention"
# verdict = "wrong"
# mistakes = ["shared-small-projection", "blocked-row-even"]
#
# All heads share one small layer, as in a much copied video.
# https://github.com/aladdinpersson/Machine-Learning-Collection/pull/159 is about its scale.

import math

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.values = nn.Linear(self.head_dim, self.head_dim)
        self.keys = nn.Linear(self.head_dim, self.head_dim)
        self.queries = nn.Linear(self.head_dim, self.head_dim)
        self.fc_out = nn.Linear(embed_dim, embed_dim)

    def forward(self, values, keys, query, mask):
        n = query.shape[0]
        v = self.values(values.reshape(n, -1, self.num_heads, self.head_dim))
        k = self.keys(keys.reshape(n, -1, self.num_heads, self.head_dim))
        q = self.queries(query.reshape(n, -1, self.num_heads, self.head_dim))
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        weights = torch.softmax(energy / math.sqrt(self.head_dim), dim=3)
        out = torch.einsum("nhqk,nkhd->nqhd", weights, v).flatten(2)
        return self.fc_out(out), weights


answer = Layer
