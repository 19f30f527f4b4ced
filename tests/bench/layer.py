"""Our layer against torch's, and the mistake finder by the number of mistakes."""

import itertools
import math
import statistics
from time import perf_counter

import torch
from table import Row, compare, quartiles
from torch import nn
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention, merge_heads, split_heads
from course_utils.exercises.attention import SCALED_DOT_PRODUCT_ATTENTION
from course_utils.exercises.search import comparable, explain, values_of
from course_utils.exercises.trial import Trial

SECTION = "Our layer against torch's"
EMBED_DIM = 64


def measure(quick: bool) -> list[Row]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    lengths, heads = ((16, 64), (1, 4)) if quick else ((16, 64, 256, 1024), (1, 4, 16))
    rows = [against_torch(length, h, quick) for length in lengths for h in heads]
    rows += [without_weights(length, 4, quick) for length in lengths]
    return rows + list(growth(quick))


def layers(num_heads: int, embed_dim: int = EMBED_DIM):
    theirs = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
    return MultiHeadAttention.from_torch(theirs), theirs


def repetitions(length: int, quick: bool) -> int:
    return 5 if quick else max(5, min(60, 4000 // length))


def against_torch(length: int, num_heads: int, quick: bool) -> Row:
    ours, theirs = layers(num_heads)
    x = torch.randn(4, length, EMBED_DIM, requires_grad=True)

    def back(call):
        output, weights = call()
        (output.sum() + weights.square().sum()).backward()

    ratio = compare(
        lambda: back(lambda: ours(x)),
        lambda: back(lambda: theirs(x, x, x, average_attn_weights=False)),
        repetitions(length, quick),
    )
    what = f"forward and backward, weights on, L = {length}, H = {num_heads}"
    return Row(SECTION, what, *ratio, goal=("<=", 1.1), note="N = 4, D = 64, one thread")


def without_weights(length: int, num_heads: int, quick: bool) -> Row:
    ours, _ = layers(num_heads)
    x = torch.randn(4, length, EMBED_DIM, requires_grad=True)

    def fused():
        q, k, v = (split_heads(p(x), num_heads) for p in (ours.q_proj, ours.k_proj, ours.v_proj))
        output = ours.out_proj(merge_heads(F.scaled_dot_product_attention(q, k, v)))
        output.sum().backward()

    ratio = compare(lambda: ours(x)[0].sum().backward(), fused, repetitions(length, quick))
    what = f"the same against F.scaled_dot_product_attention, L = {length}, H = {num_heads}"
    return Row(SECTION, what, *ratio, note="torch's stores no weights; ours always does")


def growth(quick: bool):
    """The exponent of time and of stored numbers when one size is doubled, beside the predicted.

    At sizes where attention itself, not the projections, takes the time: L well above D.
    """
    sizes = {"N": 2, "L": 256, "D": 32, "H": 4}
    predicted = {  # where N·H·L² outweighs N·L·D²
        "N": (1, 1),
        "L": (2, 2),
        "D": (None, 0),
        "H": (None, 1),
    }
    for name, (in_time, in_memory) in predicted.items():
        larger = {**sizes, name: sizes[name] * 2}
        ratios = []
        calls = [one_pass(**sizes), one_pass(**larger)]
        for _ in range(5 if quick else 15):
            seconds = []
            for call in calls:
                start = perf_counter()
                call()
                seconds.append(perf_counter() - start)
            ratios.append(math.log2(seconds[1] / seconds[0]))
        note = f"{', '.join(f'{k} = {v}' for k, v in sizes.items())}, doubled"
        expected = "between 0 and 1" if in_time is None else str(in_time)
        yield Row(
            SECTION,
            f"time grows as {name} to the power of",
            *quartiles(ratios),
            unit="",
            note=f"{note}; predicted {expected}",
        )
        stored = [saved_weights(**s) for s in (sizes, larger)]
        yield Row(
            SECTION,
            f"stored weights grow as {name} to the power of",
            math.log2(stored[1] / stored[0]),
            unit="",
            note=f"predicted {in_memory}",
        )


def one_pass(N, L, D, H):  # noqa: N803 the course's symbols
    layer, x = MultiHeadAttention(D, H), torch.randn(N, L, D, requires_grad=True)
    return lambda: layer(x)[0].sum().backward()


def saved_weights(N, L, D, H):  # noqa: N803
    """How many numbers of the size of the weights one pass keeps for its gradients."""
    kept = []

    def keep(x):
        if x.numel() == N * H * L * L:
            kept.append(x.numel())
        return x

    layer, x = MultiHeadAttention(D, H), torch.randn(N, L, D, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        layer(x)
    return sum(kept)


FINDER = "The mistake finder"


def measure_finder(quick: bool) -> list[Row]:
    """Time to explain one, two and three mistakes at once, in units of one right answer's check."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    exercise = SCALED_DOT_PRODUCT_ATTENTION
    steps, known = exercise.all_steps, exercise.all_mistakes
    generator = torch.Generator().manual_seed(0)
    arguments = {
        name: torch.randn(3, 2, 5, 7, generator=generator, dtype=torch.float64)
        for name in ("query", "key", "value")
    }
    arguments["mask"] = torch.ones(5, 5, dtype=torch.bool).tril()
    start = exercise.start(Trial(arguments))
    # Mistakes that do not hide each other, each at another step.
    ids = ("query-key-swapped", "no-scale", "mask-inverted", "keys-as-values")
    planted = [mistake for mistake in known if mistake.id in ids]
    reference = median_seconds(lambda: answer_of(exercise, start, ()), 5)
    for count in (1, 2, 3):
        seconds = []
        for chosen in itertools.combinations(planted, count):
            answer = answer_of(exercise, start, chosen)
            before = perf_counter()
            found = explain(steps, known, [(start, answer)])
            seconds.append(perf_counter() - before)
            wanted = {mistake.id for mistake in chosen}
            assert any(wanted == {m.id for m in combination} for combination in found), wanted
            if quick:
                break
        median, low, high = quartiles(seconds)
        yield Row(
            FINDER,
            f"attention with a mask, {count} at once, against one forward pass",
            median / reference,
            low / reference,
            high / reference,
            note=f"{1000 * median:.0f} ms",
        )


def answer_of(exercise, start, chosen):
    state = values_of(exercise.all_steps, start, chosen)
    return tuple(comparable(state[name]) for name in state["returned"])


def median_seconds(call, times: int) -> float:
    seconds = []
    for _ in range(times):
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds)
