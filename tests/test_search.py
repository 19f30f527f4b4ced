"""The steps, the mistakes at them, and the search for mistakes."""

import re
from pathlib import Path

import pytest
import torch
from solutions import SOLUTIONS, all_mistakes
from solutions.attention import merge

from course_utils.exercises.repeat import DROPOUT, DROPOUT_BEFORE_SOFTMAX, KEPT
from course_utils.exercises.search import DoesNotFit, Mistake, Step, explain, same, values_of
from course_utils.exercises.trial import random_numbers

MISTAKES = all_mistakes()
WITHOUT_STEP = (DROPOUT, DROPOUT_BEFORE_SOFTMAX, KEPT)


KINDS = {
    type(None): "None, or boolean",
    torch.Tensor: "boolean tensor",
    type(lambda: 0): "function",
}


def trials(name):
    """Return an exercise and its trials, as they are for the solution."""
    exercise = SOLUTIONS[name].exercise
    torch.manual_seed(0)
    exercise, code = exercise.fit(exercise, SOLUTIONS[name].make())
    return exercise, [exercise.build(code, trial)[1] for trial in exercise.trials()]


def returned(state):
    return [state[name] for name in state["returned"]]


# --- Steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_steps_compute_what_torch_computes(name):
    exercise, inputs = trials(name)
    for trial in inputs:
        state = values_of(exercise.all_steps, exercise.start(trial))
        assert all(map(same, returned(state), exercise.truth(**trial.given))), trial.label


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_values_of_steps_are_what_they_are_said_to_be(name):
    """A value said to be "(N, L)" is a tensor with two axes; one said to be "int" is one."""
    exercise, inputs = trials(name)
    for trial in inputs:
        state = values_of(exercise.all_steps, exercise.start(trial))
        for step in exercise.steps:
            value = state[step.name]
            if shape := re.match(r"\(([^()]*)\)", step.value):
                assert isinstance(value, torch.Tensor), step.name
                axes = [axis for axis in shape[1].split(",") if axis.strip()]
                if "..." in axes:
                    assert value.ndim >= len(axes) - 1, step.name
                elif " or " not in step.value:
                    assert value.ndim == len(axes), step.name
                assert (value.dtype == torch.bool) == ("boolean" in step.value), step.name
            else:
                kind = re.match(r"\w+", step.value)[0]
                assert kind in KINDS.get(type(value), type(value).__name__), (step.name, value)


# --- The search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOLUTIONS)
def test_no_mistake_is_found_in_a_right_answer(name):
    exercise, inputs = trials(name)
    for trial in inputs:
        answer = tuple(exercise.truth(**trial.given))
        start = exercise.start(trial)
        assert explain(exercise.all_steps, exercise.all_mistakes, [(start, answer)], most=1) == []


def test_numbers_from_elsewhere_are_not_explained():
    exercise, (trial, *_) = trials("split_heads")
    start = exercise.start(trial)
    other = random_numbers(2, 2, 3, 4, seed=1).double()  # seed 0 would be the input again
    assert explain(exercise.all_steps, exercise.all_mistakes, [(start, (other,))]) == []


def test_errors_alone_are_not_explained():
    exercise, (trial, *_) = trials("split_heads")
    failed = [exercise.start(trial)]
    assert explain(exercise.all_steps, exercise.all_mistakes, [], failed) == []


def test_an_error_must_be_explained_too():
    exercise, inputs = trials("merge_heads")
    answered = [(exercise.start(t), (merge(t.given["x"], ("merge-interleaved",)),)) for t in inputs]
    found = explain(exercise.all_steps, exercise.all_mistakes, answered)
    assert [[m.id for m in chosen] for chosen in found] == [["merge-interleaved"]]
    # The same numbers, but an error where this mistake raises none: something else is going on.
    failed = [exercise.start(inputs[2])]
    assert explain(exercise.all_steps, exercise.all_mistakes, answered[:2], failed) == []


STEPS = (
    Step("returned", "tuple of names", lambda s: ("half", "root")),
    Step("half", "()", lambda s: s.x / 2),
    Step("root", "()", lambda s: s.half.sqrt()),
)


def mistake(*variants, **changes):
    said = {"id": "a-mistake", "step": "half", "title": "t", "why": "w.", "look": "l"}
    return Mistake(**{**said, "variants": variants, **changes})


def explained(*mistakes, x=8.0, half=4.0, root=2.0):
    answer = tuple(torch.tensor(number, dtype=torch.float64) for number in (half, root))
    return explain(STEPS, mistakes, [({"x": torch.tensor(x, dtype=torch.float64)}, answer)])


def test_a_variant_that_does_not_fit_explains_nothing():
    def refuses(s):
        raise DoesNotFit("not here")

    assert explained(mistake(refuses), half=7.0) == []
    assert explained(mistake(lambda s: s.x @ s.x), half=7.0) == []
    assert explained(mistake(lambda s: s.x.sum(3)), half=7.0) == []


