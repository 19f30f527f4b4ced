"""That nothing a learner answers is lost: to a run, a restart, another kernel or a full disk."""

import csv
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from asking import said, text_of

from course_utils import files
from course_utils.questions import answers, predict, quiz
from course_utils.questions.bank import letters_of, quiz_entry
from course_utils.questions.quizzes import Quiz

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.usefixtures("folder")


def a_new_kernel(monkeypatch) -> None:
    """Forget what this process knows; what is left stands in the file."""
    monkeypatch.setattr(answers, "_known", {})


def in_parallel(code: str, times: int) -> None:
    """Run the same code in several processes at once; ``me`` is the number of each."""
    running = [
        subprocess.Popen([sys.executable, "-c", f"me = {me}\n{code}"]) for me in range(times)
    ]
    assert [process.wait() for process in running] == [0] * times


def noted() -> list[dict]:
    with Path("scores.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- runs that are tested or stored ---------------------------------------------------------------


def test_the_environment_may_name_another_file(folder, monkeypatch):
    monkeypatch.setenv("COURSE_ANSWERS", str(folder / "elsewhere.json"))
    assert answers.remember("q", {"when": 1, "answer": "a"})
    assert [file.name for file in folder.iterdir()] == ["elsewhere.json"]


def test_execute_neither_reads_nor_writes_answers(folder, monkeypatch):
    kept = '{"q": {"when": 1, "answer": "of a learner"}}'
    Path("answers.json").write_text(kept)
    code = "from course_utils.questions.answers import recall, remember\nprint(recall('q'), "
    cell = nbformat.v4.new_code_cell(code + "remember('q', {'when': 9, 'answer': 'b'}))")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), "01_a.ipynb")
    monkeypatch.syspath_prepend(ROOT / "tools")
    assert importlib.import_module("execute").main(["01_a.ipynb"]) is None
    (output,) = nbformat.read("01_a.ipynb", as_version=4).cells[0].outputs
    assert output.text == "None False\n"
    assert Path("answers.json").read_text() == kept


@pytest.mark.slow
def test_make_test_neither_reads_nor_writes_answers(folder):
    Path("notebooks").mkdir()
    Path("tests").mkdir()
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    Path("tests/test_nothing.py").touch()
    Path("notebooks/answers.json").write_text('{"q": {"when": 1, "answer": "of a learner"}}')
    code = "from course_utils.questions.answers import recall\nprint(recall('q'))"
    cell = nbformat.v4.new_code_cell(code, execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", text="None\n")]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), "notebooks/01_a.ipynb")
    run = subprocess.run([sys.executable, "-m", "pytest", "-n0"], capture_output=True, text=True)
    assert "1 passed" in run.stdout, run.stdout


# --- predictions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("name", "given", "answered"),
    [
        ("l1-score", "cat", "You said “cat”. ✓ Right. "),
        ("l1-score", "it", "You said “it”. ✗ Not yet. A token has no preference for itself"),
        ("l3-split", "2 3 5 4", "You said “2 3 5 4”. ✓ Right. "),
        ("l3-explore", "12", "You said “12”. ✗ Not yet. Not every number"),
    ],
)
def test_an_answer_is_there_after_a_re_run_and_a_restart(
    name, given, answered, restart, monkeypatch
):
    first = predict(name)
    first.answer(given)
    if restart:
        a_new_kernel(monkeypatch)
    second = predict(name)
    assert second.control.value == given
    assert said(second).startswith(answered)
    assert second.state == first.state
    assert second.again.layout.display is None


def test_an_answer_that_comes_late_reaches_the_widget_that_took_its_place():
    first = predict("l1-score")
    second = predict("l1-score")
    first.answer("cat")
    assert second.state["right"] is True
    assert said(second).startswith("You said “cat”. ✓ Right.")
    second.again.click()
    assert predict("l1-score").control.value is None


def test_what_was_chosen_and_not_checked_is_kept_too():
    asked = predict("l1-score")
    asked.answer("it")
    asked.control.value = "cat"
    asked = predict("l1-score")
    assert asked.control.value == "cat"
    assert said(asked).startswith("You said “it”. ✗ Not yet.")


