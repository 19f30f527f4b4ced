"""What a prediction does: that giving an answer works, and that it is judged as its entry says."""

import re
import subprocess
import sys

import pytest
from asking import CHOICE, NUMBER, SHAPE, ask, said

from course_utils.questions import predict, quiz
from course_utils.questions.bank import load
from course_utils.questions.widgets import as_html

PREDICTIONS, QUIZZES = load()["predictions"], load()["quizzes"]
pytestmark = pytest.mark.usefixtures("folder")
WIDGET = "application/vnd.jupyter.widget-view+json"


def test_a_choice_starts_open_and_is_told_right_from_wrong():
    asked = ask(CHOICE)
    assert asked.state == {"question": "test", "answer": None, "right": None, "tries": 0}
    assert asked.control.value is None
    asked.answer("three")
    assert said(asked) == "✗ Not yet. Too many. Try again."
    assert asked.state == {"question": "test", "answer": "three", "right": False, "tries": 1}
    asked.answer("two")
    assert said(asked) == "✓ Right. So it is."
    assert asked.state == {"question": "test", "answer": "two", "right": True, "tries": 2}


def test_an_answer_that_is_no_choice_is_refused():
    with pytest.raises(ValueError, match="value must be one of 'one', 'two', 'three'; got 'four'"):
        ask(CHOICE).answer("four")


SHAPES = ["2, 3, 5, 5", "(2,3,5,5)", "2 3 5 5", "[2, 3, 5, 5]", "torch.Size([2, 3, 5, 5])"]


@pytest.mark.parametrize(
    "typed", [*SHAPES, " 2 ,3, 5,5 ", "(2, 3, 5, 5,)", "2×3×5×5", [2, 3, 5, 5]]
)
def test_a_right_shape_in_many_forms(typed):
    asked = ask(SHAPE)
    asked.answer(typed)
    assert asked.state["right"] is True


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("(2, 5, 5)", "Where are the heads?"),
        ("2 5 5", "Where are the heads?"),
        ("2, 3, 5", "Count again."),
        ("2355", "Count again."),
        ("()", "Count again."),
    ],
)
def test_a_wrong_shape_gets_its_sentence(typed, reason):
    asked = ask(SHAPE)
    asked.answer(typed)
    assert said(asked) == f"✗ Not yet. {reason} Try again."


@pytest.mark.parametrize(
    "typed", ["five", "2, 3, five, 5", "(2, 3, 5, 5", "2.5, 3", "2,,3", "-2, 3"]
)
def test_what_is_no_shape_is_no_try(typed):
    asked = ask(SHAPE)
    asked.answer(typed)
    assert said(asked) == (
        f"○ “{typed}” is no shape that I can read. Write just its sizes with commas: 4, 7."
    )
    assert asked.state["tries"] == 0
    assert asked.state["right"] is None


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("64", 64),
        ("64.0", 64),
        (" 64 ", 64),
        ("64.", 64),
        ("128/2", 64),
        ("≈ 64", 64),
        ("1,600", 1600),
        ("1.600", 1600),
        ("1 600", 1600),
        ("1'600", 1600),
        ("1600", 1600),
        ("1,600", 1.6),
        ("1,234,567", 1234567),
        ("1.234,5", 1234.5),
        ("1,234.5", 1234.5),
        ("1e6", 1000000),
        ("1/3", 1 / 3),
        ("50 %", 0.5),
        ("50%", 50),
        ("1/2", 0.5),
        ("0,5", 0.5),
        (",5", 0.5),
        ("0,500", 0.5),
        ("-3", -3),
        ("−3", -3),
        (64, 64),
        (0.25, 0.25),
    ],
)
def test_a_right_number_in_many_forms(typed, right):
    asked = ask(NUMBER, right=right, wrong={})
    asked.answer(typed)
    assert asked.state["right"] is True


@pytest.mark.parametrize(
    ("typed", "right"),
    [("64", 65), ("1,600", 16), ("0,500", 500), ("1,60", 160), ("16,00", 1600), ("50", 0.5)],
)
def test_a_number_is_not_read_too_kindly(typed, right):
    asked = ask(NUMBER, right=right, wrong={})
    asked.answer(typed)
    assert asked.state["right"] is False


@pytest.mark.parametrize("typed", ["many", "1/0", "1,2,3", "1/2/3", "2 + 3", "%", "/", "--3", "1e"])
def test_what_is_no_number_is_no_try(typed):
    asked = ask(NUMBER)
    asked.answer(typed)
    assert said(asked).startswith(f"○ “{typed}” is no number that I can read.")
    assert asked.state["tries"] == 0


def test_a_number_may_be_a_little_off_if_the_question_says_so():
    asked = ask(NUMBER, right=0.88, tolerance=0.01, wrong={"0.73": "That is the other scale."})
    for typed, right in (("0.8808", True), ("0.895", False), ("0.73", False), ("0.735", False)):
        asked.answer(typed)
        assert asked.state["right"] is right, typed
    assert said(asked) == "✗ Not yet. That is the other scale. Try again."
    asked.answer("40")
    assert said(asked) == "✗ Not yet. Count again. Try again."


