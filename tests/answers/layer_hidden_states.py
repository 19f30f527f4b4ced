# exercise = "multi_head_attention"
# verdict = "right"
#
# The names of the transformers library.

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

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        q = self.split(self.q_proj(hidden_states))
        k = self.split(self.k_proj(hidden_states))
        v = self.split(self.v_proj(hidden_states))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask.logical_not(), torch.finfo(scores.dtype).min)
        weights = nn.functional.softmax(scores, dim=-1)
        if attention_mask is not None:
            weights = weights * attention_mask
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        output = self.out_proj(mixed)
        return (output, weights) if output_attentions else (output,)


answer = Layer
