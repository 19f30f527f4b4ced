"""The steps of the whole layer, and the mistakes that are made in it but not in its parts."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.exercises.attention_steps import ATTENTION_MISTAKES, ATTENTION_STEPS, Heads
from course_utils.exercises.heads import (
    MERGE_MISTAKES,
    MERGE_STEPS,
    SPLIT_MISTAKES,
    SPLIT_STEPS,
)
from course_utils.exercises.search import Compute, DoesNotFit, Mistake, Step

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


def _reference(name: str, s: SimpleNamespace) -> Tensor:
    return next(step for step in ATTENTION_STEPS if step.name == name).compute(s)


def _output(s: SimpleNamespace) -> Tensor:
    return _linear(s.merged, s.projections["out_proj"])


def _bias_once_per_head(s: SimpleNamespace) -> Tensor:
    bias = s.projections["out_proj"].bias
    if bias is None:
        raise DoesNotFit("the learner's output projection has no bias")
    return _output(s) + (s.num_heads - 1) * bias


def _turned(projection: Projection) -> Projection:
    if projection.weight is None:
        raise DoesNotFit("the learner's layer has no such projection")
    return Projection(projection.weight.T, projection.bias)


def _cut_by_head(s: SimpleNamespace) -> Heads:
    """Put the three results side by side, and cut them into heads before q, k and v."""
    joined = torch.cat(
        [_linear(x, p) for x, p in zip(s.tokens, s.input_projections, strict=True)], -1
    )
    return Heads(*joined.unflatten(-1, (s.num_heads, -1)).transpose(1, 2).chunk(3, dim=-1))


def _mean_over_heads(x: Tensor) -> Tensor:
    return x.mean(1, keepdim=True).expand_as(x)


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
        id="value-through-q-proj",
        step="input_projections",
        variants=(_through("q_proj", "k_proj", "q_proj"),),
        title="value goes through q_proj; v_proj is not used",
        why="What a token looks for (query) and what it hands over (value) are learned apart.",
        look="the line that makes the values: was it copied from the first one?",
    ),
    Mistake(
        id="key-and-value-projections-swapped",
        step="input_projections",
        variants=(_through("q_proj", "v_proj", "k_proj"),),
        title="key goes through v_proj, and value through k_proj",
        why="Saved weights say which is which, and so does the name of each layer.",
        look="which argument goes through k_proj, and which through v_proj",
    ),
    Mistake(
        id="query-and-value-projections-swapped",
        rows=("M34",),
        step="input_projections",
        variants=(_through("v_proj", "k_proj", "q_proj"),),
        title="query goes through v_proj, and value through q_proj",
        why="Saved weights say which is which, and so does the name of each layer.",
        look="which argument goes through q_proj, and which through v_proj",
    ),
    Mistake(
        id="projections-in-another-order",
        rows=("M34",),
        step="input_projections",
        variants=(
            _through("k_proj", "v_proj", "q_proj"),
            _through("v_proj", "q_proj", "k_proj"),
        ),
        title="query, key and value go through {}",
        details=("k_proj, v_proj and q_proj", "v_proj, q_proj and k_proj"),
        why="Saved weights say which is which; in one stacked layer the order is Q, K, V.",
        look="the order in which the three are taken apart",
    ),
    Mistake(
        id="linear-weight-not-transposed",
        step="input_projections",
        variants=(lambda s: tuple(_turned(s.projections[name]) for name in INPUT_PROJECTIONS),),
        title="the tokens are multiplied by the weight as nn.Linear stores it, (out, in)",
        why="nn.Linear computes x @ weight.T. With weight itself it is another function.",
        look="each place where .weight meets the tokens",
    ),
    Mistake(
        id="one-projection",
        step="input_projections",
        variants=tuple(_through(name, name, name) for name in INPUT_PROJECTIONS),
        title="query, key and value all go through {}",
        details=INPUT_PROJECTIONS,
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
        id="qkv-cut-by-head",
        rows=("M34", "M10"),
        step="heads",
        variants=(_cut_by_head,),
        title="q, k and v lie side by side, and are cut into heads first, then into q, k and v",
        why="The row holds all of Q, then all of K, then all of V: cut it in that order.",
        look="what comes first where the row of 3·D features is taken apart: 3, or num_heads",
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
    Mistake(
        id="scores-averaged",
        rows=("M46",),
        step="scaled_scores",
        variants=(lambda s: _mean_over_heads(s.scores / math.sqrt(s.heads.query.shape[-1])),),
        title="the scores are averaged over the heads, so that all share one map",
        why="Several heads are there to look at several places; with one map they cannot.",
        look="each mean between the product and the softmax",
    ),
    Mistake(
        id="weights-averaged-before-mixing",
        rows=("M46",),
        step="weights",
        variants=(lambda s: _mean_over_heads(_reference("weights", s)),),
        title="the weights are averaged over the heads before the values are mixed",
        why="Several heads are there to look at several places; with one map they cannot.",
        look="each mean between the softmax and the product with the values",
    ),
    Mistake(
        id="weights-heads-first",
        step="returned_weights",
        variants=(lambda s: s.weights.transpose(0, 1),),
        title="the returned weights have the heads first: (H, N, L_q, L_k)",
        why="The batch is the first axis everywhere; if N = H, no shape warns of this.",
        look="the order of the axes of the second thing returned",
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
        id="out-weight-not-transposed",
        step="output",
        variants=(lambda s: F.linear(s.merged, *_turned(s.projections["out_proj"])),),
        title="the merged heads are multiplied by out_proj.weight as it is stored, (out, in)",
        why="nn.Linear computes x @ weight.T. With weight itself it is another function.",
        look="the line that uses out_proj.weight",
    ),
    Mistake(
        id="residual-added",
        step="output",
        variants=(lambda s: _output(s) + s.query,),
        title="the input is added to the output",
        why="This sum, the residual connection, belongs to the block around the layer.",
        look="each + on the way to the return line",
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
