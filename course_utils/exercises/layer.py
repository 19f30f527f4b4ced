"""The whole layer: lesson 4."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.exercises.attention import ATTENTION_MISTAKES, ATTENTION_STEPS, Heads
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.heads import (
    MERGE_MISTAKES,
    MERGE_STEPS,
    SPLIT_MISTAKES,
    SPLIT_STEPS,
)
from course_utils.exercises.judge import check
from course_utils.exercises.learner import CheckFailed, call, takes
from course_utils.exercises.search import Answer, Compute, DoesNotFit, Mistake, Step
from course_utils.exercises.trial import Trial, random_mask, random_numbers

INPUT_PROJECTIONS = ("q_proj", "k_proj", "v_proj")
PROJECTIONS = (*INPUT_PROJECTIONS, "out_proj")


class Projection(NamedTuple):
    """The numbers of one linear layer; None where the learner's layer has none."""

    weight: Tensor | None
    bias: Tensor | None


def _tokens(s: SimpleNamespace) -> tuple[Tensor, Tensor, Tensor]:
    key = s.query if s.key is None else s.key
    return s.query, key, key if s.value is None else s.value


def _through(*names: str) -> Compute:
    """Choose the projections that query, key and value go through."""
    return lambda s: tuple(s.projections[name] for name in names)


def _heads(per_head: Callable[[SimpleNamespace, Tensor, Projection], Tensor]) -> Compute:
    """Make heads of each of the three inputs and the projection that belongs to it."""
    return lambda s: Heads(
        *(per_head(s, x, p) for x, p in zip(s.tokens, s.input_projections, strict=True))
    )


def _linear(x: Tensor, projection: Projection) -> Tensor:
    if projection.weight is None:
        raise DoesNotFit("the learner's layer has no such projection")
    return F.linear(x, *projection)


def _output(s: SimpleNamespace) -> Tensor:
    return _linear(s.merged, s.projections["out_proj"])


def _bias_once_per_head(s: SimpleNamespace) -> Tensor:
    bias = s.projections["out_proj"].bias
    if bias is None:
        raise DoesNotFit("the learner's output projection has no bias")
    return _output(s) + (s.num_heads - 1) * bias


LAYER_STEPS = (
    Step("tokens", "tuple: (N, L_q, D), (N, L_k, D), (N, L_k, D)", _tokens),
    Step(
        "input_projections",
        "tuple of three Projections, (D, D) and (D,)",
        _through(*INPUT_PROJECTIONS),
    ),
    *SPLIT_STEPS,
    Step("heads", "Heads", _heads(lambda s, x, p: s.axis_order(s.feature_cut(_linear(x, p))))),
    *ATTENTION_STEPS,
    *MERGE_STEPS,
    Step("output", "(N, L_q, D)", _output),
)

