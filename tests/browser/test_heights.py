"""Every stop of every explorer is seen whole at 1280 × 800, beside the file browser."""

import nbformat
import pytest
from conftest import NOTEBOOKS

from course_utils.jupyter.sheet import SHEET
from course_utils.sliders.stops import MIMETYPE, unpack

WIDTH = 848  # of an output, with the file browser open
HIGHEST = 640  # of an explorer with its controls
CONTROL = 32  # of a slider or a switch, each in a line of its own

# Views are drawn beforehand: a browser only estimates the size of a table that it has not drawn.
MEASURE = """async (html) => {
    const view = document.querySelector(".ac-explorer-view");
    view.innerHTML = html;
    for (const box of view.querySelectorAll(".ac-box")) box.style.contentVisibility = "visible";
    return [view.offsetHeight, view.scrollWidth];
}"""


@pytest.fixture(scope="module")
def page(chromium):
    page = chromium.new_page(viewport={"width": WIDTH, "height": 2000})
    page.set_content(
        f"<style>body {{ margin: 0 }} {SHEET.read_text(encoding='utf-8')}</style>"
        '<div class="ac-explorer"><div class="ac-explorer-view"></div></div>'
    )
    yield page
    page.close()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_stop_fits_a_screen(page, path):
    outputs = [out for cell in nbformat.read(path, 4).cells for out in cell.get("outputs", ())]
    for output in outputs:
        if MIMETYPE not in output.get("metadata", {}):
            continue
        stored = unpack(output.metadata[MIMETYPE]["stops"])
        controls = CONTROL * (len(stored["controls"]) + len(stored["left_out"]))
        for stop, html in stored["views"].items():
            height, width = page.evaluate(MEASURE, html)
            assert height + controls <= HIGHEST, f"at stop {stop} of {list(stored['views'])[:3]} …"
            assert width <= WIDTH
