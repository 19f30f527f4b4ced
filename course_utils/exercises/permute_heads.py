"""Lesson 7: the heads of a layer, put in another order."""

import copy
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.exercises.calling import CheckFailed
from course_utils.exercises.copy_weights import all_parameters
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.layer_steps import INPUT_PROJECTIONS, PROJECTIONS
from course_utils.exercises.search import Answer, Compute, Mistake, Step
from course_utils.exercises.trial import Trial, with_random_parameters


def _features_of(heads: Tensor, embed_dim: int) -> Tensor:
    """The features of these heads, one head after the other."""
    return torch.arange(embed_dim).unflatten(0, (len(heads), -1))[heads].flatten()


def _every_hth_of(heads: Tensor, embed_dim: int) -> Tensor:
    """The features of these heads, if each held every H-th one."""
    return torch.arange(embed_dim).unflatten(0, (-1, len(heads)))[:, heads].flatten()


def _overwritten(s: SimpleNamespace) -> Tensor:
    """Move block after block without a copy, so that some are gone before they are read."""
    blocks = torch.arange(s.layer.embed_dim).unflatten(0, (len(s.head_order), -1))
    for new, old in enumerate(s.head_order):
        blocks[new] = blocks[old].clone()
    return blocks.flatten()


def _moved(s: SimpleNamespace, parameter: str) -> list[Tensor]:
    """The weights or biases of the input projections, with the rows of some of them moved."""
    numbers = {name: getattr(getattr(s.layer, name), parameter) for name in INPUT_PROJECTIONS}
    return [x[s.feature_order] if name in s.moved_projections else x for name, x in numbers.items()]


def _all_but(left: str) -> Compute:
    return lambda s: tuple(name for name in INPUT_PROJECTIONS if name != left)


def _with_columns_moved(s: SimpleNamespace) -> list[Tensor]:
    return [getattr(s.layer, name).weight[:, s.feature_order] for name in INPUT_PROJECTIONS]


PERMUTE_STEPS = (
    Step("head_order", "(H,)", lambda s: torch.tensor(s.order)),
    Step("feature_order", "(D,)", lambda s: _features_of(s.head_order, s.layer.embed_dim)),
    Step("moved_projections", "tuple of names", lambda s: INPUT_PROJECTIONS),
    Step("in_weights", "list of three (D, D)", lambda s: _moved(s, "weight")),
    Step("out_weight", "(D, D)", lambda s: s.layer.out_proj.weight[:, s.feature_order]),
    Step("moved_weights", "(4D, D)", lambda s: torch.cat([*s.in_weights, s.out_weight])),
    Step("in_biases", "list of three (D,)", lambda s: _moved(s, "bias")),
    Step("out_bias", "(D,)", lambda s: s.layer.out_proj.bias),
    Step("moved_biases", "(4D,)", lambda s: torch.cat([*s.in_biases, s.out_bias])),
)

