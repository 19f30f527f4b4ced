"""What can be seen of a wrong answer without guessing where it comes from, and of gradients."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from course_utils.exercises.calling import CheckFailed, CodeRaised, Run, numbers_in
from course_utils.exercises.chance import Means, one_factor
from course_utils.exercises.search import Answer, same, values_of
from course_utils.exercises.trial import Trial, random_numbers


@dataclass(frozen=True)
class Judged:
    """A learner's answer to one input, beside the right one.

    Attributes:
        run: the code and the input.
        answer: what came back.
        expected: what should have; None where torch has nothing like the learner's layer.
        means: what was random on the way.
    """

    run: Run
    answer: Answer
    expected: Answer | None
    means: Means = field(default_factory=Means)

    @cached_property
    def right(self) -> bool:
        """Whether the answer is the expected one.

        In train mode dropout that was written by hand may multiply everything by one factor.
        """
        if self.expected is None or len(self.answer) != len(self.expected):
            return False
        if self.run.trial.training and self.means.by_hand:
            return all(map(one_factor, self.answer, self.expected))
        return self.gives(self.expected)

    @cached_property
    def right_but_in_blocked_rows(self) -> bool:
        """Whether only those rows are wrong for which a mask leaves nothing to attend to."""
        if self.right or self.expected is None or not self.run.trial.masked:
            return self.right
        pairs = [
            (_without_rows(got, blocked), _without_rows(want, blocked))
            for got, want in zip(self.answer, self.expected, strict=False)
            if got.shape == want.shape
            for blocked in [blocked_rows(self.run.trial.arguments["mask"], want)]
        ]
        return len(pairs) == len(self.expected) and all(same(*pair) for pair in pairs)

    def gives(self, other: Answer) -> bool:
        """Whether the answer is the same as another."""
        return _equal(self.answer, other)


def observations(wrong: Judged, answered: list[Judged]) -> list[str]:
    """Say what can be seen of a wrong answer, and of the answers to other inputs beside it.

    Args:
        wrong: the first of the answers that is wrong.
        answered: the answers to all inputs.

    Returns:
        Lines of text.
    """
    trial = wrong.run.trial
    if wrong.expected is None:
        shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in trial.parameters.items())
        return [f"each of the four weights must be (D, D); with {trial.label} you have {shapes}."]
    exercise = wrong.run.exercise
    names = tuple(exercise.results.values())
    seen = ["no known mistake gives these numbers. What can be seen:", f"  input: {trial.label}"]
    for step, got, want in zip(exercise.results, wrong.answer, wrong.expected, strict=False):
        seen += _about_result(exercise.results[step], got, want)
        if step == exercise.weights:
            seen += _about_rows(got, want)
    seen += _about_sizes(wrong, answered)
    seen += _about_padding(wrong, answered)
    if len(wrong.answer) < len(wrong.expected):
        came = ("one result", "two results")[len(wrong.answer) - 1]
        seen.append(f"  only {came} came back; expected {', '.join(names)}")
    if any(map(_leaks, answered)):
        seen.append("  samples mix: a change of sample 0 alone changes the result of others")
    return seen


def note_about_gradients(run: Run) -> str:
    """Say what is wrong with gradients through a right result, if anything.

    Raises:
        CheckFailed: the code raises an error where a gradient is wanted, or an input or parameter
            gets no gradient at all.
    """
    if not run.exercise.gradients or not run.trial.tensors:
        return ""
    tensors = {
        name: x.clone().requires_grad_(x.is_floating_point())
        for name, x in run.trial.tensors.items()
    }
    leaves = {n: x for n, x in {**tensors, **run.trial.parameters}.items() if x.requires_grad}
    result = _first_result(run, tensors)
    gradients = [None] * len(leaves)
    if result.requires_grad:
        try:
            loss = (result * result).sum()
            gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        except RuntimeError:
            return "; but backward() fails: a tensor it needs was changed in place"
    for name, gradient in zip(leaves, gradients, strict=True):
        if gradient is None:
            raise CheckFailed(
                f"the numbers are right, but no gradient flows back to {name}.\n"
                "  Look at: detach, .data, no_grad, .item(), NumPy or torch.tensor on the way"
            )
    if any(gradient.isnan().any() for gradient in gradients):
        return "; but gradients are NaN where a whole row is blocked: keep -inf out of that row"
    return ""


def note_about_large_scores(run: Run) -> str:
    """Say so if exp overflows where scores are large, as it does without a maximum taken off."""
    if "scaled_scores" not in {step.name for step in run.exercise.steps}:
        return ""
    query = run.trial.arguments["query"]
    for power in range(1, 12):
        louder = _with_tensors(run, {"query": query * 2**power})
        scores = values_of(run.exercise.all_steps, louder.exercise.start(louder.trial))
        if scores["scaled_scores"].max() > 120:
            break
    try:
        answer = louder.answer()
    except CodeRaised:
        return ""
    if all(x.isfinite().all() for x in answer):
        return ""
    return "; but exp overflows in float32 from scores of 89: take each row's largest off first"


def _first_result(run: Run, tensors: dict[str, Tensor]) -> Tensor:
    """Return the first thing that comes back when the tensors need a gradient.

    Raises:
        CheckFailed: only then does the code raise an error.
    """
    try:
        returned = run.call(tensors)
    except CodeRaised as error:
        told, _, line = str(error).partition("\n")
        numpy = "numpy()" in told
        said = ["the numbers are right, but your code cannot take tensors that need a gradient."]
        said += [told] * (not numpy) + [line] * bool(line) + ["  Look at: NumPy on the way"] * numpy
        raise CheckFailed("\n".join(said)) from None
    return run.tensors_of(returned)[0]


def _about_result(name: str, got: Tensor, want: Tensor) -> list[str]:
    """Compare one of the results with what it should be."""
    if got.shape != want.shape:
        return [f"  {name} has shape {tuple(got.shape)}, expected {tuple(want.shape)}"]
    alike = got.dtype == want.dtype
    right = int(torch.isclose(got, want, rtol=1e-4, atol=1e-5).sum()) if alike else 0
    count = f"{right} of its {want.numel()} numbers are right"
    seen = [f"  {name}: {count if want.ndim else 'right' if right else 'not right'}"]
    if got.isnan().any():
        seen.append(f"  {name} holds NaN")
    return seen


def _about_rows(weights: Tensor, expected: Tensor) -> list[str]:
    """Say along which axis weights sum to 1, if not along the keys as they should."""
    if weights.shape != expected.shape or same(weights.sum(-1), expected.sum(-1)):
        return []
    axis = axis_of_sums(weights)
    if axis == "key":
        return ["  all rows of weights sum to 1, even where a query may see nothing"]
    over = f"; over the {axis} axis they do" if axis else ""
    return [f"  rows of weights do not sum to 1{over}"]


def axis_of_sums(weights: Tensor) -> str:
    """Return the axis along which weights sum to 1, "key" if it is one of several, "" if none."""
    axes = ("batch", "head", "query", "key")[-weights.ndim :]
    sums = {axis: weights.sum(i) for i, axis in enumerate(axes)}
    ones = [axis for axis, total in sums.items() if same(total, torch.ones_like(total))]
    return "key" if "key" in ones else next(iter(ones), "")


def _about_sizes(wrong: Judged, answered: list[Judged]) -> list[str]:
    """Say how many inputs of other sizes come out right, if any do."""
    # With a mask, or a switch, other lines of code are at work: only the same kind tells of sizes.
    alike = [judged for judged in answered if judged.run.trial.kind == wrong.run.trial.kind]
    fine = [judged.run.trial for judged in alike if judged.right]
    if not fine:
        return []
    count = f"  {len(fine)} of {len(alike)} inputs come out right"
    if all(_samples(trial) == 1 for trial in fine) and _right_alone(wrong.run):
        return [f"{count}, the one with a single sample"]
    fixed = _fixed_sizes(wrong.run, fine, [j.run.trial for j in alike if not j.right])
    if not fixed:
        return [count]
    return [f"{count}; is a size fixed in your code? The number {fixed[0]} stands in it"]


def _fixed_sizes(run: Run, fine: list[Trial], wrong: list[Trial]) -> list[int]:
    """Return the numbers in the code that are sizes of all right inputs, and of no wrong one."""
    alike = set.intersection(*map(_sizes, fine)).difference(*map(_sizes, wrong))
    return sorted(alike & numbers_in(run.code))


def _sizes(trial: Trial) -> set[int]:
    shapes = [size for x in trial.tensors.values() for size in x.shape]
    numbers = [x for x in trial.arguments.values() if isinstance(x, int)]
    return {*shapes, *numbers, *trial.sizes.values()}


def _about_padding(wrong: Judged, answered: list[Judged]) -> list[str]:
    """Say so if padding alone makes the answer wrong."""
    full = [judged for judged in answered if not judged.run.trial.padded]
    if wrong.run.trial.padded and full and all(judged.right for judged in full):
        return ["  without any padding, everything is right"]
    return []


def _samples(trial: Trial) -> int | None:
    """How many samples an input holds; None if it has no axis for them."""
    x = next(iter(trial.tensors.values()), None)
    return None if x is None or x.ndim < 3 else len(x)


def _right_alone(run: Run) -> bool:
    """Whether the first sample of an input comes out right when it comes alone."""
    n = _samples(run.trial)
    if not n:
        return False
    first = {
        name: x[:1]
        for name, x in run.trial.tensors.items()
        if len(x) == n and (x.ndim > 2 or not x.is_floating_point())
    }
    alone = _with_tensors(run, first)
    try:
        return _equal(alone.answer(), run.exercise.truth(**alone.trial.given))
    except (CheckFailed, RuntimeError, ValueError):  # it does not run with one sample
        return False


def _leaks(judged: Judged) -> bool:
    """Whether the result of a sample depends on another sample."""
    run, tensors = judged.run, judged.run.trial.tensors
    if not tensors or not judged.gives(run.answer()):
        return False  # nothing to compare, or random anyway
    size = len(next(iter(tensors.values())))
    if any(x.ndim < 3 or len(x) != size for x in judged.answer):
        return False
    changed = {}
    for name, x in tensors.items():
        if x.is_floating_point() and x.ndim > 2 and len(x) == size:  # others hold no samples
            changed[name] = x.clone()
            changed[name][0] = random_numbers(*x[0].shape, seed=9)
    others = tuple(x[1:] for x in _with_tensors(run, changed).answer())
    return not _equal(others, tuple(x[1:] for x in judged.answer))


def _with_tensors(run: Run, tensors: dict[str, Tensor]) -> Run:
    """Return the same run with other tensors for some arguments."""
    arguments = {**run.trial.arguments, **tensors}
    return replace(run, trial=replace(run.trial, arguments=arguments))


def blocked_rows(mask: Tensor, result: Tensor) -> Tensor:
    """Say which rows of a result, (..., L_q, anything), belong to a query that sees nothing.

    A layer's output (N, L_q, D) is the work of all heads: one of them that sees nothing is enough.
    """
    blocked = ~mask.any(dim=-1)
    if blocked.ndim == 3 and result.ndim == 3:
        blocked = blocked.any(dim=1)
    return blocked.expand(result.shape[:-1])


def _without_rows(x: Tensor, rows: Tensor) -> Tensor:
    return x.masked_fill(rows[..., None], 0.0)


def _equal(answer: Answer, other: Answer) -> bool:
    return len(answer) == len(other) and all(map(same, answer, other))
