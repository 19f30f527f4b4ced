"""Checks of arguments: each returns what it was given if that will do, or raises ``ValueError``.

A message names the argument, what was expected, what came and, where there is one, the way out.
Checks of what a learner wrote are something else: see ``course_utils.exercises``.
"""

import math
import operator
import reprlib
from collections.abc import Mapping, Sequence, Set

import numpy as np
import torch
from torch import Tensor, nn

MAX_EMBED_DIM = 16_384  # wider layers fill the memory, and their divisors could take forever
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def divisors(embed_dim: int) -> list[int]:
    """All head counts that divide ``embed_dim`` evenly, in order.

    Raises:
        ValueError: embed_dim is not a whole number from 1 to ``MAX_EMBED_DIM``.
    """
    embed_dim = require_embed_dim(embed_dim)
    small = [h for h in range(1, math.isqrt(embed_dim) + 1) if embed_dim % h == 0]
    return sorted({*small, *(embed_dim // h for h in small)})


def require_embed_dim(embed_dim: int) -> int:
    """Return ``embed_dim`` as an int if a layer may be so wide.

    Raises:
        ValueError: it is not a whole number from 1 to ``MAX_EMBED_DIM``.
    """
    embed_dim = require_whole("embed_dim", embed_dim)
    if embed_dim > MAX_EMBED_DIM:
        raise ValueError(
            f"embed_dim must be at most {MAX_EMBED_DIM:,}, got {reprlib.repr(embed_dim)}"
        )
    return embed_dim


def require_num_heads(embed_dim: int, num_heads: int) -> int:
    """Return ``num_heads`` as an int if it divides ``embed_dim``.

    Raises:
        ValueError: it does not; the message lists the head counts that do.
    """
    choices = ", ".join(map(str, divisors(embed_dim)))
    num_heads = require_whole("num_heads", num_heads, f"; for embed_dim={embed_dim} try {choices}")
    if embed_dim % num_heads:
        raise ValueError(
            f"embed_dim={embed_dim} cannot be split into num_heads={num_heads}; try {choices}"
        )
    return num_heads


def require_whole(name: str, number: object, way_out: str = "") -> int:
    """Return ``number`` as an int if it is a whole number of at least 1.

    Raises:
        ValueError: it is not; the message ends with ``way_out``.
    """
    try:
        if isinstance(number, bool) or getattr(number, "dtype", None) == torch.bool:
            raise TypeError
        whole = operator.index(number)  # takes NumPy and torch integers too, but no float
    except (TypeError, ValueError):
        whole = 0
    if whole < 1:
        raise ValueError(
            f"{name} must be a whole number of at least 1, got {reprlib.repr(number)}{way_out}"
        )
    return whole


def require_position(name: str, position: object, length: int) -> int:
    """Return ``position`` as an int if it counts one of ``length`` things from 0.

    Raises:
        ValueError: it does not.
    """
    try:
        if isinstance(position, bool) or getattr(position, "dtype", None) == torch.bool:
            raise TypeError
        place = operator.index(position)
    except (TypeError, ValueError):
        place = -1
    if place not in range(length):
        raise ValueError(
            f"{name} must be a position from 0 to {length - 1}, got {reprlib.repr(position)}"
        )
    return place


def require_patch_size(name: str, size: int, shape: Sequence[int]) -> int:
    """Return ``size`` as an int if it divides height and width of ``shape`` (M, height, width)."""
    size, (_, height, width) = require_whole(name, size), shape
    if height % size or width % size:
        ways_out = ", ".join(map(str, divisors(math.gcd(height, width))))
        raise ValueError(
            f"{name}={size} does not divide images of {height} by {width}; try {ways_out}"
        )
    return size


def require_dropout(name: str, dropout: object) -> float:
    """Return ``dropout`` as a float if it is in [0, 1).

    Raises:
        ValueError: it is not.
    """
    if not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
        raise ValueError(
            f"{name} must be a number from 0 up to, not with, 1; got {reprlib.repr(dropout)}"
        )
    return float(dropout)


def require_seed(seed: int) -> int:
    """Return ``seed`` if a generator takes it: an int from 0 to 2**63 - 1."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be an int from 0 to 2**63 - 1, got {reprlib.repr(seed)}")
    return seed


def require_tensor(name: str, x: object, axes: str, *, ndim: int | None = None) -> None:
    """Refuse what is no ordinary floating-point tensor with these axes, for example "(N, L, D)"."""
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a torch tensor {axes}, got {type(x).__name__}")
    if x.dtype not in FLOATS:
        raise ValueError(f"{name} must hold floating-point numbers, got {x.dtype}; try .float()")
    require_dense(name, x)
    if x.ndim < 2 or ndim not in (None, x.ndim):
        hint = "; add the batch axis with x[None]" if x.ndim == 2 and ndim == 3 else ""
        raise ValueError(f"{name} must be {axes}, got {_shape(x)}{hint}")


def require_rank(name: str, x: Tensor, axes: str, ndim: int) -> None:
    """Refuse what is no tensor with ``ndim`` axes."""
    if not isinstance(x, Tensor) or x.ndim != ndim:
        came = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"{name} must be a tensor {axes}, got {came}")


def require_dense(name: str, x: Tensor) -> None:
    """Refuse sparse and other unusual layouts."""
    if x.layout != torch.strided:
        raise ValueError(f"{name} must be an ordinary tensor, got {x.layout}; try .to_dense()")


def require_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Refuse query (..., L_q, d), key (..., L_k, d) and value (..., L_k, d_v) that do not fit."""
    for name, x, axes in (
        ("query", query, "(..., L_q, d)"),
        ("key", key, "(..., L_k, d)"),
        ("value", value, "(..., L_k, d_v)"),
    ):
        require_tensor(name, x, axes)
    if query.shape[-1] == 0:
        raise ValueError(f"query must have at least one feature, got {_shape(query)}")
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"key must have as many features as query for their dot product; "
            f"got query {_shape(query)} and key {_shape(key)}"
        )
    require_axes(query, key, value)
    for name, x in (("key", key), ("value", value)):
        if (x.dtype, x.device) != (query.dtype, query.device):
            raise ValueError(
                f"{name} must have the dtype and device of query; got query {query.dtype} on "
                f"{query.device} and {name} {x.dtype} on {x.device}"
            )


def require_axes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Refuse other batch or head axes than those of query, and keys without a value each."""
    if value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"value must have one row for each key; got key {_shape(key)} and value {_shape(value)}"
        )
    for name, x in (("key", key), ("value", value)):
        if x.shape[:-2] != query.shape[:-2]:
            raise ValueError(
                f"{name} must have the same batch and head axes as query; "
                f"got query {_shape(query)} and {name} {_shape(x)}"
            )


def require_mask(mask: Tensor, scores: Tensor) -> None:
    """Refuse a mask that is not boolean, or whose axes do not fit scores (..., L_q, L_k)."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"mask must be a boolean tensor, True = may attend; got {came}. "
            f"For 0/1 numbers use mask.bool()"
        )
    require_dense("mask", mask)
    if mask.device != scores.device:
        raise ValueError(f"mask must be on {scores.device}, like query; got {mask.device}")
    # Fewer axes would broadcast from the right, and (N, L_q, L_k) would then be read as
    # (H, L_q, L_k): silently wrong when N = H.
    if mask.ndim not in (2, scores.ndim):
        way_out = ""
        if mask.ndim == 3 and scores.ndim == 4:
            way_out = "; for one mask per sample add the head axis with mask[:, None]"
        elif mask.ndim == 1:
            way_out = "; for one row of keys use mask[None, :]"
        raise ValueError(
            f"mask must be (L_q, L_k) or have the {scores.ndim} axes of the scores "
            f"{tuple(scores.shape)}, got {_shape(mask)}{way_out}"
        )
    wanted = scores.shape[-mask.ndim :]
    if any(m not in (1, s) for m, s in zip(mask.shape, wanted, strict=True)):
        raise ValueError(
            f"mask must be {tuple(wanted)}, or 1 where it is the same for all; got {_shape(mask)}"
        )


def require_features(name: str, x: object, proj: nn.Linear) -> None:
    """Refuse what does not go through ``proj``: another rank, width or dtype than its own."""
    require_tensor(name, x, "(N, L, D)", ndim=3)
    if x.shape[-1] != proj.in_features:
        raise ValueError(
            f"{name} must have {proj.in_features} features per token, as this layer was "
            f"built for; got {x.shape[-1]} in {_shape(x)}"
        )
    # Under autocast torch converts by itself.
    if x.dtype != proj.weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(
            f"{name} must have the dtype of this layer, {proj.weight.dtype}; got {x.dtype}"
        )


def require_torch_layer(module: object) -> None:
    """Refuse what is no ``nn.MultiheadAttention``, and one that adds keys no token owns."""
    if not isinstance(module, nn.MultiheadAttention):
        raise ValueError(
            f"module must be a torch.nn.MultiheadAttention, got {type(module).__name__}"
        )
    if module.bias_k is not None or module.add_zero_attn:
        raise ValueError(
            "module must not use add_bias_kv or add_zero_attn: they add a key that no token "
            "owns; build it without them"
        )


def require_finite(name: str, x: Tensor) -> None:
    """Refuse a tensor that is empty or holds NaN or infinity."""
    if x.numel() == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(x.shape)}")
    bad = x[~x.isfinite()]
    if len(bad):
        raise ValueError(f"{name} must be finite numbers, got {bad[0].item()}")


