"""Code that is not attempted, raises an error, or returns something of the wrong kind."""

import json
import sys

import pytest
import torch
from learners import Base, by_einsum, failure, merge_by_loop, split_by_reshape
from torch import nn
from torch.nn import functional as F

from course_utils import attention as ours
from course_utils.exercises import (
    check_attention_scale,
    check_multi_head_attention,
    check_scaled_dot_product_attention,
    check_split_heads,
)


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
        (lambda x, h: sys.exit(1), "your code raised SystemExit: 1"),
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


def test_a_line_of_the_standard_library_is_not_theirs():
    failed = failure(check_split_heads, lambda x, h: json.loads("no"))  # theirs
    assert 'json.loads("no"))  # theirs' in str(failed)


def test_a_text_is_no_number():
    failed = failure(check_attention_scale, lambda d, h: str((d // h) ** -0.5))
    assert "the factor is of type str; expected a number." in str(failed)


def test_an_endless_loop_can_be_interrupted_and_says_so():
    def endless(x, num_heads):
        while True:
            raise KeyboardInterrupt  # what the stop button raises, wherever the code is

    line = endless.__code__.co_firstlineno + 2
    said = str(failure(check_split_heads, endless))
    assert said.startswith(
        "✗ split_heads: interrupted after 0 s in your code; does every loop end?"
    )
    assert f"in your line {line}: raise KeyboardInterrupt" in said


def test_a_huge_result_is_refused_by_its_shape_alone():
    def fn(query, key, value):
        return by_einsum(query, key, value)[0], torch.zeros(1, 1).expand(2000, 1000)

    said = str(failure(check_scaled_dot_product_attention, fn))
    assert "weights has shape (2000, 1000); expected (3, 3)." in said
    assert "What can be seen" not in said


def test_a_module_will_do_for_a_function():
    class Split(nn.Module):
        def forward(self, x, num_heads):
            return split_by_reshape(x, num_heads)

    class Unwritten(nn.Module):
        pass

    assert check_split_heads(Split()) is True
    assert check_split_heads(Split) is True
    assert check_split_heads(Unwritten()) is False


def test_an_error_is_told_without_addresses():
    def boom(x, num_heads):
        raise ValueError(f"cannot use {object()}")

    assert "ValueError: cannot use <object object>\n" in str(failure(check_split_heads, boom))
