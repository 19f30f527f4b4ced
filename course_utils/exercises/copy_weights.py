"""Lesson 4: the weights of torch's layer, copied into one of ours."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.exercises.calling import CheckFailed
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.layer_steps import INPUT_PROJECTIONS, PROJECTIONS
from course_utils.exercises.search import Answer, Compute, Mistake, Step
from course_utils.exercises.trial import SIZES, Trial, with_random_parameters

_OTHER_ORDERS = ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


def _thirds_in_order(places: tuple[int, ...]) -> Compute:
    return lambda s: lambda x: [x.chunk(3)[i] for i in places]


def _by_head(s: SimpleNamespace) -> Callable[[Tensor], list[Tensor]]:
    """Read (3D, ...) as q, k, v of head 0, then of head 1, and so on."""

    def cut(x: Tensor) -> list[Tensor]:
        by_head = x.unflatten(0, (s.theirs.num_heads, 3, -1))
        return [by_head[:, third].flatten(0, 1) for third in range(3)]

    return cut


def _copied_weights(s: SimpleNamespace) -> Tensor:
    return torch.cat([*s.thirds(s.theirs.in_proj_weight), s.out_weight])


COPY_STEPS = (
    Step(
        "thirds",
        "function: (3D, ...) to the parts for q_proj, k_proj and v_proj, (D, ...) each",
        _thirds_in_order((0, 1, 2)),
    ),
    Step("out_weight", "(D, D)", lambda s: s.theirs.out_proj.weight),
    Step("copied_weights", "(4D, D)", _copied_weights),
    Step("in_biases", "list of three (D,)", lambda s: s.thirds(s.theirs.in_proj_bias)),
    Step("out_bias", "(D,)", lambda s: s.theirs.out_proj.bias),
    Step("copied_biases", "(4D,)", lambda s: torch.cat([*s.in_biases, s.out_bias])),
)

COPY_MISTAKES = (
    Mistake(
        id="copied-in-another-order",
        rows=("M34",),
        step="thirds",
        variants=tuple(map(_thirds_in_order, _OTHER_ORDERS)),
        title="q_proj, k_proj and v_proj get {}",
        details=tuple(", ".join("QKV"[i] for i in order) for order in _OTHER_ORDERS),
        why="They are stacked as [Q; K; V].",
        look="which third goes into which projection",
    ),
    Mistake(
        id="copied-by-head",
        rows=("M10", "M34"),
        step="thirds",
        variants=(_by_head,),
        title="the rows of in_proj are read as q, k, v of head 0, then of head 1, and so on",
        why="Some code bases store them like this; torch stacks all of Q, all of K, all of V.",
        look="how in_proj_weight is cut",
    ),
    Mistake(
        id="out-proj-not-copied",
        step="out_weight",
        variants=(lambda s: s.ours.out_proj.weight,),
        title="the weight of out_proj is not copied",
        why="Without it the heads are mixed in another way.",
        look="whether all four layers are filled",
    ),
    Mistake(
        id="copied-turned-round",
        step="copied_weights",
        variants=(lambda s: torch.cat([w.T for w in _copied_weights(s).chunk(4)]),),
        title="the weights are transposed",
        why="Both layers store (out, in): nothing needs turning.",
        look="each .T",
    ),
    Mistake(
        id="in-biases-not-copied",
        step="in_biases",
        variants=(lambda s: [getattr(s.ours, name).bias for name in INPUT_PROJECTIONS],),
        title="the biases of q_proj, k_proj and v_proj are not copied",
        why="torch starts them at 0, so that a fresh layer hides this; a trained one does not.",
        look="in_proj_bias",
    ),
    Mistake(
        id="out-bias-not-copied",
        step="out_bias",
        variants=(lambda s: s.ours.out_proj.bias,),
        title="the bias of out_proj is not copied",
        why="torch starts it at 0, so that a fresh layer hides this; a trained one does not.",
        look="out_proj.bias",
    ),
)


def _trials() -> Iterator[Trial]:
    for _, _, d, h in SIZES:
        theirs = with_random_parameters(nn.MultiheadAttention(d, h, batch_first=True))
        sizes = {"embed_dim": d, "num_heads": h}
        yield Trial({"theirs": theirs, "ours": MultiHeadAttention(d, h)}, sizes)


def _call(
    fn: Callable, theirs: nn.MultiheadAttention, ours: MultiHeadAttention
) -> tuple[Tensor, Tensor]:
    with torch.no_grad():  # as in the lesson: copying is no step of training
        fn(theirs, ours)
        for x in theirs.parameters():
            x.zero_()  # a copy does not notice
    return all_parameters(ours)


def _truth(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> Answer:
    return all_parameters(MultiHeadAttention.from_torch(theirs))


def all_parameters(layer: MultiHeadAttention) -> tuple[Tensor, Tensor]:
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


COPY_WEIGHTS = Exercise(
    name="copy_weights",
    steps=COPY_STEPS,
    mistakes=COPY_MISTAKES,
    results={"copied_weights": "the four weights", "copied_biases": "the four biases"},
    trials=_trials,
    truth=_truth,
    call=_call,
    covered="all eight tensors",
)


def check_copy_weights(fn: Callable | None) -> bool:
    """Check ``fn(theirs, ours)``: it copies an ``nn.MultiheadAttention`` into a layer of ours.

    Both layers get random weights and biases; then all eight tensors of ours are compared.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(COPY_WEIGHTS, fn)
