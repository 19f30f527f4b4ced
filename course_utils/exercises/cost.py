"""The check of what a layer costs."""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch.utils.flop_counter import FlopCounterMode

from course_utils.attention import MultiHeadAttention
from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import SIZES, CheckFailed, Trial, _as_number


def check_layer_cost(fn: Callable | None) -> bool:
    """Check ``fn(batch_size, seq_len, embed_dim, num_heads)``: what a layer costs, three numbers.

    They are its parameters, biases included, the multiply-adds of its matrix products in
    self-attention, and the weights it stores.

    Raises:
        CheckFailed: it is wrong.
    """
    names = ("parameters", "multiply-adds", "stored weights")

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, d, h in (*SIZES, (4, 7, 15, 5)):
            sizes = {"batch_size": n, "seq_len": length, "embed_dim": d, "num_heads": h}

            def call(sizes: tuple = (n, length, d, h)) -> object:
                result = fn(*sizes)
                if isinstance(result, Mapping):  # its keys are no numbers
                    raise CheckFailed("return three numbers, not a dict.")
                try:
                    parts = tuple(result)
                except TypeError:  # a single number has no parts, and no result has none either
                    return None if result is None else _as_number(names[0], result)
                if len(parts) > len(names):  # as they are: the check says how many it wants
                    return parts
                return tuple(map(_as_number, names, parts))

            def truth(n: int = n, length: int = length, d: int = d, h: int = h) -> tuple:
                layer = MultiHeadAttention(d, h)
                with FlopCounterMode(display=False) as counter:
                    _, weights = layer(torch.zeros(n, length, d))
                parameters = sum(x.numel() for x in layer.parameters())
                costs = (parameters, counter.get_total_flops() // 2, weights.numel())
                return tuple(torch.tensor(float(cost), dtype=torch.float64) for cost in costs)

            given = {"returns": ("parameters", "multiply_adds", "stored"), **sizes}
            yield Trial({}, call, truth, given, names=names)

    covered = "four layers, counted by torch"
    return check("layer_cost", fn, trials, mistakes.LAYER_COST, covered)
