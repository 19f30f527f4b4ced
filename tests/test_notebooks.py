"""What nbval does not see: the form of the lessons, and that nothing can pass vacuously."""

import copy
import itertools
import re
import statistics
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from helpers import IGNORE

ROOT = Path(__file__).parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CORE = [path for path in LESSONS if path.name < "06"]

# The only cells whose outputs nbval does not compare, with the reason. Their numbers are for
# people; an assert in the same cell holds what the text says of them. (Nothing may assert a time.)
TRAINING = "after training, the last digits depend on the processor"
TIMES = "times depend on the machine, and on what else it does"
NOT_COMPARED = {
    "02": {"train-run": TRAINING},
    "07": {
        "time-numbers": TIMES,
        "train-one-loss": TRAINING,
        "fetch-verdict": TRAINING,
        "apart-verdict": TRAINING,
        "match-verdict": TRAINING,
        "match-heads": TRAINING,
        "explore-verdict": TRAINING,
        "text-verdict": TRAINING,
        "twins-verdict": TRAINING,
        "order-seeds": TRAINING,
    },
    "09": {
        "train-verdict": TRAINING,
        "seeds-numbers": TRAINING,
        "average-numbers": TRAINING,
        "cover-numbers": TRAINING,
        "places-moved": TRAINING,
        "places-numbers": TRAINING,
        "explore-rights": TRAINING,
        "explore-count": TRAINING,
    },
    "10": {
        "train": TRAINING,
        "write-run": TRAINING,
        "restart": TRAINING,
        "time-numbers": TIMES,
    },
}


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def cells(notebook, kind: str) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def prose(notebook) -> str:
    return "\n\n".join(cell.source for cell in cells(notebook, "markdown"))


def hygiene(notebook) -> list[str]:
    """Say what is wrong with a notebook that is about to be committed."""
    problems = []
    code = cells(notebook, "code")
    counts = [cell.execution_count for cell in code]
    if counts != list(range(1, len(code) + 1)):
        problems.append(f"not run once from top to bottom: counts {counts}")
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        problems.append("kernelspec is not python3")
    if "name" not in notebook.metadata.get("language_info", {}):
        problems.append("no language: JupyterLab would add it, and the notebook would be unsaved")
    if "widgets" in notebook.metadata:
        problems.append("widget state is stored")
    for cell in notebook.cells:
        cell = copy.deepcopy(cell)
        if IGNORE in cell.metadata.get("tags", ()):  # another test says which cells may have it
            cell.metadata.tags.remove(IGNORE)
        stored = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
        stored = re.sub(r'"image/png": ".*?"', "", stored)
        for what, pattern in (
            ("an address", r"\b0x[0-9a-f]{6,}"),
            ("a timestamp", r"iopub|\d{4}-\d\d-\d\dT\d\d:\d\d"),
            ("an absolute path", r"(/home|/Users|/root|/tmp|/work)/|[A-Z]:\\\\"),
            ("a marker that nbval would obey", r"NBVAL_|nbval-|skip-execution"),
            ("an edit of sys.path, a star import or %run", r"sys\.path|import \*|%run"),
            ("a live view, whose id is new in every run", r"widget-view"),
        ):
            if re.search(pattern, stored):
                problems.append(f"{what} in cell {cell.id}")
        names = [output.get("name") for output in cell.get("outputs", [])]
        if ("stdout", "stdout") in itertools.pairwise(names):
            problems.append(f"a print in pieces of chance size in cell {cell.id}")
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr" or output.output_type == "error":
                problems.append(f"stderr or an error in cell {cell.id}")
            if "image/png" in output.get("data", {}) and not output.metadata.get(
                "image/png", {}
            ).get("alt"):
                problems.append(f"a picture without alt text in cell {cell.id}")
    return problems


def test_there_are_lessons():
    assert [path.name[:2] for path in CORE] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
