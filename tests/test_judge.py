"""What a check prints and says, and what it leaves as it was."""

import math
import textwrap

import nbformat
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from learners import Base, OneFusedProjection, by_einsum, failure, merge_by_loop, split_by_reshape
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from torch import nn
from torch.nn import functional as F

from course_utils import attention as ours
from course_utils.exercises import (
    check_merge_heads,
    check_multi_head_attention,
    check_repair,
    check_scaled_dot_product_attention,
    check_split_heads,
    from_lines,
)


def test_one_line_is_printed(capsys):
    check_split_heads(ours.split_heads)
    check_merge_heads(ours.merge_heads)
    check_scaled_dot_product_attention(ours.scaled_dot_product_attention)
    check_multi_head_attention(ours.MultiHeadAttention)
    sizes = "N=2 L=3 D=8 H=2; N=3 L=5 D=14 H=2; N=1 L=4 D=12 H=3"
    assert capsys.readouterr().out.splitlines() == [
        f"✓ split_heads: right on 3 inputs ({sizes})",
        f"✓ merge_heads: right on 3 inputs ({sizes})",
        "✓ scaled_dot_product_attention: right on 11 inputs "
        "(one head and many, L_q ≠ L_k, with and without a mask)",
        "✓ multi_head_attention: right on 10 inputs "
        "(self- and cross-attention, with and without a mask, in train and eval mode)",
    ]


def test_a_verdict_on_the_lessons_solution_says_whose_it_is(capsys):
    def solved_split_heads(x, num_heads):
        return split_by_reshape(x, num_heads)

    class SolvedAttention(ours.MultiHeadAttention):
        pass

    in_order = from_lines("solved_merge_heads(x)", {"A": "return merged(x)"}, "A")
    in_order.__globals__["merged"] = ours.merge_heads
    assert check_split_heads(solved_split_heads)
    assert check_multi_head_attention(SolvedAttention)
    assert check_merge_heads(in_order)
    assert check_repair(2, SolvedAttention)
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "✓ split_heads, the lesson's solution",
        "✓ multi_head_attention, the lesson's solution",
        "✓ merge_heads, the lesson's solution",
        "✓ layer 2, the lesson's solution",
    ]


class SelfAttention(Base):
    def forward(self, query):
        return self.attend(query, query, query, None)


def test_what_takes_no_mask_or_no_key_is_checked_without(capsys):
    assert check_scaled_dot_product_attention(lambda q, k, v: by_einsum(q, k, v))
    assert "right on 7 inputs (one head and many, L_q ≠ L_k, without a mask)" in (
        capsys.readouterr().out
    )
    assert check_multi_head_attention(SelfAttention)
    assert "right on 4 inputs (self-attention, without a mask, in" in capsys.readouterr().out


def test_an_exercise_about_masks_wants_one(capsys):
    failed = failure(
        lambda fn: check_scaled_dot_product_attention(fn, needs_mask=True),
        lambda query, key, value: by_einsum(query, key, value),
    )
    assert str(failed) == (
        "✗ scaled_dot_product_attention: your function takes no mask; this exercise is about "
        "masks. Give it a fourth argument, mask=None."
    )
    for fn in (by_einsum, lambda q, k, v, m=None: by_einsum(q, k, v, m)):
        assert check_scaled_dot_product_attention(fn, needs_mask=True) is True
    assert check_scaled_dot_product_attention(None, needs_mask=True) is False


def test_nothing_of_torch_is_left_changed():
    torch.manual_seed(3)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    state = torch.get_rng_state()
    with torch.no_grad():
        check_multi_head_attention(OneFusedProjection)
        failure(check_split_heads, lambda x, num_heads: torch.rand(2, 2))
        assert not torch.is_grad_enabled()
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)


def test_a_message_names_the_mistake_the_reason_and_where_to_look():
    failed = failure(check_split_heads, lambda x, h: x.view(x.shape[0], h, x.shape[1], -1))
    assert failed.mistakes == ("split-without-transpose",)
    assert failed.explanations == (("split-without-transpose",),)
    assert str(failed) == textwrap.dedent("""\
        ✗ split_heads: one mistake explains your numbers.
        • split-without-transpose (M02): view goes straight to (N, H, L, d_h), without a transpose.
          Why: view moves no number, so pieces of one token are taken for several tokens.
          Look at: which axis holds the tokens before the view, and which after it""")