PERMUTE_MISTAKES = (
    Mistake(
        id="heads-moved-the-other-way",
        step="head_order",
        variants=(lambda s: torch.tensor(s.order).argsort(),),
        title="head h goes to place order[h], where it should come from there",
        why=(
            "The new head h is the old head order[h]: order says where to read, not where to write."
        ),
        look="on which side of the equals sign order stands",
    ),
    Mistake(
        id="heads-overwritten",
        step="feature_order",
        variants=(_overwritten,),
        title="heads are overwritten before they are read",
        why="When one block is copied over another, what was there is gone for the heads to come.",
        look="whether you read from the layer that you are writing to",
    ),
    Mistake(
        id="heads-not-moved",
        step="feature_order",
        variants=(lambda s: torch.arange(s.layer.embed_dim),),
        title="the layer is as it came",
        why=(
            "To index makes a new tensor; the layer keeps its own until something is "
            "written into it."
        ),
        look="whether your new tensors are written back into the layer",
    ),
    Mistake(
        id="heads-moved-interleaved",
        rows=("M10",),
        step="feature_order",
        variants=(lambda s: _every_hth_of(s.head_order, s.layer.embed_dim),),
        title="features move as if head h held every H-th of them",
        why="Head h holds neighbours, features h·d_h to (h+1)·d_h: whole blocks must move.",
        look="the order of num_heads and head_dim where the features are cut",
    ),
    Mistake(
        id="projection-not-moved",
        rows=("M47",),
        step="moved_projections",
        variants=tuple(map(_all_but, INPUT_PROJECTIONS)),
        title="{} stays as it was",
        details=INPUT_PROJECTIONS,
        why="A head is its query, its key and its value; if one stays behind, new heads are made.",
        look="whether all three projections are treated alike",
    ),
    Mistake(
        id="in-columns-moved",
        step="in_weights",
        variants=(_with_columns_moved,),
        title="the columns of q_proj, k_proj and v_proj move",
        why="torch stores (out, in): a head's own features are outputs of these layers, so rows.",
        look="which axis of the three weights you index",
    ),
    Mistake(
        id="out-proj-not-moved",
        rows=("M47",),
        step="out_weight",
        variants=(lambda s: s.layer.out_proj.weight,),
        title="out_proj stays as it was",
        why="It still reads the features of each head where that head used to be.",
        look="who reads the features that the heads have made",
    ),
    Mistake(
        id="out-proj-rows-moved",
        rows=("M47",),
        step="out_weight",
        variants=(lambda s: s.layer.out_proj.weight[s.feature_order],),
        title="the rows of out_proj move",
        why="Its rows are the outputs of the whole layer. Heads are its inputs, so columns.",
        look="which axis of out_proj.weight you index",
    ),
    Mistake(
        id="out-proj-moved-the-other-way",
        step="out_weight",
        variants=(lambda s: s.layer.out_proj.weight[:, s.feature_order.argsort()],),
        title="the columns of out_proj move the other way",
        why="New head h is old head order[h] here too: out_proj must follow in the same direction.",
        look="the index of out_proj, beside those of the other three",
    ),
    Mistake(
        id="in-biases-not-moved",
        step="in_biases",
        variants=(lambda s: [getattr(s.layer, name).bias for name in INPUT_PROJECTIONS],),
        title="the biases of q_proj, k_proj and v_proj stay as they were",
        why="A head's features have biases of their own, which must go where the rows go.",
        look="each projection's bias",
    ),
    Mistake(
        id="out-bias-moved",
        step="out_bias",
        variants=(lambda s: s.layer.out_proj.bias[s.feature_order],),
        title="the bias of out_proj moves too",
        why="It belongs to the output of the whole layer, which must stay as it is.",
        look="what out_proj.bias is added to",
    ),
)


def _trials() -> Iterator[Trial]:
    for d, order in ((8, [1, 0]), (15, [2, 0, 1]), (12, [2, 0, 3, 1])):
        layer = with_random_parameters(MultiHeadAttention(d, len(order)))
        yield Trial({"layer": layer, "order": order}, {"embed_dim": d, "num_heads": len(order)})


def _call(fn: Callable, layer: MultiHeadAttention, order: list[int]) -> tuple[Tensor, Tensor]:
    before = {name: x.shape for name, x in layer.named_parameters()}
    num_heads = len(order)
    with torch.no_grad():  # to move a head is no step of training
        fn(layer, order)
    _require_shapes(layer, before, num_heads)
    return all_parameters(layer)


def _truth(layer: MultiHeadAttention, order: list[int]) -> Answer:
    moved = copy.deepcopy(layer)
    for proj in (moved.q_proj, moved.k_proj, moved.v_proj):
        for x in (proj.weight, proj.bias):
            heads = x.data.chunk(len(order))
            x.data = torch.cat([heads[old] for old in order])
    heads = moved.out_proj.weight.data.chunk(len(order), dim=1)
    moved.out_proj.weight.data = torch.cat([heads[old] for old in order], dim=1)
    return all_parameters(moved)


def _require_shapes(layer: nn.Module, before: dict[str, torch.Size], num_heads: int) -> None:
    """Refuse a layer of which a weight or bias has changed its shape.

    Raises:
        CheckFailed: one has; where it was indexed by heads, the message says so.
    """
    for name in PROJECTIONS:
        for part in ("weight", "bias"):
            x = getattr(getattr(layer, name, None), part, None)
            old = before[f"{name}.{part}"]
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


PERMUTE_HEADS = Exercise(
    name="permute_heads",
    steps=PERMUTE_STEPS,
    mistakes=PERMUTE_MISTAKES,
    results={"moved_weights": "the four weights", "moved_biases": "the four biases"},
    trials=_trials,
    truth=_truth,
    call=_call,
    covered="two, three and four heads",
)


def check_permute_heads(fn: Callable | None) -> bool:
    """Check ``fn(layer, order)``: it puts the heads of a layer of ours in another order, in place.

    The new head h must be the old head order[h], and the output must stay what it was. All weights
    and biases of the layer are random, and all eight tensors are compared.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(PERMUTE_HEADS, fn)
