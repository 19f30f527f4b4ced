"""The questions as they are written: that every entry is well-formed, and the tests parallel."""

import itertools
import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from asking import CHOICE, NUMBER, SHAPE

from course_utils.questions import bank, predict, quiz
from course_utils.questions.bank import NOT_SURE, load
from course_utils.questions.reading import read, same
from course_utils.questions.stored import MARK, MIMETYPE, unpack

PREDICTIONS, QUIZZES = load()["predictions"], load()["quizzes"]
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
TESTS = ("pre-test", "post-test")


def plain(text: object) -> bool:
    """A text to show: not empty, no HTML (it would be shown as it is), backticks in pairs."""
    return (
        isinstance(text, str)
        and bool(text.strip())
        and not re.search(r"</?[a-z]+>|&[a-z]+;", text)
        and text.count("`") % 2 == 0
    )


def problems_of_choices(entry: dict) -> list[str]:
    choices = entry.get("choices", [])
    found = []
    if len(choices) < 2 or len(set(choices)) < len(choices):
        found.append("needs two or more choices, no two alike")
    if not all(plain(choice) and "`" not in choice for choice in choices):
        found.append("a choice is no plain text")
    if NOT_SURE in choices:
        found.append(f"{NOT_SURE!r} is added by itself")
    if entry["right"] not in choices:
        found.append("right is none of the choices")
    return found


def problems_of_prediction(entry: dict) -> list[str]:
    """Say what is wrong with an entry under [predictions]."""
    kinds = {
        "choice": ({"choices", "wrong"}, set()),
        "shape": ({"hint"}, {"wrong"}),
        "number": ({"hint"}, {"wrong", "tolerance"}),
    }
    if entry.get("kind") not in kinds:
        return [f"kind must be one of {', '.join(kinds)}"]
    needs, may = kinds[entry["kind"]]
    needs = needs | {"kind", "question", "right", "why"}
    if not needs <= entry.keys() <= needs | may:
        return [f"needs {sorted(needs)} and may have {sorted(may)}, has {sorted(entry)}"]
    wrong = entry.get("wrong", {})
    texts = {key: entry[key] for key in ("question", "why", "hint") if key in entry} | wrong
    found = [f"{key} is no plain text" for key, text in texts.items() if not plain(text)]
    right = entry["right"]
    if entry["kind"] == "choice":
        found += problems_of_choices(entry)
        if wrong.keys() != set(entry["choices"]) - {right}:
            found.append("needs a sentence for each choice but the right one, and no others")
        return found
    whole = [isinstance(size, int) for size in right] if isinstance(right, list) else [False]
    if entry["kind"] == "shape" and not all(whole):
        found.append("right must be a list of whole numbers")
    if entry["kind"] == "number":
        if not isinstance(right, int | float) or isinstance(right, bool):
            found.append("right must be a number")
        elif right != int(right) and not entry.get("tolerance", 0) > 0:
            found.append("needs a tolerance, since right is not whole")
    if found:
        return found
    kind, tolerance = entry["kind"], entry.get("tolerance", 0)
    for key in wrong:
        if not read(kind, key):
            found.append(f"wrong answer {key!r} is no {entry['kind']}")
        elif same(kind, read(kind, key), right, tolerance):
            found.append(f"wrong answer {key!r} is right")
    for one, other in itertools.combinations(wrong, 2):
        if same(kind, read(kind, one), other, tolerance):
            found.append(f"wrong answers {one!r} and {other!r} are the same")
    return found


