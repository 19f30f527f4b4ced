"""The checks accept every right answer, in whatever form."""

import math

import numpy as np
import pytest
import torch
from learners import (
    Base,
    OneFusedProjection,
    by_einsum,
    merge_by_loop,
    scaled_first,
    split_by_reshape,
)
from torch import nn
from torch.nn import functional as F

from course_utils import attention as ours
from course_utils.exercises import (
    check_merge_heads,
    check_multi_head_attention,
    check_scaled_dot_product_attention,
    check_split_heads,
)


def split_by_loop(x, num_heads):
    out = torch.zeros(x.shape[0], num_heads, x.shape[1], x.shape[2] // num_heads)
    for h in range(num_heads):
        out[:, h] = x[..., h * out.shape[-1] : (h + 1) * out.shape[-1]]
    return out


def split_by_einsum(x, num_heads):
    return torch.einsum("nlhd->nhld", x.unflatten(-1, (num_heads, -1)))


@pytest.mark.parametrize(
    "fn",
    [
        ours.split_heads,
        split_by_reshape,
        split_by_loop,
        split_by_einsum,
        lambda x, num_heads: torch.stack(x.chunk(num_heads, -1), 1),
        lambda x, num_heads: torch.stack(x.split(x.shape[-1] // num_heads, 2)).transpose(0, 1),
        lambda x, num_heads: x.double().unflatten(2, (num_heads, -1)).swapaxes(1, 2),
        # The head axis may also be found by a matrix that picks a head's features.
        lambda x, num_heads: torch.einsum(
            "nlD,hDd->nhld",
            x,
            torch.eye(x.shape[-1]).view(x.shape[-1], num_heads, -1).mT.mT.transpose(0, 1),
        ),
    ],
)
def test_right_ways_to_split(fn):
    assert check_split_heads(fn) is True


@pytest.mark.parametrize(
    "fn",
    [
        ours.merge_heads,
        merge_by_loop,
        lambda x: torch.cat(list(x.unbind(1)), dim=-1),
        lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1),
        lambda x: x.permute(0, 2, 1, 3).contiguous().view(x.shape[0], x.shape[2], -1),
        lambda x: torch.einsum("nhld->nlhd", x).flatten(start_dim=-2),
        lambda x: x.movedim(1, 2).flatten(2).double(),
        lambda x: torch.hstack([x[:, h].mT for h in range(x.shape[1])]).mT,
    ],
)
def test_right_ways_to_merge(fn):
    assert check_merge_heads(fn) is True


def by_rows(query, key, value, mask=None):
    """One query at a time, as in the first lesson."""
    if query.ndim > 2:
        masks = [None] * len(query)
        if mask is not None:
            masks = (
                mask
                if mask.ndim == query.ndim and len(mask) > 1
                else [mask[0] if mask.ndim == query.ndim else mask] * len(query)
            )
        both = [by_rows(*each) for each in zip(query, key, value, masks, strict=True)]
        return torch.stack([o for o, _ in both]), torch.stack([w for _, w in both])
    weights = torch.zeros(len(query), len(key))
    for i, q in enumerate(query):
        for j, k in enumerate(key):
            if mask is None or mask[i, j]:
                weights[i, j] = torch.exp(torch.dot(q, k) / math.sqrt(len(q)))
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return weights @ value, weights


def with_torch(query, key, value, mask=None):
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    _, weights = by_einsum(query, key, value, mask)
    return output, weights.detach()


def renormalised(query, key, value, mask=None):
    weights = torch.exp(query @ key.transpose(-1, -2) / math.sqrt(key.shape[-1]))
    if mask is not None:
        weights = weights * mask
    total = weights.sum(dim=-1, keepdim=True)
    weights = torch.where(total > 0, weights / total.clamp(min=1e-20), 0)
    return weights @ value, weights


def blocked_rows_first(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1)).div(np.sqrt(query.shape[-1]))
    if mask is None:
        return torch.softmax(scores, -1) @ value, torch.softmax(scores, -1)
    nothing = ~mask.any(dim=-1, keepdim=True)
    weights = torch.softmax(torch.where(mask | nothing, scores, -1e9), -1).masked_fill(nothing, 0)
    return weights @ value, weights


def in_float64(query, key, value, mask=None):
    return list(by_einsum(query.double(), key.double(), value.double(), mask))


def column_by_column(query, key, value, mask=None):
    scores = torch.stack([(query * k.unsqueeze(-2)).sum(-1) for k in key.unbind(-2)], dim=-1)
    scores = scores / math.sqrt(query.shape[-1])
    keep = torch.ones_like(scores) if mask is None else mask.expand_as(scores).to(scores)
    top = (scores - 1e4 * (1 - keep)).amax(-1, keepdim=True)
    weights = (scores - top).clamp(max=0).exp() * keep
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
    return sum(
        w.unsqueeze(-1) * v.unsqueeze(-2)
        for w, v in zip(weights.unbind(-1), value.unbind(-2), strict=True)
    ), weights


@pytest.mark.parametrize(
    "fn",
    [
        ours.scaled_dot_product_attention,
        by_einsum,
        by_rows,
        scaled_first,
        with_torch,
        renormalised,
        blocked_rows_first,
        in_float64,
        column_by_column,
    ],
)
def test_right_ways_to_attend(fn, capsys):
    assert check_scaled_dot_product_attention(fn, needs_mask=True) is True
    assert ("; but exp overflows" in capsys.readouterr().out) == (fn in (by_rows, renormalised))


class LoopOverHeads(Base):
    def attend(self, query, key, value, mask):
        outputs, weights = [], []
        for h in range(self.num_heads):
            part = slice(h * self.head_dim, (h + 1) * self.head_dim)
            q = query @ self.q_proj.weight[part].T + self.q_proj.bias[part]
            k = key @ self.k_proj.weight[part].T + self.k_proj.bias[part]
            v = value @ self.v_proj.weight[part].T + self.v_proj.bias[part]
            m = mask if mask is None or mask.ndim == 2 else mask[:, h % mask.shape[1]]
            output, w = scaled_first(q, k, v, m)
            outputs.append(output @ self.out_proj.weight[:, part].T)
            weights.append(w)
        return sum(outputs) + self.out_proj.bias, torch.stack(weights, dim=1)


class OneEinsumAfterTheOther(Base):
    def attend(self, query, key, value, mask):
        heads = (self.num_heads, self.head_dim, self.embed_dim)
        q, k, v = (
            torch.einsum("nlD,hdD->nhld", x, layer.weight.view(heads))
            + layer.bias.view(1, self.num_heads, 1, -1)
            for x, layer in ((query, self.q_proj), (key, self.k_proj), (value, self.v_proj))
        )
        output, weights = renormalised(q, k, v, mask)
        w_o = self.out_proj.weight.view(self.embed_dim, self.num_heads, self.head_dim)
        return torch.einsum("nhld,Dhd->nlD", output, w_o) + self.out_proj.bias, weights


class HeadsInTheBatch(Base):
    def attend(self, query, key, value, mask):
        n, h = len(query), self.num_heads
        q, k, v = (
            torch.cat(layer(x).chunk(h, dim=-1))  # (H·N, L, d_h), head by head
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        if mask is not None:
            mask = mask.expand(n, h, q.shape[1], k.shape[1]).transpose(0, 1).flatten(0, 1)
        output, weights = by_einsum(q, k, v, mask)
        weights = weights.unflatten(0, (h, n)).transpose(0, 1)
        return self.out_proj(torch.cat(output.chunk(h), dim=-1)), weights


class WithTorch(Base):
    def attend(self, query, key, value, mask):
        output, _ = F.multi_head_attention_forward(
            *(x.transpose(0, 1) for x in (query, key, value)),
            self.embed_dim,
            self.num_heads,
            None,
            torch.cat([self.q_proj.bias, self.k_proj.bias, self.v_proj.bias]),
            None,
            None,
            False,
            0.0,
            self.out_proj.weight,
            self.out_proj.bias,
            need_weights=False,
            attn_mask=None
            if mask is None
            else ~mask.expand(len(query), self.num_heads, query.shape[1], key.shape[1]).flatten(
                0, 1
            ),
            use_separate_proj_weight=True,
            q_proj_weight=self.q_proj.weight,
            k_proj_weight=self.k_proj.weight,
            v_proj_weight=self.v_proj.weight,
        )
        return output.transpose(0, 1), super().attend(query, key, value, mask)[1]


class WithReference(Base):
    def attend(self, query, key, value, mask):
        layer = ours.MultiHeadAttention(self.embed_dim, self.num_heads)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(layer, name, getattr(self, name))
        return layer(query, key, value, mask=mask)


class WithDropoutArgument(Base):
    def attend(self, query, key, value, mask):
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, self.head_dim)).swapaxes(1, 2)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        p = 0.2 if self.training else 0.0
        output = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=p)
        return self.out_proj(output.transpose(1, 2).flatten(2)), scaled_first(q, k, v, mask)[1]


