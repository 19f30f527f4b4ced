# exercise = "multi_head_attention"
# verdict = "right"
# note = "NaN"
#
# torch does all the work, and so gives NaN where a row is blocked as a whole.
# https://github.com/pytorch/pytorch/issues/160064

import torch
from torch import nn
from torch.nn import functional as F


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

    def forward(self, x, mask=None):
        three = (self.q_proj, self.k_proj, self.v_proj)
        if mask is not None:
            blocked = ~mask.expand(len(x), self.num_heads, x.shape[1], x.shape[1])
            mask = blocked.flatten(0, 1)
        output, weights = F.multi_head_attention_forward(
            x.transpose(0, 1),
            x.transpose(0, 1),
            x.transpose(0, 1),
            x.shape[-1],
            self.num_heads,
            torch.cat([layer.weight for layer in three]),
            torch.cat([layer.bias for layer in three]),
            None,
            None,
            False,
            0.0,
            self.out_proj.weight,
            self.out_proj.bias,
            attn_mask=mask,
            average_attn_weights=False,
        )
        return output.transpose(0, 1), weights


answer = Layer
