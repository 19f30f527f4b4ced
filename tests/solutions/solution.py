"""What the tests need to know of an exercise."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from course_utils.exercises import CheckFailed
from course_utils.exercises.exercise import Exercise


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """A solution of an exercise, with a switch for each mistake.

    Attributes:
        check: the check that judges it.
        make: makes the learner's code, with the mistakes whose ids it is given.
        exercise: what the check judges by.
        together: mistakes that are tried together.
    """

    check: Callable
    make: Callable
    exercise: Exercise
    together: tuple[tuple[str, ...], ...] = ()

    def failure(self, *bugs: str) -> CheckFailed:
        """Check a solution with these mistakes, and return what the check says."""
        with pytest.raises(CheckFailed) as failed:
            self.check(self.make(*bugs))
        return failed.value
