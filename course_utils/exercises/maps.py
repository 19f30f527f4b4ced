"""Reading the maps of single heads: inside a block (lesson 5), and for a number (lesson 8)."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Compute, Mistake, Step
from course_utils.exercises.trial import (
    SIZES,
    Trial,
    random_maps,
    random_numbers,
    with_random_parameters,
)

_HIDES_HEADS = "An average hides what single heads do; asked is one number for each head."


def _maps(block: nn.Module, tokens: Tensor) -> Tensor:
    return block.attention(tokens, tokens, tokens, average_attn_weights=False)[1]


BLOCK_STEPS = (
    Step("block_input", "(N, L, D), what the attention is given", lambda s: s.block.norm(s.x)),
    Step("maps", "(N, H, L, L)", lambda s: _maps(s.block, s.block_input)),
    Step("returned_maps", "(N, H, L, L)", lambda s: s.maps),
)

BLOCK_MISTAKES = (
    Mistake(
        id="input-not-normalised",
        step="block_input",
        variants=(lambda s: s.x,),
        title="the attention is given x itself",
        why="Inside the block it sees what norm makes of x.",
        look="the first line of the block's forward",
    ),
    Mistake(
        id="maps-averaged",
        rows=("M29", "M46"),
        step="returned_maps",
        variants=(lambda s: s.maps.mean(1),),
        title="the weights are still averaged over the heads",
        why="An average hides what single heads do; asked is (N, H, L, L).",
        look="what the layer is asked for",
    ),
    Mistake(
        id="average-repeated",
        rows=("M29", "M46"),
        step="returned_maps",
        variants=(lambda s: s.maps.mean(1, keepdim=True).expand_as(s.maps),),
        title="each head is given a copy of the average",
        why="From the average alone nobody can tell the heads apart again.",
        look="what the layer is asked for",
    ),
)


def _diagonal_of_wrong_axes(s: SimpleNamespace) -> Tensor:
    return s.weights.diagonal(s.diagonal_offset)  # (L, L, ...)


def _with_mean_over(axes: int | tuple[int, ...]) -> Compute:
    """Take a mean first; of the axes of size 1 put around it, the later means leave nothing."""
    return lambda s: _diagonal_of_wrong_axes(s).mean(axes)[None, ..., None]


PREVIOUS_TOKEN_STEPS = (
    Step("diagonal_offset", "int", lambda s: -1),
    Step(
        "previous_weights",
        "(N, H, L - 1)",
        lambda s: s.weights.diagonal(s.diagonal_offset, dim1=-2, dim2=-1),
    ),
    Step("head_means", "(N, H)", lambda s: s.previous_weights.mean(-1)),
    Step("head_scores", "(H,)", lambda s: s.head_means.mean(0)),
)

PREVIOUS_TOKEN_MISTAKES = (
    Mistake(
        id="next-token-scored",
        rows=("M17",),
        step="diagonal_offset",
        variants=(lambda s: 1,),
        title="the weight on the next token is taken, not on the one before",
        why="Rows are queries: a query's previous token stands one column to the left.",
        look="the sign of the offset, or the order of the two indices",
    ),
    Mistake(
        id="own-token-scored",
        step="diagonal_offset",
        variants=(lambda s: 0,),
        title="the weight of each token on itself is taken",
        why="That is the main diagonal; the token before stands one column to the left.",
        look="the offset of the diagonal",
    ),
    Mistake(
        id="first-column-scored",
        step="previous_weights",
        variants=(lambda s: s.weights[..., 1:, 0],),
        title="the weight on the first token is taken",
        why="The token before is another one for each query.",
        look="whether the column moves with the row",
    ),
    Mistake(
        id="first-query-wraps",
        step="previous_weights",
        variants=(lambda s: s.weights.roll(1, -1).diagonal(dim1=-2, dim2=-1),),
        title="the first query is given its weight on the last token",
        why="In Python, index -1 is the last one. The first query has no token before it.",
        look="where your loop over the queries begins",
    ),
    Mistake(
        id="diagonal-of-wrong-axes",
        step="previous_weights",
        variants=(_diagonal_of_wrong_axes, *map(_with_mean_over, ((0, 1), 0, 1))),
        title="the diagonal runs over batch and head",
        why="diagonal takes axes 0 and 1 if you name none; queries and keys are the last two.",
        look="the axes that diagonal is told",
    ),
    Mistake(
        id="first-query-counted",
        step="head_means",
        variants=(lambda s: s.previous_weights.sum(-1) / s.weights.shape[-1],),
        title="the sum is divided by L, though only L - 1 queries have a token before them",
        why="The first token has none, so there is nothing to count for it.",
        look="the number that the sum is divided by",
    ),
    Mistake(
        id="queries-added-up",
        step="head_means",
        variants=(lambda s: s.previous_weights.sum(-1),),
        title="the weights are added up over the queries, not averaged",
        why="A sum grows with the length of the sentence.",
        look="how the queries become one number",
    ),
    Mistake(
        id="largest-query-taken",
        step="head_means",
        variants=(lambda s: s.previous_weights.amax(-1),),
        title="the largest weight is taken, not the mean",
        why="One query that looks back does not make a head that does.",
        look="how the queries become one number",
    ),
    Mistake(
        id="samples-kept-apart",
        step="head_scores",
        variants=(lambda s: s.head_means,),
        title="the samples are kept apart: (N, H)",
        why="Asked is one number for each head, the mean over the batch.",
        look="the axes that are averaged",
    ),
    Mistake(
        id="samples-added-up",
        step="head_scores",
        variants=(lambda s: s.head_means.sum(0),),
        title="the samples are added up, not averaged",
        why="A sum grows with the size of the batch.",
        look="how the samples become one number",
    ),
    Mistake(
        id="heads-averaged-away",
        rows=("M46",),
        step="head_scores",
        variants=(lambda s: s.head_means.mean(1),),
        title="the heads are averaged and the samples kept: (N,)",
        why=_HIDES_HEADS,
        look="the axes that are averaged",
    ),
    Mistake(
        id="all-averaged",
        rows=("M46",),
        step="head_scores",
        variants=(lambda s: s.head_means.mean(),),
        title="everything is averaged to one number",
        why=_HIDES_HEADS,
        look="whether the mean is told its axes",
    ),
)


def per_head_weights(block: Callable[[int, int], nn.Module]) -> Exercise:
    """Make the exercise about a kind of block; see ``check_per_head_weights``."""
    return Exercise(
        name="per_head_weights",
        steps=BLOCK_STEPS,
        mistakes=BLOCK_MISTAKES,
        results={"returned_maps": "the result"},
        trials=partial(_block_trials, block),
        truth=_block_truth,
        gradients=False,
    )


def _block_trials(block: Callable[[int, int], nn.Module]) -> Iterator[Trial]:
    for n, length, d, h in SIZES:
        made = with_random_parameters(block(d, h).eval(), std=1 / math.sqrt(d))
        yield Trial({"block": made, "x": random_numbers(n, length, d)}, sizes={"num_heads": h})


def _block_truth(block: nn.Module, x: Tensor) -> Answer:
    return (_maps(block, block.norm(x)),)


def _previous_token_trials() -> Iterator[Trial]:
    for n, length, _, h in SIZES:
        yield Trial({"weights": random_maps(n, h, length, length)}, sizes={"num_heads": h})


def _previous_token_truth(weights: Tensor) -> Answer:
    before = [weights[:, :, query, query - 1] for query in range(1, weights.shape[-1])]
    return (torch.stack(before).mean((0, 1)),)


PREVIOUS_TOKEN = Exercise(
    name="previous_token",
    steps=PREVIOUS_TOKEN_STEPS,
    mistakes=PREVIOUS_TOKEN_MISTAKES,
    results={"head_scores": "the result"},
    trials=_previous_token_trials,
    truth=_previous_token_truth,
    gradients=False,
)


def check_per_head_weights(fn: Callable | None, block: Callable[[int, int], nn.Module]) -> bool:
    """Check ``fn(block, x)``: the weights of each head, (N, H, L, L), inside a block.

    Args:
        fn: the learner's function.
        block: makes a block from embed_dim and num_heads. Its ``attention``, an
            ``nn.MultiheadAttention``, attends within what its ``norm`` makes of x (N, L, D).

    Raises:
        CheckFailed: it is wrong.
    """
    return check(per_head_weights(block), fn)


def check_previous_token(fn: Callable | None) -> bool:
    """Check ``fn(weights)``: (N, H, L, L) to (H,), each head's mean weight on the token before.

    The mean is over the samples and over the queries but the first, which has no token before it.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(PREVIOUS_TOKEN, fn)
