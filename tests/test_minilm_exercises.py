"""The exercises of lesson 8: what else is right, and what else is wrong."""

import numpy as np
import pytest
import torch
from solutions.maps import previous_token
from solutions.sentences import mean_pool
from torch.nn import functional as F

from course_utils.exercises import (
    CheckFailed,
    check_mean_pool,
    check_previous_token,
    check_remove_head,
)


class TestRight:
    def test_other_ways(self):
        def pool(x, mask):
            hidden = x.masked_fill(~mask[..., None], torch.nan)
            mean = hidden.nanmean(1)
            return mean, F.normalize(mean, dim=1)

        def remove(weight, bias, num_heads, head):
            keep = torch.ones(num_heads)
            keep[head] = 0
            return weight * keep.repeat_interleave(len(bias) // num_heads), bias

        assert check_mean_pool(pool)
        assert check_remove_head(remove)
        assert check_previous_token(lambda w: w.diagonal(-1, 2, 3).mean((0, 2)))

    def test_numpy_pools_too(self):
        def pool(x, mask):
            rows = [row[own].mean(0) for row, own in zip(x.numpy(), mask.numpy(), strict=True)]
            mean = torch.tensor(np.stack(rows))
            return mean, mean / mean.norm(dim=-1, keepdim=True)

        assert check_mean_pool(pool) is True


class TestWrong:
    def test_the_mask_is_called_as_in_the_exercise(self):
        def in_place(x, mask):
            mask[:, 0] = False
            return mean_pool()(x, mask)

        with pytest.raises(CheckFailed, match="changes its input mask in place"):
            check_mean_pool(in_place)
        with pytest.raises(CheckFailed) as failed:
            check_mean_pool(lambda x, mask: (x[:, 0] + 1, x[:, 0] + 1))
        assert r"  input: x (1, 3, 4), mask (1, 3)" in str(failed.value)
        assert "is_token" not in str(failed.value)
        assert "Without a mask" not in str(failed.value)

    def test_a_block_that_begins_at_0_is_named_too(self):
        def fn(weight, bias, num_heads, head):
            cleared = weight.clone()
            cleared[:, : (head + 1) * len(bias) // num_heads] = 0
            return cleared, bias

        with pytest.raises(CheckFailed) as failed:
            check_remove_head(fn)
        assert failed.value.explanations == (("block-open-at-one-end",),)

    def test_the_results_are_called_by_their_names(self):
        with pytest.raises(CheckFailed, match="only one result came back; expected mean, unit"):
            check_mean_pool(lambda x, mask: mean_pool()(x, mask)[1])

    def test_heads_counted_from_1_in_a_slice(self):
        def fn(weight, bias, num_heads, head):
            width = len(bias) // num_heads
            cleared = weight.clone()
            cleared[:, (head - 1) * width : head * width] = 0
            return cleared, bias

        with pytest.raises(CheckFailed) as failed:
            check_remove_head(fn)
        assert failed.value.explanations == (("counts-heads-from-1",),)

    def test_one_sample_for_all_is_no_fixed_size(self):
        with pytest.raises(CheckFailed) as failed:
            check_previous_token(lambda w: w[0].diagonal(-1, 1, 2).mean(-1))
        assert "1 of 3 inputs come out right, the one with a single sample" in str(failed.value)
        assert "is a size fixed" not in str(failed.value)

    def test_a_head_count_that_is_fixed_is_still_a_fixed_size(self):
        with pytest.raises(CheckFailed, match=r"1 of 3 .* is a size fixed in your code"):
            check_previous_token(lambda w: previous_token()(w) if w.shape[1] == 3 else w[0, 0, 0])

    @pytest.mark.parametrize("axes", [(0, 1), 0, 1])
    def test_any_mean_of_a_diagonal_of_wrong_axes_is_named(self, axes):
        with pytest.raises(CheckFailed) as failed:
            check_previous_token(lambda w: w.diagonal(-1).mean(axes))
        assert failed.value.explanations == (("diagonal-of-wrong-axes",),)
        assert "takes axes 0 and 1 if you name none" in str(failed.value)

    def test_clearing_in_place_is_noticed(self):
        def fn(weight, bias, num_heads, head):
            width = len(bias) // num_heads
            weight[:, head * width : (head + 1) * width] = 0
            return weight, bias

        with pytest.raises(CheckFailed, match="changes its input weight in place"):
            check_remove_head(fn)

    def test_an_average_over_the_heads_first_is_named(self):
        with pytest.raises(CheckFailed) as failed:
            check_previous_token(lambda w: w.mean(1).diagonal(-1, 1, 2).mean())
        assert failed.value.explanations == (("all-averaged",),)