def test_a_question_is_started_over(monkeypatch):
    asked = predict("l1-score")
    assert asked.again.layout.display == "none"  # there is nothing to lose yet
    asked.answer("it")
    asked.again.click()
    for fresh in (asked, predict("l1-score")):
        assert (fresh.control.value, said(fresh)) == (None, "")
        assert fresh.state == {"question": "l1-score", "answer": None, "right": None, "tries": 0}
        assert fresh.again.layout.display == "none"
    a_new_kernel(monkeypatch)
    assert predict("l1-score").control.value is None


def test_the_stored_text_and_the_file_are_as_before_when_a_question_is_only_shown():
    asked = predict("l1-score")
    before = asked._repr_mimebundle_()
    assert not Path("answers.json").exists()
    asked.answer("cat")
    kept = Path("answers.json").read_bytes()
    data, metadata = predict("l1-score")._repr_mimebundle_()
    assert data["text/plain"] == before[0]["text/plain"]
    assert metadata == before[1]
    assert Path("answers.json").read_bytes() == kept


@pytest.mark.parametrize(
    "record",
    [
        {"chosen": "dog", "checked": "dog", "tries": 1},
        {"chosen": 3, "checked": ["cat"], "tries": "many"},
        {"checked": None},
        {"else": 1},
    ],
)
def test_a_record_that_does_not_fit_is_passed_over(record):
    Path("answers.json").write_text(json.dumps({"l1-score": {**record, "when": 1}}))
    asked = predict("l1-score")
    assert (asked.control.value, asked.state["answer"]) == (None, None)


@pytest.mark.parametrize("data", [b"", b"[1]", b'{"a": 1}', b'{"a": {"when": "x"}}', b"[" * 9999])
def test_some_other_file_is_left_as_it_is_and_nothing_breaks(data):
    Path("answers.json").write_bytes(data)
    asked = predict("l1-score")
    asked.answer("cat")
    assert said(asked).endswith("(Kept until the kernel stops: answers.json cannot be written.)")
    assert Path("answers.json").read_bytes() == data
    assert predict("l1-score").control.value == "cat"


def test_where_nothing_can_be_written_answers_are_kept_until_the_kernel_stops():
    Path("answers.json").mkdir()  # root may write everywhere, but not into a folder
    predict("l1-score").answer("cat")
    assert predict("l1-score").state["right"] is True


def test_the_newer_record_wins():
    assert answers.remember("a", {"x": 1, "when": 10**15})
    assert not answers.remember("a", {"x": 2, "when": 5})
    assert answers.recall("a")["x"] == 1
    assert answers.remember("a", {"x": 3, "when": answers.time_for("a")})
    assert answers.recall("a")["x"] == 3
    # Another kernel has written meanwhile.
    there = json.loads(Path("answers.json").read_text())
    there["a"] = {"x": 4, "when": 2 * 10**15}
    Path("answers.json").write_text(json.dumps(there))
    assert answers.recall("a")["x"] == 4


def test_two_kernels_answer_at_once():
    in_parallel(
        """
from course_utils.questions.answers import remember
for k in range(50):
    assert remember(f"{me}-{k}", {"chosen": "x", "when": k})
""",
        2,
    )
    assert len(json.loads(Path("answers.json").read_text())) == 100
    assert [path.name for path in Path().iterdir()] == ["answers.json"]


# --- what was answered in the browser, before the cell ran ----------------------------------------


def from_browser(asked, **record) -> None:
    """What JupyterLab sends to a fresh widget, where an answer was kept in the browser."""
    asked.set_state({"stop": {"question": asked.question_id, **record}})


def test_a_newer_answer_from_the_browser_is_taken_over():
    asked = predict("l1-score")
    from_browser(asked, when=10**15, chosen="cat", checked="cat", tries=2)
    assert asked.state == {"question": "l1-score", "answer": "cat", "right": True, "tries": 2}
    assert said(predict("l1-score")).startswith("You said “cat”. ✓ Right.")
    from_browser(asked, when=10**15 + 1)  # started over there
    assert asked.state["answer"] is None
    assert predict("l1-score").control.value is None
    from_browser(asked, when=10**15, chosen="it", checked="it", tries=3)
    assert asked.state["answer"] is None
    assert asked.stop == {"question": "l1-score", "when": 10**15 + 1}


