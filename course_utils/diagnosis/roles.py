"""Recognise by their values who plays which part: scores, weights, projections, heads."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.diagnosis.watch import LINEAR, PRODUCTS, Call

FEWEST_TOKENS = 3  # with fewer, columns of two projections can be alike by chance


@dataclass(frozen=True)
class Site:
    """One place where scores become weights. G counts all heads of all sequences."""

    query: Tensor  # (G, L_q, d)
    key: Tensor  # (G, L_k, d)
    value: Tensor | None  # (G, L_k, d_v)
    scores: Tensor  # (G, L_q, L_k), as they enter the softmax
    weights: Tensor  # (G, L_q, L_k), as they leave it
    mixing: Tensor  # (G, L_q, L_k), what multiplies the values
    leading: tuple[int, ...]  # the axes of the weights before the last two
    start: int  # position among the calls of the product of query and key
    end: int  # ... of the product of weights and value
    dropout: float


@dataclass(frozen=True)
class Source:
    """Where the columns of a role come from."""

    call: int  # position of the projection among the calls
    sequence: Tensor  # (G,): which sequence of the batch
    columns: Tensor  # (G, d): which columns of the projection
    factor: float | None  # role = factor · columns; None: normed on the way
    rotary: str | None = None  # "half", "interleaved"


def find_sites(calls: list[Call]) -> list[Site]:
    """All places where a product of two tensors goes through a softmax and mixes a third."""
    sites = []
    for i, call in enumerate(calls):
        if call.name == "scaled_dot_product_attention":
            sites.append(_fused(calls, i))
        elif call.name == "softmax" and call.output.ndim >= 2:
            site = _by_hand(calls, i)
            if site:
                sites.append(site)
    return sites


def _fused(calls: list[Call], i: int) -> Site:
    call = calls[i]
    query, key, value = (call.get(k, n) for k, n in enumerate(("query", "key", "value")))
    mask = call.get(3, "attn_mask")
    if query.ndim == 4 and key.shape[1] != query.shape[1]:  # enable_gqa
        repeats = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(repeats, 1) for x in (key, value))
    scale = call.get(6, "scale")
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if call.get(5, "is_causal", False):  # torch counts from the first key here
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, float("-inf"))
    if mask is not None:
        is_boolean = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, float("-inf")) if is_boolean else scores + mask
    weights = torch.softmax(scores, -1).nan_to_num()  # a row with nothing to attend to is 0
    flat = [x.flatten(0, -3) if x.ndim > 2 else x[None] for x in (query, key, value)]
    rows = [x.flatten(0, -3) if x.ndim > 2 else x[None] for x in (scores, weights)]
    return Site(
        *flat, *rows, rows[1], tuple(weights.shape[:-2]), i, i, call.get(4, "dropout_p", 0.0)
    )


def _by_hand(calls: list[Call], i: int) -> Site | None:
    scores, weights = calls[i].get(0, "input"), calls[i].output
    if calls[i].get(1, "dim", -1) not in (-1, scores.ndim - 1):
        return None
    shape = weights.shape[-2:]
    for start in range(i - 1, -1, -1):
        pair = _operands(calls[start])
        if pair and calls[start].output.numel() == scores.numel():
            break
    else:
        return None
    query, key = pair[0], pair[1].mT
    if (query.shape[-2], key.shape[-2]) != tuple(shape):
        return None
    groups = scores.numel() // shape.numel()
    query, key = (_spread(x, calls[start].output.shape[:-2]) for x in (query, key))
    value, mixing, end, dropout = None, weights, len(calls), 0.0
    for j in range(i + 1, len(calls)):
        pair = _operands(calls[j])
        if calls[j].name == "dropout" and calls[j].get(0, "input").shape == weights.shape:
            dropout = calls[j].get(1, "p", 0.5) if calls[j].get(2, "training", True) else 0.0
        if pair and pair[0].numel() == weights.numel() and pair[0].shape[-2:] == shape:
            value, mixing, end = _spread(pair[1], pair[0].shape[:-2]), pair[0], j
            break
    return Site(
        query,
        key,
        value,
        scores.reshape(groups, *shape),
        weights.reshape(groups, *shape),
        mixing.reshape(groups, *shape),
        tuple(weights.shape[:-2]),
        start,
        end,
        dropout,
    )


def _spread(x: Tensor, leading: torch.Size) -> Tensor:
    x = x.expand(*leading, *x.shape[-2:])
    return x.flatten(0, -3) if x.ndim > 2 else x[None]


def _operands(call: Call) -> tuple[Tensor, Tensor] | None:
    """The factors of a product as (..., row, inner) and (..., inner, column)."""
    if call.name not in PRODUCTS:
        return None
    if call.name == "einsum":
        return _einsum_operands(call)
    names = ("batch1", "batch2") if call.name == "baddbmm" else ("input", "other")
    first = 1 if call.name == "baddbmm" else 0
    pair = tuple(call.get(first + k, name) for k, name in enumerate(names))
    if call.name == "bmm" and pair[1] is None:
        pair = (pair[0], call.kwargs.get("mat2"))
    return pair if all(isinstance(x, Tensor) and x.ndim >= 2 for x in pair) else None


def _einsum_operands(call: Call) -> tuple[Tensor, Tensor] | None:
    equation, *tensors = call.args
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        return None
    inputs, out = equation.replace(" ", "").split("->")
    names = inputs.split(",")
    if len(names) != 2 or len(tensors) != 2:
        return None
    a, b = names
    batch = [x for x in out if x in a and x in b]
    row = [x for x in out if x in a and x not in b]
    column = [x for x in out if x in b and x not in a]
    inner = [x for x in a if x in b and x not in out]
    if not len(row) == len(column) == len(inner) == 1 or {*a, *b} != {
        *batch,
        *row,
        *column,
        *inner,
    }:
        return None
    first = tensors[0].permute([a.index(x) for x in (*batch, *row, *inner)])
    second = tensors[1].permute([b.index(x) for x in (*batch, *inner, *column)])
    return first, second


def find_source(role: Tensor, calls: list[Call], before: int) -> Source | None:
    """Which columns of which projection became ``role`` (G, L, d); None where nothing fits."""
    if role.shape[1] < FEWEST_TOKENS:
        return None
    projections = [i for i in range(before) if calls[i].name in LINEAR]
    for i in reversed(projections):
        for tokens in token_readings(calls[i].output, role.shape[1]):
            found = _columns(role, tokens)
            if found:
                return Source(i, *found)
    for i in reversed(range(before)):
        call = calls[i]
        if call.name in LINEAR:
            readings = token_readings(call.output, role.shape[1])
        elif call.output.ndim == 4:
            readings = (x.flatten(2) for x in (call.output, call.output.transpose(1, 2)))
        else:
            continue
        for tokens in readings:
            found = _rotated(role, tokens) if tokens.shape[1] == role.shape[1] else None
            if not found:
                continue
            if call.name in LINEAR:
                return Source(i, *found[:2], 1.0, found[2])
            for j in reversed(projections):
                if j < i and _is_normed(tokens, calls[j].output, role.shape[-1]):
                    return Source(j, *found[:2], None, found[2])
    return None


def token_readings(output: Tensor, length: int) -> Iterator[Tensor]:
    """The output of a projection as (N, L, C): batch first, then tokens first."""
    rows = output.flatten(0, -2) if output.ndim > 1 else output[None]
    if len(rows) % length:
        return
    yield rows.unflatten(0, (-1, length))
    if len(rows) != length:
        yield rows.unflatten(0, (length, -1)).transpose(0, 1)


def _columns(role: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, float] | None:
    wanted = role.mT.flatten(0, 1).double()  # (G·d, L)
    offered = tokens.mT.flatten(0, 1).double()  # (N·C, L)
    sizes = wanted.norm(dim=1), offered.norm(dim=1)
    offered = (offered / sizes[1][:, None]).nan_to_num().T
    places = []
    for some in (wanted / sizes[0][:, None]).split(128):  # all at once would fill the memory
        best, place = (some @ offered).max(1)
        if not (best > 1 - 1e-7).all():
            return None
        places.append(place)
    place = torch.cat(places)
    factors = sizes[0] / sizes[1][place]
    if factors.max() > factors.min() * (1 + 1e-4):
        return None
    place = place.unflatten(0, (len(role), -1))
    width = tokens.shape[-1]
    sequence = place[:, 0] // width
    if (place // width != sequence[:, None]).any():
        return None
    return sequence, place % width, factors.median().item()


def _rotated(role: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, str] | None:
    """Find blocks of columns whose pairs have the lengths that the role's pairs have."""
    head_dim = role.shape[-1]
    if head_dim % 2 or tokens.shape[-1] % head_dim:
        return None
    blocks = tokens.unflatten(-1, (-1, head_dim)).transpose(1, 2)  # (N, blocks, L, d)
    per_sequence, flat = blocks.shape[1], blocks.flatten(0, 1)
    # The narrowest first: features that were not turned would fit into pairs of either kind.
    for turned in (head_dim // 8, head_dim // 4, head_dim // 2, head_dim * 3 // 4, head_dim):
        for kind in ("half", "interleaved"):
            if turned % 2 or not turned:
                continue
            wanted, offered = (_lengths(x, turned, kind).flatten(1) for x in (role, flat))
            distances = torch.cdist(wanted.double(), offered.double())
            nearest, place = distances.min(1)
            if (nearest < 1e-4 * wanted.norm(dim=1)).all():
                columns = (place % per_sequence)[:, None] * head_dim + torch.arange(head_dim)
                return place // per_sequence, columns, kind
    return None


def _lengths(x: Tensor, turned: int, kind: str) -> Tensor:
    shape = (2, -1) if kind == "half" else (-1, 2)
    pairs = x[..., :turned].unflatten(-1, shape)
    return torch.cat([pairs.norm(dim=-2 if kind == "half" else -1), x[..., turned:]], -1)


def _is_normed(tokens: Tensor, projected: Tensor, head_dim: int) -> bool:
    """Whether each head of each token was scaled as a whole, and each feature by one weight."""
    if projected.numel() != tokens.numel():
        return False
    ratio = (tokens.reshape(projected.shape) / projected).unflatten(-1, (-1, head_dim)).double()
    ratio = (ratio / ratio[..., :1]).flatten(0, -2)
    return torch.allclose(ratio, ratio[:1].expand_as(ratio), rtol=1e-3)
