"""Checks of the smaller exercises of the lessons, and the parts these are made of.

They judge as ``course_utils.checks`` does: random inputs, compared with torch, and a search for the
mistakes that give exactly the learner's numbers. Each returns True if the answer is right and False
if it is not attempted yet, after one printed line, or raises ``CheckFailed``.
"""

import copy
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from course_utils.exercises import registry as mistakes
from course_utils.exercises.judge import check
from course_utils.exercises.trial import Trial, random_numbers


def check_attention_mask(fn: Callable | None) -> bool:
    """Check ``fn(lengths, seq_len, causal)``: the mask (N, 1, L, L) of padded sentences.

    It is boolean, True = may attend. lengths (N,) says how many tokens of each sentence are real,
    the first ones. An axis of size 1 that broadcasts is as good as one that is written out.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for lengths, seq_len, causal in (
            ((3, 2), 3, False),
            ((4, 1, 2), 4, True),
            ((2, 5, 0), 5, True),
            ((4, 2, 1), 5, False),
            ((4, 2, 5), 5, True),
        ):
            shape = (len(lengths), 1, seq_len, seq_len)

            def call(
                lengths: Tensor,
                seq_len: int = seq_len,
                causal: bool = causal,
                shape: tuple = shape,
            ) -> object:
                mask = fn(lengths, seq_len, causal)
                if not isinstance(mask, Tensor):
                    return mask
                if mask.ndim == 4 and all(
                    m in (1, s) for m, s in zip(mask.shape, shape, strict=True)
                ):
                    mask = mask.expand(shape)
                return mask.double() + 2 * (mask.dtype != torch.bool)

            def truth(
                lengths: Tensor, seq_len: int = seq_len, causal: bool = causal
            ) -> tuple[Tensor]:
                rows = [
                    [
                        [
                            float(key < length and not (causal and key > query))
                            for key in range(seq_len)
                        ]
                        for query in range(seq_len)
                    ]
                    for length in lengths.tolist()
                ]
                return (torch.tensor(rows, dtype=torch.float64)[:, None],)

            inputs = {"lengths": torch.tensor(lengths)}
            given = {"returns": ("built",), "seq_len": seq_len, "is_causal": causal, **inputs}
            yield Trial(inputs, call, truth, given, names=("the mask",), gradients=False)

    return check("attention_mask", fn, trials, mistakes.ATTENTION_MASK, "with and without causal")


def check_cross_attention(fn: Callable | None) -> bool:
    """Check ``fn(layer, x, memory, lengths) -> (output, weights)``: x looks at padded memory.

    layer is an ``nn.MultiheadAttention``, batch first; x is (N, L_q, D), memory (N, L_k, D), and
    lengths (N,) says how many tokens of each memory are real, the first ones. output is
    (N, L_q, D) and weights (N, H, L_q, L_k).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for l_q, l_k, d, h, lengths in (
            (4, 4, 8, 2, (3, 4)),
            (5, 7, 14, 2, (7, 7, 7)),
            (3, 4, 12, 3, (2,)),
            (5, 7, 14, 2, (7, 4, 2)),
        ):
            layer = nn.MultiheadAttention(d, h, batch_first=True).eval()
            for x in layer.parameters():
                nn.init.normal_(x, std=1 / math.sqrt(d))
            exact = copy.deepcopy(layer).double()

            def attend_through(
                query: Tensor,
                key: Tensor,
                value: Tensor,
                blocked: Tensor | None,
                exact: nn.Module = exact,
            ) -> tuple[Tensor, Tensor]:
                each_head = (len(key) * exact.num_heads, query.shape[1], key.shape[1])
                if blocked is not None and blocked.shape == each_head:
                    return exact(query, key, value, attn_mask=blocked, average_attn_weights=False)
                if blocked is not None and blocked.shape != key.shape[:2]:
                    # From torch it would be an AssertionError, which the search does not expect.
                    raise RuntimeError("the mask does not fit the keys")
                return exact(
                    query, key, value, key_padding_mask=blocked, average_attn_weights=False
                )

            def truth(
                x: Tensor,
                memory: Tensor,
                lengths: Tensor,
                attend_through: Callable = attend_through,
            ) -> tuple[Tensor, Tensor]:
                places = torch.arange(memory.shape[1])
                return attend_through(x, memory, memory, places >= lengths[:, None])

            def call(layer: nn.Module = layer, **inputs: Tensor) -> object:
                return fn(copy.deepcopy(layer), *inputs.values())

            inputs = {
                "x": random_numbers(len(lengths), l_q, d, seed=1),
                "memory": random_numbers(len(lengths), l_k, d, seed=2),
                "lengths": torch.tensor(lengths),
            }
            given = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
            given |= {"returns": ("crossed_output", "crossed_weights"), "num_heads": h}
            given |= {"attend_through": attend_through, "is_padded": min(lengths) < l_k}
            yield Trial(inputs, call, truth, given, gradients=False)

    return check(
        "cross_attention",
        fn,
        trials,
        mistakes.CROSS_ATTENTION,
        "L_q ≠ L_k, with and without padding",
    )