def require_weights(weights, axes: str, name: str = "weights") -> np.ndarray:
    """Return weights as a float64 array with the given axes, for example "(L_q, L_k)".

    Raises:
        ValueError: another rank, no cells, or a cell that is negative, NaN or infinite.
    """
    array = require_numbers(name, weights, f"of shape {axes}")
    wanted = axes.count(",") + 1
    if array.ndim != wanted:
        way_out = ""
        if array.ndim > wanted:
            way_out = f"; pick one with {name}[{', '.join('0' * (array.ndim - wanted))}]"
        elif array.ndim == wanted - 1:
            way_out = f"; add the missing axis with {name}[None]"
        raise ValueError(f"{name} must be {axes}, got shape {array.shape}{way_out}")
    if array.size == 0:
        raise ValueError(f"{name} must have at least one cell, got shape {array.shape}")
    for what, bad in (
        ("NaN", np.isnan(array)),
        ("infinite", np.isinf(array)),
        ("negative", array < 0),
    ):
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            hint = "; are these scores, before softmax?" if what != "NaN" else ""
            raise ValueError(
                f"{name} must be numbers of at least 0, got {array[where]} at {list(where)}, "
                f"and {count_of(int(bad.sum()), what + ' cell')} in all{hint}"
            )
    return array


def require_numbers(name: str, numbers, what: str) -> np.ndarray:
    """Return numbers of any kind as a float64 array.

    Raises:
        ValueError: text, complex numbers, lists of different lengths, or no numbers at all.
    """
    came = getattr(numbers, "dtype", type(numbers).__name__)
    try:
        if isinstance(numbers, torch.Tensor):
            numbers = numbers.detach().cpu()
            numbers = (numbers.double() if numbers.is_floating_point() else numbers).numpy()
        array = np.asarray(numbers)
        if array.dtype.kind not in "biuf":  # text and complex numbers would be converted silently
            raise TypeError
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be numbers, {what}; got {came}") from None
    return array.astype(np.float64)


