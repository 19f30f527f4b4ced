"""Checks of the exercises: right, not attempted yet, or wrong and which mistake it was.

A check runs a learner's code on random inputs of several sizes and compares each number with what
torch itself gives. Where they differ, ``course_utils.mistakes`` looks for the mistakes that give
exactly the learner's numbers. If none do, the check says what can be seen and claims no more.
The random numbers are its own: the global random state stays as it was.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import nn

from course_utils.exercises import registry as mistakes
from course_utils.exercises.registry import Answer, Mistake
from course_utils.exercises.search import explain, same
from course_utils.exercises.trial import (
    SIZES,
    CheckFailed,
    Trial,
    Trials,
    _call,
    _has_lines,
    _is_stub,
    _NotAttempted,
    _Raised,
    _run,
    _tensors,
    random_numbers,
)

# --- Trials: what the learner's code is given, and what torch makes of it ------------------------


_Result = tuple[Trial, Answer | None]  # None: the learner's code raised an error


# --- Running the learner's code ------------------------------------------------------------------


# --- Judging -------------------------------------------------------------------------------------


def check(
    name: str,
    learner: Callable | None,
    make_trials: Trials,
    steps: Sequence[str],
    covered: str = "; ".join("N={} L={} D={} H={}".format(*size) for size in SIZES),
) -> bool:
    """Judge a learner's code and print one line, or raise.

    Args:
        name: what the messages call the exercise.
        learner: the function or class, or None.
        make_trials: the learner's code to the inputs it is judged on.
        steps: of ``mistakes.REFERENCE``, those that the exercise consists of.
        covered: what the inputs were, for the line that says all is right.

    Returns:
        True if it is right, False if it is not attempted yet.

    Raises:
        CheckFailed: it is wrong.
    """
    try:
        with _undisturbed():
            count, note = _judge(learner, make_trials, steps)
    except _NotAttempted as stopped:
        left = f": {stopped.left}" if _has_lines(learner) else ""
        print(f"○ {name}: {'not finished' if left else 'not attempted'} yet{left}")
        return False
    except CheckFailed as problem:
        raise CheckFailed(f"✗ {name}: {problem}", problem.explanations) from None
    print(f"✓ {name}: right on {count} inputs ({covered}){note}")
    return True


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Leave torch's random state, gradient mode and threads as they were."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, threads mostly wait for each other
    try:
        with (
            torch.random.fork_rng(devices=[]),
            torch.inference_mode(False),
            torch.enable_grad(),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # what is wrong, the check itself says in words
            torch.default_generator.manual_seed(0)
            yield
    finally:
        torch.set_num_threads(threads)


def _judge(learner: Callable | None, make_trials: Trials, steps: Sequence[str]) -> tuple[int, str]:
    """Return the number of trials, if all are right, and a note about gradients.

    Raises:
        CheckFailed: something is wrong; the message says what.
    """
    body = getattr(learner, "forward", None) if isinstance(learner, type) else learner
    if learner is None or learner is ... or body is nn.Module.forward or _is_stub(body):
        raise _NotAttempted("nothing is written yet.")
    if not callable(learner) or isinstance(learner, nn.Module):
        kind = type(learner).__name__
        raise CheckFailed(f"pass the function or class itself, not something of type {kind}.")

    results: list[_Result] = []
    errors: list[str] = []
    for trial in make_trials(learner):
        try:
            results.append((trial, _run(trial)))
        except _Raised as error:
            if isinstance(error, _NotAttempted) and not results:
                raise
            # Code that makes float32 tensors of its own is right: the course uses no others.
            if not trial.float64:
                results.append((trial, None))
                errors.append(f"{error}\n  input: {trial.label}")
        except CheckFailed as problem:
            raise CheckFailed(f"{problem}\n  input: {trial.label}") from None

    steady = [(trial, answer) for trial, answer in results if answer and not trial.training]
    if not steady:
        raise CheckFailed(errors[0])
    trial, calm = steady[-1]
    if not _equal(_run(trial), calm):
        raise CheckFailed("the same input gives another result each time: something is random.")
    dropout = () if _equal(_run(trial, dropout=True), calm) else (mistakes.DROPOUT,)
    wrong = _first_wrong(results)
    if not wrong and not dropout:
        return len(results), _gradient_note(trial)

    found = _explain(steps, results) if wrong else [()]
    if found:
        raise _failure([], "{} your numbers", [dropout + combination for combination in found])
    seen = errors[:1] or _observations(*wrong, results)
    # A smaller claim: what is wrong even without a mask may have a name.
    plain = [(trial, answer) for trial, answer in results if "mask" not in trial.inputs]
    if _first_wrong(plain):
        found = _explain(steps, plain)
    else:
        seen.append("Without a mask, everything is right.")
    heading = "Without a mask, {} your numbers" if found else "{} part of it"
    raise _failure(seen, heading, [dropout + combination for combination in found or [()]])


def _explain(steps: Sequence[str], results: list[_Result]) -> list[tuple[Mistake, ...]]:
    found = explain(steps, [(trial.given, answer) for trial, answer in reversed(results)])
    if any("mask" in trial.inputs for trial, _ in results):
        return found
    # Without a mask, what is masked and what is not are the same: do not speak of masks.
    return [e for e in found if not any("masked" in mistake.id for mistake in e)] or found


def _first_wrong(results: list[_Result]) -> _Result | None:
    return next((r for r in results if not _equal(r[1], r[0].expected())), None)


def _equal(answer: Answer | None, expected: Answer | None) -> bool:
    if answer is None or expected is None or len(answer) != len(expected):
        return False
    return all(map(same, answer, expected))


def _failure(seen: list[str], heading: str, explanations: list[tuple[Mistake, ...]]) -> CheckFailed:
    """Put into words what was seen and which mistakes explain it; ``[()]`` explains nothing."""
    lines = list(seen)
    size, ways = len(explanations[0]), len(explanations)
    if size:
        subject = "one mistake explains" if size == 1 else f"{size} mistakes together explain"
        which = f", in one of {ways} ways" if ways > 1 else ""
        lines.append(heading.format(subject) + which + ".")
    for i, explanation in enumerate(explanations):
        if ways > 1:
            lines.append("Or:" if i else "Either:")
        for mistake in explanation:
            rows = f" ({', '.join(mistake.rows)})" if mistake.rows else ""
            lines += [
                f"• {mistake.id}{rows}: {mistake.title}.",
                f"  Why: {mistake.why}",
                f"  Look at: {mistake.look}",
            ]
    ids = [tuple(mistake.id for mistake in e) for e in explanations if e]
    return CheckFailed("\n".join(lines), ids)


def _observations(trial: Trial, answer: Answer, results: list[_Result]) -> list[str]:
    """Say what can be seen of a wrong answer, without guessing where it comes from."""
    expected = trial.expected()
    if expected is None:
        shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in trial.parameters.items())
        return [f"each of the four weights must be (D, D); with {trial.label} you have {shapes}."]
    seen = ["no known mistake gives these numbers. What can be seen:", f"  input: {trial.label}"]
    for name, got, want in zip(trial.names, answer, expected, strict=False):
        if got.shape != want.shape:
            seen.append(f"  {name} has shape {tuple(got.shape)}, expected {tuple(want.shape)}")
            continue
        right = torch.isclose(got, want, rtol=1e-4, atol=1e-5).sum()
        count = f"{right} of its {want.numel()} numbers are right"
        seen.append(f"  {name}: {count if want.ndim else 'right' if right else 'not right'}")
        if got.isnan().any():
            seen.append(f"  {name} holds NaN")
        if name == "weights" and not same(got.sum(-1), want.sum(-1)):
            axes = ("batch", "head", "query", "key")[-got.ndim :]
            ones = [a for i, a in enumerate(axes) if same(s := got.sum(i), torch.ones_like(s))]
            if "key" in ones:
                seen.append("  all rows of weights sum to 1, even where a query may see nothing")
            else:
                over = f"; over the {ones[0]} axis they do" if ones else ""
                seen.append(f"  rows of weights do not sum to 1{over}")
    # With a mask, or a switch, other lines of code are at work: only the same kind tells of sizes.
    alike = [(other, got) for other, got in results if _kind(other) == _kind(trial)]
    fine = [other for other, got in alike if _equal(got, other.expected())]
    if fine:
        count = f"  {len(fine)} of {len(alike)} inputs come out right"
        if all(_samples(other) == 1 for other in fine) and _right_alone(trial):
            seen.append(f"{count}, the one with a single sample")
        else:
            seen.append(f"{count}; is a size fixed in your code?")
    full = [(other, got) for other, got in results if other.given.get("is_padded") is False]
    if trial.given.get("is_padded") and full and not _first_wrong(full):
        seen.append("  without any padding, everything is right")
    if len(answer) < len(expected):
        came = ("one result", "two results")[len(answer) - 1]
        seen.append(f"  only {came} came back; expected {', '.join(trial.names)}")
    if any(_leaks(*result) for result in results):
        seen.append("  samples mix: a change of sample 0 alone changes the result of others")
    return seen


def _kind(trial: Trial) -> tuple:
    """What switches other lines of code on: a mask, padding, arguments that are True or False."""
    switches = ("is_causal", "is_scaled", "is_padded")
    return "mask" in trial.inputs, *(trial.given.get(name) for name in switches)


def _samples(trial: Trial) -> int | None:
    """How many samples an input holds; None if it has no axis for them."""
    x = next(iter(trial.inputs.values()), None)
    return None if x is None or x.ndim < 3 else len(x)


def _right_alone(trial: Trial) -> bool:
    """Whether the first sample of an input comes out right when it comes alone."""
    n = _samples(trial)
    if not n:
        return False
    inputs = {
        name: x[:1] if len(x) == n and (x.ndim > 2 or not x.is_floating_point()) else x
        for name, x in trial.inputs.items()
    }
    alone = replace(trial, inputs=inputs)
    try:
        return _equal(_run(alone), alone.expected())
    except (CheckFailed, RuntimeError, ValueError):  # it does not run with one sample
        return False


def _leaks(trial: Trial, answer: Answer | None) -> bool:
    """Whether the result of a sample depends on another sample."""
    if not answer or not trial.inputs or not _equal(_run(trial), answer):
        return False  # nothing to compare, or random anyway
    size = len(next(iter(trial.inputs.values())))
    if any(x.ndim < 3 or len(x) != size for x in answer):
        return False
    inputs = {name: x.clone() for name, x in trial.inputs.items()}
    for x in inputs.values():
        if x.is_floating_point() and x.ndim > 2 and len(x) == size:  # others hold no samples
            x[0] = random_numbers(*x[0].shape, seed=9)
    changed = _run(replace(trial, inputs=inputs))
    return not _equal(tuple(x[1:] for x in changed), tuple(x[1:] for x in answer))


def _gradient_note(trial: Trial) -> str:
    """Say what is wrong with gradients through a right result, if anything.

    Raises:
        CheckFailed: the code raises an error where a gradient is wanted, or an input or parameter
            gets no gradient at all.
    """
    if not trial.gradients or not trial.inputs:
        return ""
    inputs = {
        name: x.clone().requires_grad_(x.is_floating_point()) for name, x in trial.inputs.items()
    }
    leaves = {n: x for n, x in {**inputs, **trial.parameters}.items() if x.requires_grad}
    try:
        returned = _call(trial.call, **inputs)
    except _Raised as error:  # without gradients it raised none
        told, _, line = str(error).partition("\n")
        numpy = "numpy()" in told
        said = ["the numbers are right, but your code cannot take tensors that need a gradient."]
        said += [told] * (not numpy) + [line] * bool(line) + ["  Look at: NumPy on the way"] * numpy
        raise CheckFailed("\n".join(said)) from None
    result = _tensors(returned, trial.names)[0]
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
