"""The checks accept every right answer, in whatever form, and say what is wrong with the others."""

import math
import textwrap

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from torch import nn
from torch.nn import functional as F

from course_utils import attention as ours
from course_utils.exercises import (
    CheckFailed,
    check_merge_heads,
    check_multi_head_attention,
    check_scaled_dot_product_attention,
    check_split_heads,
)


def failure(check, learner):
    with pytest.raises(CheckFailed) as caught:
        check(learner)
    return caught.value


# --- Right answers -------------------------------------------------------------------------------


def split_by_reshape(x, num_heads):
    n, length, d = x.shape
    return x.reshape(n, length, num_heads, d // num_heads).permute(0, 2, 1, 3).contiguous()


def split_by_loop(x, num_heads):
    out = torch.zeros(x.shape[0], num_heads, x.shape[1], x.shape[2] // num_heads)
    for h in range(num_heads):
        out[:, h] = x[..., h * out.shape[-1] : (h + 1) * out.shape[-1]]
    return out


def split_by_einsum(x, num_heads):
    return torch.einsum("nlhd->nhld", x.unflatten(-1, (num_heads, -1)))


def merge_by_loop(x):
    n, h, length, d = x.shape
    out = x.new_empty(n, length, h * d)
    for i in range(h):
        out[:, :, i * d : (i + 1) * d] = x[:, i]
    return out


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


def by_einsum(query, key, value, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


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


def scaled_first(query, key, value, mask=None):
    weights = (query * query.size(-1) ** -0.5) @ key.mT
    if mask is not None:
        weights = weights.masked_fill(mask.logical_not(), torch.finfo(weights.dtype).min)
    weights = weights.softmax(-1)
    if mask is not None:
        weights = weights * mask
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
    assert check_scaled_dot_product_attention(fn) is True
    assert "; but" not in capsys.readouterr().out


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
    assert "; but" not in capsys.readouterr().out


def test_a_function_that_builds_the_layer_will_do():
    assert check_multi_head_attention(lambda d, h: ours.MultiHeadAttention(d, h, dropout=0.1))


def test_one_line_is_printed(capsys):
    check_split_heads(ours.split_heads)
    check_merge_heads(ours.merge_heads)
    check_scaled_dot_product_attention(ours.scaled_dot_product_attention)
    check_multi_head_attention(ours.MultiHeadAttention)
    sizes = "N=2 L=3 D=8 H=2; N=3 L=5 D=14 H=2; N=1 L=4 D=12 H=3"
    assert capsys.readouterr().out.splitlines() == [
        f"✓ split_heads: right on 3 inputs ({sizes})",
        f"✓ merge_heads: right on 3 inputs ({sizes})",
        "✓ scaled_dot_product_attention: right on 9 inputs "
        "(one head and many, L_q ≠ L_k, with and without a mask)",
        "✓ multi_head_attention: right on 8 inputs "
        "(self- and cross-attention, with and without a mask, in train and eval mode)",
    ]


class SelfAttention(Base):
    def forward(self, query):
        return self.attend(query, query, query, None)


def test_what_takes_no_mask_or_no_key_is_checked_without(capsys):
    assert check_scaled_dot_product_attention(lambda q, k, v: by_einsum(q, k, v))
    assert "right on 5 inputs (one head and many, L_q ≠ L_k, without a mask)" in (
        capsys.readouterr().out
    )
    assert check_multi_head_attention(SelfAttention)
    assert "right on 3 inputs (self-attention, without a mask, in" in capsys.readouterr().out


def test_an_exercise_about_masks_wants_one(capsys):
    failed = failure(
        lambda fn: check_scaled_dot_product_attention(fn, needs_mask=True),
        lambda query, key, value: by_einsum(query, key, value),
    )
    assert str(failed) == (
        "✗ scaled_dot_product_attention: your function takes no mask; this exercise is about "
        "masks. Give it a fourth argument, mask=None."
    )
    for fn in (by_einsum, lambda q, k, v, m=None: by_einsum(q, k, v, m)):
        assert check_scaled_dot_product_attention(fn, needs_mask=True) is True
    assert check_scaled_dot_product_attention(None, needs_mask=True) is False


def test_numpy_on_the_way_is_said_where_gradients_are_wanted():
    def fn(x):
        heads = x.numpy()
        return torch.from_numpy(heads.swapaxes(1, 2).reshape(len(x), x.shape[2], -1))

    said = str(failure(check_merge_heads, fn))
    assert said.startswith(
        "✗ merge_heads: the numbers are right, but your code cannot take tensors that need a "
        "gradient.\n  in your line "
    )
    assert ": heads = x.numpy()\n  Look at: NumPy on the way" in said
    assert "RuntimeError" not in said


def test_another_error_with_gradients_is_told_as_it_is():
    def fn(x):
        if x.requires_grad:
            raise ValueError("no gradients here")
        return ours.merge_heads(x)

    said = str(failure(check_merge_heads, fn))
    assert "cannot take tensors that need a gradient" in said
    assert "ValueError: no gradients here" in said
    assert "NumPy" not in said


def test_gradients_that_cannot_be_used_are_noted(capsys):
    def minus_infinity(query, key, value, mask=None):
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1).nan_to_num()
        return weights @ value, weights

    def in_place(query, key, value, mask=None):
        weights = by_einsum(query, key, value, mask)[1].exp()
        weights.log_()
        return weights @ value, weights

    assert check_scaled_dot_product_attention(minus_infinity)
    assert "; but gradients are NaN where a whole row is blocked" in capsys.readouterr().out
    assert check_scaled_dot_product_attention(in_place)
    assert "; but backward() fails" in capsys.readouterr().out


def test_nothing_of_torch_is_left_changed():
    torch.manual_seed(3)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    state = torch.get_rng_state()
    with torch.no_grad():
        check_multi_head_attention(OneFusedProjection)
        failure(check_split_heads, lambda x, num_heads: torch.rand(2, 2))
        assert not torch.is_grad_enabled()
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)


# --- Not attempted -------------------------------------------------------------------------------


def stub(x, num_heads):
    """Split the heads."""
    ...


def passing_stub(x, num_heads):
    pass


def raising_stub(x, num_heads):
    """Split the heads."""
    raise NotImplementedError("your turn")


class StubLayer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        raise NotImplementedError

    def forward(self, query, key=None, value=None, *, mask=None):
        raise NotImplementedError


class HalfALayer(Base):
    def forward(self, query, key=None, value=None, *, mask=None):
        """Attend."""


class EmptyLayer(nn.Module):
    pass


@pytest.mark.parametrize(
    "learner", [None, ..., stub, passing_stub, raising_stub, lambda x, num_heads: ...]
)
def test_a_stub_is_not_attempted(learner, capsys):
    assert check_split_heads(learner) is False
    assert capsys.readouterr().out == "○ split_heads: not attempted yet\n"


@pytest.mark.parametrize("cls", [None, StubLayer, HalfALayer, EmptyLayer])
def test_a_stub_of_a_layer_is_not_attempted(cls, capsys):
    assert check_multi_head_attention(cls) is False
    assert capsys.readouterr().out == "○ multi_head_attention: not attempted yet\n"


def test_two_results_left_open_are_not_attempted():
    assert check_scaled_dot_product_attention(lambda q, k, v, mask=None: (..., ...)) is False


def test_what_is_left_open_is_said_as_it_stands(capsys):
    def returns(x, num_heads):
        return ...

    def raises(x, num_heads):
        x = x.unflatten(-1, (num_heads, -1))
        raise NotImplementedError

    assert check_split_heads(returns) is False
    assert capsys.readouterr().out == (
        "○ split_heads: not finished yet: part of it still returns `...`\n"
    )
    assert check_split_heads(raises) is False
    assert capsys.readouterr().out == (
        "○ split_heads: not finished yet: raise NotImplementedError is still there\n"
    )


def test_returning_none_is_an_attempt():
    def forgot(x, num_heads):
        x.view(x.shape[0], x.shape[1], num_heads, -1).transpose(1, 2)

    def says_so(x, num_heads):
        return None

    for fn in (forgot, says_so, lambda x, num_heads: None):
        assert "returned None" in str(failure(check_split_heads, fn))


def test_torchs_own_not_implemented_error_is_an_attempt():
    message = str(failure(check_split_heads, lambda x, num_heads: x.long().softmax(-1)))
    assert 'NotImplementedError: "softmax' in message

    class WrongNumbers(Base):
        def __init__(self, embed_dim, num_heads):
            super().__init__(embed_dim, num_heads)
            torch.arange(3).normal_()

    message = str(failure(check_multi_head_attention, WrongNumbers))
    assert 'NotImplementedError: "normal' in message


def test_a_part_left_open_is_an_attempt():
    def no_mask_yet(query, key, value, mask=None):
        if mask is not None:
            raise NotImplementedError
        return by_einsum(query, key, value)

    failed = failure(check_scaled_dot_product_attention, no_mask_yet)
    assert "still raises NotImplementedError" in str(failed)
    assert "Without a mask, everything is right." in str(failed)
    assert failed.mistakes == ()


# --- Wrong answers -------------------------------------------------------------------------------


def in_place(x, num_heads):
    x *= 1.0001
    return ours.split_heads(x, num_heads)


@pytest.mark.parametrize(
    ("fn", "sentence"),
    [
        (in_place, "changes its input x in place"),
        (lambda x, h: ours.split_heads(x, h).numpy(), "result is a NumPy array; expected a torch"),
        (lambda x, h: ours.split_heads(x, h).tolist()[0][0][0], "returned 4 things"),
        (lambda x, h: 3, "result is of type int"),
        (lambda x, h: ours.split_heads(x, h).half(), "result holds torch.float16"),
        (lambda x, h: ours.split_heads(x, h).long(), "result holds torch.int64"),
        (lambda x, h: ours.split_heads(x, h).to("meta"), "result is on device meta"),
        (lambda x, h: (ours.split_heads(x, h),) * 2, "returned 2 things; expected result"),
        (lambda x, h: (), "returned 0 things"),
        (lambda x, h: ours.split_heads(x, h).detach(), "no gradient flows back to x"),
        (lambda x, h: torch.tensor(ours.split_heads(x, h).tolist()), "no gradient flows back"),
        (lambda x: x, "takes 1 positional argument but 2 were given"),
        (lambda x, h: x.view(2, 3, 2, 4).transpose(1, 2), "RuntimeError: shape '[2, 3, 2, 4]'"),
        (lambda x, h: x.view(*x.shape[:2], 2, -1).transpose(1, 2), "has shape (1, 2, 4, 6), exp"),
        (3, "pass the function or class itself, not something of type int"),
    ],
)
def test_a_wrong_kind_of_result_gets_a_sentence(fn, sentence):
    failed = failure(check_split_heads, fn)
    assert sentence in str(failed)
    assert failed.mistakes == ()
    assert str(failed).startswith("✗ split_heads: ")


@pytest.mark.parametrize(
    ("fn", "sentence"),
    [
        (lambda *x: (by_einsum(*x)[0], None), "weights is of type NoneType"),
        (lambda *x: (*by_einsum(*x), 0), "returned 3 things; expected two: output, weights"),
        (lambda q, k: (q, k), "takes 2 positional arguments but 3 were given"),
        (lambda *x: tuple(y.detach() for y in by_einsum(*x)), "no gradient flows back to query"),
    ],
)
def test_a_wrong_kind_of_attention_gets_a_sentence(fn, sentence):
    assert sentence in str(failure(check_scaled_dot_product_attention, fn))


def test_order_and_number_of_results_have_names():
    check = check_scaled_dot_product_attention
    assert failure(check, lambda *x: by_einsum(*x)[::-1]).mistakes == ("returned-in-wrong-order",)
    assert failure(check, lambda *x: by_einsum(*x)[0]).mistakes == ("only-first-returned",)


class NoProjections(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.v_proj = self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, query):
        return query


class SharedProjection(Base):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.k_proj = self.q_proj


class WideProjection(Base):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.q_proj = nn.Linear(embed_dim, 2 * embed_dim)
        self.k_proj = nn.Linear(embed_dim, 2 * embed_dim)


class NoGradient(Base):
    @torch.no_grad()
    def attend(self, *inputs):
        return super().attend(*inputs)


class UnusedParameter(Base):
    def attend(self, query, key, value, mask):
        query = F.linear(query, self.q_proj.weight.data, self.q_proj.bias)
        q, k, v = (
            split_by_reshape(x, self.num_heads)
            for x in (query, self.k_proj(key), self.v_proj(value))
        )
        output, weights = by_einsum(q, k, v, mask)
        return self.out_proj(merge_by_loop(output)), weights


@pytest.mark.parametrize(
    ("cls", "sentence"),
    [
        (NoProjections, "the layer has no q_proj and no k_proj with a weight"),
        (SharedProjection, "two of the four projections share one weight"),
        (WideProjection, "q_proj.weight (16, 8)"),
        (NoGradient, "no gradient flows back to query"),
        (UnusedParameter, "no gradient flows back to q_proj.weight"),
        (lambda d, h: 3, "it makes a int, which is no nn.Module"),
        (ours.MultiHeadAttention(8, 2), "class itself, not something of type MultiHeadAtt"),
        (lambda d: None, "takes 1 positional argument but 2 were given"),
    ],
)
def test_a_wrong_kind_of_layer_gets_a_sentence(cls, sentence):
    failed = failure(check_multi_head_attention, cls)
    assert sentence in str(failed)
    assert failed.mistakes == ()


def test_an_error_is_told_with_the_learners_own_line():
    def boom(x, num_heads):
        heads = num_heads + 1
        return x.view(x.shape[0], x.shape[1], heads, -1)

    line = boom.__code__.co_firstlineno + 2
    assert str(failure(check_split_heads, boom)) == (
        "✗ split_heads: your code raised RuntimeError: "
        "shape '[2, 3, 3, -1]' is invalid for input of size 48\n"
        f"  in your line {line}: return x.view(x.shape[0], x.shape[1], heads, -1)\n"
        "  input: x (2, 3, 8), num_heads 2"
    )


def test_an_error_is_told_without_addresses():
    def boom(x, num_heads):
        raise ValueError(f"cannot use {object()}")

    assert "ValueError: cannot use <object object>\n" in str(failure(check_split_heads, boom))


def test_a_message_names_the_mistake_the_reason_and_where_to_look():
    failed = failure(check_split_heads, lambda x, h: x.view(x.shape[0], h, x.shape[1], -1))
    assert failed.mistakes == ("split-without-transpose",)
    assert failed.explanations == (("split-without-transpose",),)
    assert str(failed) == textwrap.dedent("""\
        ✗ split_heads: one mistake explains your numbers.
        • split-without-transpose (M02): view goes straight to (N, H, L, d_h), without a transpose.
          Why: view moves no number, so pieces of one token are taken for several tokens.
          Look at: which axis holds the tokens before the view, and which after it""")


def test_explanations_that_nobody_can_tell_apart_are_told_together():
    def scores_instead(query, key, value, mask=None):
        output, _ = by_einsum(query, key, value)
        return output, query @ key.mT / math.sqrt(query.shape[-1])

    failed = failure(check_scaled_dot_product_attention, scores_instead)
    assert set(map(frozenset, failed.explanations)) == {
        frozenset({"mask-ignored", "scores-returned"}),
        frozenset({"mask-ignored", "masked-scores-returned"}),
    }
    assert "2 mistakes together explain your numbers, in one of 2 ways." in str(failed)
    assert "\nEither:\n" in str(failed)
    assert "\nOr:\n" in str(failed)


def test_what_is_wrong_without_a_mask_is_named_alone():
    def fn(query, key, value, mask=None):
        weights = (query @ key.mT).softmax(-1)
        if mask is not None:
            weights = weights.roll(1, 0) * mask.sum()  # nothing that a check could know
        return weights @ value, weights

    failed = failure(check_scaled_dot_product_attention, fn)
    assert failed.mistakes == ("no-scale",)
    assert "no known mistake gives these numbers" in str(failed)
    assert "\nWithout a mask, one mistake explains your numbers.\n" in str(failed)


def test_what_is_wrong_with_a_mask_only_is_said():
    def fn(query, key, value, mask=None):
        output, weights = by_einsum(query, key, value, mask)
        return output, weights if mask is None else weights + 0.1

    failed = failure(check_scaled_dot_product_attention, fn)
    assert failed.mistakes == ()
    assert "rows of weights do not sum to 1" in str(failed)
    assert "Without a mask, everything is right." in str(failed)
    assert "is a size fixed" not in str(failed)


def test_rows_that_sum_to_1_where_none_should_are_said():
    def fn(query, key, value, mask=None):
        output, weights = by_einsum(query, key, value, mask)
        if mask is not None:
            weights = weights + 0.5 * (weights.sum(-1, keepdim=True) == 0)
            weights = weights / weights.sum(-1, keepdim=True)
        return output, weights

    failed = failure(check_scaled_dot_product_attention, fn)
    assert "all rows of weights sum to 1, even where a query may see nothing" in str(failed)
    assert "do not sum to 1" not in str(failed)


class Strange(Base):
    """Wrong in a way that is not in the registry."""

    def change(self, output, weights):
        return output + 0.1, weights

    def attend(self, *inputs):
        return self.change(*super().attend(*inputs))


class Leaking(Strange):
    def change(self, output, weights):
        return output.cumsum(0), weights


class NotANumber(Strange):
    def change(self, output, weights):
        return output.log(), weights


class ColumnsSumToOne(Strange):
    def change(self, output, weights):
        return output, (weights * 2).softmax(dim=1)


class AnotherShape(Strange):
    def change(self, output, weights):
        return output[:, :2], weights.flatten(1)


class Random(Strange):
    def change(self, output, weights):
        return output + torch.rand(output.shape), weights


class OwnDropout(Strange):
    def change(self, output, weights):
        return output, weights * (torch.rand(weights.shape) > 0.2)


@pytest.mark.parametrize(
    ("cls", "seen"),
    [
        (Strange, ["output: 0 of its 48 numbers are right", "weights: 36 of its 36 numbers"]),
        (Leaking, ["samples mix: a change of sample 0 alone"]),
        (NotANumber, ["output holds NaN"]),
        (ColumnsSumToOne, ["rows of weights do not sum to 1; over the head axis they do"]),
        (
            AnotherShape,
            ["output has shape (2, 2, 8), expected (2, 3, 8)", "weights has shape (2, 18"],
        ),
        (Random, ["the same input gives another result each time"]),
        (OwnDropout, ["the same input gives another result each time"]),
    ],
)
def test_an_unknown_mistake_is_described_and_not_named(cls, seen):
    failed = failure(check_multi_head_attention, cls)
    assert failed.mistakes == failed.explanations == ()
    assert all(sentence in str(failed) for sentence in seen)
    assert ("samples mix" in str(failed)) == (cls is Leaking)


class DropoutAlways(Base):
    def attend(self, query, key, value, mask):
        q, k, v = (
            split_by_reshape(layer(x), self.num_heads)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        output = F.scaled_dot_product_attention(q, k, v, mask, 0.1)
        return self.out_proj(merge_by_loop(output)), self.change(by_einsum(q, k, v, mask)[1])

    def change(self, weights):
        return weights


class DropoutAndAverage(DropoutAlways):
    def change(self, weights):
        return weights.mean(dim=1)


class DropoutAndMore(DropoutAlways):
    def change(self, weights):
        return weights + 0.1


def test_dropout_in_eval_mode_is_named_with_whatever_else_is_wrong():
    assert failure(check_multi_head_attention, DropoutAlways).mistakes == ("dropout-in-eval",)
    assert failure(check_multi_head_attention, DropoutAndAverage).mistakes == (
        "dropout-in-eval",
        "weights-averaged",
    )
    failed = failure(check_multi_head_attention, DropoutAndMore)
    assert failed.mistakes == ("dropout-in-eval",)
    assert "no known mistake gives these numbers" in str(failed)
    assert "one mistake explains part of it." in str(failed)


class BiasOncePerHead(Base):
    """All biases start at 0, as in torch's own layer, and would hide the mistake."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        nn.init.zeros_(self.out_proj.bias)

    def attend(self, *inputs):
        output, weights = super().attend(*inputs)
        return output + (self.num_heads - 1) * self.out_proj.bias, weights


def test_a_fresh_layer_does_not_hide_a_mistake_with_its_bias():
    assert failure(check_multi_head_attention, BiasOncePerHead).mistakes == ("bias-once-per-head",)


class ForgetsTheMaskInTrainMode(Base):
    def attend(self, query, key, value, mask):
        return super().attend(query, key, value, None if self.training else mask)


class OnlyForTwoSamples(Base):
    def attend(self, query, key, value, mask):
        output, weights = super().attend(query, key, value, mask)
        return output[:2], weights[:2]


@pytest.mark.parametrize("cls", [ForgetsTheMaskInTrainMode, OnlyForTwoSamples])
def test_what_is_right_sometimes_is_wrong(cls):
    failure(check_multi_head_attention, cls)


# --- In a notebook -------------------------------------------------------------------------------


def test_a_notebook_shows_the_message_alone_and_stops():
    cells = [
        "from course_utils.exercises import check_split_heads",
        "def split_heads(x, num_heads):\n    raise NotImplementedError",
        "if check_split_heads(split_heads):\n    print('never')",
        "def split_heads(x, num_heads):\n    return x.view(9, num_heads)",
        "check_split_heads(split_heads)",
        "print('never')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert [o.text for o in outputs[2]] == ["○ split_heads: not attempted yet\n"]
    (error,) = outputs[4]
    assert error.ename == "CheckFailed"
    assert error.traceback == [
        "✗ split_heads: your code raised RuntimeError: "
        "shape '[9, 2]' is invalid for input of size 48",
        "  in your line 2: return x.view(9, num_heads)",
        "  input: x (2, 3, 8), num_heads 2",
    ]
    assert error.evalue == "\n".join(error.traceback)
    assert outputs[5] == []
