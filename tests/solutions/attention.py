"""The parts of a layer, and the layer: lessons 1, 3 and 4."""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from course_utils.exercises import (
    check_merge_heads,
    check_scaled_dot_product_attention,
    check_split_heads,
)
from course_utils.exercises.attention import SCALED_DOT_PRODUCT_ATTENTION
from course_utils.exercises.heads import MERGE_HEADS, SPLIT_HEADS
from course_utils.exercises.judge import check
from course_utils.exercises.layer import MULTI_HEAD_ATTENTION
from solutions.solution import Solution

LEFT_AS_THEY_ARE = {  # masks after which nobody makes the blocked weights 0
    *("mask-added", "mask-multiplied"),
    *("blocked-row-even", "blocked-row-nan", "blocked-row-open"),
}
RETURN_LINE = ("returned-in-wrong-order", "only-first-returned")


def split(x, num_heads, bugs=()):
    batch_size, seq_len, embed_dim = x.shape
    head_dim = embed_dim // num_heads
    if "split-interleaved" in bugs:
        heads = [x[:, :, h::num_heads] for h in range(num_heads)]
    else:
        heads = [x[:, :, h * head_dim : (h + 1) * head_dim] for h in range(num_heads)]
    if "split-without-transpose" in bugs:
        return torch.cat(heads, dim=2).view(batch_size, num_heads, seq_len, head_dim)
    if "heads-stay-behind-tokens" in bugs:
        return torch.stack(heads, dim=2)
    return torch.stack(heads, dim=0 if "split-heads-before-batch" in bugs else 1)


def merge(x, bugs=()):
    if "merge-heads-before-batch" in bugs:
        heads = list(x)  # each (N, L, d_h)
    elif "merge-transposes-features" in bugs:
        n, h, length, d = x.shape
        heads = x.transpose(1, 3).reshape(n, length, h, d).unbind(2)
    elif "merge-without-transpose" in bugs:
        n, h, length, d = x.shape
        heads = x.reshape(n, length, h, d).unbind(2)
    elif "merge-joins-tokens" in bugs:
        heads = x.unbind(2)
    else:
        heads = x.unbind(1)
    if "merge-interleaved" in bugs:
        return torch.stack(heads, dim=-1).flatten(2)
    if "heads-averaged" in bugs:
        return sum(heads) / len(heads)
    return sum(heads) if "heads-summed" in bugs else torch.cat(heads, dim=-1)


def attention(query, key, value, mask=None, bugs=(), num_heads=1):
    left, right = (key, query) if "query-key-swapped" in bugs else (query, key)
    scores = torch.einsum("...id,...jd->...ij", left, right)
    d = query.shape[-1]
    if "scale-by-embed-dim" in bugs:
        scores = scores / math.sqrt(d * num_heads)
    elif "scale-without-root" in bugs:
        scores = scores / d
    elif "scale-by-length" in bugs:
        scores = scores / math.sqrt(query.shape[-2])
    elif "scale-by-first-axis" in bugs:
        scores = scores / math.sqrt(len(query))
    elif "fixed-divisor" in bugs:
        scores = scores / 3.3
    elif "scale-multiplied" in bugs:
        scores = scores * d**0.5
    elif "no-scale" not in bugs:
        scores = scores * d**-0.5
    if "scores-averaged" in bugs:
        scores = scores.mean(dim=1, keepdim=True).expand(scores.shape)

    if mask is not None and "mask-inverted" in bugs:
        mask = ~mask
    if "mask-ignored" in bugs:
        mask = None
    if mask is not None and "mask-first-row-only" in bugs:
        mask = mask[..., 0, :].unsqueeze(-2)
    if "always-causal" in bugs:
        past = torch.tril(torch.ones(scores.shape[-2:])) == 1
        mask = past if mask is None else mask & past
    masked = scores
    if mask is not None:
        if "mask-added" in bugs:
            masked = scores + mask.float()
        elif "mask-multiplied" in bugs:
            masked = scores * mask.int()
        elif "blocked-row-even" in bugs:
            masked = scores.masked_fill(mask == 0, -1e9)
        elif "blocked-row-open" in bugs:
            masked = scores + (1.0 - mask.to(scores)) * -1e4
        elif "mask-after-softmax" not in bugs:
            masked = torch.where(mask, scores, -torch.inf)

    dim = -1
    if "softmax-over-queries" in bugs:
        dim = -2
    if "softmax-over-heads" in bugs:
        dim = 1
    if "softmax-over-batch" in bugs:
        dim = 0
    weights = masked.softmax(dim)
    if mask is not None:
        if "mask-after-softmax" in bugs:
            weights = weights.masked_fill(~mask, 0)
        elif not LEFT_AS_THEY_ARE & set(bugs):
            weights = weights.nan_to_num(0)
    if "softmax-twice" in bugs:
        weights = weights.softmax(dim)
    if "weights-averaged-before-mixing" in bugs:
        weights = weights.mean(dim=1, keepdim=True).expand(weights.shape)
    if "dropout-in-eval" in bugs:
        weights = nn.functional.dropout(weights, 0.2)

    output = torch.einsum("...ij,...jd->...id", weights, key if "keys-as-values" in bugs else value)
    if "weights-averaged" in bugs:
        weights = weights.mean(dim=1)
    if "weights-transposed" in bugs:
        weights = weights.transpose(-1, -2)
    if "weights-heads-first" in bugs:
        weights = weights.permute(1, 0, 2, 3)
    if "scores-returned" in bugs:
        weights = scores
    if "masked-scores-returned" in bugs:
        weights = masked
    if "unmasked-weights-returned" in bugs:
        weights = torch.exp(scores) / torch.exp(scores).sum(dim, keepdim=True)
    return returned(output, weights, bugs)


