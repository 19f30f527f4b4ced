"""Lesson 7: what a layer costs."""

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from course_utils.attention import MultiHeadAttention
from course_utils.exercises.calling import CheckFailed, as_number
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer, Mistake, Step
from course_utils.exercises.trial import SIZES, Trial

_NAMES = ("parameters", "multiply-adds", "stored weights")
_EACH_HAS_BIASES = "Each of the four layers adds D numbers to its D·D weights."


def _number(x: float) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def _projection_work(s: SimpleNamespace) -> int:
    return s.matrix_count * s.batch_size * s.seq_len * s.embed_dim**2


def _attention_work(s: SimpleNamespace) -> int:
    return 2 * s.batch_size * s.seq_len**2 * s.embed_dim


COST_STEPS = (
    Step("matrix_count", "int", lambda s: 4),
    Step(
        "matrix_size",
        "int: numbers in a weight and its bias",
        lambda s: s.embed_dim**2 + s.embed_dim,
    ),
    Step("parameters", "()", lambda s: _number(s.matrix_count * s.matrix_size)),
    Step("projection_work", "int: multiply-adds of the projections", _projection_work),
    Step("attention_work", "int: multiply-adds in the heads", _attention_work),
    Step(
        "multiply_adds",
        "()",
        lambda s: _number(s.projection_work + s.attention_work),
        "multiply-adds",
    ),
    Step("stored_weights", "()", lambda s: _number(s.batch_size * s.num_heads * s.seq_len**2)),
)