LAYER_MISTAKES = (
    Mistake(
        id="key-and-value-ignored",
        step="tokens",
        variants=(lambda s: (s.query, s.query, s.query),),
        title="key and value are ignored: everything comes from query",
        why="In cross-attention they are other tokens; here the query attends to its own.",
        look="what becomes of key and value when they are given",
    ),
    Mistake(
        id="value-ignored",
        step="tokens",
        variants=(lambda s: (*_tokens(s)[:2], _tokens(s)[1]),),
        title="value is ignored: the values come from key",
        why="What is looked through (key) and what is fetched (value) may be different tokens.",
        look="which argument goes through v_proj",
    ),
    Mistake(
        id="projections-swapped",
        step="input_projections",
        variants=(_through("k_proj", "q_proj", "v_proj"),),
        title="query goes through k_proj, and key through q_proj",
        why="In self-attention this turns the scores over: columns become queries.",
        look="which argument goes through q_proj, and which through k_proj",
    ),
    Mistake(
        id="key-through-q-proj",
        step="input_projections",
        variants=(_through("q_proj", "q_proj", "v_proj"),),
        title="key goes through q_proj; k_proj is not used",
        why="What a token looks for (query) and what it is found by (key) are learned apart.",
        look="the line that makes the keys: was it copied from the one above?",
    ),
    Mistake(
        id="value-through-k-proj",
        step="input_projections",
        variants=(_through("q_proj", "k_proj", "k_proj"),),
        title="value goes through k_proj; v_proj is not used",
        why="What a token is found by (key) and what it hands over (value) are learned apart.",
        look="the line that makes the values: was it copied from the one above?",
    ),
    Mistake(
        id="one-projection",
        step="input_projections",
        variants=(_through("q_proj", "q_proj", "q_proj"),),
        title="query, key and value all go through q_proj",
        why="What a token looks for, is found by and hands over are learned apart.",
        look="which layer each of the three goes through",
    ),
    *SPLIT_MISTAKES,
    Mistake(
        id="shared-small-projection",
        rows=("M06",),
        step="heads",
        variants=(_heads(lambda s, x, p: s.axis_order(_linear(s.feature_cut(x), p))),),
        title="the raw token is cut up first, and all pieces share one small layer",
        why="A head must see the whole token, through numbers of its own; here it does neither.",
        look="what comes first, projection or cut, and the shape of q_proj.weight",
    ),
    Mistake(
        id="inputs-not-projected",
        step="heads",
        variants=(_heads(lambda s, x, p: s.axis_order(s.feature_cut(x))),),
        title="the heads get the tokens as they are, not projected",
        why="Without q_proj, k_proj and v_proj a head has nothing to learn.",
        look="what becomes of the results of q_proj, k_proj and v_proj",
    ),
    Mistake(
        id="scale-by-embed-dim",
        rows=("M14",),
        step="scaled_scores",
        variants=(lambda s: s.scores / math.sqrt(s.heads.query.shape[-1] * s.num_heads),),
        title="the scores are divided by √D instead of √d_h",
        why="One score is a sum over the d_h features of a head; √D makes the weights too flat.",
        look="how many features go into one score",
    ),
    *ATTENTION_MISTAKES,
    *MERGE_MISTAKES,
    Mistake(
        id="no-output-projection",
        step="output",
        variants=(lambda s: s.merged,),
        title="the output projection is missing",
        why="Until out_proj mixes them, the features of different heads only lie side by side.",
        look="what happens between merging the heads and returning",
    ),
    Mistake(
        id="bias-once-per-head",
        rows=("M09",),
        step="output",
        variants=(_bias_once_per_head,),
        title="the bias of out_proj is added once for each head",
        why="The sum over heads takes one block of out_proj.weight each, and the bias once.",
        look="how often out_proj, or its bias, is used for one token",
    ),
)


def layer_exercise(cls: Callable | None) -> Exercise:
    """Leave out what the learner's forward does not take."""
    forward = getattr(cls, "forward", None)
    takes_key, takes_mask = takes(forward, "key", 2), takes(forward, "mask")
    kinds = "self- and cross-attention" if takes_key else "self-attention"
    masks = "with and without a mask" if takes_mask else "without a mask"
    return replace(
        MULTI_HEAD_ATTENTION,
        trials=partial(_trials, keys=takes_key, masks=takes_mask),
        covered=f"{kinds}, {masks}, in train and eval mode",
    )


def _trials(*, keys: bool = True, masks: bool = True) -> Iterator[Trial]:
    # N, L_q, L_k, D, H, how many of query, key and value are passed, shape of the mask, whether in
    # train mode, whether in float64.
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
        if (passed > 1 and not keys) or (mask and not masks):
            continue
        arguments = {
            "query": random_numbers(n, l_q, d, seed=0),
            "key": random_numbers(n, l_k, d, seed=1) if passed > 1 else None,
            "value": random_numbers(n, l_k, d, seed=2) if passed > 2 else None,
            "mask": random_mask(*mask) if mask else None,
        }
        yield Trial(
            arguments,
            sizes={"num_heads": h},
            masked=mask is not None,
            float64=float64,
            training=training,
        )


