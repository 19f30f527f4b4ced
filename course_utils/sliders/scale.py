"""Choose d_k and see what the scale √d_k does to the weights."""

import math
import reprlib
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.arguments import require_seed, require_whole
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_attention, plot_heads
from course_utils.heatmaps.texts import two_decimals
from course_utils.sliders.controls import make_slider, make_switch
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.stills import MAX_STILL_MAPS
from course_utils.sliders.tables import heat_tables, html_table, side_by_side

MAX_NUMBERS = 16_384  # features of all keys of one query; there are a thousand such queries
NUM_OTHERS = 1000  # queries behind the means


def explore_scale(
    *,
    head_dims: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    num_tokens: int = 6,
    seed: int = 0,
) -> Explorer:
    """Change d_k, switch the scale on and off, and see softmax sharpen or stay soft.

    Args:
        head_dims: each d_k that the slider offers.
        num_tokens: how many queries and keys the map has; all features have mean 0 and variance 1.
        seed: for these numbers; the global random state is left alone.

    Returns:
        An explorer with the controls ``head_dim`` and ``scaled``. Its state holds ``scores`` as
        they enter softmax and ``weights`` (nested lists, (1, L, L)), and one number per query of
        ``entropy``, in bits, and of ``derivative_norm``: the Frobenius norm of the softmax's
        Jacobian, that is, how much of a gradient at the weights can reach the scores.
        ``mean_entropy`` and ``mean_derivative_norm`` are means over 1,000 other queries.

    Raises:
        ValueError: head_dims that are not sizes, num_tokens below 2, or a seed that is not an int.
    """
    head_dims = _require_head_dims(head_dims)
    if not 2 <= require_whole("num_tokens", num_tokens) <= 64:
        raise ValueError(f"num_tokens must be at least 2 and at most 64, got {num_tokens}")
    if (numbers := num_tokens * max(head_dims)) > MAX_NUMBERS:
        raise ValueError(
            f"num_tokens times the largest of head_dims must be at most {MAX_NUMBERS:,}, "
            f"or the tensors fill the memory; got {reprlib.repr(numbers)}"
        )
    shown = _Scale(head_dims, num_tokens, require_seed(seed))
    return Explorer(
        {
            "head_dim": make_slider("d_k", head_dims, head_dims[0]),
            "scaled": make_switch("divide by √d_k", False),
        },
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
    )


def _require_head_dims(head_dims: Sequence[int]) -> list[int]:
    try:
        head_dims = list(head_dims)
        if not head_dims:
            raise TypeError
    except TypeError:
        came = reprlib.repr(head_dims)
        raise ValueError(f"head_dims must be a list of sizes, got {came}") from None
    return [require_whole(f"head_dims[{i}]", size) for i, size in enumerate(head_dims)]


class _Measured(NamedTuple):
    """What softmax makes of some queries; the last two have one number per query."""

    scores: Tensor  # (..., query, key), as they enter softmax
    weights: Tensor  # (..., query, key)
    entropy: Tensor  # in bits
    derivative_norm: Tensor  # of the softmax's Jacobian


def _measure(query: Tensor, key: Tensor, head_dim: int, scaled: bool) -> _Measured:
    """Attend with the first ``head_dim`` features, so that a step adds to what was there."""
    scores = query[..., :head_dim] @ key[..., :head_dim].mT
    if scaled:
        scores = scores * (1 / math.sqrt(head_dim))
    weights = torch.softmax(scores, dim=-1)
    entropy = -torch.xlogy(weights, weights).sum(-1) / math.log(2)
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return _Measured(scores, weights, entropy, jacobian.flatten(-2).norm(dim=-1))


