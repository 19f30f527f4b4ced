"""The static edition as a reader meets it: opened from disk, on a phone, a laptop and on paper."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import NOTEBOOKS, PATIENCE, ROOT

from course_utils.sliders.stops import MARK, MIMETYPE

WIDTHS = {"phone": 390, "laptop": 1280, "print": 794}  # pixels; a sheet of A4 has 794


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a site")  # a path with a space
    run = subprocess.run(
        ["make", "-o", "install-site", "site", f"SITE={folder}", f"VENV={sys.prefix}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return folder


def test_explorers_are_found_in_a_lesson_that_was_run_twice(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    build = importlib.import_module("build")
    picture = nbformat.v4.new_output(
        "execute_result",
        {"text/plain": "Explorer: it", MIMETYPE: MARK, "image/png": "abc"},
        metadata={"image/png": {"alt": "it"}, MIMETYPE: {"stops": "packed"}},
    )
    cells = [
        nbformat.v4.new_code_cell("x = 1", execution_count=31),
        nbformat.v4.new_code_cell(""),
        nbformat.v4.new_markdown_cell("Look."),
        nbformat.v4.new_code_cell("explorer", execution_count=32, outputs=[picture]),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "lesson.ipynb")
    (pages := tmp_path / "pages").mkdir()
    build.prepare(tmp_path / "lesson.ipynb", pages)
    cell = nbformat.read(pages / "lesson.ipynb", as_version=4).cells[-1]
    assert "packed" in cell.outputs[0].data["text/html"]


def test_leaves_nothing_beside_itself(site):
    assert not (site.parent / "jupyter_execute").exists()  # a second copy of every lesson


class Reader:
    """A page of the site in a browser without network, and everything that went wrong in it."""

    def __init__(
        self, chromium, path: Path, width: int = 1280, scheme: str = "light", **options
    ) -> None:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **options
        )
        self.page, self.wrong = context.new_page(), []
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.on("console", self._on_console)
        self.page.on("request", self._on_request)
        self.page.goto(path.as_uri())
        if options.get("java_script_enabled", True):  # what is stored takes a moment to unpack
            self.page.wait_for_function(
                "() => [...document.querySelectorAll('.ac-stored')].every((node) => "
                "node.closest('.aq, .ac-explorer') ?? node.querySelector('.aq, .ac-explorer'))"
            )

    def _on_console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _on_request(self, request) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.wrong.append(f"asks for {request.url}")


PAGES = ["index", "mistakes", *(path.stem for path in NOTEBOOKS)]


@pytest.mark.parametrize("page", PAGES)
def test_reads_at_every_width(chromium, site, page):
    for name, width in WIDTHS.items():
        reader = Reader(chromium, site / f"{page}.html", width)
        if name == "print":
            reader.page.emulate_media(media="print")
        wide = reader.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name}: {wide} pixels stand out"
        assert reader.wrong == []
        reader.page.context.close()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_has_no_serious_barrier(chromium, site, page, scheme):
    reader = Reader(chromium, site / f"{page}.html", scheme=scheme)
    found = Axe().run(reader.page).response["violations"]
    serious = [
        f"{rule['id']}: {node['target']} {node['html'][:120]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
    assert serious == []
    reader.page.context.close()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_shows_the_whole_lesson(chromium, site, path):
    reader = Reader(chromium, site / f"{path.stem}.html")
    page = reader.page
    for picture in page.locator("article img").all():
        assert (picture.get_attribute("alt") or "").strip(), picture.get_attribute("src")
        assert picture.evaluate("(img) => img.complete && img.naturalWidth > 0")
    if "$" in path.read_text():
        assert page.locator("article math").count()
    solution = page.locator("details.hide").first
    assert not solution.locator("pre").first.is_visible()
    solution.locator("summary").click()
    assert solution.locator("pre").first.is_visible()
    for link in page.locator("article a[href^='#']").all():
        target = link.get_attribute("href")[1:]
        assert page.evaluate("(id) => !!document.getElementById(decodeURI(id))", target), target
    page.context.close()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_explorers_move_without_a_kernel(chromium, site, path):
    reader = Reader(chromium, site / f"{path.stem}.html")
    stored = reader.page.locator(".ac-stored")
    assert stored.count()
    for explorer in stored.locator(".ac-explorer").all():
        view = explorer.locator(".ac-explorer-view")
        for control in explorer.locator("input").all():
            before = view.inner_html()
            if control.get_attribute("type") == "radio" and control.is_checked():
                continue
            control.focus()
            slider = control.get_attribute("type") == "range"
            at_end = control.input_value() == control.get_attribute("max")
            reader.page.keyboard.press("Space" if not slider else "Home" if at_end else "End")
            assert view.inner_html() != before
            if slider:
                name = control.get_attribute("aria-valuetext")
                assert explorer.locator("output").all_inner_texts().count(name)
    assert reader.wrong == []
    reader.page.context.close()


def test_sliders_are_as_wide_as_a_phone(chromium, site):
    reader = Reader(chromium, site / "06_masks_and_cross_attention.html", WIDTHS["phone"])
    explorer = reader.page.locator(".ac-explorer", has_text="real tokens")
    room = explorer.bounding_box()["width"]
    for slider in explorer.locator("input[type=range]").all():
        assert slider.bounding_box()["width"] > 0.95 * room
    reader.page.context.close()


def test_a_value_stands_apart_from_the_next_name(chromium, site):
    page = Reader(chromium, site / "08_heads_of_a_real_model.html").page
    explorer = page.locator(".ac-explorer", has_text="average over heads")
    layer, head = explorer.locator("input[type=range]").all()
    ends = """(slider) => {
        const text = document.createRange();
        text.selectNodeContents(slider.parentElement.querySelector("output"));
        return text.getBoundingClientRect().right;
    }"""
    starts = head.evaluate("(slider) => slider.parentElement.getBoundingClientRect().x")
    assert starts - layer.evaluate(ends) >= 20
    page.context.close()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_numbers_keep_their_colours_on_paper(chromium, site, path):
    page = Reader(chromium, site / f"{path.stem}.html").page
    page.emulate_media(media="print")
    coloured = """[...document.querySelectorAll(".ac-explorer :is(td, .ac-bar, svg)")].filter(
        (node) => node.checkVisibility()).map((node) => getComputedStyle(node).printColorAdjust)"""
    assert set(page.evaluate(coloured)) == {"exact"}
    page.context.close()


@pytest.mark.parametrize("how", ["on paper", "without scripts"])
def test_where_nothing_moves_the_stored_picture_is_shown(chromium, site, how):
    scripts = how != "without scripts"
    page = Reader(chromium, site / "04_merging_heads.html", java_script_enabled=scripts).page
    still = page.locator("img.ac-stored-still[alt*='H = 4, head 0']")
    assert still.count() == 1
    if scripts:
        assert not still.is_visible()
        page.emulate_media(media="print")
    assert still.is_visible()
    page.context.close()


def test_questions_are_answered_and_kept(chromium, site):
    reader = Reader(chromium, site / "03_splitting_into_heads.html")
    page = reader.page
    question = page.locator(".aq", has_text="What shape comes out of all three steps?")
    question.locator("input").fill("2, 3, 5, 4")
    question.get_by_role("button", name="Check").click()
    question.get_by_text("✓ Right.").wait_for()
    quiz = page.locator(".aq", has_text="Hand in")
    for choices in quiz.locator(".aq-choices").all():
        choices.locator("input").first.check()
    quiz.get_by_role("button", name="Hand in").click()
    quiz.get_by_text("of 3 right.").wait_for()

    page.reload()
    question.get_by_text("You said “2, 3, 5, 4”. ✓ Right.").wait_for()
    quiz.get_by_text("You had").wait_for()
    question.get_by_role("button", name="Start over").click()
    assert question.locator("input").input_value() == ""
    page.emulate_media(media="print")
    assert not question.get_by_role("button").first.is_visible()
    assert not page.locator("p.ac-stored-still").first.is_visible()
    assert reader.wrong == []
    page.context.close()


def test_can_be_searched(chromium, site):
    reader = Reader(chromium, site / "index.html")
    reader.page.locator("input[name=q]:visible").fill("padding")
    reader.page.keyboard.press("Enter")
    found = reader.page.locator("#search-results a").first
    found.wait_for()
    assert re.search("mask", found.inner_text(), re.I)
    reader.page.context.close()


def test_the_search_knows_what_stands_in_a_lesson(chromium, site):
    """A word of lesson 4's text, which is in no title or heading."""
    word, title = "contiguous", "Merging heads"
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        headings = [line for c in cells for line in c.source.splitlines() if line[:1] == "#"]
        assert not any(word in line.lower() for line in headings)
    reader = Reader(chromium, site / "index.html")
    reader.page.locator("input[name=q]:visible").fill(word)
    reader.page.keyboard.press("Enter")
    reader.page.locator("#search-results a", has_text=title).first.wait_for()
    reader.page.context.close()