def _built(cls: Callable, trial: Trial) -> tuple[nn.Module, Trial]:
    """Build the learner's layer, and tell the steps about its numbers.

    Raises:
        CheckFailed: it is no layer that the check could fill with numbers.
    """
    embed_dim, num_heads = trial.arguments["query"].shape[-1], trial.sizes["num_heads"]
    layer = call(cls, embed_dim, num_heads)
    if not isinstance(layer, nn.Module):
        raise CheckFailed(f"it makes a {type(layer).__name__}, which is no nn.Module.")
    if trial.float64:
        layer.double()
    parameters = _filled_parameters(layer, embed_dim)
    layer.train(trial.training)
    numbers = {name: x.detach().to(torch.float64, copy=True) for name, x in parameters.items()}
    start = {
        "num_heads": num_heads,
        "projections": {
            name: Projection(numbers.get(f"{name}.weight"), numbers.get(f"{name}.bias"))
            for name in PROJECTIONS
        },
    }
    dtype = layer.q_proj.weight.dtype
    arguments = {
        name: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x
        for name, x in trial.arguments.items()
    }
    return layer, replace(trial, arguments=arguments, start=start, parameters=parameters)


def _filled_parameters(layer: nn.Module, embed_dim: int) -> dict[str, Tensor]:
    """Fill the four projections with random numbers, and return their parameters by name.

    Raises:
        CheckFailed: some of them are not there, or are one.
    """
    parameters = {
        f"{projection}.{name}": x
        for projection in PROJECTIONS
        for name in ("weight", "bias")
        if (x := getattr(getattr(layer, projection, None), name, None)) is not None
    }
    lacking = [name for name in PROJECTIONS if f"{name}.weight" not in parameters]
    if lacking not in ([], ["out_proj"]):  # without out_proj, the search may know the mistake
        raise CheckFailed(
            f"the layer has no {' and no '.join(lacking)} with a weight; "
            f"it needs {', '.join(PROJECTIONS)}, each an nn.Linear."
        )
    if len({id(x) for x in parameters.values()}) < len(parameters):
        raise CheckFailed("two of the four projections share one weight; each needs its own.")
    for seed, x in enumerate(parameters.values(), start=10):
        # Divided by √D, scores have an ordinary size and no softmax saturates.
        x.data.copy_(random_numbers(*x.shape, seed=seed) / math.sqrt(embed_dim))
    return parameters


def _call(
    layer: nn.Module,
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    mask: Tensor | None,
) -> object:
    passed = [x for x in (query, key, value) if x is not None]
    return layer(*passed) if mask is None else layer(*passed, mask=mask)


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
    layer = nn.MultiheadAttention(d, num_heads, batch_first=True, dtype=query.dtype)
    layer.in_proj_weight.data = torch.cat(weights[:3])
    layer.in_proj_bias.data = torch.cat(biases[:3])
    layer.out_proj.weight.data = weights[3]
    layer.out_proj.bias.data = biases[3]
    if mask is not None:  # there True means blocked, and samples and heads share an axis
        mask = ~mask.expand(len(query), num_heads, query.shape[1], key.shape[1]).flatten(0, 1)
    output, _ = layer(query, key, value, attn_mask=mask, need_weights=False)
    _, attention = layer(query, key, value, attn_mask=mask, average_attn_weights=False)
    return output, attention.nan_to_num(0)  # NaN where a whole row is blocked


MULTI_HEAD_ATTENTION = Exercise(
    name="multi_head_attention",
    steps=LAYER_STEPS,
    mistakes=LAYER_MISTAKES,
    results={"output": "output", "returned_weights": "weights"},
    weights="returned_weights",
    trials=_trials,
    truth=_truth,
    prepare=_built,
    call=_call,
    covered="self- and cross-attention, with and without a mask, in train and eval mode",
)


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
    return check(layer_exercise(cls), cls)
