"""The whole layer: lesson 4.

The learner passes a class. For each trial a layer is built from it, its projections are filled with
our numbers, and its answer is compared with that of torch's own layer.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.exercises.attention_steps import divisor_of
from course_utils.exercises.calling import CheckFailed, call
from course_utils.exercises.chance import Means
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.layer_steps import (
    LAYER_MISTAKES,
    LAYER_STEPS,
    PROJECTIONS,
    Projection,
)
from course_utils.exercises.projections import Found, as_linear, find
from course_utils.exercises.search import Answer, same
from course_utils.exercises.signature import Binding, bind, left_out, uncompiled
from course_utils.exercises.trial import Trial, random_mask, random_numbers

_ROLES = dict(zip("qkvo", PROJECTIONS, strict=True))


def _fit(
    exercise: Exercise, cls: Callable, *, mask: str | None = None
) -> tuple[Exercise, Callable]:
    """Find what the layer's forward takes, and leave out the rest.

    Raises:
        CheckFailed: no layer comes out of the class.
    """
    if isinstance(cls, nn.Module):
        raise CheckFailed(f"pass the class itself, not something of type {type(cls).__name__}.")
    told = {} if mask is None else {"mask": mask}
    binding = bind(_new(cls, 8, 2).forward, ("query",), ("key", "value", "mask"), told=told)
    keys = binding.takes("key")
    kinds = "self- and cross-attention" if keys else "self-attention"
    masks = "with and without a mask" if binding.takes("mask") else "without a mask"
    exercise = replace(
        exercise,
        trials=partial(
            _trials, keys=keys, values=binding.takes("value"), masks="with and" in masks
        ),
        build=partial(_built, binding=binding),
        call=partial(_call, binding=binding),
        covered=f"{kinds}, {masks}, in train and eval mode",
        note=left_out(binding),
    )
    return exercise, cls


def _trials(*, keys: bool = True, values: bool = True, masks: bool = True) -> Iterator[Trial]:
    # N, L_q, L_k, D, H, how many of query, key and value are passed, shape of the mask and which
    # of its rows is open, whether in train mode.
    for n, l_q, l_k, d, h, passed, mask, open_row, training in (
        (2, 3, 3, 8, 2, 1, None, 0, False),
        (3, 5, 5, 14, 2, 1, None, 0, True),
        (1, 70, 70, 6, 2, 1, None, 0, False),
        (1, 4, 4, 12, 3, 1, None, 0, False),
        (3, 4, 6, 14, 2, 3, None, 0, False),
        (3, 5, 5, 14, 2, 1, (5, 5), None, False),
        (3, 5, 5, 14, 2, 1, (3, 1, 1, 5), 0, False),
        (3, 4, 6, 14, 2, 2, (3, 1, 4, 6), 2, True),
        (2, 5, 5, 8, 2, 3, (2, 2, 5, 5), 1, False),
        (3, 5, 5, 14, 2, 3, (3, 2, 5, 5), 3, False),
    ):
        passed = min(passed, 1 + keys + values)
        if (passed == 1 and l_q != l_k) or (mask and not masks):
            continue
        arguments = {
            "query": random_numbers(n, l_q, d, seed=0),
            "key": random_numbers(n, l_k, d, seed=1) if passed > 1 else None,
            "value": random_numbers(n, l_k, d, seed=2) if passed > 2 else None,
            "mask": _mask(mask, open_row) if mask else None,
        }
        yield Trial(
            arguments,
            sizes={"num_heads": h},
            masked=mask is not None,
            float64=open_row is None,
            training=training,
        )


def _mask(shape: tuple[int, ...], open_row: int | None) -> Tensor:
    if shape[-2] > 1:
        return random_mask(*shape, open_row=open_row)
    lengths = torch.arange(1, shape[0] + 1) + shape[-1] - shape[0]
    return (torch.arange(shape[-1]) < lengths[:, None])[:, None, None]  # padded keys


def _new(cls: Callable, embed_dim: int, num_heads: int) -> nn.Module:
    """Build the learner's layer, without a compiler.

    Raises:
        CheckFailed: it is no layer.
        Undecided: it needs something that is neither a width nor a number of heads.
    """
    binding = bind(cls, ("embed_dim", "num_heads"))
    layer = call(partial(binding.call, cls), embed_dim=embed_dim, num_heads=num_heads)
    if not isinstance(layer, nn.Module):
        raise CheckFailed(f"it makes a {type(layer).__name__}, which is no nn.Module.")
    return uncompiled(layer)


def _built(cls: Callable, trial: Trial, *, binding: Binding) -> tuple[nn.Module, Trial]:
    """Build the learner's layer, and tell the steps about its numbers.

    Raises:
        CheckFailed: it is no layer that the check could fill with numbers.
    """
    embed_dim, num_heads = trial.arguments["query"].shape[-1], trial.sizes["num_heads"]
    layer = _new(cls, embed_dim, num_heads)
    if trial.float64:
        layer.double()
    found = find(layer, embed_dim)
    parameters = _filled_parameters(found, embed_dim)
    layer.train(trial.training)
    dtype = next(iter(parameters.values())).dtype
    arguments = {
        name: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x
        for name, x in trial.arguments.items()
    }
    trial = replace(trial, arguments=arguments, parameters=parameters)
    if any(part.in_out is None for parts in found.values() for part in parts):
        return layer, _either_way_round(layer, trial, found, binding)
    return layer, _with_projections(trial, found)


def _with_projections(trial: Trial, found: Mapping[str, Sequence[Found]]) -> Trial:
    linear = {_ROLES[role]: Projection(*pair) for role, pair in as_linear(found).items()}
    return replace(trial, start={**trial.sizes, "projections": linear})


def _either_way_round(
    layer: nn.Module, trial: Trial, found: Mapping[str, Sequence[Found]], binding: Binding
) -> Trial:
    """Take parameters of the learner's own as (in, out), or as (out, in) if that comes out right.

    Nothing but the result says whether x @ W or x @ W.T is computed with them.
    """
    with Means(), torch.no_grad():
        output = call(_call, layer, **trial.arguments, binding=binding)
    output = output[0] if isinstance(output, tuple | list) else output
    ways = [
        _with_projections(
            trial,
            {
                role: [replace(p, in_out=in_out) if p.in_out is None else p for p in parts]
                for role, parts in found.items()
            },
        )
        for in_out in (True, False)
    ]
    for way in ways:
        right = _truth(**way.given)
        if right and isinstance(output, Tensor) and same(output.double(), right[0]):
            return way
    return ways[0]


def _filled_parameters(found: Mapping[str, Sequence[Found]], embed_dim: int) -> dict[str, Tensor]:
    """Fill the projections with random numbers, and return their parameters by name.

    Raises:
        CheckFailed: some of them are not there, or are one.
    """
    roles = {one for role in found for one in role}
    lacking = [name for role, name in _ROLES.items() if role not in roles]
    if lacking not in ([], ["out_proj"]):  # without out_proj, the search may know the mistake
        raise CheckFailed(
            f"the layer has no {' and no '.join(lacking)} with a weight; "
            f"it needs {', '.join(PROJECTIONS)}, each an nn.Linear."
        )
    parts = [part for parts in found.values() for part in parts]
    pairs = [pair for part in parts for pair in part.parameters.items()]
    if len({id(x) for _, x in pairs}) < len(pairs):
        raise CheckFailed("two of the four projections share one weight; each needs its own.")
    for seed, (_, x) in enumerate(pairs, start=10):
        # Divided by √D, scores have an ordinary size and no softmax saturates. The length of each
        # row, which weight_norm keeps apart, is about 1 then.
        is_length = x.ndim > 1 and x.numel() == max(x.shape)
        scale = 1 if is_length else math.sqrt(embed_dim)
        x.data.copy_(random_numbers(*x.shape, seed=seed) / scale)
    return dict(pairs)


def _call(
    layer: nn.Module,
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    mask: Tensor | None,
    *,
    binding: Binding,
) -> object:
    """Call the layer with what it takes; keys and values that it must be given are the query."""
    if binding.must_be_given("key"):
        key = query if key is None else key
    if binding.must_be_given("value"):
        value = key if value is None else value
    return binding.call(layer, query=query, key=key, value=value, mask=mask)


def _truth(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    mask: Tensor | None,
    num_heads: int,
    projections: Mapping[str, Projection],
) -> Answer | None:
    """Return what torch's layer with these numbers gives; None if they do not fit it."""
    d = query.shape[-1]
    if any(p.weight is None or p.weight.shape != (d, d) for p in projections.values()):
        return None
    weights = [p.weight for p in projections.values()]
    biases = [query.new_zeros(d) if p.bias is None else p.bias for p in projections.values()]
    key = query if key is None else key
    value = key if value is None else value
    if mask is not None:  # there True means blocked, and samples and heads share an axis
        mask = ~mask.expand(len(query), num_heads, query.shape[1], key.shape[1]).flatten(0, 1)
    attend = partial(
        F.multi_head_attention_forward,
        *(x.transpose(0, 1) for x in (query, key, value)),  # (L, N, D)
        *(d, num_heads, torch.cat(weights[:3]), torch.cat(biases[:3]), None, None, False, 0.0),
        *(weights[3], biases[3]),
        attn_mask=mask,
        training=False,
        average_attn_weights=False,
    )
    output, attention = attend(need_weights=True)
    if mask is not None:  # NaN where a whole row is blocked; without weights there are zeros
        output, _ = attend(need_weights=False)
    return output.transpose(0, 1), attention.nan_to_num(0)


