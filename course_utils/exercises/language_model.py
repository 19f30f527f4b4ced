"""Lesson 10: shared keys and values, a step with a cache, and rotary positions."""

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Mistake, Step
from course_utils.exercises.trial import Trial, random_numbers

# --- Grouped-query attention --------------------------------------------------------------------


def _query_heads(s: SimpleNamespace) -> Tensor:
    return torch.arange(s.query.shape[1])  # (H,)


GROUPED_STEPS = (
    Step(
        "head_sharing",
        "(H,), which key/value head each query head reads",
        lambda s: _query_heads(s) // (s.query.shape[1] // s.key.shape[1]),
    ),
    Step("repeated_keys", "(N, H, L_k, d_h)", lambda s: s.key[:, s.head_sharing]),
    Step("repeated_values", "(N, H, L_k, d_h)", lambda s: s.value[:, s.head_sharing]),
    Step(
        "scores",
        "(N, H, L_q, L_k)",
        lambda s: s.query @ s.repeated_keys.mT / math.sqrt(s.query.shape[-1]),
    ),
    Step("weights", "(N, H, L_q, L_k)", lambda s: torch.softmax(s.scores, dim=-1)),
    Step("output", "(N, H, L_q, d_h)", lambda s: s.weights @ s.repeated_values),
)

GROUPED_MISTAKES = (
    Mistake(
        id="kv-heads-tiled",
        rows=("M48",),
        step="head_sharing",
        variants=(lambda s: _query_heads(s) % s.key.shape[1],),
        title="the key/value heads are tiled: 0, 1, 0, 1 instead of 0, 0, 1, 1",
        why="Neighbouring query heads share one key/value head; saved weights rely on that.",
        look="how the key/value heads are repeated",
    ),
    Mistake(
        id="first-kv-head-for-all",
        step="head_sharing",
        variants=(lambda s: torch.zeros_like(_query_heads(s)),),
        title="all query heads read the first key/value head",
        why="With several key/value heads, each of them serves a group of its own.",
        look="which key/value heads are used at all",
    ),
    Mistake(
        id="keys-alone-tiled",
        rows=("M48",),
        step="repeated_keys",
        variants=(lambda s: s.key[:, _query_heads(s) % s.key.shape[1]],),
        title="the keys are tiled, 0, 1, 0, 1, and the values are not",
        why="A key and its value must come from the same head.",
        look="how the keys are repeated, and how the values are",
    ),
    Mistake(
        id="values-alone-tiled",
        rows=("M48",),
        step="repeated_values",
        variants=(lambda s: s.value[:, _query_heads(s) % s.key.shape[1]],),
        title="the values are tiled, 0, 1, 0, 1, and the keys are not",
        why="A key and its value must come from the same head.",
        look="how the values are repeated, and how the keys are",
    ),
    Mistake(
        id="kv-heads-averaged",
        step="repeated_keys",
        variants=(lambda s: s.key.mean(1, keepdim=True).expand(-1, s.query.shape[1], -1, -1),),
        title="the keys are averaged over the key/value heads",
        why="Each group of query heads has keys of its own.",
        look="what happens to axis 1 of the keys",
    ),
    Mistake(
        id="grouped-not-scaled",
        step="scores",
        variants=(lambda s: s.query @ s.repeated_keys.mT,),
        title="the scores are not divided by √d_h",
        why="Sharing keys does not change how large the dot products are.",
        look="the line that makes the scores",
    ),
)


def _grouped_trials() -> Iterator[Trial]:
    for n, h, h_kv, l_q, l_k, d_h in ((1, 4, 4, 3, 3, 2), (2, 4, 1, 3, 5, 4), (2, 6, 2, 3, 5, 4)):
        yield Trial(
            {
                "query": random_numbers(n, h, l_q, d_h, seed=1),
                "key": random_numbers(n, h_kv, l_k, d_h, seed=2),
                "value": random_numbers(n, h_kv, l_k, d_h, seed=3),
            }
        )


def _grouped_truth(query: Tensor, key: Tensor, value: Tensor) -> Answer:
    return (F.scaled_dot_product_attention(query, key, value, enable_gqa=True),)


GROUPED_ATTENTION = Exercise(
    name="grouped_attention",
    steps=GROUPED_STEPS,
    mistakes=GROUPED_MISTAKES,
    results={"output": "output"},
    trials=_grouped_trials,
    truth=_grouped_truth,
    covered="as many key/value heads as query heads, one, and two for six",
)


