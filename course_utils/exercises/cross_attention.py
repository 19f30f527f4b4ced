"""Lesson 6: cross-attention through torch's own layer."""

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.masks import (
    FIRST_PADDING_SEEN,
    NUMBERS,
    PADDING_SEEN,
    PADDING_TAKES_WEIGHT,
    POSITIONS_FROM_0,
)
from course_utils.exercises.search import Answer, DoesNotFit, Mistake, Step
from course_utils.exercises.trial import Trial, random_numbers, with_random_parameters


def _attended(s: SimpleNamespace) -> tuple[Tensor, Tensor]:
    query, key, value = s.roles
    blocked, each_head = s.blocked_keys, {"average_attn_weights": False}
    if blocked is None or blocked.shape == key.shape[:2]:
        return s.layer(query, key, value, key_padding_mask=blocked, **each_head)
    if blocked.shape == (len(key) * s.layer.num_heads, query.shape[1], key.shape[1]):
        return s.layer(query, key, value, attn_mask=blocked, **each_head)
    raise DoesNotFit("the mask does not fit the keys")


def _repeated_by_batch(s: SimpleNamespace) -> Tensor:
    blocked = (~s.real_keys).repeat(s.layer.num_heads, 1)
    return blocked[:, None].expand(-1, s.x.shape[1], -1)


CROSS_STEPS = (
    Step(
        "real_keys",
        "(N, L_k), boolean",
        lambda s: torch.arange(s.memory.shape[1]) < s.lengths[:, None],
    ),
    Step(
        "blocked_keys",
        "(N, L_k) or (N·H, L_q, L_k), boolean, True = blocked; or None",
        lambda s: ~s.real_keys,
    ),
    Step("roles", "tuple: query, key and value tokens", lambda s: (s.x, s.memory, s.memory)),
    Step("attended", "tuple: (N, L_q, D), (N, H, L_q, L_k)", _attended),
    Step("cross_output", "(N, L_q, D)", lambda s: s.attended[0]),
    Step("cross_weights", "(N, H, L_q, L_k)", lambda s: s.attended[1]),
)

CROSS_MISTAKES = (
    Mistake(
        id="cross-padding-off-by-one",
        step="real_keys",
        variants=(lambda s: torch.arange(s.memory.shape[1]) <= s.lengths[:, None],),
        title=FIRST_PADDING_SEEN,
        why=POSITIONS_FROM_0,
        look="the comparison with the lengths",
    ),
    Mistake(
        id="cross-mask-inverted",
        rows=("M18",),
        step="blocked_keys",
        variants=(lambda s: s.real_keys,),
        title="real keys are blocked, and padding may be seen",
        why="In nn.MultiheadAttention True means blocked.",
        look="what True means in the mask that you hand over",
    ),
    Mistake(
        id="cross-mask-repeated",
        rows=("M25",),
        step="blocked_keys",
        variants=(_repeated_by_batch,),
        title="the mask of one sample goes to the heads of another",
        why="A mask (N·H, L_q, L_k) holds all heads of sample 0 first, then all of sample 1.",
        look="how the mask is repeated for the heads: whole batches, or each sample in its place",
    ),
    Mistake(
        id="cross-padding-ignored",
        step="blocked_keys",
        variants=(lambda s: None,),
        title=PADDING_SEEN,
        why=PADDING_TAKES_WEIGHT,
        look="what becomes of the lengths",
    ),
    Mistake(
        id="cross-mask-of-numbers",
        rows=("M19",),
        step="blocked_keys",
        variants=(lambda s: s.real_keys.double(), lambda s: (~s.real_keys).double()),
        title=NUMBERS,
        why="Numbers are added to the scores: a key that is 1 lower still gets a share.",
        look="the dtype of the mask that you hand over",
    ),
    Mistake(
        id="cross-turned-round",
        rows=("M36",),
        step="roles",
        variants=(lambda s: (s.memory, s.x, s.x),),
        title="memory looks at x",
        why="The queries come from x: one row for each of its tokens. Keys and values are memory.",
        look="the order in which the two go into the layer",
    ),
    Mistake(
        id="cross-looks-at-itself",
        rows=("M36",),
        step="roles",
        variants=(lambda s: (s.x, s.x, s.x),),
        title="x looks at itself: this is self-attention",
        why="The queries come from x; what they look through, and fetch, is memory.",
        look="where keys and values come from",
    ),
    Mistake(
        id="cross-memory-at-itself",
        rows=("M36",),
        step="roles",
        variants=(lambda s: (s.memory,) * 3,),
        title="memory looks at itself, and x is not used",
        why="The queries come from x: one row for each of its tokens.",
        look="the first thing that goes into the layer",
    ),
    Mistake(
        id="cross-weights-averaged",
        rows=("M29", "M46"),
        step="cross_weights",
        variants=(lambda s: s.attended[1].mean(1),),
        title="the weights are averaged over the heads",
        why="An average hides what single heads do; asked is (N, H, L_q, L_k).",
        look="what the layer is asked for",
    ),
)


def _trials() -> Iterator[Trial]:
    for l_q, l_k, d, h, lengths in (
        (4, 4, 8, 2, (3, 4)),
        (5, 7, 14, 2, (7, 7, 7)),
        (3, 4, 12, 3, (2,)),
        (5, 7, 14, 2, (7, 4, 2)),
    ):
        layer = nn.MultiheadAttention(d, h, batch_first=True).eval()
        arguments = {
            "layer": with_random_parameters(layer, std=1 / math.sqrt(d)),
            "x": random_numbers(len(lengths), l_q, d, seed=1),
            "memory": random_numbers(len(lengths), l_k, d, seed=2),
            "lengths": torch.tensor(lengths),
        }
        yield Trial(arguments, sizes={"num_heads": h}, padded=min(lengths) < l_k)


def _truth(layer: nn.MultiheadAttention, x: Tensor, memory: Tensor, lengths: Tensor) -> Answer:
    blocked = torch.arange(memory.shape[1]) >= lengths[:, None]
    return layer(x, memory, memory, key_padding_mask=blocked, average_attn_weights=False)


CROSS_ATTENTION = Exercise(
    name="cross_attention",
    steps=CROSS_STEPS,
    mistakes=CROSS_MISTAKES,
    results={"cross_output": "output", "cross_weights": "weights"},
    weights="cross_weights",
    trials=_trials,
    truth=_truth,
    covered="L_q ≠ L_k, with and without padding",
    gradients=False,
)


def check_cross_attention(fn: Callable | None) -> bool:
    """Check ``fn(layer, x, memory, lengths) -> (output, weights)``: x looks at padded memory.

    layer is an ``nn.MultiheadAttention``, batch first; x is (N, L_q, D), memory (N, L_k, D), and
    lengths (N,) says how many tokens of each memory are real, the first ones. output is
    (N, L_q, D) and weights (N, H, L_q, L_k).

    Raises:
        CheckFailed: it is wrong.
    """
    return check(CROSS_ATTENTION, fn)