def returned(output, weights, bugs):
    if "only-first-returned" in bugs:
        return output
    return (weights, output) if "returned-in-wrong-order" in bugs else (output, weights)


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads, bugs=()):
        super().__init__()
        self.num_heads, self.bugs = num_heads, bugs
        head_dim = embed_dim // num_heads
        width = head_dim if "shared-small-projection" in bugs else embed_dim
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        if "no-output-projection" not in bugs:
            narrow = "heads-averaged" in bugs or "heads-summed" in bugs
            self.out_proj = nn.Linear(head_dim if narrow else embed_dim, embed_dim)

    def project(self, x, layer):
        if "inputs-not-projected" in self.bugs:
            return split(x, self.num_heads, self.bugs)
        if "shared-small-projection" in self.bugs:
            return self.linear(split(x, self.num_heads, self.bugs), layer)
        return split(self.linear(x, layer), self.num_heads, self.bugs)

    def linear(self, x, layer):
        if "linear-weight-not-transposed" in self.bugs:
            return x @ layer.weight + layer.bias
        return layer(x)

    def project_and_cut_by_head(self, inputs, layers):
        joined = torch.cat(
            [self.linear(x, layer) for x, layer in zip(inputs, layers, strict=True)], 2
        )
        n, length, _ = joined.shape
        return joined.view(n, length, self.num_heads, -1).transpose(1, 2).chunk(3, dim=-1)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        if "key-and-value-ignored" in self.bugs:
            key = value = query
        if "value-ignored" in self.bugs:
            value = key
        layers = [self.q_proj, self.k_proj, self.v_proj]
        if "projections-swapped" in self.bugs:
            layers = [self.k_proj, self.q_proj, self.v_proj]
        if "key-through-q-proj" in self.bugs:
            layers[1] = self.q_proj
        if "value-through-k-proj" in self.bugs:
            layers[2] = self.k_proj
        if "value-through-q-proj" in self.bugs:
            layers[2] = self.q_proj
        if "key-and-value-projections-swapped" in self.bugs:
            layers = [self.q_proj, self.v_proj, self.k_proj]
        if "query-and-value-projections-swapped" in self.bugs:
            layers = [self.v_proj, self.k_proj, self.q_proj]
        if "projections-in-another-order" in self.bugs:
            layers = [self.v_proj, self.q_proj, self.k_proj]
        if "one-projection" in self.bugs:
            layers = [self.q_proj] * 3
        if "qkv-cut-by-head" in self.bugs:
            q, k, v = self.project_and_cut_by_head((query, key, value), layers)
        else:
            q, k, v = map(self.project, (query, key, value), layers)
        inner = [bug for bug in self.bugs if bug not in RETURN_LINE]
        output, weights = attention(q, k, v, mask, inner, self.num_heads)
        output = merge(output, self.bugs)
        if "no-output-projection" not in self.bugs:
            if "out-weight-not-transposed" in self.bugs:
                output = output @ self.out_proj.weight + self.out_proj.bias
            else:
                output = self.out_proj(output)
            if "residual-added" in self.bugs:
                output = output + query
            if "bias-once-per-head" in self.bugs:
                for _ in range(self.num_heads - 1):
                    output = output + self.out_proj.bias
        return returned(output, weights, self.bugs)


def split_with(*bugs):
    return lambda x, num_heads: split(x, num_heads, bugs)


def merge_with(*bugs):
    return lambda x: merge(x, bugs)


def attention_with(*bugs):
    return lambda query, key, value, mask=None: attention(query, key, value, mask, bugs)


def layer_with(*bugs):
    return lambda embed_dim, num_heads: Layer(embed_dim, num_heads, bugs)


SPLIT = Solution(
    check=check_split_heads,
    make=split_with,
    exercise=SPLIT_HEADS,
)

MERGE = Solution(
    check=check_merge_heads,
    make=merge_with,
    exercise=MERGE_HEADS,
)

ATTENTION = Solution(
    check=partial(check_scaled_dot_product_attention, needs_mask=True),
    make=attention_with,
    exercise=SCALED_DOT_PRODUCT_ATTENTION,
)

LAYER = Solution(
    # Rows that are blocked as a whole are mistakes here, not just notes.
    check=partial(check, replace(MULTI_HEAD_ATTENTION, asks_for_masks=True)),
    make=layer_with,
    exercise=MULTI_HEAD_ATTENTION,
)
