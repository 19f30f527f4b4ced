"""The exercises of lesson 9: what else is right, and what else is wrong."""

import math

import pytest
import torch
from solutions import SOLUTIONS
from solutions.images import add_places, cls_maps, cut_into_patches

from course_utils.exercises import (
    CheckFailed,
    check_add_places,
    check_cls_maps,
    check_cut_into_patches,
)


@pytest.mark.parametrize("name", ["cut_into_patches", "add_places", "cls_maps"])
def test_an_unknown_mistake_is_not_named(name):
    solution = SOLUTIONS[name]
    with pytest.raises(CheckFailed, match="no known mistake") as failed:
        solution.check(lambda *args: 2 * solution.make()(*args))
    assert failed.value.mistakes == ()


@pytest.mark.parametrize("pair", [(1, 2), (1, 3), (1, 4), (2, 4), (3, 4)])
def test_any_other_swap_of_axes_is_named(pair):
    def fn(images, size):
        n, high, wide = images.shape
        x = images.view(n, high // size, size, wide // size, size)
        return x.transpose(*pair).reshape(n, -1, size * size)

    with pytest.raises(CheckFailed) as failed:
        check_cut_into_patches(fn)
    assert failed.value.explanations == (("other-axes-swapped",),)


def test_a_mean_over_the_patches_alone_is_named():
    with pytest.raises(CheckFailed) as failed:
        check_cls_maps(lambda w: cls_maps()(w[:, :, 1:].mean(2, keepdim=True)))
    assert failed.value.explanations == (("rows-averaged",),)


def test_what_belongs_to_no_sample_mixes_none():
    """The vectors cls and positions are the same for all samples: to change them is no leak."""
    with pytest.raises(CheckFailed, match="no known mistake") as failed:
        check_add_places(lambda tokens, cls, positions: add_places()(tokens, cls, positions) + 1)
    assert "samples mix" not in str(failed.value)


class TestOtherWays:
    def test_numpy_cuts_too(self):
        def fn(images, size):
            n, high, wide = images.shape
            x = images.numpy().reshape(n, high // size, size, wide // size, size).swapaxes(2, 3)
            return torch.from_numpy(x.reshape(n, -1, size * size))

        assert check_cut_into_patches(fn) is True

    def test_numpy_lays_out_maps_too(self):
        def fn(weights):
            side = math.isqrt(weights.shape[-1])
            return torch.from_numpy(
                weights.numpy()[:, :, 0, 1:].reshape(*weights.shape[:2], side, -1)
            )

        assert check_cls_maps(fn) is True

    def test_size_and_count_in_each_others_place_are_named(self):
        def fn(images, size):
            n, h, w = images.shape
            x = images.reshape(n, size, h // size, size, w // size).transpose(2, 3)
            return x.reshape(n, -1, size**2)

        with pytest.raises(CheckFailed, match="size and number of patches have changed") as failed:
            check_cut_into_patches(fn)
        assert failed.value.explanations == (("size-and-count-swapped",),)

    def test_unfold_cuts_too(self):
        def fn(images, size):
            x = images.unfold(1, size, size).unfold(2, size, size)
            return x.reshape(len(images), -1, size * size)

        assert check_cut_into_patches(fn) is True

    def test_a_loop_cuts_too(self):
        def fn(images, size):
            rows, columns = (range(0, side, size) for side in images.shape[1:])
            squares = [
                images[:, r : r + size, c : c + size].flatten(1) for r in rows for c in columns
            ]
            return torch.stack(squares, dim=1)

        assert check_cut_into_patches(fn) is True

    def test_a_fixed_size_is_noticed(self):
        with pytest.raises(CheckFailed, match="is a size fixed in your code"):
            check_cut_into_patches(lambda images, size: cut_into_patches()(images, 2))

    def test_positions_may_come_in_two_parts(self):
        def fn(tokens, cls, positions):
            first = (cls + positions[0]).expand(len(tokens), 1, -1)
            return torch.cat([first, tokens + positions[1:]], dim=1)

        assert check_add_places(fn) is True

    def test_the_other_half_of_positions_is_named_too(self):
        def fn(tokens, cls, positions):
            return torch.cat([cls.repeat(len(tokens), 1, 1), tokens + positions[1:]], dim=1)

        with pytest.raises(CheckFailed) as failed:
            check_add_places(fn)
        assert failed.value.mistakes == ("cls-without-position",)