class TestLesson:
    def test_is_clean(self, path):
        assert hygiene(read(path)) == []
        assert path.stat().st_size < 800_000

    def test_is_compared_but_for_the_cells_in_the_list(self, path):
        listed = NOT_COMPARED.get(path.name[:2], {})
        ignored = [c for c in read(path).cells if IGNORE in c.metadata.get("tags", ())]
        assert {cell.id for cell in ignored} == set(listed)
        for cell in ignored:
            asserts = len(re.findall(r"^ *assert ", cell.source, re.M))
            assert bool(asserts) == (listed[cell.id] is not TIMES), cell.id
            assert re.search(r"\d", stored_text(cell)), f"{cell.id} prints no number"

    def test_has_the_shape_of_a_lesson(self, path):
        notebook = read(path)
        title = notebook.cells[0].source
        assert title.startswith("# ")
        assert "**The question:" in title
        assert re.findall(r"^(\d)\. ", title, re.M) == ["1", "2", "3"], "three promises"
        assert "*Know before:*" in title
        assert re.search(r"about \d+\s+minutes,\s+and\s+\d+\s+more", title), (
            "the first cell says: about N minutes, and M more for the exercises"
        )
        text = prose(notebook)
        for heading in ("## Shape ledger", "## Promises kept", "## Before you go"):
            assert text.count(heading) == 1, heading
        code = "\n".join(cell.source for cell in cells(notebook, "code"))
        assert 4 <= len(re.findall(r"^predict\(", code, re.M)) <= 7, "4 to 7 predictions"
        quiz = f'quiz("lesson-{path.name[:2]}")'
        assert quiz in code.splitlines(), f"no cell says {quiz}"
        assert "### Further reading" in text
        recall = text[text.index("## Before you go") :]
        assert recall.count("<details>") == recall.count("</details>") == 2, (
            "two recall questions, each in its own <details>"
        )

    def test_starts_with_arithmetic(self, path):
        # A picture that moves may come first; its cells have ids that begin with "hook".
        early = [cell for cell in read(path).cells if not cell.id.startswith("hook")][:6]
        code = "".join(cell.source for cell in early if cell.cell_type == "code")
        assert re.search(r" @ |\* key\)|mha\(x", code), (
            "the first six cells after the picture compute something with `@`"
        )

    def test_asks_before_its_explorer(self, path):
        code = [cell.source for cell in cells(read(path), "code")]
        shown = [i for i, source in enumerate(code) if "= explore_" in source]
        for i in shown:
            assert any("predict(" in source for source in code[max(0, i - 2) : i])

    def test_has_exercises_with_check_hint_and_solution(self, path):
        """Both states are stored: the stub not attempted, and the hidden solution right."""
        notebook = read(path)
        order = [cell.id for cell in notebook.cells]
        exercises = [cell for cell in notebook.cells if "exercise" in cell.metadata.get("tags", ())]
        assert len(exercises) >= 2
        for cell in exercises:
            assert "check_" in cell.source
            assert stored_text(cell).startswith("○ "), cell.id
        solutions = [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", ())]
        assert len(solutions) >= 2
        for cell in solutions:
            assert cell.metadata.get("jupyter", {}).get("source_hidden"), (
                f"{cell.id}: hide its source (View, Collapse Selected Code)"
            )
            lines = stored_text(cell).splitlines()
            assert lines, cell.id
            for line in lines:  # nobody takes the verdict for one on their own answer
                assert re.match(r"✓ [\w ]+, the lesson's solution: ", line), (
                    f"{cell.id}: call what it checks solved_… or Solved…"
                )
            hint = cell.id.replace("solution", "hint")
            assert hint in order, f"{cell.id} has no hint: {hint}"
            said = notebook.cells[order.index(hint)].source
            assert said.startswith("<details><summary>Hint"), hint
            assert order.index(hint) < order.index(cell.id), hint
        words = [cell.source for cell in notebook.cells if cell.id.startswith("ex-")]
        assert sum(bool(re.search(r"\*About \d+ minutes, \w+\.\*", w)) for w in words) >= 2, (
            "two exercises say *About 5 minutes, easy.*"
        )

    def test_is_written_in_small_steps(self, path):
        notebook = read(path)
        words = {cell.id: len(cell.source.split()) for cell in cells(notebook, "markdown")}
        lines = {cell.id: len(cell.source.splitlines()) for cell in cells(notebook, "code")}
        for cell, n in words.items():
            assert n <= 150, f"{cell} has {n} words, at most 150"
        for cell, n in lines.items():
            assert n <= 30, f"{cell} has {n} lines, at most 30"
        assert statistics.median(words.values()) <= 60, "half of the text cells: at most 60 words"
        assert statistics.median(lines.values()) <= 8, "half of the code cells: at most 8 lines"

    def test_has_an_explorer_with_a_picture(self, path):
        shown = [
            output.data
            for cell in cells(read(path), "code")
            for output in cell.outputs
            if output.get("data", {}).get("text/plain", "").startswith("Explorer: ")
        ]
        assert shown
        for data in shown:
            assert "image/png" in data
            assert "\n" not in data["text/plain"]

    def test_links_lead_somewhere(self, path):
        text = prose(read(path))
        for target in re.findall(r"\]\(((?:[^()\s]|\([^()]*\))+)\)", text):
            if target.startswith("#"):
                headings = re.findall(r"^#+ (.+)$", text, re.M)
                assert target[1:] in [heading.replace(" ", "-") for heading in headings]
            else:
                assert (path.parent / target).is_file(), target

    def test_every_promise_links_to_its_proof(self, path):
        text = prose(read(path))
        kept = text[text.index("## Promises kept") : text.index("## Before you go")]
        for promise in re.split(r"^\d\. ", kept, flags=re.M)[1:]:
            assert "](#" in promise, promise


def test_the_two_head_shape_check_prints_what_it_must():
    (lesson,) = [path for path in CORE if path.name.startswith("05")]
    (check,) = [cell for cell in read(lesson).cells if cell.id == "check"]
    assert check.outputs[0].text == (
        "output: (2, 3, 8) weights: (2, 2, 3, 3)\nrows sum to one: True\n"
    )


def test_a_changed_or_stripped_output_is_noticed(tmp_path):
    """The suite itself must be able to fail, so spoil copies of a cell and run nbval on them."""
    lesson = read(CORE[-1])
    untouched, changed, stripped = (
        copy.deepcopy(cell) for cell in lesson.cells * 3 if cell.id == "check"
    )
    printed = untouched.outputs[0].text
    for cell in (untouched, changed, stripped):  # what it prints is enough, and torch takes seconds
        cell.source = f"print({printed!r}, end='')"
    changed.outputs[0].text = printed.replace("(2, 3, 8)", "(2, 3, 9)")
    stripped.outputs = []
    lesson.cells = [untouched, changed, stripped]
    for count, cell in enumerate(lesson.cells, start=1):
        cell.update(execution_count=count, id=f"cell-{count}")
    assert hygiene(lesson) == []  # these are for nbval to notice
    nbformat.write(lesson, tmp_path / "spoiled.ipynb")

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-rA", "-q", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    verdicts = re.findall(r"^(PASSED|FAILED) spoiled\.ipynb::Cell (\d)", run.stdout, re.M)
    expected = [("PASSED", "0"), ("FAILED", "1"), ("FAILED", "2")]
    assert sorted(verdicts, key=lambda verdict: verdict[1]) == expected, run.stdout


def test_a_cell_that_was_never_run_is_noticed():
    """Nbval compares nothing where count and outputs are both gone, so hygiene must notice."""
    lesson = read(CORE[-1])
    for cell in cells(lesson, "code"):
        cell.outputs, cell.execution_count = [], None
        break
    assert "not run once" in hygiene(lesson)[0]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda nb: nb.cells[2].outputs.append(stream("stderr", "careful")), "stderr"),
        (lambda nb: nb.cells[2].outputs.append(stream("stdout", "<X at 0x7f00aa11>")), "address"),
        (lambda nb: nb.cells[2].outputs.append(stream("stdout", "/home/me/x")), "absolute path"),
        (lambda nb: nb.cells[2].outputs.append(view()), "live view"),
        (lambda nb: nb.cells[2].outputs.extend([stream("stdout", "a")] * 2), "pieces"),
        (lambda nb: nb.cells[2].metadata.update(iopub="2026-01-01T10:00:00"), "timestamp"),
        (lambda nb: nb.metadata.update(widgets={}), "widget state"),
        (lambda nb: nb.metadata.update(kernelspec={"name": "mine"}), "kernelspec"),
        (lambda nb: nb.metadata.pop("language_info"), "no language"),
        (lambda nb: nb.cells[2].update(source="# NBVAL_SKIP"), "nbval"),
        (lambda nb: nb.cells[2].update(source="from torch import *"), "star import"),
    ],
)
def test_hygiene_can_fail(spoil, said):
    lesson = read(CORE[-1])
    spoil(lesson)
    (problem,) = hygiene(lesson)
    assert said in problem


def stored_text(cell) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def stream(name: str, text: str):
    return nbformat.v4.new_output("stream", name=name, text=text)


def view():
    data = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
    return nbformat.v4.new_output("display_data", data=data)