class _Scale:
    """Random queries and keys at every d_k, with and without the scale.

    Args:
        head_dims: each d_k.
        num_tokens: how many queries and keys the map has.
        seed: for their features.
    """

    def __init__(self, head_dims: list[int], num_tokens: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            return torch.randn(*shape, max(head_dims), generator=generator, dtype=torch.float64)

        self.head_dims = head_dims
        self.query, self.key = random(num_tokens), random(num_tokens)  # (token, feature)
        self.other_queries = random(NUM_OTHERS, 1)  # (sample, 1, feature)
        self.other_keys = random(NUM_OTHERS, num_tokens)  # (sample, key, feature)
        self.query_names = [f"query {i}" for i in range(num_tokens)]
        self.key_names = [f"key {i}" for i in range(num_tokens)]
        self.measure_at = cache(self._measure_at)  # a move back measures nothing again

    def _measure_at(self, head_dim: int, scaled: bool) -> tuple[_Measured, float, float]:
        """What softmax makes of the queries in the map, and the two means over the others."""
        shown = _measure(self.query, self.key, head_dim, scaled)
        others = _measure(self.other_queries, self.other_keys, head_dim, scaled)
        return shown, others.entropy.mean().item(), others.derivative_norm.mean().item()

    def compute(self, head_dim: int, scaled: bool) -> dict:
        shown, mean_entropy, mean_derivative_norm = self.measure_at(head_dim, scaled)
        return {
            "head_dim": head_dim,
            "scaled": scaled,
            "scores": shown.scores[None].tolist(),
            "weights": shown.weights[None].tolist(),
            "entropy": shown.entropy.tolist(),
            "derivative_norm": shown.derivative_norm.tolist(),
            "mean_entropy": mean_entropy,
            "mean_derivative_norm": mean_derivative_norm,
        }

    def view(self, state: dict) -> str:
        scores = [
            [name, *(f"{score:z.1f}" for score in row)]
            for name, row in zip(self.query_names, state["scores"][0], strict=True)
        ]
        softness = [
            [name, two_decimals(entropy), f"{norm:.3f}"]
            for name, entropy, norm in zip(
                self.query_names, state["entropy"], state["derivative_norm"], strict=True
            )
        ]
        means = [
            f"mean of {NUM_OTHERS:,} others",
            two_decimals(state["mean_entropy"]),
            f"{state['mean_derivative_norm']:.3f}",
        ]
        most = math.log2(len(self.key_names))
        return side_by_side(
            html_table(
                "scores, q·k / √d_k" if state["scaled"] else "scores, q·k",
                ["", *self.key_names],
                scores,
            ),
            *heat_tables(state["weights"], self.query_names, self.key_names, ["weights"]),
            html_table(
                "how soft", ["", f"entropy, of {most:.2f} bits", "derivative norm"], softness, means
            ),
        )

    def title(self, state: dict) -> str:
        return f"d_k = {state['head_dim']}, {'scaled' if state['scaled'] else 'not scaled'}"

    def draw(self, state: dict) -> CourseFigure:
        return plot_attention(
            state["weights"][0],
            query_tokens=self.query_names,
            key_tokens=self.key_names,
            title=self.title(state),
        )

    def describe(self, state: dict) -> str:
        return (
            f"{self.title(state)}: mean entropy {state['mean_entropy']:.2f} bits, "
            f"mean derivative norm {state['mean_derivative_norm']:.2f}"
        )

    def still(self, _state: dict) -> CourseFigure:
        """Up to four d_k from the smallest to the largest: not scaled above, scaled below."""
        last, per_row = len(self.head_dims) - 1, min(len(self.head_dims), MAX_STILL_MAPS // 2)
        places = torch.linspace(0, last, per_row).round().int().tolist()
        states = [
            self.compute(self.head_dims[place], scaled)
            for scaled in (False, True)
            for place in places
        ]
        figure = plot_heads(
            [state["weights"][0] for state in states],
            query_tokens=self.query_names,
            key_tokens=self.key_names,
            titles=list(map(self.title, states)),
        )
        figure.alt = "; ".join(map(self.describe, states))
        return figure