def problems_of_quiz(entry: dict) -> list[str]:
    """Say what is wrong with an entry under [quizzes]."""
    if not {"title", "feedback", "questions"} <= entry.keys():
        return ["needs title, feedback and questions"]
    found = []
    may = {"not_sure", "invitation", "order", "intro", "after"}
    if unknown := entry.keys() - {"title", "feedback", "questions"} - may:
        found.append(f"has {sorted(unknown)}")
    rows = sorted(question.get("row", "") for question in entry["questions"])
    if "order" in entry and (sorted(entry["order"]) != rows or len(set(rows)) < len(rows)):
        found.append("order must have each row once, and no row may stand twice")
    if "invitation" in entry and not (entry.get("not_sure") and "intro" in entry):
        found.append("a quiz with an invitation needs not_sure = true, and an intro")
    if not isinstance(entry["feedback"], bool) or not isinstance(entry.get("not_sure", True), bool):
        found.append("feedback and not_sure are true or false")
    texts = [entry["title"], *(entry.get(key, "-") for key in ("invitation", "intro", "after"))]
    for question in entry["questions"]:
        needs = {"row", "question", "choices", "right"} | ({"why"} if entry["feedback"] else set())
        if question.keys() != needs:
            found.append(f"a question needs {sorted(needs)}, has {sorted(question)}")
            continue
        texts += [question["question"], question.get("why", "-")]
        found += problems_of_choices(question)
        if not re.fullmatch(r"M\d\d", question["row"]):
            found.append(f"no row: {question['row']}")
    return found + [f"no plain text: {text}" for text in texts if not plain(text)]


@pytest.mark.parametrize("name", PREDICTIONS)
def test_every_prediction_is_well_formed(name):
    assert problems_of_prediction(PREDICTIONS[name]) == []


@pytest.mark.parametrize("name", QUIZZES)
def test_every_quiz_is_well_formed(name):
    assert problems_of_quiz(QUIZZES[name]) == []


@pytest.mark.parametrize(
    ("entry", "changes", "problem"),
    [
        (CHOICE, {"kind": "chioce"}, "kind must be"),
        (CHOICE, {"hints": "Look again."}, "has"),
        (CHOICE, {"right": "four"}, "right is none of the choices"),
        (CHOICE, {"choices": ["one", "two", "two", "three"]}, "no two alike"),
        (CHOICE, {"choices": ["`one`", "two", "three"]}, "a choice is no plain text"),
        (CHOICE, {"wrong": {"one": "Too few."}}, "needs a sentence for each"),
        (CHOICE, {"wrong": CHOICE["wrong"] | {"four": "No."}}, "needs a sentence for each"),
        (CHOICE, {"wrong": {"one": "", "three": "Too many."}}, "one is no plain text"),
        (CHOICE, {"why": "It is <b>so</b>."}, "why is no plain text"),
        (CHOICE, {"question": "What is `x?"}, "question is no plain text"),
        (SHAPE, {"right": "2, 3"}, "list of whole numbers"),
        (SHAPE, {"right": [2, 3.5]}, "list of whole numbers"),
        (SHAPE, {"wrong": {"two": "No."}}, "'two' is no shape"),
        (SHAPE, {"wrong": {"(2, 3, 5, 5)": "No."}}, "is right"),
        (SHAPE, {"wrong": {"(2, 3)": "No.", "2 3": "No!"}}, "are the same"),
        (NUMBER, {"right": "many"}, "right must be a number"),
        (NUMBER, {"right": 0.25}, "needs a tolerance"),
        (NUMBER, {"tolerance": 10, "wrong": {"1605": "Close."}}, "is right"),
    ],
)
def test_a_malformed_prediction_is_found(entry, changes, problem):
    assert problems_of_prediction(entry) == []
    assert problem in "; ".join(problems_of_prediction(entry | changes))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"titel": "x"}, "titel"),
        ({"feedback": "yes"}, "true or false"),
        ({"intro": ""}, "no plain text"),
        ({"order": ["M12", "M17"]}, "order must have each row once"),
        ({"invitation": "Three questions."}, "needs not_sure"),
        ({"questions": [{"row": "M01", "question": "?"}]}, "a question needs"),
    ],
)
def test_a_malformed_quiz_is_found(changes, problem):
    assert problem in "; ".join(problems_of_quiz(QUIZZES["lesson-01"] | changes))


