# exercise = "multi_head_attention"
# verdict = "right"
#
# Loops over samples and heads.

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

    def forward(self, x):
        outputs, maps = [], []
        for sample in x:
            heads = []
            for h in range(self.num_heads):
                own = slice(h * self.head_dim, (h + 1) * self.head_dim)
                q = self.q_proj(sample)[:, own]
                k = self.k_proj(sample)[:, own]
                v = self.v_proj(sample)[:, own]
                weights = torch.softmax(q @ k.T / self.head_dim**0.5, dim=1)
                heads.append((weights @ v, weights))
            outputs.append(self.out_proj(torch.cat([mixed for mixed, _ in heads], dim=1)))
            maps.append(torch.stack([weights for _, weights in heads]))
        return torch.stack(outputs), torch.stack(maps)


answer = Layer