def test_explanations_that_nobody_can_tell_apart_are_told_together():
    def scores_instead(query, key, value, mask=None):
        output, _ = by_einsum(query, key, value)
        return output, query @ key.mT / math.sqrt(query.shape[-1])

    failed = failure(check_scaled_dot_product_attention, scores_instead)
    assert set(map(frozenset, failed.explanations)) == {
        frozenset({"mask-ignored", "scores-returned"}),
        frozenset({"mask-ignored", "masked-scores-returned"}),
    }
    assert "2 mistakes together explain your numbers, in one of 2 ways." in str(failed)
    assert "\nEither:\n" in str(failed)
    assert "\nOr:\n" in str(failed)


def test_what_is_wrong_without_a_mask_is_named_alone():
    def fn(query, key, value, mask=None):
        weights = (query @ key.mT).softmax(-1)
        if mask is not None:
            weights = weights.roll(1, 0) * mask.sum()  # nothing that a check could know
        return weights @ value, weights

    failed = failure(check_scaled_dot_product_attention, fn)
    assert failed.mistakes == ("no-scale",)
    assert "no known mistake gives these numbers" in str(failed)
    assert "\nWithout a mask, one mistake explains your numbers.\n" in str(failed)


class DropoutAlways(Base):
    def attend(self, query, key, value, mask):
        q, k, v = (
            split_by_reshape(layer(x), self.num_heads)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        output = F.scaled_dot_product_attention(q, k, v, mask, 0.1)
        return self.out_proj(merge_by_loop(output)), self.change(by_einsum(q, k, v, mask)[1])

    def change(self, weights):
        return weights


class DropoutAndAverage(DropoutAlways):
    def change(self, weights):
        return weights.mean(dim=1)


class DropoutAndMore(DropoutAlways):
    def change(self, weights):
        return weights + 0.1


def test_dropout_in_eval_mode_is_named_with_whatever_else_is_wrong():
    assert failure(check_multi_head_attention, DropoutAlways).mistakes == ("dropout-in-eval",)
    assert failure(check_multi_head_attention, DropoutAndAverage).mistakes == (
        "dropout-in-eval",
        "weights-averaged",
    )
    failed = failure(check_multi_head_attention, DropoutAndMore)
    assert failed.mistakes == ("dropout-in-eval",)
    assert "no known mistake gives these numbers" in str(failed)
    assert "one mistake explains part of it." in str(failed)


class BiasOncePerHead(Base):
    """All biases start at 0, as in torch's own layer, and would hide the mistake."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        nn.init.zeros_(self.out_proj.bias)

    def attend(self, *inputs):
        output, weights = super().attend(*inputs)
        return output + (self.num_heads - 1) * self.out_proj.bias, weights


def test_a_fresh_layer_does_not_hide_a_mistake_with_its_bias():
    assert failure(check_multi_head_attention, BiasOncePerHead).mistakes == ("bias-once-per-head",)


class ForgetsTheMaskInTrainMode(Base):
    def attend(self, query, key, value, mask):
        return super().attend(query, key, value, None if self.training else mask)


class OnlyForTwoSamples(Base):
    def attend(self, query, key, value, mask):
        output, weights = super().attend(query, key, value, mask)
        return output[:2], weights[:2]


@pytest.mark.parametrize("cls", [ForgetsTheMaskInTrainMode, OnlyForTwoSamples])
def test_what_is_right_sometimes_is_wrong(cls):
    failure(check_multi_head_attention, cls)


CELLS = [
    "from course_utils.exercises import check_split_heads",
    "def split_heads(x, num_heads):\n    raise NotImplementedError",
    "if check_split_heads(split_heads):\n    print('never')",
    "def split_heads(x, num_heads):\n    return x.view(9, num_heads)",
    "check_split_heads(split_heads)",
    "print('never')",
]
SAID = [
    "✗ split_heads: your code raised RuntimeError: shape '[9, 2]' is invalid for input of size 48",
    "  in your line 2: return x.view(9, num_heads)",
    "  input: x (2, 3, 8), num_heads 2",
]


@pytest.mark.usefixtures("as_it_was")
def test_ipython_shows_the_message_alone():
    shell = InteractiveShell.instance()
    shell.reset(new_session=True)
    with capture_output() as captured:
        results = [shell.run_cell(cell) for cell in CELLS[:-1]]
    assert [result.success for result in results] == [True, True, True, True, False]
    assert captured.stdout.splitlines() == ["○ split_heads: not attempted yet", *SAID]
    assert captured.stderr == ""


@pytest.mark.slow  # a kernel takes seconds to start
def test_a_notebook_shows_the_message_alone_and_stops():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert [o.text for o in outputs[2]] == ["○ split_heads: not attempted yet\n"]
    (error,) = outputs[4]
    assert error.ename == "CheckFailed"
    assert error.traceback == SAID
    assert error.evalue == "\n".join(error.traceback)
    assert outputs[5] == []
