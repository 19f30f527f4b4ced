"""A sample of the mutants of all solutions; ``make bench`` takes all of them."""

from collections import Counter

import mutation
import pytest

EVERY = 29
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def verdicts():
    return [mutation.verdict(solution, source) for solution, source in mutation.sample(EVERY)]


def test_every_exercise_is_changed_in_many_places():
    counts = Counter()
    for solution in mutation.solutions():
        counts[solution.exercise] += sum(1 for _ in mutation.mutants(solution.source))
    assert sum(counts.values()) >= 2000
    assert min(counts.values()) >= 20


def test_every_mutant_that_differs_is_refused(verdicts):
    accepted = [v for v in verdicts if v.kind == "accepted"]
    assert not accepted, accepted[0].source


def test_nearly_all_that_run_are_named_or_located(verdicts):
    kinds = Counter(v.kind for v in verdicts)
    ran = kinds["named"] + kinds["located"] + kinds["silent"]
    assert ran > 20
    silent = [v for v in verdicts if v.kind == "silent"]
    assert len(silent) <= 0.05 * ran, "\n".join(v.source + "\n" + v.message for v in silent)


def test_what_is_set_aside_is_set_aside_for_its_numbers(verdicts):
    equivalent = [v for v in verdicts if v.kind == "equivalent"]
    assert equivalent
    assert all(v.compared >= mutation.INPUTS for v in equivalent)