@pytest.mark.parametrize(
    "record", [{}, {"when": "now"}, {"when": 10**15, "question": "l1-and", "chosen": "cat"}]
)
def test_what_is_no_newer_answer_to_this_question_is_not_taken_over(record):
    asked = predict("l1-score")
    asked.answer("it")
    from_browser(asked, **({"chosen": "cat", "checked": "cat", "tries": 1} | record))
    assert asked.state["answer"] == "it"
    assert asked.stop["checked"] == "it" or record.get("question")


def test_a_quiz_handed_in_there_is_noted_once():
    for sentence in ("2 of 3 right.  Noted in scores.csv.", "You had 2 of 3 right."):
        asked = quiz("lesson-01")
        from_browser(asked, when=10**15, chosen="a b a", handed_in="a b a")
        assert said(asked).strip() == sentence
        assert [line["answers"] for line in noted()] == ["a b a"]


# --- quizzes --------------------------------------------------------------------------------------


def test_a_quiz_is_there_after_a_restart(monkeypatch):
    quiz("lesson-01").answer("a b a")
    a_new_kernel(monkeypatch)
    asked = quiz("lesson-01")
    assert asked.state == {"quiz": "lesson-01", "answers": "a b a", "right": 2, "of": 3}
    assert said(asked).startswith("You had 2 of 3 right.")
    assert text_of(asked.notes[1]).startswith("✓ Right.")
    asked.button.click()
    assert said(asked) == "2 of 3 right.  Noted in scores.csv."
    assert len(noted()) == 1  # the same answers, handed in again after a re-run


def test_choices_are_kept_before_the_quiz_is_handed_in():
    asked = quiz("lesson-01")
    asked.controls[1].index = 2
    again = quiz("lesson-01")
    assert [control.index for control in again.controls] == [None, 2, None]
    assert again.state["answers"] is None
    assert not Path("scores.csv").exists()


def test_the_same_answers_count_again_after_a_new_start():
    asked = quiz("lesson-01")
    asked.answer("a b a")
    asked.again.click()
    assert [control.index for control in asked.controls] == [None] * 3
    assert [text_of(note) for note in asked.notes] == [""] * 3
    asked.answer("a b a")
    assert len(noted()) == 2


def test_the_same_answers_are_noted_if_their_line_is_gone():
    asked = quiz("lesson-01")
    asked.answer("a b a")
    Path("scores.csv").unlink()
    asked.hand_in()
    assert len(noted()) == 1


def test_letters_that_no_longer_fit_are_passed_over():
    record = {"chosen": "z a", "handed_in": "a b z", "when": 1}
    Path("answers.json").write_text(json.dumps({"lesson-01": record}))
    asked = quiz("lesson-01")
    assert [control.index for control in asked.controls] == [None, 0, None]
    assert asked.state["answers"] is None


# --- one question at a time -----------------------------------------------------------------------


def in_sight(asked) -> list[int]:
    """The questions that are seen, by their place as asked."""
    return [k for k, control in enumerate(asked.controls) if control.layout.display is None]


@pytest.mark.parametrize("name", ["pre-test", "post-test"])
def test_a_test_is_an_invitation_first_and_then_one_question_at_a_time(name):
    asked = quiz(name)
    assert in_sight(asked) == []
    asked.start.click()
    rows = [question["row"] for question in quiz_entry(name)["questions"]]
    for k, row in enumerate(quiz_entry(name)["order"]):
        assert in_sight(asked) == [k]
        wanted = quiz_entry(name)["questions"][rows.index(row)]
        assert text_of(asked.asked[k]).startswith(f"{k + 1} of 12 · ")
        assert list(asked.controls[k].options[:-1]) == wanted["choices"]
        asked.controls[k].value = wanted["right"]
        if k < 11:
            assert asked.onward.description == "Next"
            asked.onward.click()
    asked.button.click()
    assert said(asked).startswith("12 of 12 right.")
    assert noted()[0]["answers"].split() == letters_of(name)[1]  # in the order of the file, as ever
    assert in_sight(asked) == (list(range(12)) if name == "post-test" else [])


