"""Lesson 2: the scale, and the gradients that come back through the softmax."""

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor

from course_utils.exercises.attention_steps import TOO_FLAT
from course_utils.exercises.calling import as_number
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Mistake, Step
from course_utils.exercises.trial import SIZES, Trial, random_numbers


def _number(x: float) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def _root_of_width(s: SimpleNamespace) -> float:
    return math.sqrt(s.query.shape[-1])


def _score_gradients(s: SimpleNamespace) -> Tensor:
    weights = torch.softmax(s.scores, dim=s.softmax_axis)
    return weights * (s.upstream - (weights * s.upstream).sum(s.softmax_axis, keepdim=True))


def _of_own_score_only(s: SimpleNamespace) -> Tensor:
    weights = torch.softmax(s.scores, s.softmax_axis)
    return s.upstream * weights * (1 - weights)


SCALE_STEPS = (Step("factor", "()", lambda s: _number(1 / math.sqrt(s.embed_dim / s.num_heads))),)

SCALE_MISTAKES = (
    Mistake(
        id="factor-by-embed-dim",
        rows=("M14",),
        step="factor",
        variants=(lambda s: _number(1 / math.sqrt(s.embed_dim)),),
        title="the factor is 1/√D instead of 1/√d_h",
        why="One dot product runs over the d_h features of a head, not over all D.",
        look="how many features go into one score",
    ),
    Mistake(
        id="factor-without-root",
        step="factor",
        variants=(lambda s: _number(s.num_heads / s.embed_dim),),
        title="the factor is 1/d_h, without the root",
        why=TOO_FLAT,
        look="whether the variance or the size of a dot product grows like d_h",
    ),
    Mistake(
        id="factor-upside-down",
        step="factor",
        variants=(lambda s: _number(math.sqrt(s.embed_dim / s.num_heads)),),
        title="the factor is √d_h: the scores would grow",
        why="Scores are multiplied by this factor, and should shrink.",
        look="whether multiplying by your number makes the scores larger or smaller",
    ),
    Mistake(
        id="factor-is-root-of-embed-dim",
        rows=("M14",),
        step="factor",
        variants=(lambda s: _number(math.sqrt(s.embed_dim)),),
        title="the factor is √D: of the whole width, and upside down",
        why="Scores are multiplied by this factor; and they run over the d_h features of a head.",
        look=(
            "how many features go into one score, and whether your number makes it "
            "larger or smaller"
        ),
    ),
    Mistake(
        id="factor-by-num-heads",
        step="factor",
        variants=(lambda s: _number(1 / math.sqrt(s.num_heads)),),
        title="the factor is 1/√H",
        why="What grows a score is the width of a head, not how many heads there are.",
        look="how many features go into one score",
    ),
    Mistake(
        id="factor-of-one",
        rows=("M16",),
        step="factor",
        variants=(lambda s: _number(1.0),),
        title="the factor is 1: no scale at all",
        why="Unscaled scores grow with d_h; the softmax saturates.",
        look="the table of variances in this lesson",
    ),
)

GRADIENT_STEPS = (
    Step("dot_products", "(Q, L)", lambda s: torch.einsum("qd,qld->ql", s.query, s.key)),
    Step(
        "scores",
        "(Q, L), what goes into the softmax",
        lambda s: s.dot_products / _root_of_width(s) if s.scaled else s.dot_products,
    ),
    Step("softmax_axis", "int", lambda s: -1),
    Step("score_gradients", "(Q, L)", _score_gradients),
    Step("norms", "(Q,)", lambda s: s.score_gradients.norm(dim=-1)),
)