def check_grouped_attention(fn: Callable | None) -> bool:
    """Check ``fn(query, key, value) -> output``: attention with shared keys and values.

    query is (N, H, L_q, d_h), key and value are (N, H_kv, L_k, d_h) with H_kv a divisor of H, and
    output is (N, H, L_q, d_h). H / H_kv neighbouring query heads share one key/value head.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(GROUPED_ATTENTION, fn)


# --- A step with a cache ------------------------------------------------------------------------


def _allowed(s: SimpleNamespace, offset: int) -> Tensor:
    return torch.ones(s.query.shape[2], s.keys.shape[2]).tril(offset).bool()


def _past(s: SimpleNamespace) -> int:
    """How many keys come before those of the new tokens."""
    return s.keys.shape[2] - s.query.shape[2]


def _join(first: Tensor, second: Tensor) -> Tensor:
    return torch.cat([first, second], dim=2)


CACHED_STEPS = (
    Step(
        "joining",
        "function: (N, H, P, d_h) and (N, H, L, d_h) to (N, H, P + L, d_h)",
        lambda s: _join,
        "joined cache and new tokens",
    ),
    Step("keys", "(N, H, P + L, d_h)", lambda s: s.joining(s.past_key, s.key), "all keys"),
    Step("values", "(N, H, P + L, d_h)", lambda s: s.joining(s.past_value, s.value), "all values"),
    Step("mask", "(L, P + L), boolean, True = may attend", lambda s: _allowed(s, _past(s))),
    Step(
        "scores", "(N, H, L, P + L)", lambda s: s.query @ s.keys.mT / math.sqrt(s.query.shape[-1])
    ),
    Step(
        "weights",
        "(N, H, L, P + L)",
        lambda s: torch.softmax(s.scores.masked_fill(~s.mask, -math.inf), dim=-1),
    ),
    Step("output", "(N, H, L, d_h)", lambda s: s.weights @ s.values),
)

CACHED_MISTAKES = (
    Mistake(
        id="cache-forgotten",
        step="joining",
        variants=(lambda s: lambda past, new: new,),
        title="the cache is not read: new tokens look at new tokens only",
        why="The tokens of the cache come before the new ones, and may be looked at.",
        look="where past_key and past_value go",
    ),
    Mistake(
        id="new-tokens-first",
        step="joining",
        variants=(lambda s: lambda past, new: _join(new, past),),
        title="the new keys and values come before those of the cache",
        why="Keys stand in the order of the tokens, and the mask counts on that.",
        look="the order in which cache and new tokens are joined",
    ),
    Mistake(
        id="new-values-first",
        step="values",
        variants=(lambda s: _join(s.value, s.past_value),),
        title="the new values come before those of the cache, but the keys do not",
        why="The value of a token must stand where its key stands.",
        look="the order in which the values are joined",
    ),
    Mistake(
        id="mask-without-offset",
        rows=("M49",),
        step="mask",
        variants=(lambda s: _allowed(s, 0),),
        title="the causal mask starts in the upper left corner, as if there were no cache",
        why="The first new token stands at position P, so it may look at P + 1 tokens.",
        look="the diagonal at which the mask is cut",
    ),
    Mistake(
        id="new-token-hidden-from-itself",
        step="mask",
        variants=(lambda s: _allowed(s, _past(s) - 1),),
        title="a new token may not look at itself",
        why="A token may look at all tokens up to its own position, and that includes itself.",
        look="the diagonal at which the mask is cut",
    ),
    Mistake(
        id="cached-step-not-causal",
        step="mask",
        variants=(lambda s: _allowed(s, s.keys.shape[2]),),
        title="there is no causal mask: new tokens look at later ones",
        why="Several new tokens may come at once, and each must not see those after it.",
        look="what keeps the first new token from the last",
    ),
)


def _cached_trials() -> Iterator[Trial]:
    for n, h, past, new, d_h in ((1, 1, 3, 1, 2), (1, 2, 2, 4, 6), (2, 3, 4, 3, 5)):
        yield Trial(
            {
                "query": random_numbers(n, h, new, d_h, seed=1),
                "key": random_numbers(n, h, new, d_h, seed=2),
                "value": random_numbers(n, h, new, d_h, seed=3),
                "past_key": random_numbers(n, h, past, d_h, seed=4),
                "past_value": random_numbers(n, h, past, d_h, seed=5),
            }
        )


def _cached_truth(
    query: Tensor, key: Tensor, value: Tensor, past_key: Tensor, past_value: Tensor
) -> Answer:
    # The full pass: the past gets queries too, and their outputs are dropped.
    full_query = _join(torch.zeros_like(past_key), query)
    full = F.scaled_dot_product_attention(
        full_query, _join(past_key, key), _join(past_value, value), is_causal=True
    )
    return (full[:, :, past_key.shape[2] :],)


CACHED_ATTENTION = Exercise(
    name="cached_attention",
    steps=CACHED_STEPS,
    mistakes=CACHED_MISTAKES,
    results={"output": "output"},
    trials=_cached_trials,
    truth=_cached_truth,
    covered="one new token, and several at once",
)


def check_cached_attention(fn: Callable | None) -> bool:
    """Check ``fn(query, key, value, past_key, past_value) -> output``: causal, with a cache.

    query, key and value are those of the new tokens, (N, H, L, d_h); past_key and past_value are
    the cache, (N, H, P, d_h). output is (N, H, L, d_h), as in the full pass over P + L tokens.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(CACHED_ATTENTION, fn)