def test_the_quizzes_are_all_there():
    lessons = [f"lesson-{path.name[:2]}" for path in NOTEBOOKS.glob("*.ipynb")]
    assert {name: len(entry["questions"]) for name, entry in QUIZZES.items()} == (
        dict.fromkeys(lessons, 3) | dict.fromkeys(TESTS, 12)
    )
    for name, entry in QUIZZES.items():
        assert entry["feedback"] is (name != "pre-test"), name  # it must not give answers away
        assert entry.get("not_sure", False) is (name in TESTS), name


def test_the_two_tests_are_parallel():
    assert QUIZZES["pre-test"]["order"] == QUIZZES["post-test"]["order"]
    pre, post = (QUIZZES[name]["questions"] for name in TESTS)
    assert [question["row"] for question in pre] == [question["row"] for question in post]
    surprises = {"M02", "M03", "M05", "M06", "M08", "M29", "M30", "M31"}
    assert surprises <= {question["row"] for question in pre}
    for before, after in zip(pre, post, strict=True):
        assert before["question"] != after["question"]  # other numbers, or other words
        assert len(before["choices"]) == len(after["choices"])


def test_neither_place_nor_length_gives_the_right_answer_away():
    for name in TESTS:
        asked = QUIZZES[name]["questions"]
        places = Counter(question["choices"].index(question["right"]) for question in asked)
        assert min(places[place] for place in range(3)) >= 2, name
        assert max(places.values()) <= 5, name
        longest = [max(question["choices"], key=len) == question["right"] for question in asked]
        assert sum(longest) <= 4, name
    both = [[q["choices"].index(q["right"]) for q in QUIZZES[name]["questions"]] for name in TESTS]
    assert sum(a == b for a, b in zip(*both, strict=True)) <= 4  # nobody learns the places


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_what_a_notebook_has_stored_of_its_questions_is_not_stale(path):
    """It stands in the metadata of an output, which nbval does not compare."""
    stored = {}
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", ()):
            if packed := output.get("metadata", {}).get(MIMETYPE):
                assert packed.keys() == {"packed"}, "an answer stands in the notebook"
                assert output.data[MIMETYPE] == MARK
                content = unpack(packed["packed"])
                stored[content["id"]] = content
    asked = re.findall(r'\b(predict|quiz)\(\\"(.+?)\\"\)', path.read_text())
    wanted = {
        name: {"predict": predict, "quiz": quiz}[kind](name).content() for kind, name in asked
    }
    assert stored == json.loads(json.dumps(wanted)), f"run make execute NOTEBOOKS={path.name}"


@pytest.mark.parametrize("file", sorted(bank.FOLDER.glob("*.toml")), ids=lambda file: file.stem)
def test_a_lessons_questions_stand_in_the_lessons_file(file):
    """So each id stands in one file only, and no file hides a question of another."""
    kinds = tomllib.loads(file.read_text(encoding="utf-8"))
    assert kinds.keys() <= {"predictions", "quizzes"}
    names = [name for entries in kinds.values() for name in entries]
    lesson = re.fullmatch(r"lesson_(\d\d)", file.stem)
    if lesson:
        number = int(lesson[1])
        assert all(re.match(f"l{number}-|lesson-{number:02}$", name) for name in names)
    elif file.stem == "tests":
        assert names == list(TESTS)
    else:
        assert file.stem == "samples"
        assert all(name.startswith("sample-") for name in names)


def test_no_place_among_three_choices_is_the_better_guess():
    """Of all questions with three choices, a place holds the right one about equally often."""
    questions = [entry for entry in PREDICTIONS.values() if entry.get("kind") == "choice"]
    questions += [question for entry in QUIZZES.values() for question in entry["questions"]]
    places = Counter(q["choices"].index(q["right"]) for q in questions if len(q["choices"]) == 3)
    assert max(places.values()) <= 1.25 * sum(places.values()) / 3, places
