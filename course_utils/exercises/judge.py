"""Judging a learner's code: right, not attempted yet, or wrong and which mistake it was.

A check runs the code on random inputs of several sizes and compares each number with what torch
itself gives. Where they differ, ``explain`` looks for the mistakes that give exactly the learner's
numbers. If none do, the check says what can be seen and claims no more. The random numbers are its
own: the global random state stays as it was.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from course_utils.exercises.calling import (
    CheckFailed,
    CodeRaised,
    NotAttempted,
    Run,
    has_lines,
    is_stub,
)
from course_utils.exercises.chance import Means
from course_utils.exercises.differences import (
    Judged,
    blocked_rows,
    note_about_gradients,
    note_about_large_scores,
    observations,
)
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.locate import Place, computed_values, locate
from course_utils.exercises.repeat import Repeated, run_again
from course_utils.exercises.search import DoesNotFit, Mistake, explain, same, values_of
from course_utils.exercises.signature import Undecided
from course_utils.exercises.trial import Trial


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
        right = judge(exercise, learner)
    except NotAttempted as stopped:
        left = f": {stopped.left}" if has_lines(learner) else ""
        print(f"○ {exercise.name}: {'not finished' if left else 'not attempted'} yet{left}")
        return False
    except CheckFailed as problem:
        raise problem.under(f"✗ {exercise.name}") from None
    name = exercise.name + whose(learner)
    print(f"✓ {name}: right on {right.inputs} inputs ({right.covered}){right.note}")
    return True


def whose(code: object) -> str:
    """What a verdict adds to the name of an exercise: nothing, unless the code is the lesson's own.

    A lesson's solutions are called ``solved_…`` or ``Solved…``. Whoever runs such a cell must not
    read that their answer is right.
    """
    shown = getattr(code, "__name__", "").lower().startswith("solved")
    return ", the lesson's solution" if shown else ""


class Right(NamedTuple):
    """What can be said of a right answer."""

    inputs: int
    covered: str
    note: str


def judge(exercise: Exercise, learner: Callable | None) -> Right:
    """Judge a learner's code as ``check`` does, but print nothing.

    Returns:
        The number of inputs that came out right, what they were, and notes, which may be "".

    Raises:
        NotAttempted: nothing is written yet.
        CheckFailed: something is wrong; the message says what.
    """
    with _undisturbed():
        _require_code(learner)
        try:
            exercise, code = exercise.fit(exercise, learner)
        except Undecided as question:
            raise CheckFailed(str(question)) from None
        answered, failed = _run_all(exercise, code)
        steady = [judged for judged in answered if not judged.run.trial.training]
        if not steady:
            raise CheckFailed(failed[0].message)
        calm = steady[-1]
        repeated = run_again(answered, calm, partial(_run_of, exercise, code))
        left = [judged for judged in answered if judged not in repeated.explained]
        wrong = bool(failed) or not all(judged.right for judged in left)
        blocked = "" if failed or repeated.mistakes else _about_blocked_rows(exercise, left)
        if wrong and not blocked:
            raise _wrong(exercise, left, failed, repeated)
        if repeated.mistakes:
            raise _failure([], "{} your numbers", [repeated.mistakes])
        gradients = note_about_gradients(calm.run)
        notes = blocked or gradients, _of_plain(steady, note_about_large_scores), exercise.note
        return Right(len(answered), exercise.covered, "".join(notes))


def _of_plain(steady: list[Judged], note: Callable[[Run], str]) -> str:
    plain = [judged.run for judged in steady if not judged.run.trial.masked]
    return note(plain[-1]) if plain else ""


def _about_blocked_rows(exercise: Exercise, answered: list[Judged]) -> str:
    """Note what a query gets that may attend to nothing, if all else is right.

    Raises:
        CheckFailed: this exercise asks for zeros there.
    """
    wrong = [judged for judged in answered if not judged.right]
    if not wrong or not all(judged.right_but_in_blocked_rows for judged in wrong):
        return ""
    place = list(exercise.results).index(exercise.weights)
    weights = wrong[-1].answer[place]
    rows = weights[blocked_rows(wrong[-1].run.trial.arguments["mask"], weights)]
    seen = ["Only rows that are blocked as a whole are wrong; everywhere else all is right."]
    if not rows.any():
        said = "a query that may attend to nothing gets another output than weights of 0 give"
        if exercise.asks_for_masks:
            raise _failure([*seen, f"There, {said}."], "", [()], exercise.weights)
        return f"; but {said}"
    if any(x.isnan().any() for x in wrong[-1].answer):
        kind = "blocked-row-nan"
    elif same(rows, rows[:, :1].expand_as(rows)):
        kind = "blocked-row-even"
    else:
        kind = "blocked-row-open"
    mistake = next(mistake for mistake in exercise.mistakes if mistake.id == kind)
    if exercise.asks_for_masks:
        raise _failure(seen, "{} them", [(mistake,)])
    return f"; but {mistake.title}, where this course wants zeros"


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
    is_layer = isinstance(learner, type | nn.Module)
    body = getattr(learner, "forward", None) if is_layer else learner
    if learner is None or learner is ... or _is_empty(body) or is_stub(body):
        raise NotAttempted("nothing is written yet.")
    if not callable(learner):
        kind = type(learner).__name__
        raise CheckFailed(f"pass the function or class itself, not something of type {kind}.")


def _is_empty(body: object) -> bool:
    """Whether a module has no forward of its own."""
    return getattr(body, "__func__", body) is nn.Module.forward


def _run_of(exercise: Exercise, learner: Callable, trial: Trial) -> Run:
    """Build the learner's code for an input, each time with the same random numbers."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed is far slower
    return Run(exercise, *exercise.build(learner, trial))