# --- Rotary positions ---------------------------------------------------------------------------


def _pair_numbers(s: SimpleNamespace) -> Tensor:
    return torch.arange(s.x.shape[-1] // 2, dtype=torch.float64)  # (d_h / 2,)


def _swap_halves(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def _swap_pairs(x: Tensor) -> Tensor:
    return torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)


def _turn(s: SimpleNamespace, swap: Callable[[Tensor], Tensor], in_pairs: bool) -> Tensor:
    """Turn the features that ``swap`` exchanges, by angles that are laid out in pairs or halves."""
    angles = s.angles.repeat_interleave(2, -1) if in_pairs else torch.cat([s.angles] * 2, -1)
    return s.x * angles.cos() + swap(s.x) * angles.sin()


ROTARY_STEPS = (
    Step("places", "(L,)", lambda s: s.positions.double(), "positions"),
    Step(
        "speeds",
        "(d_h / 2,), radians per position",
        lambda s: 10_000.0 ** (-2 * _pair_numbers(s) / s.x.shape[-1]),
        "angles per position",
    ),
    Step("angles", "(L, d_h / 2)", lambda s: s.places[:, None] * s.speeds),
    Step("turned", "(N, H, L, d_h)", lambda s: _turn(s, _swap_halves, False), "turned features"),
)

ROTARY_MISTAKES = (
    Mistake(
        id="positions-restart",
        rows=("M51",),
        step="places",
        variants=(lambda s: torch.arange(s.x.shape[2], dtype=torch.float64),),
        title="the positions start again at 0",
        why="With a cache, the first new token does not stand at position 0.",
        look="where the positions come from",
    ),
    Mistake(
        id="rotary-speeds-halved",
        step="speeds",
        variants=(lambda s: 10_000.0 ** (-_pair_numbers(s) / s.x.shape[-1]),),
        title="the exponent is i / d_h instead of 2i / d_h",
        why="There are d_h / 2 pairs, and their exponents run over the whole way from 0 to 1.",
        look="the exponent of the base",
    ),
    Mistake(
        id="rotary-one-speed",
        step="speeds",
        variants=(lambda s: torch.ones_like(_pair_numbers(s)),),
        title="all pairs turn by the same angle",
        why="Fast pairs tell near positions apart, slow pairs those that are far apart.",
        look="whether the angle depends on the pair",
    ),
    Mistake(
        id="rotary-backwards",
        step="angles",
        variants=(lambda s: -s.places[:, None] * s.speeds,),
        title="the pairs turn the other way",
        why="Queries and keys that turn alike hide this slip, until weights come from elsewhere.",
        look="the signs before the sines",
    ),
    Mistake(
        id="rotary-in-pairs",
        rows=("M50",),
        step="turned",
        variants=(lambda s: _turn(s, _swap_pairs, True),),
        title="neighbouring features are paired, 2i with 2i + 1",
        why="Here feature i is paired with i + d_h / 2; weights for one layout fail in the other.",
        look="which two features are turned together",
    ),
    Mistake(
        id="rotary-layouts-mixed",
        rows=("M50",),
        step="turned",
        variants=(
            lambda s: _turn(s, _swap_halves, True),
            lambda s: _turn(s, _swap_pairs, False),
        ),
        title="features are paired in {}",
        details=(
            "halves, but their angles in pairs",
            "pairs, but their angles in halves",
        ),
        why="The two features of a pair must turn by the same angle.",
        look="the order of the angles in the table of cosines and sines",
    ),
)


def _rotary_trials() -> Iterator[Trial]:
    for n, h, length, start, d_h in ((1, 1, 3, 0, 4), (1, 2, 4, 7, 6), (2, 3, 5, 2, 8)):
        x = random_numbers(n, h, length, d_h, seed=1)
        yield Trial({"x": x, "positions": torch.arange(start, start + length)})


def _rotary_truth(x: Tensor, positions: Tensor) -> Answer:
    """Multiply complex numbers, whose angles add up."""
    half = x.shape[-1] // 2
    speeds = 10_000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = torch.outer(positions.to(x.dtype), speeds)
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.exp(1j * angles)
    return (torch.cat([turned.real, turned.imag], dim=-1),)


ROTARY = Exercise(
    name="rotary",
    steps=ROTARY_STEPS,
    mistakes=ROTARY_MISTAKES,
    results={"turned": "turned features"},
    trials=_rotary_trials,
    truth=_rotary_truth,
    covered="positions from 0 on, and from later ones",
)


def check_rotary(fn: Callable | None) -> bool:
    """Check ``fn(x, positions) -> turned``: rotary positions in the layout of halves.

    x is (N, H, L, d_h) with an even d_h, positions (L,) holds whole numbers, and turned is
    (N, H, L, d_h). Features i and i + d_h / 2 turn by position · 10000^(-2i / d_h).

    Raises:
        CheckFailed: it is wrong.
    """
    return check(ROTARY, fn)
