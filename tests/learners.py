"""Learners' code that is right, to build others on."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises import CheckFailed


def failure(check, learner):
    with pytest.raises(CheckFailed) as caught:
        check(learner)
    return caught.value


def split_by_reshape(x, num_heads):
    n, length, d = x.shape
    return x.reshape(n, length, num_heads, d // num_heads).permute(0, 2, 1, 3).contiguous()


def merge_by_loop(x):
    n, h, length, d = x.shape
    out = x.new_empty(n, length, h * d)
    for i in range(h):
        out[:, :, i * d : (i + 1) * d] = x[:, i]
    return out


def by_einsum(query, key, value, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def scaled_first(query, key, value, mask=None):
    weights = (query * query.size(-1) ** -0.5) @ key.mT
    if mask is not None:
        weights = weights.masked_fill(mask.logical_not(), torch.finfo(weights.dtype).min)
    weights = weights.softmax(-1)
    if mask is not None:
        weights = weights * mask
    return weights @ value, weights


class Base(nn.Module):
    """The four layers; a subclass says how they are used."""

    dtype = None

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim, dtype=self.dtype)
        self.k_proj = nn.Linear(embed_dim, embed_dim, dtype=self.dtype)
        self.v_proj = nn.Linear(embed_dim, embed_dim, dtype=self.dtype)
        self.out_proj = nn.Linear(embed_dim, embed_dim, dtype=self.dtype)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        return self.attend(query, key, value, mask)

    def attend(self, query, key, value, mask):
        q, k, v = (
            split_by_reshape(layer(x), self.num_heads)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        output, weights = by_einsum(q, k, v, mask)
        return self.out_proj(merge_by_loop(output)), weights


class OneFusedProjection(Base):
    """Extra attributes, a submodule, a helper, and a layer with fused weights."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.norm = nn.LayerNorm(embed_dim)
        self.register_buffer("steps", torch.zeros(1))
        self.drop = nn.Dropout(0.3)
        self.last_weights = None

    def fused(self, x):
        layers = (self.q_proj, self.k_proj, self.v_proj)
        weight, bias = (
            torch.cat([getattr(a, name) for a in layers]) for name in ("weight", "bias")
        )
        return F.linear(x, weight, bias).chunk(3, dim=-1)

    def attend(self, query, key, value, mask):
        self.steps += 1
        parts = self.fused(query)[0], self.fused(key)[1], self.fused(value)[2]
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for x in parts)
        _, weights = scaled_first(q, k, v, mask)
        self.last_weights = weights
        output = self.drop(weights) @ v  # dropout in train mode is nobody's business
        return self.out_proj(output.transpose(1, 2).flatten(2)), weights
