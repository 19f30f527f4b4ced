"""The exercises of lesson 8: right answers pass, and each wrong one is named."""

import numpy as np
import pytest
import torch
from naming import each_slip, failure_of
from torch.nn import functional as F

from course_utils.exercises import (
    CheckFailed,
    check_mean_pool,
    check_previous_token,
    check_remove_head,
)
from course_utils.exercises import registry as mistakes


def mean_pool(*bugs):
    def fn(x, mask):
        if "pads-averaged-in" in bugs:
            mask = mask | True
        if "pads-alone-averaged" in bugs:
            mask = ~mask
        if "tokens-normalised-first" in bugs:
            x = x / x.norm(dim=-1, keepdim=True)
        summed = (x * mask.unsqueeze(-1)).sum(dim=1)
        count = mask.sum(dim=1, keepdim=True)
        if "divided-by-length" in bugs:
            count = x.shape[1]
        if "divided-by-all-tokens" in bugs:
            count = mask.sum()
        mean = summed if "pooled-as-a-sum" in bugs else summed / count
        if "cls-taken" in bugs:
            mean = x[:, 0]
        unit = mean / mean.norm(dim=-1, keepdim=True)
        if "unit-over-batch" in bugs:
            unit = mean / mean.norm(dim=0)
        if "unit-of-all-sentences" in bugs:
            unit = mean / mean.norm()
        if "divided-by-square" in bugs:
            unit = mean / (mean**2).sum(-1, keepdim=True)
        return mean, mean if "not-normalised" in bugs else unit

    return fn


def remove_head(*bugs):
    def fn(weight, bias, num_heads, head):
        width = len(weight) // num_heads
        if "counts-heads-from-1" in bugs:
            head -= 1
        if "always-head-0" in bugs:
            head = 0
        own = torch.arange(head * width, (head + 1) * width)
        if "block-interleaved" in bugs:
            own = torch.arange(head, len(weight), num_heads)
        if "block-as-wide-as-head-count" in bugs:
            own = torch.arange(head * num_heads, (head + 1) * num_heads)
        if "block-of-one-feature" in bugs:
            own = torch.tensor([head])
        if "block-open-at-one-end" in bugs:
            own = torch.arange(head * width, len(weight))
        cleared, kept = weight.clone(), bias.clone()
        if "others-scaled-up" in bugs:
            cleared *= num_heads / (num_heads - 1)
        if "block-of-fixed-width" in bugs:
            cleared[:, head * 32 : (head + 1) * 32] = 0
            return cleared, kept
        if "rows-cleared" in bugs:
            cleared[own] = 0
        elif "square-cleared" in bugs:
            cleared[own[:, None], own] = 0
        else:
            cleared[:, own] = 0
        if "rows-and-columns-cleared" in bugs:
            cleared[own] = 0
        if "others-cleared" in bugs:
            cleared = torch.zeros_like(weight)
            cleared[:, own] = weight[:, own]
        if "bias-cleared" in bugs:
            kept = kept * 0
        if "block-of-bias-cleared" in bugs:
            kept[own] = 0
        return cleared, kept

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


EXERCISES = {
    "mean_pool": (check_mean_pool, mean_pool, mistakes.MEAN_POOL),
    "remove_head": (check_remove_head, remove_head, mistakes.REMOVE_HEAD),
    "previous_token": (check_previous_token, previous_token, mistakes.PREVIOUS_TOKEN),
}


class TestRight:
    @pytest.mark.parametrize("name", EXERCISES)
    def test_passes(self, name, capsys):
        check, solution, _ = EXERCISES[name]
        assert check(solution()) is True
        assert capsys.readouterr().out.startswith(f"✓ {name}: right on 3 inputs ")

    @pytest.mark.parametrize("name", EXERCISES)
    def test_stub_is_not_attempted(self, name, capsys):
        def stub(*args):
            raise NotImplementedError

        assert EXERCISES[name][0](stub) is False
        assert capsys.readouterr().out == f"○ {name}: not attempted yet\n"

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

    @pytest.mark.parametrize(("name", "bug"), each_slip(EXERCISES))
    def test_every_mistake_alone_is_named(self, name, bug):
        assert failure_of(EXERCISES[name], bug).explanations == ((bug,),)

    @pytest.mark.parametrize(
        ("name", "bugs"),
        [
            ("mean_pool", ("pads-averaged-in", "not-normalised")),
            ("mean_pool", ("divided-by-length", "unit-over-batch")),
            ("remove_head", ("rows-cleared", "bias-cleared")),
            ("remove_head", ("block-interleaved", "rows-cleared", "block-of-bias-cleared")),
            ("previous_token", ("next-token-scored", "first-query-counted")),
            ("previous_token", ("next-token-scored", "samples-kept-apart")),
        ],
    )
    def test_mistakes_at_once_are_named(self, name, bugs):
        assert set(failure_of(EXERCISES[name], *bugs).mistakes) == set(bugs)

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