GRADIENT_MISTAKES = (
    Mistake(
        id="scaled-ignored",
        rows=("M16",),
        step="scores",
        variants=(lambda s: s.dot_products,),
        title="the scores are never scaled",
        why="With scaled=True they should be divided by √d first.",
        look="what becomes of the argument scaled",
    ),
    Mistake(
        id="scaled-the-wrong-way-round",
        step="scores",
        variants=(lambda s: s.dot_products if s.scaled else s.dot_products / _root_of_width(s),),
        title="the scores are scaled with scaled=False, and not with scaled=True",
        why="The two sides of the experiment have changed places.",
        look="the condition that asks for scaled",
    ),
    Mistake(
        id="always-scaled",
        step="scores",
        variants=(lambda s: s.dot_products / _root_of_width(s),),
        title="the scores are scaled even with scaled=False",
        why="The experiment compares the two; both sides are now the same.",
        look="what becomes of the argument scaled",
    ),
    Mistake(
        id="scaled-without-root",
        step="scores",
        variants=(lambda s: s.dot_products / s.query.shape[-1] if s.scaled else s.dot_products,),
        title="the scores are divided by d, without the root",
        why="A sum of d terms spreads like √d; dividing by more makes the softmax too soft.",
        look="the line that scales",
    ),
    Mistake(
        id="shared-over-queries",
        rows=("M12",),
        step="softmax_axis",
        variants=(lambda s: 0,),
        title="the softmax runs over the queries",
        why="Each query shares out 1 among its keys, and those are the last axis.",
        look="the dim of the softmax",
    ),
    Mistake(
        id="gradient-at-dot-products",
        step="score_gradients",
        variants=(lambda s: _score_gradients(s) / (_root_of_width(s) if s.scaled else 1),),
        title="the gradient is taken before the scale, at the bare dot products",
        why="Asked is what reaches the scores that go into softmax.",
        look="which tensor has requires_grad: the one before the division, or the one after it?",
    ),
    Mistake(
        id="own-score-only",
        step="score_gradients",
        variants=(_of_own_score_only,),
        title="only w(1 - w) is counted: what each weight says to its own score",
        why="A score moves all the weights of its row, as they share one whole.",
        look="whether torch computes the gradient, or a formula for one weight",
    ),
    Mistake(
        id="gradient-at-weights",
        step="score_gradients",
        variants=(lambda s: s.upstream,),
        title="the gradient is the one at the weights, where it starts",
        why="Softmax lies between: at the scores, little of it may be left.",
        look="whose gradient you measure",
    ),
    Mistake(
        id="norms-squared",
        step="norms",
        variants=(lambda s: s.score_gradients.square().sum(-1),),
        title="the norms are squared",
        why="The size of a vector is the root of the sum of its squares.",
        look="how the norm is taken",
    ),
    Mistake(
        id="norms-over-queries",
        step="norms",
        variants=(lambda s: s.score_gradients.norm(dim=0),),
        title="the norm runs over the queries",
        why="Asked is one number for each query, so the keys are summed over.",
        look="the dim of the norm",
    ),
    Mistake(
        id="one-norm",
        step="norms",
        variants=(lambda s: s.score_gradients.norm(),),
        title="there is one norm for all queries together",
        why="Asked is one number for each query.",
        look="whether the norm is told its axis",
    ),
)


def _scale_trials() -> Iterator[Trial]:
    for _, _, d, h in SIZES:
        yield Trial({"embed_dim": d, "num_heads": h})


def _scale_truth(embed_dim: int, num_heads: int) -> Answer:
    return (_number(1 / math.sqrt(embed_dim / num_heads)),)


def _call_for_number(fn: Callable, embed_dim: int, num_heads: int) -> object:
    factor = fn(embed_dim, num_heads)
    return None if factor is None else as_number("the factor", factor)


def _gradient_trials() -> Iterator[Trial]:
    for queries, length, d, scaled in (
        (3, 3, 8, False),
        (1, 5, 7, False),
        (4, 1, 7, True),
        (4, 5, 7, False),
        (4, 5, 7, True),
    ):
        yield Trial(
            {
                "query": random_numbers(queries, d, seed=1),
                "key": random_numbers(queries, length, d, seed=2),
                "upstream": random_numbers(queries, length, seed=3),
                "scaled": scaled,
            }
        )


def _gradient_truth(query: Tensor, key: Tensor, upstream: Tensor, scaled: bool) -> Answer:
    scores = torch.einsum("qd,qld->ql", query, key)
    scores = scores / (math.sqrt(query.shape[-1]) if scaled else 1)
    scores.requires_grad_()
    weights = torch.softmax(scores, dim=-1)
    return (torch.autograd.grad(weights, scores, upstream)[0].norm(dim=-1),)


ATTENTION_SCALE = Exercise(
    name="attention_scale",
    steps=SCALE_STEPS,
    mistakes=SCALE_MISTAKES,
    results={"factor": "the factor"},
    trials=_scale_trials,
    truth=_scale_truth,
    call=_call_for_number,
)

GRADIENT_NORMS = Exercise(
    name="gradient_norms",
    steps=GRADIENT_STEPS,
    mistakes=GRADIENT_MISTAKES,
    results={"norms": "the result"},
    trials=_gradient_trials,
    truth=_gradient_truth,
    covered="with and without the scale",
    gradients=False,
)


def check_attention_scale(fn: Callable | None) -> bool:
    """Check ``fn(embed_dim, num_heads)``: the factor that a layer's scores are multiplied by.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(ATTENTION_SCALE, fn)


def check_gradient_norms(fn: Callable | None) -> bool:
    """Check ``fn(query, key, upstream, scaled)``: how large a gradient reaches the scores.

    query is (Q, d), key (Q, L, d), upstream (Q, L), and the result (Q,): for each query the norm of
    the gradient at the scores that go into softmax, if upstream is the gradient at the weights.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(GRADIENT_NORMS, fn)