@pytest.mark.parametrize(("entry", "do"), [(CHOICE, "choose"), (SHAPE, "write")])
def test_checking_nothing_says_so(entry, do):
    asked = ask(entry)
    button_of(asked).click()
    assert said(asked).startswith(f"○ Nothing to check yet: {do} your answer")
    assert asked.state["tries"] == 0


def test_checking_the_same_answer_again_is_no_new_try():
    asked = ask(SHAPE)
    asked.answer("2, 5, 5")
    asked.check()
    assert asked.state["tries"] == 1


# --- from the browser ---------------------------------------------------------------------------


def button_of(widget):
    (button,) = (child for child in widget.children if type(child).__name__ == "Button")
    return button


def browser_says(control, **data) -> None:
    control._handle_msg({"content": {"data": data}, "buffers": []})


def types(control, text: str) -> None:
    """What the browser sends when a field is left, or after Enter."""
    browser_says(control, method="update", state={"value": text}, buffer_paths=[])


def enter(control) -> None:
    browser_says(control, method="custom", content={"event": "submit"})


def test_enter_submits_although_the_text_comes_after_it():
    asked = ask(SHAPE)
    enter(asked.control)
    types(asked.control, "2, 5, 5")
    assert asked.state["right"] is False
    enter(asked.control)
    types(asked.control, "2, 3, 5, 5")
    assert asked.state == {"question": "test", "answer": "2, 3, 5, 5", "right": True, "tries": 2}


def test_enter_submits_what_was_typed_before():
    asked = ask(SHAPE)
    types(asked.control, "2, 3, 5, 5")
    assert asked.state["right"] is None  # the field was left, and no more
    enter(asked.control)
    assert asked.state["right"] is True


def test_leaving_the_field_later_submits_nothing():
    asked = ask(SHAPE)
    enter(asked.control)
    types(asked.control, "2, 5, 5")
    types(asked.control, "2, 3, 5")
    assert asked.state["answer"] == "2, 5, 5"


def test_the_button_submits():
    asked = ask(SHAPE)
    types(asked.control, "2, 3, 5, 5")
    browser_says(button_of(asked), method="custom", content={"event": "click"})
    assert asked.state["right"] is True


def test_the_button_of_a_quiz_hands_in():
    asked = quiz("lesson-01")
    for control in asked.controls:
        browser_says(control, method="update", state={"index": 0}, buffer_paths=[])
    browser_says(button_of(asked), method="custom", content={"event": "click"})
    assert asked.state["answers"] == "a a a"


def test_what_the_learner_types_is_shown_and_not_run():
    asked = ask(SHAPE)
    types(asked.control, "<img src=x onerror=alert(1)>&amp;`")
    asked.check()
    assert "<img" not in asked.feedback.value
    assert "“<img src=x onerror=alert(1)>&amp;`” is no shape" in said(asked)


def test_a_question_is_text_with_code():
    asked = ask(CHOICE, question="Is `a < b` & c?")
    shown = [child.value for child in asked.children if type(child).__name__ == "HTML"]
    assert "<p>Is <code>a &lt; b</code> &amp; c?</p>" in shown


def test_an_empty_line_starts_a_paragraph():
    assert as_html("One\n`1`.\n\nTwo.\n") == "<p>One\n<code>1</code>.</p><p>Two.</p>"


def test_feedback_is_a_polite_live_region():
    answered = quiz("pre-test")
    answered.answer(" ".join("?" * 12))
    for widget in (ask(CHOICE), quiz("lesson-01"), answered):
        assert re.fullmatch(r'<div role="status">.*</div>', widget.feedback.value)


# --- what is stored in a notebook ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "answer", "text"),
    [
        (lambda: ask(CHOICE), "two", "Predict: Which? Choices: one · two · three"),
        (lambda: ask(SHAPE, question="Which\nshape?\n"), "2", "Predict: Which shape? (a shape)"),
        (lambda: ask(NUMBER), "2", "Predict: How many? (a number)"),
        (lambda: quiz("lesson-01"), "a b a", "Quiz: Lesson 1, 3 questions"),
    ],
)
def test_the_stored_text_is_the_same_whether_answered_or_not(make, answer, text):
    widget = make()
    before = widget._repr_mimebundle_()[0]
    widget.answer(answer)
    assert (
        before["text/plain"] == widget._repr_mimebundle_()[0]["text/plain"] == repr(widget) == text
    )
    assert WIDGET in before


def test_every_stored_text_is_one_line():
    for widget in (*map(predict, PREDICTIONS), *map(quiz, QUIZZES)):
        assert re.fullmatch(r"(Predict|Quiz): .+", repr(widget)), repr(widget)
        assert "0x" not in repr(widget)


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(ValueError, match=r"no prediction 'sampel-shape'; .* sample-shape"):
        predict("sampel-shape")
    with pytest.raises(ValueError, match=r"no quiz 'lesson-3'; the nearest are lesson-03"):
        quiz("lesson-3")


def test_nothing_is_read_before_it_is_asked_for():
    code = """
import sys
from course_utils.questions import bank, predict
assert not {"torch", "matplotlib"} & sys.modules.keys()
assert bank.load.cache_info().currsize == 0
predict("sample-choice"), predict("sample-shape")
assert bank.load.cache_info()[1:] == (1, None, 1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
