"""Shared keys, a cache and rotary positions: lesson 10."""

import torch

from course_utils.exercises import check_cached_attention, check_grouped_attention, check_rotary
from course_utils.exercises.language_model import CACHED_ATTENTION, GROUPED_ATTENTION, ROTARY
from solutions.solution import Solution


def grouped_attention(*bugs):
    def fn(query, key, value):
        n, heads, _, width = query.shape
        group = heads // key.shape[1]
        if "kv-heads-tiled" in bugs:
            key, value = (t.repeat(1, group, 1, 1) for t in (key, value))
        elif "first-kv-head-for-all" in bugs:
            key, value = (t[:, :1].repeat(1, heads, 1, 1) for t in (key, value))
        else:
            key, value = (
                t[:, :, None].expand(-1, -1, group, -1, -1).reshape(n, heads, -1, width)
                for t in (key, value)
            )
        if "keys-alone-tiled" in bugs:
            key = key[:, ::group].repeat(1, group, 1, 1)
        if "values-alone-tiled" in bugs:
            value = value[:, ::group].repeat(1, group, 1, 1)
        if "kv-heads-averaged" in bugs:
            key = key.mean(dim=1, keepdim=True)
        scores = torch.einsum("nhqd,nhkd->nhqk", query, key.expand(n, heads, -1, -1))
        if "grouped-not-scaled" not in bugs:
            scores = scores * width**-0.5
        return scores.softmax(-1) @ value

    return fn


def cached_attention(*bugs):
    def fn(query, key, value, past_key, past_value):
        if "cache-forgotten" in bugs:
            past_key, past_value = past_key[:, :, :0], past_value[:, :, :0]
        past, new = past_key.shape[2], key.shape[2]
        keys, values = [past_key, key], [past_value, value]
        if "new-tokens-first" in bugs:
            keys, values = keys[::-1], values[::-1]
        if "new-values-first" in bugs:
            values = [value, past_value]
        keys, values = torch.cat(keys, 2), torch.cat(values, 2)
        first = 0 if "mask-without-offset" in bugs else past
        if "new-token-hidden-from-itself" in bugs:
            first -= 1
        blocked = torch.arange(past + new) > first + torch.arange(new)[:, None]
        if "cached-step-not-causal" in bugs:
            blocked = torch.zeros_like(blocked)
        scores = query @ keys.transpose(-1, -2) * query.shape[-1] ** -0.5
        return scores.masked_fill(blocked, float("-inf")).softmax(-1) @ values

    return fn


def rotary(*bugs):
    def fn(x, positions):
        width, length = x.shape[-1], x.shape[2]
        if "positions-restart" in bugs:
            positions = torch.arange(length)
        exponents = torch.arange(0, width, 2) / width
        if "rotary-speeds-halved" in bugs:
            exponents = exponents / 2
        if "rotary-one-speed" in bugs:
            exponents = exponents * 0
        angles = positions[:, None] / 10_000**exponents
        if "rotary-backwards" in bugs:
            angles = -angles
        if "rotary-in-pairs" in bugs:
            a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
            out = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
            return torch.stack(out, -1).reshape(x.shape)
        if "rotary-layouts-mixed" in bugs:
            angles = angles.repeat_interleave(2, dim=-1)
        else:
            angles = torch.cat([angles, angles], -1)
        swapped = torch.cat([-x[..., width // 2 :], x[..., : width // 2]], -1)
        return x * angles.cos() + swapped * angles.sin()

    return fn


GROUPED = Solution(
    check=check_grouped_attention,
    make=grouped_attention,
    exercise=GROUPED_ATTENTION,
    together=(("kv-heads-tiled", "grouped-not-scaled"),),
)
CACHED = Solution(
    check=check_cached_attention,
    make=cached_attention,
    exercise=CACHED_ATTENTION,
    together=(
        ("cache-forgotten", "cached-step-not-causal"),
        ("new-values-first", "mask-without-offset"),
    ),
)
ROTATION = Solution(
    check=check_rotary,
    make=rotary,
    exercise=ROTARY,
    together=(("rotary-in-pairs", "rotary-backwards"), ("positions-restart", "rotary-one-speed")),
)
