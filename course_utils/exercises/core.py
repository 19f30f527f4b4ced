"""Checks of the four parts of the layer: one attention, split, merge, and the layer itself."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import _judge, _undisturbed, check
from course_utils.exercises.registry import Answer
from course_utils.exercises.trial import (
    PROJECTIONS,
    SIZES,
    CheckFailed,
    Trial,
    _call,
    _double,
    _takes,
    random_numbers,
)


def check_scaled_dot_product_attention(fn: Callable | None, *, needs_mask: bool = False) -> bool:
    """Check ``fn(query, key, value, mask=None) -> (output, weights)``.

    It is given one head, query (L_q, d), key (L_k, d) and value (L_k, d_v), and many, with (N, H)
    in front. A mask is boolean, True = may attend: (L_q, L_k) or (N, 1, L_q, L_k). A function
    without a fourth argument is checked without masks.

    Args:
        fn: the learner's function.
        needs_mask: whether a function without a fourth argument is wrong.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
    """
    takes_mask = _takes(fn, "mask", 3)
    masks = "with and without a mask" if takes_mask else "without a mask"
    covered = f"one head and many, L_q ≠ L_k, {masks}"

    def trials(fn: Callable) -> Iterator[Trial]:
        if needs_mask and not takes_mask:
            raise CheckFailed(
                "your function takes no mask; this exercise is about masks. "
                "Give it a fourth argument, mask=None."
            )
        yield from _attention_trials(fn)

    return check("scaled_dot_product_attention", fn, trials, mistakes.ATTENTION, covered)


def check_split_heads(fn: Callable | None) -> bool:
    """Check ``fn(x, num_heads)``: (N, L, D) to (N, H, L, d_h).

    Not attempted is: None in place of a function, a body of nothing but a docstring and ``...``,
    ``return ...``, or ``raise NotImplementedError``. A function that returns None is wrong.

    Returns:
        True if it is right, False if it is not attempted yet, after one printed line.

    Raises:
        CheckFailed: it is wrong.
    """
    return check("split_heads", fn, _split_trials, mistakes.SPLIT_HEADS)


def check_merge_heads(fn: Callable | None) -> bool:
    """Check ``fn(x)``: (N, H, L, d_h) to (N, L, D), the inverse of ``split_heads``.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
    """
    return check("merge_heads", fn, _merge_trials, mistakes.MERGE_HEADS)


def check_multi_head_attention(cls: Callable | None) -> bool:
    """Check the layer ``cls(embed_dim, num_heads)``, an ``nn.Module``.

    It must have ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, each like ``nn.Linear``, and
    ``forward(query, key=None, value=None, *, mask=None) -> (output, weights)`` with query
    (N, L_q, D), key and value (N, L_k, D), output (N, L_q, D) and weights (N, H, L_q, L_k).
    Dropout in train mode is left to the learner: it is off while the check compares. Where
    forward takes no key, or no mask, the check does without.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
    """
    forward = getattr(cls, "forward", None)
    kinds = "self- and cross-attention" if _takes(forward, "key", 2) else "self-attention"
    masks = "with and without a mask" if _takes(forward, "mask") else "without a mask"
    covered = f"{kinds}, {masks}, in train and eval mode"
    return check("multi_head_attention", cls, _multi_head_trials, mistakes.MULTI_HEAD, covered)


def _mask(*shape: int) -> Tensor:
    """Return a mask with an open row, a blocked one, a partly blocked one, and others."""
    mask = random_numbers(*shape) > 0
    mask[..., 0, :], mask[..., 1, :] = True, False
    mask[..., 2, 0], mask[..., 2, 1] = True, False
    return mask


def _split_trials(fn: Callable) -> Iterator[Trial]:
    for n, length, d, h in SIZES:
        x = random_numbers(n, length, d)
        yield Trial(
            {"x": x},
            lambda x, h=h: fn(x, h),
            lambda x, h=h: (torch.stack(x.chunk(h, dim=-1), dim=1),),
            {"returns": ("split",), "x": x.double(), "num_heads": h},
            names=("result",),
        )


def _merge_trials(fn: Callable) -> Iterator[Trial]:
    for n, length, d, h in SIZES:
        x = random_numbers(n, h, length, d // h)
        yield Trial(
            {"x": x},
            lambda x: fn(x),
            lambda x: (torch.cat(x.unbind(1), dim=-1),),
            {"returns": ("merged",), "mixed": x.double()},
            names=("result",),
        )


def _attention_trials(fn: Callable) -> Iterator[Trial]:
    def truth(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Answer:
        one_hot = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
        return (
            F.scaled_dot_product_attention(query, key, value, mask),
            F.scaled_dot_product_attention(query, key, one_hot, mask),
        )

    # Batch and heads, L_q, L_k, d, d_v, shape of the mask. The last tells most mistakes apart.
    for batch, l_q, l_k, d, d_v, mask, dtype in (
        ((), 3, 3, 4, 4, None, torch.float32),
        ((2, 2), 3, 3, 4, 4, None, torch.float32),
        ((3, 2), 5, 5, 7, 7, None, torch.float32),
        ((3, 2), 4, 6, 7, 5, None, torch.float32),
        ((3, 2), 4, 6, 7, 5, (3, 1, 4, 6), torch.float32),
        ((2, 2), 3, 3, 4, 4, (3, 3), torch.float64),
        ((3, 2), 5, 5, 7, 7, (5, 5), torch.float32),
        ((1, 2), 4, 6, 7, 5, None, torch.float32),
        ((3, 2), 5, 5, 7, 7, (3, 2, 5, 5), torch.float32),
    ):
        if mask and not _takes(fn, "mask", 3):
            continue
        inputs = {
            "query": random_numbers(*batch, l_q, d, seed=1).to(dtype),
            "key": random_numbers(*batch, l_k, d, seed=2).to(dtype),
            "value": random_numbers(*batch, l_k, d_v, seed=3).to(dtype),
        }
        given = {
            "returns": ("mixed", "returned_weights"),
            "heads": [_double(x) for x in inputs.values()],
            "mask": _mask(*mask) if mask else None,
        }
        if mask:
            inputs["mask"] = given["mask"]
        yield Trial(inputs, lambda **x: fn(*x.values()), truth, given, dtype == torch.float64)


def _multi_head_trials(cls: Callable) -> Iterator[Trial]:
    # N, L_q, L_k, D, H, how many of query, key and value are passed, shape of the mask, mode.
    # The last tells most mistakes apart.
    for n, l_q, l_k, d, h, passed, mask, training, float64 in (
        (2, 3, 3, 8, 2, 1, None, False, False),
        (3, 5, 5, 14, 2, 1, None, True, False),
        (1, 4, 4, 12, 3, 1, None, False, False),
        (3, 4, 6, 14, 2, 3, None, False, False),
        (3, 5, 5, 14, 2, 1, (5, 5), False, False),
        (3, 4, 6, 14, 2, 2, (3, 1, 4, 6), True, False),
        (2, 3, 3, 8, 2, 3, (2, 2, 3, 3), False, True),
        (3, 5, 5, 14, 2, 3, (3, 2, 5, 5), False, False),
    ):
        forward = getattr(cls, "forward", None)
        if passed > 1 and not _takes(forward, "key", 2):
            continue
        if mask and not _takes(forward, "mask"):
            continue
        layer, parameters = _new_layer(cls, d, h, float64)
        layer.train(training)
        numbers = {name: _double(x) for name, x in parameters.items()}
        projections = {
            part[0]: (numbers.get(f"{part}.weight"), numbers.get(f"{part}.bias"))
            for part in PROJECTIONS
        }
        lengths = list({"query": l_q, "key": l_k, "value": l_k}.items())[:passed]
        inputs = {
            name: random_numbers(n, length, d, seed=seed).to(layer.q_proj.weight.dtype)
            for seed, (name, length) in enumerate(lengths)
        }
        key = inputs.get("key", inputs["query"])
        given = {
            "returns": ("output", "returned_weights"),
            "query": _double(inputs["query"]),
            "key": _double(key),
            "value": _double(inputs.get("value", key)),
            "mask": _mask(*mask) if mask else None,
            "num_heads": h,
            "projections": projections,
        }
        if mask:
            inputs["mask"] = given["mask"]

        def call(layer: nn.Module = layer, **inputs: Tensor) -> object:
            mask = {"mask": inputs.pop("mask")} if "mask" in inputs else {}
            return layer(*inputs.values(), **mask)

        truth = _torch_layer(projections, d, h)
        yield Trial(inputs, call, truth, given, float64, training, parameters)


def _new_layer(cls: Callable, d: int, h: int, float64: bool) -> tuple[nn.Module, dict[str, Tensor]]:
    """Build a layer and fill its projections, whose parameters are returned by name."""
    layer = _call(cls, d, h)
    if not isinstance(layer, nn.Module):
        raise CheckFailed(f"it makes a {type(layer).__name__}, which is no nn.Module.")
    if float64:
        layer.double()
    parameters = {
        f"{part}.{name}": x
        for part in PROJECTIONS
        for name in ("weight", "bias")
        if (x := getattr(getattr(layer, part, None), name, None)) is not None
    }
    lacking = [part for part in PROJECTIONS if f"{part}.weight" not in parameters]
    if lacking not in ([], ["out_proj"]):  # without out_proj, the search may know the mistake
        raise CheckFailed(
            f"the layer has no {' and no '.join(lacking)} with a weight; "
            f"it needs {', '.join(PROJECTIONS)}, each an nn.Linear."
        )
    if len({id(x) for x in parameters.values()}) < len(parameters):
        raise CheckFailed("two of the four projections share one weight; each needs its own.")
    for seed, x in enumerate(parameters.values(), start=10):
        # Divided by √D, scores have an ordinary size and no softmax saturates.
        x.data.copy_(random_numbers(*x.shape, seed=seed) / math.sqrt(d))
    return layer, parameters


def _torch_layer(projections: dict, d: int, h: int) -> Callable[..., Answer | None]:
    """Return torch's layer with these (weight, bias); it answers None if they do not fit it."""

    def truth(
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Answer | None:
        weights, biases = zip(*projections.values(), strict=True)
        if any(weight is None or weight.shape != (d, d) for weight in weights):
            return None
        biases = [query.new_zeros(d) if bias is None else bias for bias in biases]
        key = query if key is None else key
        value = key if value is None else value
        layer = nn.MultiheadAttention(d, h, batch_first=True, dtype=query.dtype)
        layer.in_proj_weight.data = torch.cat(weights[:3])
        layer.in_proj_bias.data = torch.cat(biases[:3])
        layer.out_proj.weight.data = weights[3]
        layer.out_proj.bias.data = biases[3]
        if mask is not None:  # there True means blocked, and samples and heads share an axis
            mask = ~mask.expand(len(query), h, query.shape[1], key.shape[1]).flatten(0, 1)
        output, _ = layer(query, key, value, attn_mask=mask, need_weights=False)
        _, attention = layer(query, key, value, attn_mask=mask, average_attn_weights=False)
        return output, attention.nan_to_num(0)  # NaN where a whole row is blocked

    return truth


def judge_layer(cls: Callable | None) -> None:
    """Judge a layer as ``check_multi_head_attention`` does, but print nothing.

    Raises:
        CheckFailed: it is wrong, or not attempted.
    """
    with _undisturbed():
        _judge(cls, _multi_head_trials, mistakes.MULTI_HEAD)
