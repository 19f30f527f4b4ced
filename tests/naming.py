"""What the tests of every exercise ask of its check: that it names what went wrong.

An exercise is a check, a maker of learners' functions with a switch for each mistake, and the steps
of ``course_utils.mistakes`` that it consists of.
"""

import pytest

from course_utils.exercises import CheckFailed
from course_utils.exercises.registry import MISTAKES


def each_slip(exercises: dict[str, tuple]) -> list[tuple[str, str]]:
    """Return the names of all exercises, each with each mistake that can happen in its steps."""
    return [
        (name, bug)
        for name, (*_, steps) in exercises.items()
        # The order of the results is no step of its own work.
        for bug in dict.fromkeys(m.id for m in MISTAKES if m.step in steps and m.step != "order")
    ]


def failure_of(exercise: tuple, *bugs: str) -> CheckFailed:
    """Check a learner's function with these mistakes, and return what the check says."""
    check, solution, _ = exercise
    with pytest.raises(CheckFailed) as failed:
        check(solution(*bugs))
    return failed.value