MULTI_HEAD_ATTENTION = Exercise(
    name="multi_head_attention",
    steps=LAYER_STEPS,
    mistakes=LAYER_MISTAKES,
    results={"output": "output", "returned_weights": "weights"},
    weights="returned_weights",
    learn=divisor_of,
    watched=("heads", "scaled_scores", "weights", "head_outputs"),
    trials=_trials,
    truth=_truth,
    fit=_fit,
    covered="self- and cross-attention, with and without a mask, in train and eval mode",
)


def check_multi_head_attention(cls: Callable | None, *, mask: str | None = None) -> bool:
    """Check the layer ``cls(embed_dim, num_heads)``, an ``nn.Module``.

    It must have ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, each like ``nn.Linear``, and
    ``forward(query, key=None, value=None, *, mask=None) -> (output, weights)`` with query
    (N, L_q, D), key and value (N, L_k, D), output (N, L_q, D) and weights (N, H, L_q, L_k).
    Other usual names will do, and so will one projection for the first three, stacked [Q; K; V]
    as in torch, or a parameter of one's own. Dropout in train mode is left to the learner: it is
    off while the check compares. Arguments are told by their names, in another order too. Where
    forward takes no key, or no mask, the check does without.
    A query that may attend to nothing should get zeros; if it gets anything else, this is noted.

    Args:
        cls: the class, or a function that makes the layer.
        mask: the argument of forward that takes the mask, where its name does not tell.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
        ValueError: forward has no argument of the name in ``mask``.
    """
    return check(replace(MULTI_HEAD_ATTENTION, fit=partial(_fit, mask=mask)), cls)
