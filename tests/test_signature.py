"""Which argument is which is decided by names, kinds and defaults, and asked where it cannot be."""

import functools

import pytest
import torch
from torch import nn

from course_utils.exercises.signature import Undecided, as_function, bind, uncompiled

THREE = ("query", "key", "value")


def seen(fn, needed=THREE, optional=("mask",), told=None, **given):
    """What a function was called with, by its own names."""
    return bind(fn, needed, optional, told=told).call(fn, **given)


QKVM = {"query": 1, "key": 2, "value": 3, "mask": 4}


@pytest.mark.parametrize(
    "fn",
    [
        lambda query, key, value, mask=None: (query, key, value, mask),
        lambda a, b, c, mask: (a, b, c, mask),
        lambda q, k, v, *, mask=None: (q, k, v, mask),
        lambda q, k, v, dropout_p=0.0, mask=None: (q, k, v, mask),
        lambda values, keys, query, mask: (query, keys, values, mask),
        lambda q, k, v, attn_mask=None, scale=None: (q, k, v, attn_mask),
        lambda q, k, v, /, mask=None: (q, k, v, mask),
        lambda q, k, v, scale=None, mask=None, /: (q, k, v, mask),
        lambda *x: x,
        lambda q, *rest: (q, *rest),
        lambda q, k, v, **more: (q, k, v, more["mask"]),
        functools.partial(lambda scale, q, k, v, mask=None: (q, k, v, mask), 0.5),
        functools.partial(lambda q, k, v, mask=None, scale=None: (q, k, v, mask), scale=2),
    ],
)
def test_every_argument_finds_its_place(fn):
    assert seen(fn, **QKVM) == (1, 2, 3, 4)


def test_what_is_not_given_keeps_its_default():
    assert seen(lambda q, k, v, mask="default": mask, query=1, key=2, value=3) == "default"
    assert seen(lambda q, k, v, mask: mask, query=1, key=2, value=3) is None


def test_what_has_another_purpose_is_left_alone():
    def fn(x, causal=False, cache=None, use_cache=False, mask=None):
        return x, causal, cache, use_cache, mask

    bound = bind(fn, ("query",), ("key", "value", "mask"))
    assert not bound.takes("key")
    assert not bound.unknown
    assert bound.call(fn, query=1, mask=4) == (1, False, None, False, 4)


def test_a_switch_for_the_weights_is_set():
    assert seen(lambda x, need_weights=False: need_weights, ("query",), query=1) is True
    assert seen(lambda x, average_attn_weights=True: average_attn_weights, ("query",)) is False


def test_an_unknown_optional_argument_may_be_the_mask():
    def fn(q, k, v, allowed=None):
        return allowed

    bound = bind(fn, THREE, ("mask",))
    assert not bound.takes("mask")
    assert bound.unknown == ("allowed",)
    assert seen(fn, told={"mask": "allowed"}, **QKVM) == 4
    with pytest.raises(ValueError, match="mask='open' is no argument of your code; it has q, k, v"):
        bind(fn, THREE, ("mask",), told={"mask": "open"})


def test_an_unknown_argument_that_must_be_given_is_asked_about():
    with pytest.raises(Undecided, match="needs the argument shape, but the check passes only"):
        bind(lambda q, k, v, shape: None, THREE, ("mask",))


def test_too_few_arguments_are_left_to_python():
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        seen(lambda q, k: None, query=1, key=2, value=3)


class Attention(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()


class Sized(nn.Module):
    def __init__(self, width, *, bias):
        super().__init__()


def test_a_class_is_made_if_it_needs_nothing():
    assert isinstance(as_function(Attention), Attention)
    with pytest.raises(Undecided, match=r"pass an instance, for example Sized\(width=…, bias=…\)"):
        as_function(Sized)


def test_what_is_compiled_is_taken_back():
    def fn(x):
        return x

    module = Attention()
    assert uncompiled(torch.compile(fn, backend="eager")) is fn
    assert uncompiled(torch.compile(module, backend="eager")) is module
