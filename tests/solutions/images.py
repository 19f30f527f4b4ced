"""Patches, positions and the maps of [CLS]: lesson 9."""

import math

import torch

from course_utils.exercises import check_add_places, check_cls_maps, check_cut_into_patches
from course_utils.exercises.cls_maps import CLS_MAPS
from course_utils.exercises.patches import ADD_PLACES, CUT_INTO_PATCHES
from solutions.solution import Solution


def cut_into_patches(*bugs):
    def fn(images, size):
        n, high, wide = len(images), images.shape[1] // size, images.shape[2] // size
        x = images.view(n, high, size, wide, size).permute(0, 1, 3, 2, 4)
        if "patches-are-runs-of-pixels" in bugs:
            x = images.view(n, high, wide, size, size)
        if "patches-from-afar" in bugs:
            x = images.view(n, size, high, size, wide).permute(0, 2, 4, 1, 3)
        if "size-and-count-swapped" in bugs:
            x = images.view(n, size, high, size, wide).transpose(2, 3).reshape(x.shape)
        if "other-axes-swapped" in bugs:
            x = images.view(n, high, size, wide, size).transpose(1, 2)
        if "patches-column-by-column" in bugs:
            x = x.permute(0, 2, 1, 3, 4)
        if "pixels-column-by-column" in bugs:
            x = x.permute(0, 1, 2, 4, 3)
        x = x.reshape(n, high * wide, size * size)
        if "patches-and-pixels-swapped" in bugs:
            x = x.transpose(1, 2)
        if "patches-of-all-images-in-one-row" in bugs:
            x = x.reshape(-1, x.shape[-1])
        return x

    return fn


def add_places(*bugs):
    def fn(tokens, cls, positions):
        first = cls.repeat(len(tokens), 1, 1)
        if "cls-forgotten" in bugs:
            return tokens + positions[1:]
        if "cls-without-position" in bugs:
            return torch.cat([first, tokens + positions[: tokens.shape[1]]], dim=1)
        parts = [tokens, first] if "cls-at-the-end" in bugs else [first, tokens]
        x = torch.cat(parts, dim=1)
        if "positions-left-out" in bugs:
            return x
        if "positions-shifted" in bugs:
            positions = torch.cat([positions[-1:], positions[:-1]])
        if "positions-along-the-batch" in bugs:
            return x + positions.unsqueeze(1)
        if "positions-beside" in bugs:
            return torch.cat([x, positions.repeat(len(x), 1, 1)], dim=2)
        return x + positions

    return fn


def cls_maps(*bugs):
    def fn(weights):
        row = weights[:, :, 0]
        if "column-of-cls" in bugs:
            row = weights[:, :, :, 0]
        if "rows-averaged" in bugs:
            row = weights.mean(dim=2)
        if "row-of-a-patch" in bugs:
            row = weights[:, :, 1]
        if "last-row" in bugs:
            row = weights[:, :, -1]
        row = row[:, :, :-1] if "cls-left-in" in bugs else row[:, :, 1:]
        if "maps-made-to-sum-to-one" in bugs:
            row = row / row.sum(dim=-1, keepdim=True)
        if "maps-divided-by-their-largest" in bugs:
            row = row / row.max(dim=-1, keepdim=True).values
        if "cls-maps-averaged" in bugs:
            row = row.mean(dim=1)
        grid = math.isqrt(row.shape[-1])
        laid = row.reshape(*row.shape[:-1], grid, grid)
        return laid.transpose(-1, -2) if "maps-turned" in bugs else laid

    return fn


PATCHES = Solution(
    check=check_cut_into_patches,
    make=cut_into_patches,
    exercise=CUT_INTO_PATCHES,
    together=(
        ("patches-column-by-column", "pixels-column-by-column"),
        ("patches-from-afar", "patches-and-pixels-swapped"),
    ),
)

PLACES = Solution(
    check=check_add_places,
    make=add_places,
    exercise=ADD_PLACES,
    together=(("cls-at-the-end", "positions-left-out"),),
)

MAPS = Solution(
    check=check_cls_maps,
    make=cls_maps,
    exercise=CLS_MAPS,
    together=(
        ("column-of-cls", "cls-maps-averaged", "maps-turned"),
        ("cls-left-in", "maps-made-to-sum-to-one"),
    ),
)