class NoBias(Base):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim, bias=False))


class InFloat64(Base):
    dtype = torch.float64


class OwnBuffers(Base):
    """Makes float32 tensors of its own, which is all that the course uses."""

    def attend(self, query, key, value, mask):
        output, weights = super().attend(query, key, value, mask)
        filled = torch.zeros(output.shape)
        for i in range(len(output)):
            filled[i] = filled[i] + output[i]
        return filled @ torch.eye(self.embed_dim), weights


RIGHT_LAYERS = [
    ours.MultiHeadAttention,
    Base,
    LoopOverHeads,
    OneEinsumAfterTheOther,
    HeadsInTheBatch,
    WithTorch,
    OneFusedProjection,
    WithReference,
    WithDropoutArgument,
    NoBias,
    InFloat64,
    OwnBuffers,
]


@pytest.mark.parametrize("cls", RIGHT_LAYERS)
def test_right_layers(cls, capsys):
    assert check_multi_head_attention(cls) is True
    said = capsys.readouterr().out
    assert ("; but exp overflows" in said) == (cls is OneEinsumAfterTheOther)
    assert said.count("; but") == (cls is OneEinsumAfterTheOther)


def test_a_function_that_builds_the_layer_will_do():
    assert check_multi_head_attention(lambda d, h: ours.MultiHeadAttention(d, h, dropout=0.1))
