"""Every exercise: its right answer passes, its stub is not attempted, its mistakes are named."""

import importlib
import pkgutil

import pytest
from solutions import SOLUTIONS

from course_utils import exercises
from course_utils.exercises.exercise import RETURN_LINE_MISTAKES, Exercise
from course_utils.exercises.one_row import ONE_ROW, check_one_row

# Those of a layer are in test_mistakes.py: two of them let no shape fit, so that nothing is named.
SLIPS = [
    (name, mistake.id)
    for name, solution in SOLUTIONS.items()
    for mistake in solution.exercise.mistakes
    if name != "multi_head_attention"
]


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_right_answer_passes(name, capsys):
    solution = SOLUTIONS[name]
    assert solution.check(solution.make()) is True
    assert capsys.readouterr().out.startswith(f"✓ {name}: right on ")


@pytest.mark.parametrize("name", [*SOLUTIONS, "one_row"])
def test_a_stub_is_not_attempted(name, capsys):
    def stub(*args):
        raise NotImplementedError

    check = SOLUTIONS[name].check if name in SOLUTIONS else check_one_row
    assert check(stub) is False
    assert capsys.readouterr().out == f"○ {name}: not attempted yet\n"


@pytest.mark.parametrize(("name", "bug"), SLIPS)
def test_every_mistake_alone_is_named(name, bug):
    assert SOLUTIONS[name].failure(bug).explanations == ((bug,),)


@pytest.mark.parametrize(
    ("name", "bugs"),
    [(name, bugs) for name, solution in SOLUTIONS.items() for bugs in solution.together],
)
def test_mistakes_at_once_are_named(name, bugs):
    assert set(SOLUTIONS[name].failure(*bugs).mistakes) == set(bugs)


def test_every_exercise_of_the_package_is_tried_here():
    found = set()
    for module in pkgutil.iter_modules(exercises.__path__):
        names = vars(importlib.import_module(f"course_utils.exercises.{module.name}"))
        found |= {x.name for x in names.values() if isinstance(x, Exercise)}
    # One row has the steps and mistakes of scaled_dot_product_attention.
    assert found - {ONE_ROW.name} == set(SOLUTIONS) - {"per_head_weights"}


def test_every_check_says_what_it_takes():
    checks = [name for name in dir(exercises) if name.startswith("check_")]
    assert set(checks) >= {f"check_{name}" for name in SOLUTIONS}
    assert all(getattr(exercises, name).__doc__ for name in checks)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_mistake_is_named_only_where_its_step_is(name):
    exercise = SOLUTIONS[name].exercise
    assert {m.step for m in exercise.mistakes} <= {step.name for step in exercise.steps}
    assert set(exercise.results) <= {step.name for step in exercise.steps}
    assert exercise.all_mistakes[:2] == RETURN_LINE_MISTAKES
