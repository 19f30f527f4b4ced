"""One attention: lessons 1 and 6."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.learner import CheckFailed, takes
from course_utils.exercises.search import Answer, Compute, Mistake, Step
from course_utils.exercises.trial import Trial, random_mask, random_numbers

TOO_FLAT = "A sum of d_h terms spreads like √d_h; dividing by more makes the weights too flat."
_NO_WEIGHTS = "Scores can be any numbers; weights are what the softmax makes of them."


class Heads(NamedTuple):
    """What one attention works on, with batch and heads in front if there are any."""

    query: Tensor  # (..., L_q, d)
    key: Tensor  # (..., L_k, d)
    value: Tensor  # (..., L_k, d_v)


class Masking(NamedTuple):
    """What a mask does to the scores, and to the weights."""

    scores: Tensor  # (..., L_q, L_k): what goes into the softmax
    kept: Tensor | None  # boolean: weights that stay as the softmax makes them; None: all


def _masking(before: Callable[[Tensor, Tensor], Tensor], *, zero: bool) -> Compute:
    """Change the scores before the softmax, and afterwards make the blocked weights 0, or not."""

    def compute(s: SimpleNamespace) -> Masking:
        if s.allowed is None:
            return Masking(s.scaled_scores, None)
        return Masking(before(s.scaled_scores, s.allowed), s.allowed if zero else None)

    return compute


def _block(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


def _weights(s: SimpleNamespace) -> Tensor:
    weights = torch.softmax(s.masking.scores, s.softmax_axis)
    return weights if s.masking.kept is None else weights * s.masking.kept


# What all exercises with an attention in them have in common, from the heads on.
ATTENTION_STEPS = (
    Step("scores", "(..., L_q, L_k)", lambda s: s.heads.query @ s.heads.key.mT),
    Step(
        "scaled_scores",
        "(..., L_q, L_k)",
        lambda s: s.scores / math.sqrt(s.heads.query.shape[-1]),
    ),
    Step("allowed", "boolean tensor, True = may attend, or None", lambda s: s.mask),
    Step("masking", "Masking", _masking(_block, zero=True)),
    Step("softmax_axis", "int", lambda s: -1),
    Step("weights", "(..., L_q, L_k), each row sums to 1 or is 0", _weights),
    Step("returned_weights", "(..., L_q, L_k)", lambda s: s.weights),
    Step("values", "(..., L_k, d_v), what is mixed", lambda s: s.heads.value),
    Step("head_outputs", "(..., L_q, d_v)", lambda s: s.weights @ s.values),
)

ATTENTION_MISTAKES = (
    Mistake(
        id="query-key-swapped",
        rows=("M17",),
        step="scores",
        variants=(lambda s: s.heads.key @ s.heads.query.mT,),
        title="query and key are swapped in the product",
        why="Rows are queries and columns are keys; here it is the other way round.",
        look="which of the two factors is transposed",
    ),
    Mistake(
        id="no-scale",
        rows=("M16",),
        step="scaled_scores",
        variants=(lambda s: s.scores,),
        title="the scores are not scaled",
        why="They grow with d_h; then the softmax saturates and its gradients shrink towards 0.",
        look="what happens to the scores between product and softmax",
    ),
    Mistake(
        id="scale-without-root",
        step="scaled_scores",
        variants=(lambda s: s.scores / s.heads.query.shape[-1],),
        title="the scores are divided by d_h, without the root (or by √d_h twice)",
        why=TOO_FLAT,
        look="each place where something is scaled",
    ),
    Mistake(
        id="scale-multiplied",
        step="scaled_scores",
        variants=(lambda s: s.scores * math.sqrt(s.heads.query.shape[-1]),),
        title="the scores are multiplied by √d_h instead of divided",
        why="Scores that grow with d_h grow even more; the softmax saturates.",
        look="* and /, or the sign of an exponent",
    ),
    Mistake(
        id="mask-inverted",
        rows=("M18",),
        step="allowed",
        variants=(lambda s: None if s.mask is None else ~s.mask,),
        title="the mask is inverted",
        why="Here True means may attend; in nn.MultiheadAttention True means blocked.",
        look="which positions are filled: where the mask is True, or where it is False?",
    ),
    Mistake(
        id="mask-ignored",
        step="allowed",
        variants=(lambda s: None,),
        title="the mask is ignored",
        why="Queries then attend to keys that they must not see.",
        look="whether what the mask changed is used further down",
    ),
    Mistake(
        id="mask-added",
        rows=("M19",),
        step="masking",
        variants=(_masking(lambda scores, allowed: scores + allowed, zero=False),),
        title="the mask is added to the scores as 0 and 1",
        why="A score that is 1 lower still gets a weight; a blocked key must get 0.",
        look="which score makes the softmax give 0",
    ),
    Mistake(
        id="mask-multiplied",
        rows=("M20",),
        step="masking",
        variants=(_masking(lambda scores, allowed: scores * allowed, zero=False),),
        title="the scores are multiplied by the mask: blocked scores are 0",
        why="A score of 0 still gets a weight, as exp(0) = 1; a blocked key must get 0.",
        look="which score makes the softmax give 0",
    ),
    Mistake(
        id="mask-after-softmax",
        rows=("M21",),
        step="masking",
        variants=(_masking(lambda scores, allowed: scores, zero=True),),
        title="the mask comes after the softmax",
        why="Blocked keys have had their share by then, so rows no longer sum to 1.",
        look="the order of mask and softmax",
    ),
    Mistake(
        id="blocked-row-nan",
        rows=("M22",),
        step="masking",
        variants=(
            _masking(lambda scores, allowed: scores.masked_fill(~allowed, -math.inf), zero=False),
        ),
        title="a query that may attend to nothing gets NaN",
        why="A row of -inf alone makes 0/0. Such a query gets weights 0 and output 0.",
        look="what the softmax makes of a row that is blocked as a whole",
    ),
    Mistake(
        id="blocked-row-even",
        rows=("M23",),
        step="masking",
        variants=(_masking(_block, zero=False),),
        title="a query that may attend to nothing attends to everything, evenly",
        why=(
            "In a row of -1e9 alone all scores are equal. Such a query gets weights 0 and output 0."
        ),
        look="what the softmax makes of a row that is blocked as a whole",
    ),
    Mistake(
        id="softmax-over-queries",
        rows=("M12",),
        step="softmax_axis",
        variants=(lambda s: -2,),
        title="the softmax runs over the query axis",
        why="Each query shares out 1 among the keys: rows sum to 1, not columns.",
        look="the dim of the softmax",
    ),
    Mistake(
        id="softmax-over-heads",
        rows=("M12", "M13"),
        step="softmax_axis",
        variants=(lambda s: 1,),
        title="the softmax runs over axis 1, the heads",
        why="Heads then compete for a key. With no dim given, four axes get this one.",
        look="the dim of the softmax",
    ),
    Mistake(
        id="softmax-over-batch",
        rows=("M12", "M13"),
        step="softmax_axis",
        variants=(lambda s: 0,),
        title="the softmax runs over axis 0, the batch",
        why="Samples then compete, and must not. With no dim given, three axes get this one.",
        look="the dim of the softmax",
    ),
    Mistake(
        id="weights-averaged",
        rows=("M29",),
        step="returned_weights",
        variants=(lambda s: s.weights.mean(1),),
        title="the returned weights are averaged over the heads",
        why="An average hides what single heads do; weights are (N, H, L_q, L_k).",
        look="the shape of the weights that are returned",
    ),
    Mistake(
        id="scores-returned",
        step="returned_weights",
        variants=(lambda s: s.scaled_scores,),
        title="scores are returned in place of weights",
        why=_NO_WEIGHTS,
        look="whether the second thing returned is from before the softmax",
    ),
    Mistake(
        id="masked-scores-returned",
        step="returned_weights",
        variants=(lambda s: s.masking.scores,),
        title="masked scores are returned in place of weights",
        why=_NO_WEIGHTS,
        look="whether the second thing returned is from before the softmax",
        needs_mask=True,
    ),
    Mistake(
        id="unmasked-weights-returned",
        step="returned_weights",
        variants=(lambda s: torch.softmax(s.scaled_scores, s.softmax_axis),),
        title="the returned weights are from before the mask",
        why="The values were mixed with other weights than those returned.",
        look="whether the mask has been applied to the second thing returned",
        needs_mask=True,
    ),
    Mistake(
        id="keys-as-values",
        step="values",
        variants=(lambda s: s.heads.key,),
        title="the keys are mixed instead of the values",
        why="Keys decide how much of each token to take; what is taken are the values.",
        look="what the weights are multiplied with",
    ),
)


def _trials(*, masks: bool = True, needs_mask: bool = False) -> Iterator[Trial]:
    """Make inputs for one attention.

    Raises:
        CheckFailed: there must be masks, and the learner's function takes none.
    """
    if needs_mask and not masks:
        raise CheckFailed(
            "your function takes no mask; this exercise is about masks. "
            "Give it a fourth argument, mask=None."
        )
    # Batch and heads, L_q, L_k, d, d_v, shape of the mask, whether in float64.
    for batch, l_q, l_k, d, d_v, mask, float64 in (
        ((), 3, 3, 4, 4, None, False),
        ((2, 2), 3, 3, 4, 4, None, False),
        ((3, 2), 5, 5, 7, 7, None, False),
        ((3, 2), 4, 6, 7, 5, None, False),
        ((3, 2), 4, 6, 7, 5, (3, 1, 4, 6), False),
        ((2, 2), 3, 3, 4, 4, (3, 3), True),
        ((3, 2), 5, 5, 7, 7, (5, 5), False),
        ((1, 2), 4, 6, 7, 5, None, False),
        ((3, 2), 5, 5, 7, 7, (3, 2, 5, 5), False),
    ):
        if mask and not masks:
            continue
        dtype = torch.float64 if float64 else torch.float32
        arguments = {
            "query": random_numbers(*batch, l_q, d, seed=1).to(dtype),
            "key": random_numbers(*batch, l_k, d, seed=2).to(dtype),
            "value": random_numbers(*batch, l_k, d_v, seed=3).to(dtype),
            "mask": random_mask(*mask) if mask else None,
        }
        yield Trial(arguments, masked=mask is not None, float64=float64)


def _truth(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Answer:
    one_hot = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
    return (
        F.scaled_dot_product_attention(query, key, value, mask),
        F.scaled_dot_product_attention(query, key, one_hot, mask),
    )


HEADS = Step("heads", "Heads", lambda s: Heads(s.query, s.key, s.value))

SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    name="scaled_dot_product_attention",
    steps=(HEADS, *ATTENTION_STEPS),
    mistakes=ATTENTION_MISTAKES,
    results={"head_outputs": "output", "returned_weights": "weights"},
    weights="returned_weights",
    trials=_trials,
    truth=_truth,
    covered="one head and many, L_q ≠ L_k, with and without a mask",
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
    takes_mask = takes(fn, "mask", 3)
    masks = "with and without a mask" if takes_mask else "without a mask"
    exercise = replace(
        SCALED_DOT_PRODUCT_ATTENTION,
        trials=partial(_trials, masks=takes_mask, needs_mask=needs_mask),
        covered=f"one head and many, L_q ≠ L_k, {masks}",
    )
    return check(exercise, fn)
