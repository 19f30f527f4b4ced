"""What a quiz does: it marks, says why, and notes the score."""

import csv
import re

import pytest
from asking import said, text_of

from course_utils.questions import quiz
from course_utils.questions.bank import NOT_SURE, letters_of, load

QUIZZES = load()["quizzes"]
TESTS = ("pre-test", "post-test")
pytestmark = pytest.mark.usefixtures("folder")


def scores(folder) -> list[dict]:
    with (folder / "scores.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def right_letters(name: str) -> str:
    return " ".join(letters_of(name)[1])


def test_open_questions_are_named_and_nothing_is_noted(folder):
    asked = quiz("pre-test")
    for k, control in enumerate(asked.controls, start=1):
        control.index = None if k in (3, 7, 12) else 0
    asked.hand_in()
    assert said(asked) == "○ Questions 3, 7 and 12 are still open."
    asked.controls[11].index = 0
    asked.hand_in()
    assert said(asked) == "○ Questions 3 and 7 are still open."
    asked.controls[6].index = 0
    asked.hand_in()
    assert said(asked) == "○ Question 3 is still open."
    assert asked.state == {"quiz": "pre-test", "answers": None, "right": None, "of": 12}
    assert not (folder / "scores.csv").exists()


def test_each_hand_in_adds_a_line(folder):
    asked = quiz("pre-test")
    asked.answer("? " * 11 + right_letters("pre-test")[-1])
    assert asked.state["right"] == 1
    asked.answer(right_letters("pre-test"))
    quiz("lesson-02").answer("a a a")
    first, second, third = scores(folder)
    assert list(first) == ["when", "quiz", "right", "of", "answers"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", first.pop("when"))
    assert first == {
        "quiz": "pre-test",
        "right": "1",
        "of": "12",
        "answers": "? " * 11 + right_letters("pre-test")[-1],
    }
    assert (second["right"], second["answers"]) == ("12", right_letters("pre-test"))
    assert (third["quiz"], third["right"], third["of"]) == ("lesson-02", "1", "3")


@pytest.mark.parametrize("name", QUIZZES)
def test_a_full_score_can_be_reached(folder, name):
    asked = quiz(name)
    asked.answer(right_letters(name))
    total = len(QUIZZES[name]["questions"])
    assert said(asked).startswith(f"{total} of {total} right. ")
    assert said(asked).endswith("Noted in scores.csv.")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.removesuffix("\r\n").encode(),
        lambda text: text.replace(",", ";").encode("utf-8-sig"),
        lambda text: text.replace(",", "\t").encode("utf-16"),
        lambda text: ("sep=;\r\n" + text.replace(",", ";")).encode(),
        lambda text: text.replace("\r\n", "\n").encode(),
    ],
    ids=["no last line end", "semicolons", "UTF-16", "sep=", "line ends"],
)
def test_a_file_that_another_program_has_saved_is_gone_on_with(folder, change):
    quiz("lesson-01").answer(right_letters("lesson-01"))
    file = folder / "scores.csv"
    before = file.read_bytes().decode()
    file.write_bytes(change(before))
    quiz("lesson-02").answer("a a a")
    assert [line["quiz"] for line in scores(folder)] == ["lesson-01", "lesson-02"]
    assert file.read_bytes().decode().startswith(before)
    assert {other.name for other in folder.iterdir()} == {"scores.csv", "answers.json"}


@pytest.mark.parametrize("data", [b"name;mark\n", b"\xff\xfe\x00", b"when,quiz\x00"])
def test_some_other_file_is_left_as_it_is(folder, data):
    (folder / "scores.csv").write_bytes(data)
    asked = quiz("lesson-01")
    asked.answer(right_letters("lesson-01"))
    assert said(asked).endswith(", so note it yourself.")
    assert (folder / "scores.csv").read_bytes() == data


def test_a_score_that_cannot_be_noted_is_still_shown(folder):
    (folder / "scores.csv").mkdir()  # root may write everywhere, but not into a folder
    asked = quiz("lesson-01")
    asked.answer(right_letters("lesson-01"))
    assert re.fullmatch(
        r"3 of 3 right\. +scores\.csv cannot be written here \(.+\), so note it yourself\.",
        said(asked),
    )
    assert asked.state["right"] == 3


def notes(asked) -> list[str]:
    return [text_of(note) for note in asked.notes]


def test_feedback_after_each_question_says_why(folder):
    asked = quiz("lesson-01")
    assert notes(asked) == ["", "", ""]
    asked.answer("a b a")
    first, second, _ = QUIZZES["lesson-01"]["questions"]
    assert notes(asked)[0] == f"✗ No. Right is “{first['right']}”. {first['why']}"
    assert notes(asked)[1] == f"✓ Right. {second['why'].strip()}"


def test_the_pre_test_gives_no_answer_away(folder):
    asked = quiz("pre-test")
    asked.answer(" ".join("?" * 12))
    assert said(asked) == ("0 of 12 right. The answers come in the lessons. Noted in scores.csv.")
    assert notes(asked) == [""] * 12


def test_only_the_tests_offer_not_to_know():
    for name in QUIZZES:
        for control in quiz(name).controls:
            assert (control.options[-1] == NOT_SURE) is (name in TESTS)


@pytest.mark.parametrize(
    ("letters", "message"),
    [
        ("a b", "letters must be 3, got 2"),
        ("a b z", "letter 3 must be one of a, b, c; got 'z'"),
        ("? b a", r"letter 1 must be one of a, b, c, d; got '\?'"),
    ],
)
def test_letters_that_do_not_fit_are_refused(folder, letters, message):
    asked = quiz("lesson-01")
    with pytest.raises(ValueError, match=message):
        asked.answer(letters)
    assert not (folder / "scores.csv").exists()
