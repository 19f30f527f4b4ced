"""Checks about the weights of whole layers: copied, and with their heads in another order."""

import copy
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import PROJECTIONS, SIZES, CheckFailed, Trial


def check_copy_weights(fn: Callable | None) -> bool:
    """Check ``fn(theirs, ours)``: it copies an ``nn.MultiheadAttention`` into a layer of ours.

    Both layers get random weights and biases; then all eight tensors of ours are compared.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for _, _, d, h in SIZES:
            theirs = nn.MultiheadAttention(d, h, batch_first=True)
            for x in theirs.parameters():
                nn.init.normal_(x)
            fresh = MultiHeadAttention(d, h)

            def call(theirs: nn.Module = theirs, fresh: nn.Module = fresh) -> object:
                source, ours = copy.deepcopy(theirs), copy.deepcopy(fresh)
                with torch.no_grad():  # as in the lesson: copying is no step of training
                    fn(source, ours)
                    for x in source.parameters():
                        x.zero_()  # a copy does not notice
                return _all_weights(ours)

            def truth(theirs: nn.Module = theirs) -> tuple[Tensor, Tensor]:
                return _all_weights(MultiHeadAttention.from_torch(theirs).double())

            numbers = {name: x.detach().double() for name, x in theirs.named_parameters()}
            old = tuple(x.double() for x in _all_weights(fresh))
            given = {"theirs": numbers, "old": old, "num_heads": h, "embed_dim": d}
            given["returns"] = ("copied_weights", "copied_biases")
            names = ("the four weights", "the four biases")
            yield Trial({}, call, truth, given, names=names)

    return check("copy_weights", fn, trials, mistakes.COPY_WEIGHTS, "all eight tensors")


def check_permute_heads(fn: Callable | None) -> bool:
    """Check ``fn(layer, order)``: it puts the heads of a layer of ours in another order, in place.

    The new head h must be the old head order[h], and the output must stay what it was. All weights
    and biases of the layer are random, and all eight tensors are compared.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, order in ((8, [1, 0]), (15, [2, 0, 1]), (12, [2, 0, 3, 1])):
            layer = MultiHeadAttention(d, len(order))
            for x in layer.parameters():
                nn.init.normal_(x)

            def call(layer: nn.Module = layer, order: list[int] = order) -> object:
                own = copy.deepcopy(layer)
                with torch.no_grad():  # to move a head is no step of training
                    fn(own, list(order))
                _same_shapes(own, layer, len(order))
                return _all_weights(own)

            def truth(layer: nn.Module = layer, order: list[int] = order) -> tuple:
                moved = copy.deepcopy(layer).double()
                for proj in (moved.q_proj, moved.k_proj, moved.v_proj):
                    for x in (proj.weight, proj.bias):
                        heads = x.data.chunk(len(order))
                        x.data = torch.cat([heads[old] for old in order])
                heads = moved.out_proj.weight.data.chunk(len(order), dim=1)
                moved.out_proj.weight.data = torch.cat([heads[old] for old in order], dim=1)
                return _all_weights(moved)

            numbers = {name: x.detach().double() for name, x in layer.named_parameters()}
            given = {"returns": ("moved_weights", "moved_biases"), "layer": numbers}
            given |= {"embed_dim": d, "num_heads": len(order), "heads_order": torch.tensor(order)}
            names = ("the four weights", "the four biases")
            yield Trial({}, call, truth, given, names=names)

    return check("permute_heads", fn, trials, mistakes.PERMUTE_HEADS, "two, three and four heads")


def _same_shapes(layer: nn.Module, before: nn.Module, num_heads: int) -> None:
    """Refuse a layer of which a weight or bias has changed its shape.

    Raises:
        CheckFailed: one has; where it was indexed by heads, the message says so.
    """
    for name in PROJECTIONS:
        for part in ("weight", "bias"):
            x = getattr(getattr(layer, name, None), part, None)
            old = getattr(getattr(before, name), part).shape
            if x is None or x.shape == old:
                continue
            said = f"after your code, {name}.{part} is {tuple(x.shape)}; it was {tuple(old)}."
            units = {
                (num_heads, *old[1:]): "rows" if part == "weight" else "numbers",
                (*old[:-1], num_heads): "columns" if part == "weight" else "numbers",
            }
            if tuple(x.shape) in units:
                unit = units[tuple(x.shape)]
                said += f" order counts heads, not features: each head is d_h {unit}."
            raise CheckFailed(said)


def _all_weights(layer: MultiHeadAttention) -> tuple[Tensor, Tensor]:
    """All weights of the four projections, one under the other, (4D, D), and all biases, (4D,).

    Raises:
        CheckFailed: the learner's code has taken one away.
    """
    for name in PROJECTIONS:
        for part in ("weight", "bias"):
            if getattr(getattr(layer, name, None), part, None) is None:
                raise CheckFailed(f"after your code, the layer has no {name}.{part} any more.")
    projections = (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj)
    return (
        torch.cat([proj.weight.detach() for proj in projections]),
        torch.cat([proj.bias.detach() for proj in projections]),
    )
