"""The smaller exercises: right answers of every kind pass, wrong ones are named."""

import math

import pytest
import torch
from naming import each_slip, failure_of
from torch import nn
from torch.nn import functional as F

from course_utils import exercises
from course_utils.exercises import (
    CheckFailed,
    check_attention_scale,
    check_copy_weights,
    check_gradient_norms,
    check_head_projection,
    check_merge_heads,
    check_one_row,
    check_per_head_weights,
    check_repair,
    from_lines,
)
from course_utils.exercises import registry as mistakes
from course_utils.exercises.bug_hunt import PLANTED

# --- One solution an exercise, with a switch for each mistake ------------------------------------


def scale(bug=None):
    return {
        None: lambda d, h: (d / h) ** -0.5,
        "factor-by-embed-dim": lambda d, h: d**-0.5,
        "factor-without-root": lambda d, h: h / d,
        "factor-upside-down": lambda d, h: (d / h) ** 0.5,
        "factor-by-num-heads": lambda d, h: h**-0.5,
        "factor-is-root-of-embed-dim": lambda d, h: d**0.5,
        "factor-of-one": lambda d, h: 1,
    }[bug]


def gradient_norms(*bugs):
    def fn(query, key, upstream, scaled):
        dots = (query[:, None] * key).sum(-1).detach().requires_grad_()
        width = query.shape[1]
        if "scaled-ignored" in bugs:
            scaled = False
        if "scaled-the-wrong-way-round" in bugs:
            scaled = not scaled
        if "always-scaled" in bugs:
            scaled = True
        divisor = width if "scaled-without-root" in bugs else math.sqrt(width)
        scores = dots / divisor if scaled else dots * 1
        scores.retain_grad()
        weights = scores.softmax(0 if "shared-over-queries" in bugs else 1)
        weights.backward(upstream)
        gradient = scores.grad
        if "gradient-at-dot-products" in bugs:
            gradient = dots.grad
        if "own-score-only" in bugs:
            gradient = upstream * weights * (1 - weights)
        if "gradient-at-weights" in bugs:
            gradient = upstream
        if "norms-squared" in bugs:
            return (gradient**2).sum(1)
        if "norms-over-queries" in bugs:
            return gradient.norm(dim=0)
        return gradient.norm() if "one-norm" in bugs else gradient.norm(dim=1)

    return fn


def head_projection(*bugs):
    def fn(proj, num_heads, head):
        width = proj.out_features // num_heads
        if "always-head-0" in bugs:
            head = 0
        if "counts-heads-from-1" in bugs:
            head = head - 1
        own = [head * width + i for i in range(width)]
        if "block-interleaved" in bugs:
            own = [head + i * num_heads for i in range(width)]
        if "block-as-wide-as-head-count" in bugs:
            own = [head * num_heads + i for i in range(num_heads)]
        if "block-of-one-feature" in bugs:
            own = [head]
        if "block-open-at-one-end" in bugs:
            own = list(range(head * width, proj.out_features))
        weight = proj.weight[own]
        if "block-of-columns" in bugs:
            weight = proj.weight[:, own]
        if "block-of-columns-turned" in bugs:
            weight = proj.weight[:, own].T
        if "block-reads-a-slice" in bugs:
            weight = weight[:, own]
        return weight, proj.bias if "whole-bias" in bugs else proj.bias[own]

    return fn