@pytest.mark.parametrize(
    ("variant", "error"),
    [
        (lambda s: s.xx, AttributeError),
        (lambda s: s.x.summ(), AttributeError),
        (lambda s: s.x + "1", TypeError),
        (lambda s: {}["x"], KeyError),
        (lambda s: s.x.long().softmax(-1), NotImplementedError),
    ],
)
def test_a_slip_in_a_variant_is_seen(variant, error):
    with pytest.raises(error):
        explained(mistake(variant), half=7.0)


def test_a_mistake_made_in_several_ways_is_one_mistake():
    double = mistake(lambda s: s.x * 2, lambda s: s.x + s.x, lambda s: s.x)
    ((found,),) = explained(double, half=16.0, root=4.0)
    assert (found.id, found.title) == ("a-mistake", "t")


def test_the_title_says_which_way_it_was():
    left = mistake(lambda s: s.x * 2, lambda s: s.x * 3, title="times {}", details=("two", "three"))
    ((found,),) = explained(left, half=24.0, root=24.0**0.5)
    assert found.title == "times three"


def test_one_way_must_explain_all_inputs():
    either = mistake(lambda s: s.x * 2, lambda s: s.x * 3)
    answered = []
    for x, factor in ((1.0, 2.0), (2.0, 3.0)):
        half = torch.tensor(x * factor, dtype=torch.float64)
        answered.append(({"x": torch.tensor(x, dtype=torch.float64)}, (half, half.sqrt())))
    assert explain(STEPS, [either], answered) == []
    assert explain(STEPS, [either], answered[:1]) != []


# --- The mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOLUTIONS)
def test_every_variant_changes_some_numbers(name):
    """Nor does any raise another error than ``DoesNotFit``: that would be a slip in it."""
    exercise, inputs = trials(name)
    right = [values_of(exercise.all_steps, exercise.start(trial)) for trial in inputs]
    for mistake in exercise.all_mistakes:
        if mistake.step == "returned" and len(exercise.results) == 1:
            continue  # a single result has no order
        for way in mistake.ways():
            effects = []
            for trial, state in zip(inputs, right, strict=True):
                try:
                    wrong = values_of(exercise.all_steps, exercise.start(trial), [way])
                except DoesNotFit:
                    continue  # an error of the learner's code would have to be explained by it
                pairs = zip(returned(wrong), returned(state), strict=False)
                same_number = len(wrong["returned"]) == len(state["returned"])
                effects.append(not same_number or not all(same(a, b) for a, b in pairs))
            assert any(effects) or mistake.id in NEVER_FIT.get(name, ()), way.title


# They fit only together with others, with projections of other shapes, or if the learner's own
# weights tell of a divisor.
NEVER_FIT = {
    "scaled_dot_product_attention": ("fixed-divisor",),
    "multi_head_attention": (
        "heads-stay-behind-tokens",
        "merge-joins-tokens",
        "shared-small-projection",
        "heads-averaged",
        "heads-summed",
        "fixed-divisor",
    ),
}


def test_every_entry_is_complete():
    assert len(MISTAKES) >= 40
    assert len({id(m) for s in SOLUTIONS.values() for m in s.exercise.all_mistakes}) == len(
        MISTAKES
    ), "one id, one entry"
    for mistake in (*MISTAKES, *WITHOUT_STEP):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", mistake.id)
        assert all(re.fullmatch(r"M\d\d", row) for row in mistake.rows)
        assert mistake.variants or mistake in WITHOUT_STEP
        assert len(mistake.details) in (0, len(mistake.variants))
        assert ("{}" in mistake.title) == bool(mistake.details)
        assert mistake.why.endswith(".")
        titles = [way.title for way in mistake.ways()] or [mistake.title]
        for text in (*titles, mistake.why, mistake.look):
            assert 5 < len(text) <= 100
            assert "\n" not in text
        for code in ("transpose(", "permute(", "softmax(", "sqrt(", "masked_fill(", " = "):
            assert code not in mistake.look, "a place to look at, not finished code"


def test_no_two_mistakes_of_an_exercise_look_the_same():
    for solution in SOLUTIONS.values():
        titles = [w.title for m in solution.exercise.all_mistakes for w in m.ways()[:1]]
        assert len(set(titles)) == len(titles)


def test_some_test_makes_every_mistake():
    tests = "".join(path.read_text() for path in Path(__file__).parent.rglob("*.py"))
    assert [m.id for m in MISTAKES if f'"{m.id}"' not in tests] == []


def test_the_rows_of_the_catalogue_about_code_are_covered():
    rows = {row for mistake in (*MISTAKES, *WITHOUT_STEP) for row in mistake.rows}
    wanted = {2, 3, 6, 9, 10, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 29, 31, 33, 37}
    assert rows >= {f"M{row:02}" for row in wanted}