def test_a_question_may_be_skipped_and_come_back_to():
    asked = quiz("pre-test")
    asked.start.click()
    assert asked.onward.description == "Skip"
    assert asked.back.disabled
    asked.onward.click()
    asked.controls[1].index = 0
    asked.back.click()
    assert asked.controls[0].value == "I do not know"
    asked.controls[0].index = 0
    for _ in range(11):
        asked.onward.click()
    assert asked.onward.layout.display == "none"
    asked.button.click()  # the last one skipped as well
    letters = noted()[0]["answers"].split()
    assert len(letters) == 12
    assert letters.count("?") == 10


def test_a_press_that_comes_late_does_nothing():
    asked = quiz("pre-test")
    for button in (asked.back, asked.onward, asked.button):  # nothing is asked yet
        button.click()
    asked.start.click()
    asked.back.click()
    assert in_sight(asked) == [0]
    for _ in range(14):
        asked.onward.click()
    assert in_sight(asked) == [11]
    assert not Path("scores.csv").exists()


def test_a_test_goes_on_where_it_was_left(monkeypatch):
    asked = quiz("pre-test")
    asked.start.click()
    asked.controls[0].index = 1
    asked.onward.click()
    a_new_kernel(monkeypatch)
    asked = quiz("pre-test")
    assert in_sight(asked) == [1]
    asked.back.click()
    assert asked.controls[0].index == 1
    asked.again.click()
    assert in_sight(asked) == []
    assert asked.start.layout.display is None


def test_a_test_that_was_handed_in_shows_its_score(monkeypatch):
    quiz("pre-test").answer(" ".join("?" * 12))
    a_new_kernel(monkeypatch)
    asked = quiz("pre-test")
    assert in_sight(asked) == []
    assert said(asked).startswith("You had 0 of 12 right.")


# --- the files ------------------------------------------------------------------------------------


def test_two_kernels_hand_in_at_once():
    in_parallel(
        """
from course_utils.questions.bank import quiz_entry
from course_utils.questions.quizzes import Quiz
for k in range(101):
    Quiz("lesson-01", quiz_entry("lesson-01")).answer("a b a")
""",
        2,
    )
    assert len(noted()) == 202


def hand_in() -> str:
    asked = Quiz("lesson-01", quiz_entry("lesson-01"))
    asked.answer("a b a")
    return said(asked)


def test_a_read_only_score_file_stays_as_it_is():
    hand_in()
    file = Path("scores.csv")
    before = file.read_bytes()
    file.chmod(0o444)
    assert "cannot be written here (it is read-only), so note it yourself." in hand_in()
    assert file.read_bytes() == before
    assert file.stat().st_mode & 0o777 == 0o444


def test_permissions_and_links_stay(folder):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    Path("scores.csv").symlink_to(elsewhere / "mine.csv")
    hand_in()
    (elsewhere / "mine.csv").chmod(0o640)
    hand_in()
    assert Path("scores.csv").is_symlink()
    assert (elsewhere / "mine.csv").stat().st_mode & 0o777 == 0o640
    assert len(noted()) == 2


def test_a_file_of_the_learners_own_is_left_alone():
    Path("scores.tmp").write_text("mine")
    hand_in()
    assert Path("scores.tmp").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file sizes there")
def test_a_full_disk_leaves_the_old_file_and_nothing_else():
    hand_in()
    before = Path("scores.csv").read_bytes()
    code = """
import resource
from course_utils.questions.scores import add_score, COLUMNS
resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60))
print(add_score(dict.fromkeys(COLUMNS, "x")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cannot be written here (File too large), so note it yourself." in done.stdout
    assert Path("scores.csv").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["scores.csv"]


def test_a_new_file_has_the_permissions_of_any_new_file():
    Path("any").write_text("")
    files.replace(Path("new"), b"x")
    assert Path("new").stat().st_mode == Path("any").stat().st_mode
