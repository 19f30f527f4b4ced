"""Choose d_k and see what the scale √d_k does to the weights."""

import math
import reprlib
from collections.abc import Sequence
from functools import cache

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

MAX_NUMBERS_A_QUERY = 16_384  # of explore_scale, which asks a thousand queries


def explore_scale(
    *,
    head_dims: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    num_tokens: int = 6,
    seed: int = 0,
) -> Explorer:
    """Change d_k, switch the scale on and off, and see softmax sharpen or stay soft.

    Args:
        head_dims: the d_k the slider offers.
        num_tokens: queries and keys in the map; all features have mean 0 and variance 1.
        seed: for these numbers; the global random state is left alone.

    Returns:
        An explorer with the controls ``head_dim`` and ``scaled``; its state holds ``scores`` as
        they enter softmax and ``weights`` (nested lists, (1, L, L)), and one number a query of
        ``entropy``, in bits, and ``gradient_norm``: the Frobenius norm of the softmax's
        Jacobian, that is, how much of a gradient at the weights can reach the scores.
        ``mean_entropy`` and ``mean_gradient_norm`` are means over 1,000 other queries.

    Raises:
        ValueError: head_dims that are no sizes, num_tokens below 2, or a seed that is no int.
    """
    try:
        head_dims = list(head_dims)
        if not head_dims:
            raise TypeError
    except TypeError:
        came = reprlib.repr(head_dims)
        raise ValueError(f"head_dims must be a list of sizes, got {came}") from None
    head_dims = [require_whole(f"head_dims[{i}]", size) for i, size in enumerate(head_dims)]
    if not 2 <= require_whole("num_tokens", num_tokens) <= 64:
        raise ValueError(f"num_tokens must be at least 2 and at most 64, got {num_tokens}")
    if (numbers := num_tokens * max(head_dims)) > MAX_NUMBERS_A_QUERY:
        raise ValueError(
            f"num_tokens times the largest of head_dims must be at most {MAX_NUMBERS_A_QUERY:,}, "
            f"or the tensors fill the memory; got {reprlib.repr(numbers)}"
        )
    generator = torch.Generator().manual_seed(require_seed(seed))

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, max(head_dims), generator=generator, dtype=torch.float64)

    query, key = random(num_tokens), random(num_tokens)  # (token, feature)
    many_queries, many_keys = random(1000, 1), random(1000, num_tokens)
    names = [f"query {i}" for i in range(num_tokens)]
    key_names = [f"key {i}" for i in range(num_tokens)]

    def measure(query: Tensor, key: Tensor, scale: float) -> tuple[Tensor, ...]:
        scores = query @ key.mT * scale
        weights = torch.softmax(scores, dim=-1)
        entropy = -torch.xlogy(weights, weights).sum(-1) / math.log(2)
        jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
        return scores, weights, entropy, jacobian.flatten(-2).norm(dim=-1)

    @cache
    def measure_at(head_dim: int, scaled: bool) -> tuple[Tensor, ...]:
        # The first head_dim features of the same tokens, so that a step adds to what was there.
        scale = 1 / math.sqrt(head_dim) if scaled else 1.0
        scores, weights, entropy, norm = measure(query[:, :head_dim], key[:, :head_dim], scale)
        _, _, mean_entropy, mean_norm = measure(
            many_queries[..., :head_dim], many_keys[..., :head_dim], scale
        )
        return scores, weights, entropy, norm, mean_entropy.mean(), mean_norm.mean()

    def compute(head_dim: int, scaled: bool) -> dict:
        scores, weights, entropy, norm, mean_entropy, mean_norm = measure_at(head_dim, scaled)
        return {
            "head_dim": head_dim,
            "scaled": scaled,
            "scores": scores[None].tolist(),
            "weights": weights[None].tolist(),
            "entropy": entropy.tolist(),
            "gradient_norm": norm.tolist(),
            "mean_entropy": mean_entropy.item(),
            "mean_gradient_norm": mean_norm.item(),
        }

    def view(state: dict) -> str:
        scores = [
            [name, *(f"{score:z.1f}" for score in row)]
            for name, row in zip(names, state["scores"][0], strict=True)
        ]
        softness = [
            [name, two_decimals(entropy), f"{norm:.3f}"]
            for name, entropy, norm in zip(
                names, state["entropy"], state["gradient_norm"], strict=True
            )
        ]
        means = [
            "mean of 1,000 others",
            two_decimals(state["mean_entropy"]),
            f"{state['mean_gradient_norm']:.3f}",
        ]
        return side_by_side(
            html_table(
                "scores, q·k / √d_k" if state["scaled"] else "scores, q·k", ["", *key_names], scores
            ),
            *heat_tables(state["weights"], names, key_names, ["weights"]),
            html_table(
                "how soft",
                ["", f"entropy, of {math.log2(num_tokens):.2f} bits", "gradient norm"],
                softness,
                means,
            ),
        )

    def title(state: dict) -> str:
        return f"d_k = {state['head_dim']}, {'scaled' if state['scaled'] else 'not scaled'}"

    def draw(state: dict) -> CourseFigure:
        return plot_attention(
            state["weights"][0], query_tokens=names, key_tokens=key_names, title=title(state)
        )

    def describe(state: dict) -> str:
        return (
            f"{title(state)}: mean entropy {state['mean_entropy']:.2f} bits, "
            f"mean gradient norm {state['mean_gradient_norm']:.2f}"
        )

    def still(_state: dict) -> CourseFigure:
        """Up to four d_k from the smallest to the largest: not scaled above, scaled below."""
        places = torch.linspace(0, len(head_dims) - 1, min(len(head_dims), MAX_STILL_MAPS // 2))
        states = [
            compute(head_dims[place], scaled)
            for scaled in (False, True)
            for place in places.round().int().tolist()
        ]
        figure = plot_heads(
            [state["weights"][0] for state in states],
            query_tokens=names,
            key_tokens=key_names,
            titles=list(map(title, states)),
        )
        figure.alt = "; ".join(map(describe, states))
        return figure

    return Explorer(
        {
            "head_dim": make_slider("d_k", head_dims, head_dims[0]),
            "scaled": make_switch("divide by √d_k", False),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )
