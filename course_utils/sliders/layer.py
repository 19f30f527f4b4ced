"""What explorers of a whole layer share."""

import copy

import torch
from torch import Tensor, nn

from course_utils.arguments import count_of, require_finite
from course_utils.attention import MultiHeadAttention


def own_copy(
    layer: MultiHeadAttention | nn.MultiheadAttention, x: Tensor
) -> tuple[MultiHeadAttention, Tensor, Tensor]:
    """Copy a layer in eval mode and its input; return both, and the layer's weights between them.

    An explorer computes its stops one by one, so later changes of the two must not reach it.

    Raises:
        ValueError: a layer of another class, or x does not fit it.
    """
    # A subclass may compute something else, which the explorer would not show.
    if type(layer) not in (MultiHeadAttention, nn.MultiheadAttention):
        raise ValueError(
            "layer must be a MultiHeadAttention itself, ours or torch's, "
            f"got {type(layer).__name__}"
        )
    with torch.no_grad(), torch.random.fork_rng():  # a new layer draws random numbers
        if isinstance(layer, MultiHeadAttention):
            layer = copy.deepcopy(layer)
        else:
            layer = MultiHeadAttention.from_torch(layer)
        try:
            _, weights = layer.eval()(x)
        except ValueError as error:
            raise ValueError(f"x does not fit the layer: {error}") from None
        require_finite("x", x)
        require_finite("layer's weights", weights)
        return layer, weights, x.clone()


def head_titles(num_heads: int, averaged: bool) -> list[str]:
    """Return the captions of the maps of a layer."""
    if averaged:
        return [f"mean of {count_of(num_heads, 'head')}"]
    return [f"head {head}" for head in range(num_heads)]
