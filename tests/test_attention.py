"""The reference layer against torch, and every wrong argument against its message.

All inputs are random and every bias is filled: zeros, and torch's own zero biases, let many wrong
implementations pass. The second fixture's sizes all differ, so that no two axes can be mixed up.
"""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.arguments import divisors, require_num_heads
from course_utils.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)

SIZES = [(2, 3, 8, 2), (3, 5, 14, 2)]  # N, L, D, H
TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-12}
MASKS = ["none", "causal", "padding", "a mask a sample", "a mask a head", "a blocked row"]

sizes = pytest.mark.parametrize(("n", "length", "d", "h"), SIZES)
dtypes = pytest.mark.parametrize("dtype", TOLERANCES, ids=["float32", "float64"])
masks = pytest.mark.parametrize("mask_kind", MASKS)


def random(*shape, dtype=torch.float64, seed=0, grad=False):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype, requires_grad=grad)


def key_lengths(query_length):
    """As many keys as queries, more and fewer."""
    return query_length, query_length + 2, query_length - 1


def make_mask(kind, n, h, l_q, l_k):
    """A boolean mask, True = may attend, that blocks whole rows only where it says so."""
    if kind == "none":
        return None
    if kind in ("causal", "a blocked row"):
        mask = torch.ones(l_q, l_k, dtype=torch.bool).tril()
        mask[l_q // 2] &= kind == "causal"
        return mask
    if kind == "padding":
        return (torch.arange(l_k) < torch.arange(1, n + 1)[:, None])[:, None, None]
    axes = {"a mask a sample": (n, 1), "a mask a head": (n, h)}[kind]
    mask = random(*axes, l_q, l_k) > 0
    mask[..., 0] = True
    return mask


def torch_layer(d, h, *, dtype=torch.float64, seed=0, **options):
    """A torch layer whose biases are not zero."""
    layer = nn.MultiheadAttention(d, h, **{"batch_first": True, **options}).to(dtype)
    with torch.no_grad():
        for i, parameter in enumerate(layer.parameters()):
            parameter.copy_(random(*parameter.shape, dtype=dtype, seed=seed + i) / d**0.5)
    return layer


def call_torch(layer, query, key, value, mask=None):
    """Output and per-head weights of torch's layer, whose mask says True = blocked."""
    if mask is not None:
        l_q, l_k = query.shape[-2], key.shape[-2]
        n, h = query.shape[0], layer.num_heads
        mask = ~mask.expand(n, h, l_q, l_k).reshape(n * h, l_q, l_k)
    return layer(query, key, value, attn_mask=mask, average_attn_weights=False)


def assert_close(ours, theirs, tolerance):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


# --- against torch ------------------------------------------------------------------------------


@sizes
@dtypes
@masks
def test_function_equals_torch(n, length, d, h, dtype, mask_kind):
    for axes, l_k in itertools.product([(), (n,), (n, h)], key_lengths(length)):
        query = random(*axes, length, d // h, dtype=dtype, seed=1)
        key = random(*axes, l_k, d // h, dtype=dtype, seed=2)
        value = random(*axes, l_k, d // h + 1, dtype=dtype, seed=3)  # d_v need not be d
        mask = make_mask(mask_kind, n, h, length, l_k)
        if mask is not None and mask.ndim == 4 and len(axes) < 2:
            full = mask.expand(n, h, length, l_k)
            mask = full[:, 0] if axes else full[0, 0]

        output, weights = scaled_dot_product_attention(query, key, value, mask)

        expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        assert_close(output, expected, TOLERANCES[dtype])
        # With the identity as values, torch's output is its weights.
        identity = torch.eye(l_k, dtype=dtype).expand(*axes, l_k, l_k)
        expected = F.scaled_dot_product_attention(query, key, identity, attn_mask=mask)
        assert_close(weights, expected, TOLERANCES[dtype])


@sizes
@dtypes
@masks
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_layer_equals_torch(n, length, d, h, dtype, mask_kind, bias):
    theirs = torch_layer(d, h, dtype=dtype, bias=bias)
    ours = MultiHeadAttention.from_torch(theirs)
    for l_k in key_lengths(length):
        query = random(n, length, d, dtype=dtype, seed=11)
        key, value = (random(n, l_k, d, dtype=dtype, seed=s) for s in (12, 13))
        mask = make_mask(mask_kind, n, h, length, l_k)

        output, weights = ours(query, key, value, mask=mask)

        expected_output, expected_weights = call_torch(theirs, query, key, value, mask)
        if mask_kind == "a blocked row":  # torch says NaN there; we say 0, and W_O adds its bias
            row = length // 2
            assert expected_weights[:, :, row].isnan().all()
            expected_weights = expected_weights.nan_to_num(0.0)
            expected_output = expected_output.clone()
            expected_output[:, row] = theirs.out_proj.bias if bias else 0.0
        assert weights.shape == (n, h, length, l_k)
        assert_close(output, expected_output, TOLERANCES[dtype])
        assert_close(weights, expected_weights, TOLERANCES[dtype])


@sizes
@dtypes
@pytest.mark.parametrize("mask_kind", [kind for kind in MASKS if kind != "a blocked row"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_gradients_equal_torch(n, length, d, h, dtype, mask_kind, bias):
    theirs = torch_layer(d, h, dtype=dtype, bias=bias)
    ours = MultiHeadAttention.from_torch(theirs)
    mask = make_mask(mask_kind, n, h, length, length + 1)
    gradients = []
    for layer in (theirs, ours):
        query = random(n, length, d, dtype=dtype, seed=1, grad=True)
        key, value = (random(n, length + 1, d, dtype=dtype, seed=s, grad=True) for s in (2, 3))
        if layer is theirs:
            output, weights = call_torch(layer, query, key, value, mask)
        else:
            output, weights = layer(query, key, value, mask=mask)
        # Random cotangents: a plain sum would hide the weights, whose rows sum to a constant.
        loss = (output * random(*output.shape, dtype=dtype, seed=4)).sum()
        loss = loss + (weights * random(*weights.shape, dtype=dtype, seed=5)).sum()
        loss.backward()
        gradients.append([query.grad, key.grad, value.grad])

    projections = (ours.q_proj, ours.k_proj, ours.v_proj)
    gradients[0] += [theirs.in_proj_weight.grad, theirs.out_proj.weight.grad]
    gradients[1] += [torch.cat([p.weight.grad for p in projections]), ours.out_proj.weight.grad]
    if bias:
        gradients[0] += [theirs.in_proj_bias.grad, theirs.out_proj.bias.grad]
        gradients[1] += [torch.cat([p.bias.grad for p in projections]), ours.out_proj.bias.grad]
    for got, expected in zip(gradients[1], gradients[0], strict=True):
        # Gradients add up many terms, so their rounding is measured against their size.
        assert_close(got, expected, TOLERANCES[dtype] * max(1, expected.abs().max().item()))


@dtypes
@pytest.mark.parametrize("everything", [False, True], ids=["one row", "all rows"])
def test_a_query_with_nothing_to_attend_to(dtype, everything):
    query, key, value = (random(3, 2, 5, 7, dtype=dtype, seed=s, grad=True) for s in (1, 2, 3))
    mask = torch.zeros(5, 5, dtype=torch.bool)
    if not everything:
        mask[torch.arange(5) != 2] = True

    output, weights = scaled_dot_product_attention(query, key, value, mask)

    assert (weights[:, :, 2] == 0).all()
    assert (output[:, :, 2] == 0).all()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way back either
        (output.sin().sum() + weights.sin().sum()).backward()
    for x in (query, key, value):
        assert x.grad.isfinite().all()
    assert (query.grad[:, :, 2] == 0).all()
    assert everything or (query.grad[:, :, 0] != 0).any()


@masks
def test_rows_are_shares(mask_kind):
    mask = make_mask(mask_kind, 3, 2, 5, 6)
    _, weights = MultiHeadAttention(14, 2)(
        random(3, 5, 14, dtype=torch.float32),
        random(3, 6, 14, dtype=torch.float32, seed=1),
        mask=mask,
    )
    full = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    assert (weights >= 0).all()
    assert ((weights == 0) | full).all()
    assert (weights[full] > 0).all()
    assert_close(weights.sum(-1), full.any(-1).float(), 1e-6)


def test_key_and_value_default_to_what_stands_left_of_them():
    layer = MultiHeadAttention(14, 2).double()
    query, key, value = random(3, 5, 14), random(3, 4, 14, seed=1), random(3, 5, 14, seed=2)
    for short, full in [
        ((query,), (query, query, query)),
        ((query, key), (query, key, key)),
        ((query, None, value), (query, query, value)),
    ]:
        for got, expected in zip(layer(*short), layer(*full), strict=True):
            assert torch.equal(got, expected)


@sizes
def test_reordered_tokens_reorder_the_outputs(n, length, d, h):
    layer = MultiHeadAttention.from_torch(torch_layer(d, h))
    x, order = random(n, length, d), torch.arange(length).roll(1)
    output, weights = layer(x)
    moved_output, moved_weights = layer(x[:, order])
    assert_close(moved_output, output[:, order], 1e-12)
    assert_close(moved_weights, weights[:, :, order][..., order], 1e-12)


def test_samples_and_heads_do_not_touch_each_other():
    query, key, value = (random(3, 2, 5, 7, seed=s) for s in (1, 2, 3))
    together = scaled_dot_product_attention(query, key, value)
    for n in range(3):
        for h in range(2):
            alone = scaled_dot_product_attention(query[n, h], key[n, h], value[n, h])
            for got, expected in zip(together, alone, strict=True):
                assert_close(got[n, h], expected, 1e-12)


# --- dropout and mode ---------------------------------------------------------------------------


@sizes
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_dropout_equals_torch(n, length, d, h, training):
    theirs = torch_layer(d, h, dropout=0.4).train(training)
    ours = MultiHeadAttention.from_torch(theirs)
    x = random(n, length, d)
    results = []
    with torch.random.fork_rng():
        for call in (lambda: ours(x), lambda: call_torch(theirs, x, x, x)):
            torch.manual_seed(7)
            results.append(call())
    for got, expected in zip(*results, strict=True):
        assert_close(got, expected, 1e-12)
    row_sums = results[0][1].sum(-1)
    assert torch.allclose(row_sums, torch.ones_like(row_sums)) != training


def test_dropout_zeroes_or_scales():
    query, key, value = (random(4, 2, 50, 6, seed=s) for s in (1, 2, 3))
    _, plain = scaled_dot_product_attention(query, key, value)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        output, weights = scaled_dot_product_attention(query, key, value, dropout_p=0.25)
    kept = weights != 0
    assert 0.72 < kept.double().mean() < 0.78
    assert_close(weights[kept], plain[kept] / 0.75, 1e-12)
    assert_close(output, weights @ value, 1e-12)


# --- copying from torch -------------------------------------------------------------------------


@pytest.mark.parametrize(("kdim", "vdim"), [(6, 10), (6, None), (None, 10), (14, 14)])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_from_torch_with_other_key_and_value_widths(kdim, vdim, bias):
    theirs = torch_layer(14, 2, kdim=kdim, vdim=vdim, bias=bias)
    query = random(3, 5, 14, seed=21)
    key, value = random(3, 4, kdim or 14, seed=22), random(3, 4, vdim or 14, seed=23)
    got = MultiHeadAttention.from_torch(theirs)(query, key, value)
    for ours, expected in zip(got, call_torch(theirs, query, key, value), strict=True):
        assert_close(ours, expected, 1e-12)


@sizes
def test_from_torch_is_batch_first_whatever_torch_was(n, length, d, h):
    theirs = torch_layer(d, h, batch_first=False)
    x = random(n, length, d)
    output, weights = MultiHeadAttention.from_torch(theirs)(x)
    swapped = x.transpose(0, 1)
    expected, expected_weights = theirs(swapped, swapped, swapped, average_attn_weights=False)
    assert_close(output, expected.transpose(0, 1), 1e-12)
    assert_close(weights, expected_weights, 1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_from_torch_keeps_dtype_mode_and_dropout(dtype, training):
    theirs = torch_layer(8, 2, dtype=dtype, dropout=0.3).train(training)
    ours = MultiHeadAttention.from_torch(theirs)
    assert {p.dtype for p in ours.parameters()} == {dtype}
    assert {m.training for m in ours.modules()} == {training}
    assert ours.dropout == theirs.dropout


def test_from_torch_copies():
    theirs = torch_layer(8, 2)
    ours = MultiHeadAttention.from_torch(theirs)
    before = ours.q_proj.weight.clone()
    with torch.no_grad():
        theirs.in_proj_weight.zero_()
    assert torch.equal(ours.q_proj.weight, before)
    assert all(p.requires_grad and p.is_leaf for p in ours.parameters())


# --- splitting and merging ----------------------------------------------------------------------


@pytest.mark.parametrize(("n", "length", "d"), [(2, 3, 8), (3, 5, 14), (1, 1, 6), (0, 2, 4)])
def test_split_gives_each_head_its_block_and_merge_undoes_it(n, length, d):
    x = random(n, length, d)
    for h in divisors(d):
        heads = split_heads(x, h)
        assert heads.shape == (n, h, length, d // h)
        for head in range(h):
            block = x[:, :, head * d // h : (head + 1) * d // h]
            assert torch.equal(heads[:, head], block)
        assert torch.equal(merge_heads(heads), x)
        assert torch.equal(merge_heads(heads.contiguous()), x)


def test_split_is_a_view_even_of_a_transposed_tensor():
    for x in (random(3, 5, 14), random(3, 14, 5).transpose(1, 2), random(5, 3, 14).transpose(0, 1)):
        heads = split_heads(x, 2)
        assert heads.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert torch.equal(merge_heads(heads), x)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_parameters_do_not_depend_on_the_heads(bias):
    counts = {
        sum(p.numel() for p in MultiHeadAttention(24, h, bias=bias).parameters())
        for h in divisors(24)
    }
    assert counts == {4 * (24 * 24 + 24 * bias)}


@pytest.mark.parametrize("number", [2, np.int64(2), torch.tensor(2)], ids=["int", "numpy", "torch"])
def test_whole_numbers_of_other_libraries_count(number):
    assert require_num_heads(8, number) == 2
    assert type(require_num_heads(8, number)) is int
    layer = MultiHeadAttention(np.int64(8), number)
    assert (layer.embed_dim, layer.num_heads, layer.head_dim) == (8, 2, 4)


def test_divisors():
    assert divisors(1) == [1]
    assert divisors(7) == [1, 7]
    assert divisors(24) == [1, 2, 3, 4, 6, 8, 12, 24]


def test_autocast_may_mix_dtypes():
    layer = MultiHeadAttention(8, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, weights = layer(random(2, 3, 8, dtype=torch.bfloat16))
    assert output.shape == (2, 3, 8)
    assert weights.shape == (2, 2, 3, 3)


# --- wrong arguments ----------------------------------------------------------------------------

X = torch.zeros(2, 3, 8)  # (N, L, D)
HEADS = torch.zeros(2, 2, 3, 4)  # (N, H, L, d_h), and N = H on purpose
TRUE = torch.ones(3, 3, dtype=torch.bool)


def layer(**options):
    return MultiHeadAttention(8, 2, **options)


def assert_says(call, *parts):
    """A ValueError that starts with the argument's name and holds all the parts."""
    with pytest.raises(ValueError, match=f"^{parts[0]}") as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: split_heads(X, 3),
        lambda: MultiHeadAttention(8, 3),
        lambda: require_num_heads(8, 3),
    ],
    ids=["split_heads", "MultiHeadAttention", "require_num_heads"],
)
def test_the_promised_message(call):
    with pytest.raises(ValueError, match="cannot be split") as caught:
        call()
    message = "embed_dim=8 cannot be split into num_heads=3; try 1, 2, 4, 8"
    assert str(caught.value) == message


@pytest.mark.parametrize("use", [split_heads, lambda x, h: MultiHeadAttention(8, h)])
@pytest.mark.parametrize(
    "number", [0, -2, 2.0, 2.5, float("nan"), True, False, "2", None, [2], np.True_, np.float64(2)]
)
def test_head_counts_that_are_none(use, number):
    assert_says(
        lambda: use(X, number), "num_heads", "whole number", f"got {number!r}", "1, 2, 4, 8"
    )


def test_a_boolean_tensor_is_no_head_count():
    assert_says(lambda: split_heads(X, torch.tensor(True)), "num_heads", "got tensor(True)")


@pytest.mark.parametrize("use", [divisors, lambda d: MultiHeadAttention(d, 1)])
@pytest.mark.parametrize("number", [0, -8, 8.0, True, "8", None])
def test_widths_that_are_none(use, number):
    assert_says(lambda: use(number), "embed_dim", "whole number of at least 1", f"got {number!r}")


@pytest.mark.parametrize("dropout", [-0.1, 1, 1.5, True, float("nan"), "0.1", None])
def test_dropouts_that_are_none(dropout):
    came = f"got {dropout!r}"
    assert_says(lambda: layer(dropout=dropout), "dropout", "from 0", came)
    assert_says(lambda: scaled_dot_product_attention(X, X, X, dropout_p=dropout), "dropout_p", came)


@pytest.mark.parametrize(
    ("mask", "parts"),
    [
        (TRUE.float(), ("boolean", "torch.float32", "mask.bool()")),
        (TRUE.int(), ("boolean", "torch.int32")),
        (TRUE.tolist(), ("boolean", "list")),
        (TRUE.numpy(), ("boolean", "ndarray")),
        (True, ("boolean", "bool")),
        (TRUE[:2], ("(3, 3)", "shape (2, 3)")),
        (TRUE[:, :2], ("(3, 3)", "shape (3, 2)")),
        (torch.ones(4, 4).bool(), ("(3, 3)", "shape (4, 4)")),
        (torch.ones(2, 2, 3, 4).bool(), ("(2, 2, 3, 3)", "shape (2, 2, 3, 4)")),
        (torch.ones(3, 2, 3, 3).bool(), ("(2, 2, 3, 3)", "shape (3, 2, 3, 3)")),
        (torch.ones(3).bool(), ("(L_q, L_k)", "shape (3,)", "mask[None, :]")),
        (torch.tensor(True), ("(L_q, L_k)", "shape ()")),
        # Would be read as (H, L_q, L_k) without a word, as here N = H.
        (torch.ones(2, 3, 3).bool(), ("4 axes", "shape (2, 3, 3)", "mask[:, None]")),
        (torch.ones(1, 3, 3).bool(), ("4 axes", "shape (1, 3, 3)", "mask[:, None]")),
        (torch.ones(1, 2, 2, 3, 3).bool(), ("4 axes", "shape (1, 2, 2, 3, 3)")),
    ],
)
def test_wrong_masks(mask, parts):
    assert_says(lambda: scaled_dot_product_attention(HEADS, HEADS, HEADS, mask), "mask", *parts)
    assert_says(lambda: layer()(X, mask=mask), "mask", *parts)


def test_the_way_out_for_a_three_axis_mask_works():
    x = random(2, 3, 8, dtype=torch.float32)
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    mask[1, :, 0] = False  # sample 1 must not look at key 0
    _, weights = layer()(x, mask=mask[:, None])
    assert (weights[0] > 0).all()
    assert (weights[1, :, :, 0] == 0).all()


NOT_FLOATS = [
    (X.long(), ("floating-point", "torch.int64", ".float()")),
    (X.bool(), ("floating-point", "torch.bool")),
    (X.to(torch.complex64), ("floating-point", "torch.complex64")),
    (X.tolist(), ("torch tensor", "list")),
    (X.numpy(), ("torch tensor", "ndarray")),
    ("x", ("torch tensor", "str")),
]


@pytest.mark.parametrize(("x", "parts"), NOT_FLOATS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_not_floating_point_tensors(x, parts, place):
    name = ("query", "key", "value")[place]
    arguments = [X, X, X]
    arguments[place] = x
    assert_says(lambda: scaled_dot_product_attention(*arguments), name, *parts)
    assert_says(lambda: layer()(*arguments), name, *parts)
    assert_says(lambda: split_heads(x, 2), "x", *parts)
    assert_says(lambda: merge_heads(x), "x", *parts)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nothing_is_no_tensor(place):
    arguments = [X, X, X]
    arguments[place] = None
    name = ("query", "key", "value")[place]
    assert_says(lambda: scaled_dot_product_attention(*arguments), name, "torch tensor", "NoneType")
    assert_says(lambda: layer()(None), "query", "torch tensor", "NoneType")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: split_heads(X[0], 2), ("x", "(N, L, D)", "shape (3, 8)", "x[None]")),
        (lambda: split_heads(X[0, 0], 2), ("x", "(N, L, D)", "shape (8,)")),
        (lambda: split_heads(HEADS, 2), ("x", "(N, L, D)", "shape (2, 2, 3, 4)")),
        (lambda: split_heads(X[..., :0], 2), ("embed_dim", "at least 1", "got 0")),
        (lambda: merge_heads(X), ("x", "(N, H, L, d_h)", "shape (2, 3, 8)")),
        (lambda: merge_heads(HEADS[None]), ("x", "(N, H, L, d_h)", "shape (1, 2, 2, 3, 4)")),
        (lambda: layer()(X[0]), ("query", "(N, L, D)", "shape (3, 8)")),
        (lambda: layer()(X, X[0]), ("key", "(N, L, D)", "shape (3, 8)")),
        (lambda: layer()(X, X, HEADS), ("value", "(N, L, D)", "shape (2, 2, 3, 4)")),
        (lambda: layer()(X[..., :6]), ("query", "8 features", "got 6", "shape (2, 3, 6)")),
        (lambda: layer()(X, X[..., :6]), ("key", "8 features", "got 6")),
        (lambda: layer()(X, X, X[..., :6]), ("value", "8 features", "got 6")),
    ],
)
def test_wrong_axes(call, parts):
    assert_says(call, *parts)


@pytest.mark.parametrize(
    ("query", "key", "value", "parts"),
    [
        (X[0, 0], X[0], X[0], ("query", "(..., L_q, d)", "shape (8,)")),
        (X[0], X[0, 0], X[0], ("key", "(..., L_k, d)", "shape (8,)")),
        (X[0], X[0], X[0, 0], ("value", "(..., L_k, d_v)", "shape (8,)")),
        (X[..., :0], X[..., :0], X, ("query", "at least one feature", "shape (2, 3, 0)")),
        (X, X[..., :6], X, ("key", "as many features as query", "shape (2, 3, 6)")),
    ],
)
def test_wrong_axes_of_the_function(query, key, value, parts):
    assert_says(lambda: scaled_dot_product_attention(query, key, value), *parts)


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        (X, X[:, :2], ("value", "one row for each key", "(2, 3, 8)", "(2, 2, 8)")),
        (X[:, :2], X, ("value", "one row for each key", "(2, 2, 8)", "(2, 3, 8)")),
        # One sample would broadcast over the batch without a word.
        (X[:1], X[:1], ("key", "same batch", "(2, 3, 8)", "(1, 3, 8)")),
        (X, X[:1], ("value", "same batch", "(2, 3, 8)", "(1, 3, 8)")),
    ],
)
@pytest.mark.parametrize("call", [scaled_dot_product_attention, MultiHeadAttention(8, 2)])
def test_lengths_and_batches_that_do_not_match(call, key, value, parts):
    assert_says(lambda: call(X, key, value), *parts)


@pytest.mark.parametrize("place", [1, 2])
def test_mixed_dtypes_in_the_function(place):
    arguments = [X, X, X]
    arguments[place] = X.double()
    name = ("query", "key", "value")[place]
    parts = (name, "dtype", "torch.float32", "torch.float64")
    assert_says(lambda: scaled_dot_product_attention(*arguments), *parts)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("came", [torch.float64, torch.bfloat16])
def test_a_dtype_that_is_not_the_layers(place, came):
    arguments = [X, X, X]
    arguments[place] = X.to(came)
    name = ("query", "key", "value")[place]
    assert_says(lambda: layer()(*arguments), name, "dtype", "torch.float32", str(came))


@pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_from_torch_refuses_added_keys(options):
    theirs = nn.MultiheadAttention(8, 2, **options)
    assert_says(
        lambda: MultiHeadAttention.from_torch(theirs), "module", "add_bias_kv", "add_zero_attn"
    )


@pytest.mark.parametrize("module", [None, nn.Linear(8, 8), MultiHeadAttention(8, 2), "module"])
def test_from_torch_takes_torch_layers_only(module):
    came = type(module).__name__
    assert_says(
        lambda: MultiHeadAttention.from_torch(module), "module", "nn.MultiheadAttention", came
    )