COST_MISTAKES = (
    Mistake(
        id="counts-three-matrices",
        step="matrix_count",
        variants=(lambda s: 3,),
        title="there are three matrices, without the output projection",
        why=(
            "Query, key, value and output: W_O has as many numbers, and as much work, "
            "as the others."
        ),
        look="how many projections the layer has",
    ),
    Mistake(
        id="parameters-without-out-proj",
        step="parameters",
        variants=(lambda s: _number(3 * s.matrix_size),),
        title="the parameters of the output projection are missing",
        why="Query, key, value and output: W_O has as many numbers as each of the others.",
        look="how many projections the layer has",
    ),
    Mistake(
        id="work-without-out-proj",
        step="projection_work",
        variants=(lambda s: 3 * s.batch_size * s.seq_len * s.embed_dim**2,),
        title="the multiply-adds of the output projection are missing",
        why="Query, key, value and output: W_O is as much work as each of the others.",
        look="how many projections the layer has",
    ),
    Mistake(
        id="counts-one-bias",
        step="parameters",
        variants=(lambda s: _number(s.matrix_count * s.embed_dim**2 + s.embed_dim),),
        title="one bias is counted for all projections together",
        why=_EACH_HAS_BIASES,
        look="what a Linear layer holds beside its weight",
    ),
    Mistake(
        id="counts-no-biases",
        step="matrix_size",
        variants=(lambda s: s.embed_dim**2,),
        title="the biases are not counted",
        why=_EACH_HAS_BIASES,
        look="what a Linear layer holds beside its weight",
    ),
    Mistake(
        id="counts-parameters-a-head",
        rows=("M08",),
        step="matrix_size",
        variants=(lambda s: s.num_heads * (s.embed_dim**2 + s.embed_dim),),
        title="the parameters are multiplied by H",
        why="The heads share out one D × D matrix; there are not H of them.",
        look="each H in your count of parameters",
    ),
    Mistake(
        id="counts-one-head",
        step="matrix_size",
        variants=(
            lambda s: s.embed_dim * (s.embed_dim // s.num_heads) + s.embed_dim // s.num_heads,
        ),
        title="the parameters are those of a single head",
        why="A head has D·d_h in each projection, and there are H of them: together D·D.",
        look="each d_h in your count of parameters",
    ),
    Mistake(
        id="counts-projecting-a-head",
        rows=("M08",),
        step="projection_work",
        variants=(lambda s: s.num_heads * _projection_work(s),),
        title="the multiply-adds of the projections are multiplied by H",
        why="The token is projected once, and then cut.",
        look="each H in your count of multiply-adds",
    ),
    Mistake(
        id="counts-no-projecting",
        step="projection_work",
        variants=(lambda s: 0,),
        title="the multiply-adds of the projections are missing",
        why="Each token goes through four D × D matrices.",
        look="what happens to a token before and after the heads",
    ),
    Mistake(
        id="counts-no-attending",
        step="attention_work",
        variants=(lambda s: 0,),
        title="the multiply-adds of the two products in the heads are missing",
        why="q @ k and weights @ v are matrix products as well.",
        look="each @ of the layer",
    ),
    Mistake(
        id="counts-one-product",
        step="attention_work",
        variants=(lambda s: s.batch_size * s.seq_len**2 * s.embed_dim,),
        title="only one of the two products in the heads is counted",
        why="There is q @ k, and there is weights @ v, each with as many multiply-adds.",
        look="each @ of the layer",
    ),
    Mistake(
        id="counts-full-width-heads",
        rows=("M08",),
        step="attention_work",
        variants=(lambda s: s.num_heads * _attention_work(s),),
        title="each head is counted as if it were D wide",
        why="A head has d_h = D / H features, so H of them come to D again.",
        look="how many features one dot product runs over",
    ),
    Mistake(
        id="counts-attending-of-one-head",
        step="attention_work",
        variants=(lambda s: _attention_work(s) // s.num_heads,),
        title="the products in the heads are counted for a single head",
        why="There are H of them, each d_h wide: together D.",
        look="how many heads there are",
    ),
    Mistake(
        id="counts-attending-without-square",
        step="attention_work",
        variants=(lambda s: 2 * s.batch_size * s.seq_len * s.embed_dim,),
        title="the products in the heads are counted with L, not L²",
        why="Each of L queries meets each of L keys.",
        look="how many scores one head makes for one sample",
    ),
    Mistake(
        id="counts-two-a-multiply-add",
        step="multiply_adds",
        variants=(lambda s: _number(2 * (s.projection_work + s.attention_work)),),
        title="the multiply-adds are doubled",
        why="One multiplication with its addition is one multiply-add; torch's counter says two.",
        look="whether you count operations or pairs of them",
    ),
    Mistake(
        id="counts-work-of-one-sample",
        step="multiply_adds",
        variants=(lambda s: _number((s.projection_work + s.attention_work) // s.batch_size),),
        title="the multiply-adds are those of one sample",
        why="A batch holds N of them.",
        look="where N stands",
    ),
    Mistake(
        id="stored-without-heads",
        rows=("M08",),
        step="stored_weights",
        variants=(lambda s: _number(s.batch_size * s.seq_len**2),),
        title="the stored weights are counted without H",
        why="Every head has a map of its own. This is the one number that grows with H.",
        look="the shape of the weights",
    ),
    Mistake(
        id="stored-without-square",
        step="stored_weights",
        variants=(lambda s: _number(s.batch_size * s.num_heads * s.seq_len),),
        title="the stored weights are counted with L, not L²",
        why="A map has a row for each query and a column for each key.",
        look="the shape of the weights",
    ),
    Mistake(
        id="stored-of-one-sample",
        step="stored_weights",
        variants=(lambda s: _number(s.num_heads * s.seq_len**2),),
        title="the stored weights are those of one sample",
        why="A batch holds N of them, each with maps of its own.",
        look="the shape of the weights",
    ),
    Mistake(
        id="stored-times-width",
        step="stored_weights",
        variants=(lambda s: _number(s.batch_size * s.seq_len**2 * s.embed_dim),),
        title="the stored weights are counted with D in place of H",
        why="A weight is one number for a query and a key; the features are summed over.",
        look="the shape of the weights",
    ),
)


def _trials() -> Iterator[Trial]:
    for n, length, d, h in (*SIZES, (4, 7, 15, 5)):
        yield Trial({"batch_size": n, "seq_len": length, "embed_dim": d, "num_heads": h})


def _call(fn: Callable, **sizes: int) -> object:
    result = fn(*sizes.values())
    if isinstance(result, Mapping):  # its keys are no numbers
        raise CheckFailed("return three numbers, not a dict.")
    try:
        parts = tuple(result)
    except TypeError:  # a single number has no parts, and no result has none either
        return None if result is None else as_number(_NAMES[0], result)
    if len(parts) > len(_NAMES):  # as they are: the check says how many it wants
        return parts
    return tuple(map(as_number, _NAMES, parts))


def _truth(batch_size: int, seq_len: int, embed_dim: int, num_heads: int) -> Answer:
    layer = MultiHeadAttention(embed_dim, num_heads)
    with FlopCounterMode(display=False) as counter:
        _, weights = layer(torch.zeros(batch_size, seq_len, embed_dim))
    parameters = sum(x.numel() for x in layer.parameters())
    costs = (parameters, counter.get_total_flops() // 2, weights.numel())
    return tuple(map(_number, costs))


LAYER_COST = Exercise(
    name="layer_cost",
    steps=COST_STEPS,
    mistakes=COST_MISTAKES,
    results=dict(zip(("parameters", "multiply_adds", "stored_weights"), _NAMES, strict=True)),
    trials=_trials,
    truth=_truth,
    call=_call,
    covered="four layers, counted by torch",
)


def check_layer_cost(fn: Callable | None) -> bool:
    """Check ``fn(batch_size, seq_len, embed_dim, num_heads)``: what a layer costs, three numbers.

    They are its parameters, biases included, the multiply-adds of its matrix products in
    self-attention, and the weights it stores.

    Raises:
        CheckFailed: it is wrong.
    """
    return check(LAYER_COST, fn)
