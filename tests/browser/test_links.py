"""Links between the page of mistakes and the lessons, in JupyterLab."""

import pytest
from conftest import PATIENCE


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
