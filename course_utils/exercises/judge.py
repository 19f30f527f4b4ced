"""Judging a learner's code: right, not attempted yet, or wrong and which mistake it was.

A check runs the code on random inputs of several sizes and compares each number with what torch
itself gives. Where they differ, ``explain`` looks for the mistakes that give exactly the learner's
numbers. If none do, the check says what can be seen and claims no more. The random numbers are its
own: the global random state stays as it was.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from course_utils.exercises.exercise import Exercise
from course_utils.exercises.learner import (
    CheckFailed,
    CodeRaised,
    NotAttempted,
    Run,
    has_lines,
    is_stub,
)
from course_utils.exercises.observe import Judged, note_about_gradients, observations
from course_utils.exercises.search import Mistake, explain

# Its numbers are random, so it is no step: a check runs the code with dropout and without.
DROPOUT = Mistake(
    id="dropout-in-eval",
    rows=("M31", "M33"),
    step="",
    variants=(),
    title="dropout is at work outside training",
    why="Once training is over, the same input must always give the same result.",
    look="what dropout is told about self.training",
)


@dataclass(frozen=True)
class Failed:
    """An input on which the learner's code raised an error, and the error in words."""

    run: Run
    message: str


def check(exercise: Exercise, learner: Callable | None) -> bool:
    """Judge a learner's code and print one line, or raise.

    Args:
        exercise: what is asked for.
        learner: the function or class, or None.

    Returns:
        True if it is right, False if it is not attempted yet.

    Raises:
        CheckFailed: it is wrong.
    """
    try:
        count, note = judge(exercise, learner)
    except NotAttempted as stopped:
        left = f": {stopped.left}" if has_lines(learner) else ""
        print(f"○ {exercise.name}: {'not finished' if left else 'not attempted'} yet{left}")
        return False
    except CheckFailed as problem:
        raise CheckFailed(f"✗ {exercise.name}: {problem}", problem.explanations) from None
    name = exercise.name + whose(learner)
    print(f"✓ {name}: right on {count} inputs ({exercise.covered}){note}")
    return True


def whose(code: object) -> str:
    """What a verdict adds to the name of an exercise: nothing, unless the code is the lesson's own.

    A lesson's solutions are called ``solved_…`` or ``Solved…``. Whoever runs such a cell must not
    read that their answer is right.
    """
    shown = getattr(code, "__name__", "").lower().startswith("solved")
    return ", the lesson's solution" if shown else ""


def judge(exercise: Exercise, learner: Callable | None) -> tuple[int, str]:
    """Judge a learner's code as ``check`` does, but print nothing.

    Returns:
        The number of inputs that came out right, and a note about gradients, which may be "".

    Raises:
        NotAttempted: nothing is written yet.
        CheckFailed: something is wrong; the message says what.
    """
    with _undisturbed():
        _require_code(learner)
        answered, failed = _run_all(exercise, learner)
        steady = [judged for judged in answered if not judged.run.trial.training]
        if not steady:
            raise CheckFailed(failed[0].message)
        run, calm = steady[-1].run, steady[-1]
        if not calm.gives(run.answer()):
            raise CheckFailed("the same input gives another result each time: something is random.")
        dropout = () if calm.gives(run.answer(dropout=True)) else (DROPOUT,)
        if failed or not all(judged.right for judged in answered):
            raise _wrong(exercise, answered, failed, dropout)
        if dropout:
            raise _failure([], "{} your numbers", [dropout])
        return len(answered), note_about_gradients(run)


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


def _require_code(learner: object) -> None:
    """Refuse what is no function or class, or has nothing in it yet.

    Raises:
        NotAttempted: nothing is written yet.
        CheckFailed: it is something else.
    """
    body = getattr(learner, "forward", None) if isinstance(learner, type) else learner
    if learner is None or learner is ... or body is nn.Module.forward or is_stub(body):
        raise NotAttempted("nothing is written yet.")
    if not callable(learner) or isinstance(learner, nn.Module):
        kind = type(learner).__name__
        raise CheckFailed(f"pass the function or class itself, not something of type {kind}.")


def _run_all(exercise: Exercise, learner: Callable) -> tuple[list[Judged], list[Failed]]:
    """Run the code on every input; return those with an answer, and those with an error.

    Raises:
        NotAttempted: the first one ran into the line that a stub raises with.
        CheckFailed: what came back is no tensor, or an input was changed.
    """
    answered: list[Judged] = []
    failed: list[Failed] = []
    for trial in exercise.trials():
        run = Run(exercise, *exercise.prepare(learner, trial))
        try:
            answer = run.answer()
        except CodeRaised as error:
            if isinstance(error, NotAttempted) and not answered and not failed:
                raise
            if not trial.float64:
                failed.append(Failed(run, f"{error}\n  input: {run.trial.label}"))
        except CheckFailed as problem:
            raise CheckFailed(f"{problem}\n  input: {run.trial.label}") from None
        else:
            answered.append(Judged(run, answer, exercise.truth(**run.trial.given)))
    return answered, failed


def _wrong(
    exercise: Exercise,
    answered: list[Judged],
    failed: list[Failed],
    dropout: tuple[Mistake, ...],
) -> CheckFailed:
    """Name the mistakes that explain a wrong result, or say what can be seen of it."""
    found = _explain(exercise, answered, failed)
    if found:
        return _failure([], "{} your numbers", [dropout + chosen for chosen in found])
    if failed:
        seen = [failed[0].message]
    else:
        seen = observations(next(judged for judged in answered if not judged.right), answered)
    # A smaller claim: what is wrong even without a mask may have a name.
    plain = [judged for judged in answered if not judged.run.trial.masked]
    plain_failed = [failure for failure in failed if not failure.run.trial.masked]
    if len(plain) + len(plain_failed) < len(answered) + len(failed):
        if plain_failed or not all(judged.right for judged in plain):
            found = _explain(exercise, plain, plain_failed)
        else:
            seen.append("Without a mask, everything is right.")
    heading = "Without a mask, {} your numbers" if found else "{} part of it"
    return _failure(seen, heading, [dropout + chosen for chosen in found or [()]])


def _explain(
    exercise: Exercise, answered: list[Judged], failed: list[Failed]
) -> list[tuple[Mistake, ...]]:
    found = explain(
        exercise.all_steps,
        exercise.all_mistakes,
        [(exercise.start(judged.run.trial), judged.answer) for judged in answered],
        [exercise.start(failure.run.trial) for failure in failed],
    )
    if any(each.run.trial.masked for each in (*answered, *failed)):
        return found
    return [c for c in found if not any(mistake.needs_mask for mistake in c)] or found


def _failure(
    seen: list[str], heading: str, explanations: Sequence[tuple[Mistake, ...]]
) -> CheckFailed:
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
