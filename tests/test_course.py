"""The course as it is used: the hand-out copy, own solutions, the page of mistakes."""

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from helpers import IGNORE
from IPython.core.interactiveshell import InteractiveShell
from solutions import all_mistakes

from course_utils.exercises.repeat import DROPOUT, DROPOUT_BEFORE_SOFTMAX, KEPT
from course_utils.questions.stored import MIMETYPE as QUESTION
from course_utils.sliders.stops import MIMETYPE as STOPS

ROOT = Path(__file__).parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGE = (ROOT / "notebooks" / "mistakes.md").read_text()
ROWS = re.findall(r"^\| (M\d+)", PAGE, re.M)


def tagged(notebook, tag: str) -> list:
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", ())]


def run(notebook, replaced: dict[str, str] | None = None) -> tuple[dict, dict]:
    """Run a notebook without a kernel of its own; return its names and each cell's printed text."""
    shell = InteractiveShell.instance()
    shell.reset(new_session=True)
    printed = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                result = shell.run_cell((replaced or {}).get(cell.id, cell.source))
            printed[cell.id] = out.getvalue()
            assert result.success, f"{cell.id}: {result.error_in_exec}"
    return shell.user_ns, printed


def outputs_of(notebook) -> list:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    folder = tmp_path_factory.mktemp("student")
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(
        ["make", "-o", "install", "student", f"STUDENT={folder}", f"VENV={sys.prefix}"],
        cwd=ROOT,
        env=env,
        check=True,
        capture_output=True,
    )
    return folder


pytestmark = pytest.mark.usefixtures("as_it_was")


@pytest.mark.parametrize("target", ["", "notebooks", "{tmp}"])
def test_the_hand_out_copy_replaces_nobodys_work(tmp_path, target, monkeypatch, capsys):
    (tmp_path / "01_single_head_attention.ipynb").write_text("my answers")
    target = target.format(tmp=tmp_path)
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT / "tools")
    assert not importlib.import_module("student").main(target, LESSONS)
    assert f"The folder '{target}' must be new or empty" in capsys.readouterr().out
    assert (tmp_path / "01_single_head_attention.ipynb").read_text() == "my answers"


STORED = {QUESTION, STOPS}  # what moves before a cell has run
QUICK = LESSONS[4]  # all of them take a core half a minute


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        *(pytest.param(path, False, id=path.stem) for path in LESSONS if path != QUICK),
        *(
            pytest.param(path, True, marks=[pytest.mark.slow] * (path != QUICK), id=path.stem)
            for path in LESSONS
        ),
    ],
)
def test_the_hand_out_copy_holds_no_solution_and_runs(path, whole, student):
    lesson = nbformat.read(path, as_version=4)
    copy = nbformat.read(student / path.name, as_version=4)
    solutions = tagged(lesson, "solution")
    assert len(copy.cells) == len(lesson.cells) - len(solutions)
    text = (student / path.name).read_text()
    assert not re.search("solved", text, re.I), "a solution, or what it printed, is left"
    for cell in solutions:
        assert cell.source not in [other.source for other in copy.cells]
    kept = outputs_of(copy)
    moving = [output for output in outputs_of(lesson) if STORED & set(output.get("data", {}))]
    assert {kind for output in moving for kind in STORED & set(output.data)} == STORED
    assert [output.data for output in kept] == [output.data for output in moving]
    assert all(output.metadata[kind] for output in kept for kind in STORED & set(output.data))
    assert {cell.execution_count for cell in copy.cells if cell.cell_type == "code"} == {None}

    exercises = tagged(copy, "exercise")
    if not whole:  # nbval runs the rest
        copy.cells = [cell for cell in copy.cells if cell.id == "setup" or cell in exercises]
    _, printed = run(copy)
    for cell in exercises:
        assert printed[cell.id].startswith("○ "), f"{cell.id}: {printed[cell.id]}"


@pytest.mark.parametrize(
    ("lesson", "exercise", "learners", "used_as"),
    [
        ("03", "ex-split", "my_split_heads", "split_heads"),
        pytest.param(
            *("04", "ex-class", "MyMultiHeadAttention", "MultiHeadAttention"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_right_solution_is_used_from_there_on(lesson, exercise, learners, used_as):
    """Put the solution where a learner would, and see the notebook go on with it."""
    (path,) = [path for path in LESSONS if path.name.startswith(lesson)]
    notebook = nbformat.read(path, as_version=4)
    (stub,) = [cell for cell in notebook.cells if cell.id == exercise]
    (solution,) = [cell for cell in notebook.cells if cell.id == f"{exercise}-solution"]
    head, _, _ = solution.source.rpartition("\n\n\n")
    solved = re.search(r"^(?:def|class) (\w+)", head, re.M)[1]
    own = head.replace(solved, learners) + stub.source[stub.source.index("\n\n\nif check_") :]
    names, printed = run(notebook, {exercise: own})
    assert printed[exercise].startswith("✓ ")
    assert names[used_as] is names[learners]


# --- the page of mistakes -------------------------------------------------------------------------


def page() -> dict[str, tuple[list, set]]:
    """Row to its links (file and heading) and the mistakes that checks name."""
    rows = {}
    for line in PAGE.splitlines():
        if match := re.match(r"\| (M\d+)", line):
            links = re.findall(r"\]\(([\w.]+)#([^\s]+)\)", line)
            rows[match[1]] = (links, set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", line)))
    return rows


def test_the_rows_are_numbered_without_a_gap():
    assert len(ROWS) >= 47
    assert sorted(ROWS) == [f"M{n:02}" for n in range(1, len(ROWS) + 1)]


def test_the_readme_says_how_many_rows_there_are():
    assert f"lists {len(ROWS)} things" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("row", ROWS)
def test_every_mistake_is_shown_where_the_page_says(row):
    links, _ = page()[row]
    assert links
    for file, anchor in links:
        notebook = nbformat.read(ROOT / "notebooks" / file, as_version=4)
        assert tagged(notebook, row), f"{file} has no cell with the tag {row}"
        prose = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        headings = re.findall(r"^#+ (.+)$", prose, re.M)
        assert anchor in [heading.replace(" ", "-") for heading in headings], anchor


@pytest.mark.parametrize("row", ROWS)
def test_the_page_names_what_the_checks_name(row):
    _, named = page()[row]
    assert named == {
        mistake.id
        for mistake in (*all_mistakes(), DROPOUT, DROPOUT_BEFORE_SOFTMAX, KEPT)
        if row in mistake.rows
    }


def test_no_cell_is_tagged_with_a_row_that_the_page_lacks():
    for path in LESSONS:
        for cell in nbformat.read(path, as_version=4).cells:
            for tag in cell.metadata.get("tags", ()):
                assert tag in (*ROWS, "exercise", "solution", IGNORE), f"{path.name}: {tag}"