def require_blocked(blocked, shape: Sequence[int]) -> np.ndarray:
    """Return ``blocked`` as a boolean array of the shape of the weights; left out, nothing is.

    Raises:
        ValueError: another shape or dtype.
    """
    if blocked is None:
        return np.zeros(shape, dtype=bool)
    try:
        array = np.asarray(blocked)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"blocked must be booleans, got {type(blocked).__name__}") from None
    if array.dtype != bool:
        raise ValueError(f"blocked must be booleans, True = blocked; got {array.dtype}")
    if array.shape not in (tuple(shape), tuple(shape[-2:])):
        wanted = " or ".join(map(str, dict.fromkeys((tuple(shape[-2:]), tuple(shape)))))
        raise ValueError(f"blocked must be {wanted}, got shape {array.shape}")
    return np.broadcast_to(array, shape)


def require_text(name: str, text: str) -> str:
    """Return ``text`` if it is a string.

    Raises:
        ValueError: it is not; the message starts with ``name``.
    """
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a string, got {reprlib.repr(text)}")
    return text


def require_names(name: str, names: Sequence[str], wanted: int, each: str) -> list[str]:
    """Return ``names`` as a list if they are so many strings; ``each`` says what has one.

    Raises:
        ValueError: they are not; the message starts with ``name``.
    """
    if isinstance(names, str):
        raise ValueError(f"{name} must be a list of strings, got one string; try {names.split()}")
    try:
        if isinstance(names, bytes | Set | Mapping):
            raise TypeError
        names = list(names)
    except TypeError:
        raise ValueError(f"{name} must be a list of strings, got {type(names).__name__}") from None
    for item in names:
        if not isinstance(item, str):
            raise ValueError(
                f"{name} must be strings, got {reprlib.repr(item)} of type {type(item).__name__}"
            )
    if len(names) != wanted:
        raise ValueError(
            f"{name} must be {wanted} strings, {each}; got {len(names)} for {wanted}: "
            f"{reprlib.repr(names)}"
        )
    return names


def names_or_numbers(tokens: Sequence[str] | None, length: int, name: str = "tokens") -> list[str]:
    """Return ``tokens`` as ``require_names`` does; left out, the positions as text."""
    if tokens is None:
        return [str(i) for i in range(length)]
    return require_names(name, tokens, length, "one per token")


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """A number of things, as "1 head" or "2 heads"."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def _shape(x: Tensor) -> str:
    return f"shape {tuple(x.shape)}"
