"""Reading the maps of single heads: lessons 5 and 8."""

import torch
from torch import nn

from course_utils.exercises import check_per_head_weights, check_previous_token
from course_utils.exercises.maps import PREVIOUS_TOKEN, per_head_weights
from solutions.solution import Solution


class Block(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.attention = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, x):
        h = self.norm(x)
        output, averaged = self.attention(h, h, h)
        return x + output, averaged


def per_head(*bugs):
    def fn(block, x):
        h = x if "input-not-normalised" in bugs else block.norm(x)
        maps = block.attention(h, h, h, average_attn_weights=False)[1]
        if "maps-averaged" in bugs:
            return maps.mean(1)
        if "average-repeated" in bugs:
            return maps.mean(1)[:, None].repeat(1, maps.shape[1], 1, 1)
        return maps

    return fn


def previous_token(*bugs):
    def fn(weights):
        _, _, length, _ = weights.shape
        steps = [weights[:, :, i, i - 1] for i in range(1, length)]
        if "next-token-scored" in bugs:
            steps = [weights[:, :, i, i + 1] for i in range(length - 1)]
        if "own-token-scored" in bugs:
            steps = [weights[:, :, i, i] for i in range(length)]
        if "first-column-scored" in bugs:
            steps = [weights[:, :, i, 0] for i in range(1, length)]
        if "first-query-wraps" in bugs:
            steps = [weights[:, :, i, i - 1] for i in range(length)]
        each = torch.stack(steps, dim=-1)
        if "diagonal-of-wrong-axes" in bugs:
            each = torch.diagonal(weights, -1)
        scores = each.mean(-1)
        if "first-query-counted" in bugs:
            scores = each.sum(-1) / length
        if "queries-added-up" in bugs:
            scores = each.sum(-1)
        if "largest-query-taken" in bugs:
            scores = each.max(-1).values
        if "samples-kept-apart" in bugs:
            return scores
        if "all-averaged" in bugs:
            return scores.mean()
        if "samples-added-up" in bugs:
            return scores.sum(0)
        return scores.mean(1 if "heads-averaged-away" in bugs else 0)

    return fn


BLOCK = Solution(
    check=lambda fn: check_per_head_weights(fn, Block),
    make=per_head,
    exercise=per_head_weights(Block),
    together=(("input-not-normalised", "maps-averaged"),),
)

PREVIOUS = Solution(
    check=check_previous_token,
    make=previous_token,
    exercise=PREVIOUS_TOKEN,
    together=(
        ("next-token-scored", "first-query-counted"),
        ("next-token-scored", "samples-kept-apart"),
    ),
)