def copy_weights(*bugs):
    def fn(theirs, ours):
        projections = [ours.q_proj, ours.k_proj, ours.v_proj]
        weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
        if "copied-in-another-order" in bugs:
            projections.reverse()
        if "copied-by-head" in bugs:
            h, d = theirs.num_heads, theirs.embed_dim
            weights = theirs.in_proj_weight.view(h, 3, d // h, d).transpose(0, 1).reshape(3, d, d)
            biases = theirs.in_proj_bias.view(h, 3, d // h).transpose(0, 1).reshape(3, d)
        for proj, weight, bias in zip(projections, weights, biases, strict=True):
            proj.weight.copy_(weight.T if "copied-turned-round" in bugs else weight)
            if "in-biases-not-copied" not in bugs:
                proj.bias.copy_(bias)
        out = theirs.out_proj
        if "out-proj-not-copied" not in bugs:
            turned = "copied-turned-round" in bugs
            ours.out_proj.weight.copy_(out.weight.T if turned else out.weight)
        if "out-bias-not-copied" not in bugs:
            ours.out_proj.bias.copy_(out.bias)

    return fn


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


def check_block(fn):
    return check_per_head_weights(fn, Block)


EXERCISES = {
    "attention_scale": (check_attention_scale, scale, mistakes.ATTENTION_SCALE),
    "gradient_norms": (check_gradient_norms, gradient_norms, mistakes.GRADIENT_NORMS),
    "head_projection": (check_head_projection, head_projection, mistakes.HEAD_PROJECTION),
    "copy_weights": (check_copy_weights, copy_weights, mistakes.COPY_WEIGHTS),
    "per_head_weights": (check_block, per_head, mistakes.PER_HEAD_WEIGHTS),
}


# --- Right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXERCISES)
def test_a_right_answer_passes(name, capsys):
    check, solution, _ = EXERCISES[name]
    assert check(solution()) is True
    assert capsys.readouterr().out.startswith(f"✓ {name}: right on ")


@pytest.mark.parametrize("name", [*EXERCISES, "one_row"])
def test_a_stub_is_not_attempted(name, capsys):
    def stub(*args):
        raise NotImplementedError

    check = EXERCISES[name][0] if name in EXERCISES else check_one_row
    assert check(stub) is False
    assert capsys.readouterr().out == f"○ {name}: not attempted yet\n"


def loop_row(query, key, value):
    scores = torch.stack([(query * k).sum() for k in key]) / len(query) ** 0.5
    weights = scores.exp() / scores.exp().sum()
    return sum(w * v for w, v in zip(weights, value, strict=True)), weights


def torch_row(query, key, value):
    weights = torch.softmax(key @ query / math.sqrt(len(query)), dim=-1)
    return F.scaled_dot_product_attention(query[None], key, value)[0], weights


def list_row(query, key, value):
    scores = [math.exp(sum((query * k).tolist()) / math.sqrt(len(query))) for k in key]
    weights = [score / sum(scores) for score in scores]
    columns = zip(*value.tolist(), strict=True)
    return [sum(w * v for w, v in zip(weights, c, strict=True)) for c in columns], weights


@pytest.mark.parametrize("fn", [loop_row, torch_row, list_row])
def test_a_row_may_be_written_in_any_way(fn):
    assert check_one_row(fn) is True


def test_a_scale_may_be_a_tensor():
    assert check_attention_scale(lambda d, h: torch.tensor(d / h).rsqrt()) is True


# --- Wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "bug"), each_slip(EXERCISES))
def test_every_mistake_alone_is_named(name, bug):
    assert failure_of(EXERCISES[name], bug).explanations == ((bug,),)


@pytest.mark.parametrize(
    ("name", "bugs"),
    [
        ("gradient_norms", ("scaled-ignored", "one-norm")),
        ("head_projection", ("block-of-columns", "whole-bias")),
        ("copy_weights", ("copied-by-head", "out-proj-not-copied", "in-biases-not-copied")),
        ("per_head_weights", ("input-not-normalised", "maps-averaged")),
    ],
)
def test_mistakes_at_once_are_named(name, bugs):
    assert set(failure_of(EXERCISES[name], *bugs).mistakes) == set(bugs)


def test_a_row_without_scale_is_named():
    def fn(query, key, value):
        weights = torch.softmax(key @ query, dim=0)
        return weights @ value, weights

    with pytest.raises(CheckFailed) as failed:
        check_one_row(fn)
    assert failed.value.mistakes == ("no-scale",)


def test_a_copy_does_not_share_its_numbers():
    def fn(theirs, ours):
        copy_weights()(theirs, ours)
        ours.out_proj = theirs.out_proj

    with pytest.raises(CheckFailed):
        check_copy_weights(fn)


def test_copying_the_other_way_round_is_refused():
    def fn(theirs, ours):
        projections = (ours.q_proj, ours.k_proj, ours.v_proj)
        theirs.in_proj_weight.copy_(torch.cat([proj.weight for proj in projections]))
        theirs.in_proj_bias.copy_(torch.cat([proj.bias for proj in projections]))
        theirs.out_proj.load_state_dict(ours.out_proj.state_dict())

    with pytest.raises(CheckFailed):
        check_copy_weights(fn)


def test_a_projection_that_is_changed_first_is_judged_as_it_came():
    def fn(proj, num_heads, head):
        nn.init.zeros_(proj.weight)
        nn.init.zeros_(proj.bias)
        return head_projection()(proj, num_heads, head)

    with pytest.raises(CheckFailed):
        check_head_projection(fn)


def test_nothing_stands_behind_the_return():
    with pytest.raises(CheckFailed, match="behind the return is never run"):
        from_lines("merge_heads(x)", LINES, "CBAD")


def test_an_unknown_mistake_is_not_named():
    with pytest.raises(CheckFailed, match="no known mistake") as failed:
        check_attention_scale(lambda d, h: 0.123)
    assert failed.value.mistakes == ()
    assert "embed_dim 8, num_heads 2" in str(failed.value)


# --- The bug hunt ---------------------------------------------------------------------------------


class Layer(nn.Module):
    bug = None

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim))

    def forward(self, x):
        n, length, d = x.shape
        h, bug = self.num_heads, self.bug

        def split(t):
            if bug == "split-without-transpose":
                return t.reshape(n, h, length, d // h)
            return t.reshape(n, length, h, d // h).transpose(1, 2)

        q, k, v = (split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        if bug == "query-key-swapped":
            q, k = k, q
        scores = q @ k.mT / math.sqrt(d if bug == "scale-by-embed-dim" else d // h)
        weights = scores.softmax(1 if bug == "softmax-over-heads" else -1)
        mixed = weights @ v
        if bug != "merge-without-transpose":
            mixed = mixed.transpose(1, 2)
        return self.out_proj(mixed.reshape(n, length, d)), weights


@pytest.mark.parametrize("number", PLANTED)
def test_the_planted_bug_is_known_and_its_repair_too(number, capsys):
    buggy = type("Buggy", (Layer,), {"bug": PLANTED[number]})
    assert check_repair(number, buggy) is False
    assert check_repair(number, Layer) is True
    assert capsys.readouterr().out == (
        f"○ layer {number}: the old bug is still in there\n✓ layer {number}: repaired\n"
    )


def test_another_bug_is_a_failure():
    buggy = type("Buggy", (Layer,), {"bug": PLANTED[2]})
    with pytest.raises(CheckFailed, match="layer 1") as failed:
        check_repair(1, buggy)
    assert failed.value.mistakes == (PLANTED[2],)


def test_a_layer_that_is_not_there():
    with pytest.raises(ValueError, match="number must be one of 1, 2, 3, 4, 5, got 6"):
        check_repair(6, Layer)


# --- Lines to put in order ------------------------------------------------------------------------

LINES = {
    "A": "return x.reshape(N, L, H * d_h)",
    "B": "x = x.transpose(1, 2)",
    "C": "N, H, L, d_h = x.shape",
    "D": "x = x.transpose(1, 3)",
}


@pytest.mark.parametrize("order", ["CBA", "c b a", "C, B, A"])
def test_lines_in_the_right_order(order):
    assert check_merge_heads(from_lines("merge_heads(x)", LINES, order)) is True


def test_no_order_is_not_attempted(capsys):
    assert check_merge_heads(from_lines("merge_heads(x)", LINES, "")) is False
    assert "not attempted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("CA", "merge-without-transpose"),
        ("CB", "is there a return line"),
        ("CD", "is there a return line"),
        ("BCA", "result has shape"),
    ],
)
def test_lines_in_a_wrong_order(order, said):
    with pytest.raises(CheckFailed, match=said):
        check_merge_heads(from_lines("merge_heads(x)", LINES, order))


@pytest.mark.parametrize("order", ["CBX", "CCB", 3, None])
def test_letters_that_name_no_line(order):
    with pytest.raises(CheckFailed, match="order must be made of the letters A, B, C, D"):
        from_lines("merge_heads(x)", LINES, order)


def test_every_check_says_what_it_takes():
    for name in dir(exercises):
        if name.startswith("check_"):
            assert getattr(exercises, name).__doc__
