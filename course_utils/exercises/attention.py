"""One attention: lessons 1 and 6."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.exercises.attention_steps import (
    ATTENTION_MISTAKES,
    ATTENTION_STEPS,
    HEADS,
    divisor_of,
)
from course_utils.exercises.calling import CheckFailed
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.judge import check
from course_utils.exercises.search import Answer
from course_utils.exercises.signature import as_function, bind, left_out
from course_utils.exercises.trial import Trial, random_mask, random_numbers


def _trials(*, masks: bool = True) -> Iterator[Trial]:
    """Make inputs for one attention."""
    # Batch and heads, L_q, L_k, d, d_v, shape of the mask and which of its rows is open.
    for batch, l_q, l_k, d, d_v, mask, open_row in (
        ((), 3, 3, 4, 4, None, 0),
        ((2, 2), 3, 3, 4, 4, None, 0),
        ((3,), 5, 4, 7, 7, None, 0),
        ((3, 2), 5, 5, 7, 7, None, 0),
        ((3, 2), 4, 6, 7, 5, None, 0),
        ((3, 2), 4, 6, 7, 5, (3, 1, 4, 6), 1),
        ((2, 2), 3, 3, 4, 4, (3, 3), None),
        ((3, 2), 5, 5, 7, 7, (5, 5), 2),
        ((1, 2), 2, 70, 5, 3, None, 0),
        ((1, 2), 4, 6, 7, 5, None, 0),
        ((3, 2), 5, 5, 7, 7, (3, 2, 5, 5), 3),
    ):
        if mask and not masks:
            continue
        float64 = open_row is None  # there -1e9 does not swallow a score, and no row is blocked
        dtype = torch.float64 if float64 else torch.float32
        arguments = {
            "query": random_numbers(*batch, l_q, d, seed=1).to(dtype),
            "key": random_numbers(*batch, l_k, d, seed=2).to(dtype),
            "value": random_numbers(*batch, l_k, d_v, seed=3).to(dtype),
            "mask": random_mask(*mask, open_row=open_row) if mask else None,
        }
        form = ("one head, (L, d)", "single heads, (N, L, d)", "many heads, (N, H, L, d)")
        yield Trial(arguments, masked=mask is not None, float64=float64, form=form[len(batch)])


def _truth(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Answer:
    one_hot = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
    return (
        F.scaled_dot_product_attention(query, key, value, mask),
        F.scaled_dot_product_attention(query, key, one_hot, mask),
    )


def _fit(
    exercise: Exercise, learner: Callable, *, needs_mask: bool = False, mask: str | None = None
) -> tuple[Exercise, Callable]:
    """Find the function's arguments; leave out masks if it takes none.

    Raises:
        CheckFailed: there must be masks, and the learner's function takes none.
    """
    code = as_function(learner)
    told = {} if mask is None else {"mask": mask}
    binding = bind(code, ("query", "key", "value"), ("mask",), told=told)
    takes_mask = binding.takes("mask")
    if needs_mask and not takes_mask:
        if binding.unknown:
            name = binding.unknown[0]
            raise CheckFailed(
                f"which of your arguments is the mask? If it is {name}, add mask={name!r} to the "
                "call of the check."
            )
        raise CheckFailed(
            "your function takes no mask; this exercise is about masks. "
            "Give it a fourth argument, mask=None."
        )
    masks = "with and without a mask" if takes_mask else "without a mask"
    exercise = replace(
        exercise,
        trials=partial(_trials, masks=takes_mask),
        covered=f"one head and many, L_q ≠ L_k, {masks}",
        note=left_out(binding),
        asks_for_masks=needs_mask,
    )
    return exercise, binding.in_order_of(("query", "key", "value", "mask"), code)


SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    name="scaled_dot_product_attention",
    steps=(HEADS, *ATTENTION_STEPS),
    mistakes=ATTENTION_MISTAKES,
    results={"head_outputs": "output", "returned_weights": "weights"},
    weights="returned_weights",
    learn=divisor_of,
    watched=("scaled_scores", "weights", "head_outputs"),
    trials=_trials,
    truth=_truth,
    fit=_fit,
    covered="one head and many, L_q ≠ L_k, with and without a mask",
)


def check_scaled_dot_product_attention(
    fn: Callable | None, *, needs_mask: bool = False, mask: str | None = None
) -> bool:
    """Check ``fn(query, key, value, mask=None) -> (output, weights)``.

    It is given one head, query (L_q, d), key (L_k, d) and value (L_k, d_v), a batch of single
    heads, (N, L, d), and many, with (N, H) in front. A mask is boolean, True = may attend:
    (L_q, L_k) or (N, 1, L_q, L_k). Arguments are told by their names; a function without a mask
    is checked without masks.

    Args:
        fn: the learner's function, or an ``nn.Module``.
        needs_mask: whether a function without a mask is wrong, and a row that is blocked as a
            whole must come out as zeros.
        mask: the argument that takes the mask, where its name does not tell.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
        ValueError: the function has no argument of the name in ``mask``.
    """
    fit = partial(_fit, needs_mask=needs_mask, mask=mask)
    return check(replace(SCALED_DOT_PRODUCT_ATTENTION, fit=fit), fn)
