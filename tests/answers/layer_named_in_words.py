# exercise = "multi_head_attention"
# verdict = "right"
#
# Plain words for the three, fc_out for the last.
# https://github.com/aladdinpersson/Machine-Learning-Collection/pull/159

import math

from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.queries = nn.Linear(embed_dim, embed_dim)
        self.keys = nn.Linear(embed_dim, embed_dim)
        self.values = nn.Linear(embed_dim, embed_dim)
        self.fc_out = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        q = self.split(self.queries(x))
        k = self.split(self.keys(x))
        v = self.split(self.values(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(x.shape)
        return self.fc_out(mixed), weights


answer = Layer
