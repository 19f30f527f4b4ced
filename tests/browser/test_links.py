"""Links between the page of mistakes and the lessons, in JupyterLab."""

import re

import nbformat
import pytest
from conftest import NOTEBOOKS, PATIENCE, Lesson


@pytest.fixture
def page(chromium, lab):
    """A page on which nothing is open yet."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE * 1000)
    yield page
    page.close()
    for session in lab.api("api/sessions"):
        lab.api(f"api/sessions/{session['id']}", method="DELETE")


@pytest.mark.parametrize("heading", ["Two sizes alike", "A float mask is added"])
def test_a_link_into_a_closed_lesson_leads_to_its_place(page, lab, heading):
    where = "lab/workspaces/links/tree/notebooks/mistakes.md"
    page.goto(f"{lab.base}/{where}?factory=Markdown%20Preview&reset&token={lab.token}")
    link = page.locator(f".jp-MarkdownViewer a[href*='#{heading.replace(' ', '-')}']").first
    link.click()
    there = page.locator(".jp-NotebookPanel").get_by_role("heading", name=heading, exact=False)
    there.first.wait_for()
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", state="attached")
    page.wait_for_timeout(2000)  # cells that are drawn late could push it away
    assert 0 < there.first.bounding_box()["y"] < 500


@pytest.fixture
def lesson_with_a_mistake(chromium, lab):
    """Lesson 1, whose first exercise was answered without the scale."""
    path = lab.folder / "notebooks" / NOTEBOOKS[0].name
    before = path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.id == "ex-row"]
    lines = "weights = torch.softmax(key @ query, dim=0)\n    return weights @ value, weights"
    cell.source = re.sub("raise NotImplementedError.*", lines, cell.source)
    notebook.cells = [other for other in notebook.cells if other.id == "setup"] + [cell]
    nbformat.write(notebook, path)
    lesson = Lesson(chromium, lab, NOTEBOOKS[0])
    lesson.tab.menu("Run", "Run All Cells")
    yield lesson
    lesson.close()
    path.write_bytes(before)


def test_a_number_in_a_verdict_leads_to_its_row(lesson_with_a_mistake):
    page = lesson_with_a_mistake.tab.page
    page.locator(".jp-OutputArea-output a", has_text="M16").click()
    row = page.locator(".jp-MarkdownViewer tr", has_text="leave the scale out")
    row.wait_for()
    page.wait_for_function("(row) => row.getBoundingClientRect().y < 700", arg=row.element_handle())
    assert 0 < row.bounding_box()["y"] < 700