def _run_all(exercise: Exercise, learner: Callable) -> tuple[list[Judged], list[Failed]]:
    """Run the code on every input; return those with an answer, and those with an error.

    Raises:
        NotAttempted: the first one ran into the line that a stub raises with.
        CheckFailed: what came back is no tensor, or an input was changed.
    """
    answered: list[Judged] = []
    failed: list[Failed] = []
    for trial in exercise.trials():
        run = _run_of(exercise, learner, trial)
        means = Means()
        try:
            answer = run.answer(within=means)
        except CodeRaised as error:
            if isinstance(error, NotAttempted) and not answered and not failed:
                raise
            if not (trial.float64 and _is_about_float64(error)):
                failed.append(Failed(run, f"{error}\n  input: {run.trial.label}"))
        except CheckFailed as problem:
            raise CheckFailed(f"{problem}\n  input: {run.trial.label}") from None
        else:
            answered.append(Judged(run, answer, exercise.truth(**run.trial.given), means))
    return answered, failed


def _is_about_float64(error: CodeRaised) -> bool:
    """Whether tensors of another dtype were mixed with the input's."""
    return bool(re.search("dtype|scalar type|Double|Float", str(error)))


def _wrong(
    exercise: Exercise, answered: list[Judged], failed: list[Failed], repeated: Repeated
) -> CheckFailed:
    """Name the mistakes that explain a wrong result, or say what can be seen of it and where."""
    plain = [judged for judged in answered if not judged.run.trial.masked]
    plain_failed = [failure for failure in failed if not failure.run.trial.masked]
    is_masked = len(plain) + len(plain_failed) < len(answered) + len(failed)
    answers_are_right = all(judged.right for judged in plain)
    # What is wrong even without a mask must be explained there, or nothing explains all of it.
    found_plain = [] if answers_are_right else _explain(exercise, plain, plain_failed)
    found = found_plain
    if is_masked and (answers_are_right or found_plain):
        found = _explain(exercise, answered, failed)
    if found:
        return _failure([], "{} your numbers", [repeated.mistakes + chosen for chosen in found])
    wrong = [judged for judged in answered if not judged.right]
    seen = [failed[0].message] if failed else observations(wrong[0], answered)
    if repeated.random:
        seen.append("  the same input gives another result each time: something is random")
    place = Place(None, "") if plain_failed else _first_place(wrong)
    seen += [place.words] * bool(place.words)
    if is_masked and answers_are_right and not plain_failed:
        seen.append("Without a mask, everything is right.")
    # A smaller claim: what is wrong even without a mask may have a name.
    heading = "Without a mask, {} your numbers" if found_plain else "{} part of it"
    explanations = [repeated.mistakes + chosen for chosen in found_plain or [()]]
    return _failure(seen, heading, explanations, place.step)


def _first_place(wrong: list[Judged]) -> Place:
    """Locate the mistake on a wrong input, on one without a mask if there is any."""
    known = [judged for judged in wrong if judged.expected is not None]
    plain = [judged for judged in known if not judged.run.trial.masked]
    for judged in (plain or known)[-1:]:
        return locate(judged)
    return Place(None, "")


def _explain(
    exercise: Exercise, answered: list[Judged], failed: list[Failed]
) -> list[tuple[Mistake, ...]]:
    learned = _learned(exercise, answered)
    found = explain(
        exercise.all_steps,
        exercise.all_mistakes,
        [(exercise.start(judged.run.trial) | learned, judged.answer) for judged in answered],
        [exercise.start(failure.run.trial) | learned for failure in failed],
        computed=partial(computed_values, answered[-1]) if exercise.watched and answered else None,
    )
    if any(each.run.trial.masked for each in (*answered, *failed)):
        return found
    return [c for c in found if not any(mistake.needs_mask for mistake in c)] or found


def _learned(exercise: Exercise, answered: list[Judged]) -> dict[str, object]:
    """What the result tells the steps, such as the number that scores were divided by."""
    if exercise.learn is None:
        return {}
    plain = [judged for judged in answered if not judged.run.trial.masked]
    starts = [exercise.start(judged.run.trial) for judged in plain]
    try:
        values = [values_of(exercise.all_steps, start) for start in starts]
    except DoesNotFit:
        return {}
    return exercise.learn(list(zip(values, (j.answer for j in plain), strict=True)))


def _failure(
    seen: list[str],
    heading: str,
    explanations: Sequence[tuple[Mistake, ...]],
    first_difference: str | None = None,
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
    return CheckFailed("\n".join(lines), ids, first_difference)
