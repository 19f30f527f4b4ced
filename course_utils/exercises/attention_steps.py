"""The steps of one attention, which lessons 1, 4 and 6 share, and the mistakes made in them."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.exercises.search import Answer, Compute, DoesNotFit, Mistake, Step

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


def _shares(s: SimpleNamespace) -> Tensor:
    return torch.softmax(s.masking.scores, s.softmax_axis)


def _kept(s: SimpleNamespace, shares: Tensor) -> Tensor:
    return shares if s.masking.kept is None else shares * s.masking.kept


def _weights(s: SimpleNamespace) -> Tensor:
    return _kept(s, _shares(s))


def _lowered(by: float) -> Compute:
    """Add a low number where a key is blocked, as exactly as the learner's numbers are."""

    def compute(s: SimpleNamespace) -> Masking:
        if s.allowed is None:
            return Masking(s.scaled_scores, None)
        kind = torch.float64 if s.float64 else torch.float32
        lowered = s.scaled_scores.to(kind) + (~s.allowed).to(kind) * by
        return Masking(lowered.double(), None)

    return compute


def _fixed(s: SimpleNamespace) -> Tensor:
    divisor = getattr(s, "divisor", None)
    if divisor is None:
        raise DoesNotFit("the learner's weights tell of no one divisor")
    return s.scores / divisor


def divisor_of(observed: Sequence[tuple[Mapping[str, object], Answer]]) -> dict[str, float]:
    """Find the one number by which scores were divided, from the weights that came back.

    Args:
        observed: the values of all steps and the learner's result, for each input without a mask.
    """
    divisors = [_divisor(values["scores"], answer) for values, answer in observed]
    widths = {values["heads"].query.shape[-1] for values, _ in observed}
    if len(widths) < 2 or None in divisors:
        return {}
    # 1 has a name of its own
    is_one_number = max(divisors) - min(divisors) < 1e-3 and abs(divisors[0] - 1) > 1e-3
    return {"divisor": divisors[-1]} if is_one_number else {}


def _divisor(scores: Tensor, answer: Answer) -> float | None:
    if len(answer) < 2 or answer[1].shape != scores.shape or not (answer[1] > 0).all():
        return None
    logs = answer[1].log()
    made, asked = logs - logs[..., :1], scores - scores[..., :1]
    factor = float((made * asked).sum() / asked.square().sum())
    fits = factor > 0 and torch.allclose(made, factor * asked, atol=1e-3)
    return 1 / factor if fits else None


def _past(s: SimpleNamespace, keys: Tensor) -> Tensor:
    """Allow what is allowed and not later, as if there were as many keys as in ``keys``."""
    past = torch.ones(s.heads.query.shape[-2], keys.shape[-2], dtype=torch.bool).tril()
    return past if s.mask is None else past & s.mask


HEADS = Step("heads", "Heads", lambda s: Heads(s.query, s.key, s.value))

# What all exercises with an attention in them have in common, from the heads on.
ATTENTION_STEPS = (
    Step("scores", "(..., L_q, L_k)", lambda s: s.heads.query @ s.heads.key.mT),
    Step(
        "scaled_scores",
        "(..., L_q, L_k)",
        lambda s: s.scores / math.sqrt(s.heads.query.shape[-1]),
    ),
    Step("allowed", "boolean tensor, True = may attend, or None", lambda s: s.mask, "mask"),
    Step("masking", "Masking", _masking(_block, zero=True)),
    Step("softmax_axis", "int", lambda s: -1),
    Step("weights", "(..., L_q, L_k), each row sums to 1 or is 0", _weights),
    Step("returned_weights", "(..., L_q, L_k)", lambda s: s.weights),
    Step("values", "(..., L_k, d_v), what is mixed", lambda s: s.heads.value),
    Step("head_outputs", "(..., L_q, d_v)", lambda s: s.weights @ s.values, "mixed values"),
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
        id="scale-by-length",
        step="scaled_scores",
        variants=(
            lambda s: s.scores / math.sqrt(s.heads.query.shape[-2]),
            lambda s: s.scores / math.sqrt(s.heads.key.shape[-2]),
        ),
        title="the scores are divided by √L, the root of how many tokens there are",
        why="One score is a sum over the features of a head, however long the text is.",
        look="which axis's size goes into the root",
    ),
    Mistake(
        id="scale-by-first-axis",
        step="scaled_scores",
        variants=(lambda s: s.scores / math.sqrt(s.heads.query.shape[0]),),
        title="the scores are divided by the root of the first axis's size",
        why="With a batch in front, that is N. A score is a sum over the last axis.",
        look="the index of shape, or len, inside the root",
    ),
    Mistake(
        id="fixed-divisor",
        step="scaled_scores",
        variants=(_fixed,),
        title="the scores are divided by the same number, however wide a head is",
        why="The right divisor is √d_h, and d_h depends on the layer.",
        look="each number that is written out where the scores are scaled",
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
        id="mask-first-row-only",
        step="allowed",
        variants=(lambda s: None if s.mask is None else s.mask[..., :1, :],),
        title="only the first row of the mask is used, for all queries",
        why="Each query has a row of its own, which says what it may attend to.",
        look="what is indexed or expanded before the mask meets the scores",
        needs_mask=True,
    ),
    Mistake(
        id="always-causal",
        step="allowed",
        variants=(lambda s: _past(s, s.heads.key), lambda s: _past(s, s.heads.query)),
        title="later tokens are blocked, though nobody asked for it",
        why="A causal mask belongs to language models. Here every query may attend to every key.",
        look="each tril or triu",
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
        variants=(
            _masking(_block, zero=False),
            _lowered(-1e9),
        ),
        title="a query that may attend to nothing attends to everything, evenly",
        why=(
            "In a row of -1e9 alone all scores are equal. Such a query gets weights 0 and output 0."
        ),
        look="what the softmax makes of a row that is blocked as a whole",
    ),
    Mistake(
        id="blocked-row-open",
        rows=("M23",),
        step="masking",
        variants=(_lowered(-1e4),),
        title="a query that may attend to nothing attends as if nothing were blocked",
        why="Scores lowered all alike change no weight. Such a query gets weights 0 and output 0.",
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
        id="softmax-twice",
        step="weights",
        variants=(
            lambda s: torch.softmax(_weights(s), s.softmax_axis),
            lambda s: _kept(s, torch.softmax(_shares(s), s.softmax_axis)),
        ),
        title="softmax is taken twice",
        why="Weights lie between 0 and 1; a second softmax makes them nearly even.",
        look="how often softmax is called on the way from scores to weights",
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
        id="weights-transposed",
        rows=("M17",),
        step="returned_weights",
        variants=(lambda s: s.weights.mT,),
        title="the returned weights are transposed",
        why="Rows are queries and columns are keys; here it is the other way round.",
        look="what happens to the weights between their use and the return line",
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
