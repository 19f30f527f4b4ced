"""What a notebook from anybody may have stored: shown as far as it is harmless, never run.

Each case is shown by the course's scripts in an empty page, and most of them by JupyterLab, in a
notebook that nobody trusts.
"""

import base64
import json
import re
import zlib

import nbformat
import pytest
from conftest import PATIENCE, ROOT, Tab

from course_utils.questions.stored import MIMETYPE as QUESTION
from course_utils.sliders.stops import MIMETYPE as STOPS

STATIC = ROOT / "course_utils" / "jupyter" / "labextension" / "static"
SCRIPTS = ("stored.js", "stops.js", "reading.js", "questions.js")
ELSEWHERE = "http://127.0.0.1:9/asked"  # nobody listens; the request alone would be seen
RUN = "window.ran = true"

HARMLESS = {
    *("b", "bdi", "div", "em", "img", "p", "span", "table", "tbody", "td", "tr"),
    *("svg", "g", "line", "text"),
}
RUNS = {
    "script": f"<script>{RUN}</script>",
    "script in SVG": f"<svg><script>{RUN}</script></svg>",
    "script of another name": f'<x:script xmlns:x="http://www.w3.org/1999/xhtml">{RUN}</x:script>',
    "onerror": f'<img src="{ELSEWHERE}" onerror="{RUN}"/>',
    "onload of SVG": f'<svg onload="{RUN}"><line x1="0"/></svg>',
    "onfocus": f'<div tabindex="0" autofocus="" onfocus="{RUN}">a</div>',
    "onanimationstart": f'<div style="animation:ac 1s" onanimationstart="{RUN}">a</div>',
    "SVG in a picture": f"<img src=\"data:image/svg+xml,<svg onload='{RUN}'/>\"/>".replace(
        "<svg", "&lt;svg"
    ),
    "a link of javascript": f'<a href="javascript:{RUN}" class="ac">a</a>',
    "a link in SVG": f'<svg><a href="javascript:{RUN}"><text>a</text></a></svg>',
    "a link that is set later": (
        f'<svg><a><set attributeName="href" to="javascript:{RUN}"/><text>a</text></a></svg>'
    ),
    "HTML in SVG": f'<svg><foreignObject><img src="x" onerror="{RUN}"/></foreignObject></svg>',
    "a frame": f'<iframe srcdoc="&lt;script&gt;parent.ran = true&lt;/script&gt;">{RUN}</iframe>',
    "a frame in MathML": f'<math><mtext><iframe src="javascript:{RUN}"/></mtext></math>',
    "a form": f'<form action="{ELSEWHERE}"><input onfocus="{RUN}" autofocus=""/></form>',
    "an object": f'<object data="{ELSEWHERE}"/><embed src="{ELSEWHERE}"/>',
    "a style sheet": f'<style>@import "{ELSEWHERE}";</style>',
    "a linked style sheet": f'<link rel="stylesheet" href="{ELSEWHERE}"/>',
    "another page at once": f'<meta http-equiv="refresh" content="0;url={ELSEWHERE}"/>',
    "an image in SVG": f'<svg><image href="{ELSEWHERE}"/><use href="{ELSEWHERE}#a"/></svg>',
    "a picture from elsewhere": f'<img src="{ELSEWHERE}" srcset="{ELSEWHERE} 2x"/>',
    "a background": f'<p style="background:url({ELSEWHERE})">a</p>',
    "a background by a variable": f'<p style="--x:url({ELSEWHERE});background:var(--x)">a</p>',
    "a background, escaped": f'<p style="background:u\\72l({ELSEWHERE})">a</p>',
    "a background, commented": f'<p style="background:url/**/({ELSEWHERE})">a</p>',
    "a set of pictures": (
        f"<p style=\"background:image-set('{ELSEWHERE}' 1x)\">a</p>".replace("'", "&quot;")
    ),
    "a fill": f'<svg><text fill="url({ELSEWHERE}#a)" filter="url({ELSEWHERE}#b)">a</text></svg>',
    "a part of JupyterLab": '<div class="jp-Dialog lm-Widget ac" id="jp-main-dock-panel">a</div>',
    "over everything": '<div style="position:fixed;inset:0;z-index:9999">a</div>',
    "over the next cell": (
        '<div style="margin-bottom:-300px;transform:translateY(30px);height:300px">a</div>'
    ),
    "instructions of XML": f'<?xml-stylesheet href="{ELSEWHERE}"?><b>a</b>',
    "marked as text": f"<![CDATA[<img src='x' onerror='{RUN}'/>]]>",
}
REFUSED = {
    "out of its box": f"</div><script>{RUN}</script><div>",
    "a document of its own": '<!DOCTYPE a [<!ENTITY b "c">]><b>&b;</b>',
    "misnested tags": "<b><i><u><p>" * 10_000,
    "misnested and closed": "<table><b><i>" * 3_000 + "</b></table></i>" * 3_000,
    "deep": "<b>" * 50_000 + "</b>" * 50_000,
    "deeper than any view": "<b>" * 60 + "a" + "</b>" * 60,
    "many nodes": "<b/>" * 100_000,
    "long": "a" * 700_000,
    "no XML": "<b>a",
    "a character that XML has not": "a\x00b",
}
COSTLY = {
    "a long value": f'<p style="width:{"a" * 500_000}">a</p>',
    "a million columns": (
        '<div style="display:grid;grid-template-columns:repeat(9999999,1px)">a</div>'
    ),
    "a product of columns": (
        '<div style="display:grid;grid-template-columns:repeat(calc(999*999*9),1px)">a</div>'
    ),
    "a place far off": '<div style="display:grid"><b style="grid-row:9999999">a</b></div>',
    "cells across a table": (
        '<table><tbody><tr><td colspan="999999" rowspan="65534">a</td></tr></tbody></table>'
    ),
}


def packed(content) -> str:
    return base64.b64encode(zlib.compress(json.dumps(content).encode())).decode()


def stops(*views: str) -> dict:
    """What an explorer of one slider stores, with one view for each of its stops."""
    control = {"key": "k", "name": "stop", "labels": [str(i) for i in range(len(views))]}
    return {
        "controls": [{**control, "start": 0}],
        "left_out": [],
        "texts": [[view] for view in views],
        "views": [[i, ""] for i in range(len(views))],
        "stops": {str(i): i for i in range(len(views))},
    }


class Page:
    """An empty page with the scripts that show what is stored, and all that it asks for."""

    def __init__(self, chromium) -> None:
        self.page = chromium.new_page()
        self.asked: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.set_content("<!DOCTYPE html><main></main>")
        for script in SCRIPTS:
            self.page.add_script_tag(content=(STATIC / script).read_text(encoding="utf-8"))

    def show(self, kind: str, stored: dict) -> str:
        """Show something; what went wrong, or "". A page that hangs fails the test."""
        self.page.evaluate(
            """([kind, stored]) => {
                const node = document.querySelector("main"), kept = {};
                const place = {kept: () => kept, keep: () => {}, toRun: "Run it"};
                window.done = undefined;
                node.replaceChildren();
                setTimeout(() => window.attentionCourse.kinds[kind](node, stored, place).then(
                    // Laid out and drawn as well.
                    () => requestAnimationFrame(() => setTimeout(() => { window.done = "ok"; })),
                    (error) => { window.done = `${error.name}: ${error.message}`; }));
            }""",
            [kind, stored],
        )
        self.page.wait_for_function("window.done", timeout=PATIENCE * 1000)
        done = self.page.evaluate("window.done")
        return "" if done == "ok" else done

    def show_view(self, *views: str) -> str:
        return self.show(STOPS, {"stops": packed(stops(*views))})

    def view(self):
        return self.page.locator("main .ac-explorer-view")

    def require_harmless(self) -> None:
        parts = self.view().evaluate(
            """(node) => [...node.querySelectorAll("*")].map((part) =>
                [part.localName, [...part.attributes].map(({name, value}) => [name, value])])"""
        )
        for name, attributes in parts:
            assert name in HARMLESS
            for attribute, value in attributes:
                assert not attribute.startswith("on")
                assert attribute not in ("id", "href", "srcset", "filter", "autofocus")
                assert attribute != "src" or value.startswith("data:image/png;base64,")
                assert attribute != "class" or all(c.startswith("ac") for c in value.split())
                assert not re.search("url|position", value)
                assert attribute != "style" or not re.search(r"\d{4}|calc", value)
                assert not attribute.endswith("span") or int(value) < 100
        assert self.page.evaluate("window.ran") is None
        assert [url for url in self.asked if not url.startswith("data:image/png")] == []


@pytest.fixture(scope="module")
def page(chromium):
    page = Page(chromium)
    yield page
    page.page.close()


@pytest.mark.parametrize("html", RUNS.values(), ids=RUNS)
def test_nothing_that_is_stored_runs_or_asks(page, html):
    assert page.show_view(f"{html}<p>still here</p>") == ""
    assert "still here" in page.view().inner_text()
    for link in page.view().locator(".ac, [tabindex]").all():
        link.click()
    page.require_harmless()


@pytest.mark.parametrize("html", REFUSED.values(), ids=REFUSED)
def test_a_view_that_is_no_view_says_so_and_the_others_are_shown(page, html):
    assert page.show_view("<b>one</b>", html) == ""
    assert page.view().inner_text() == "one"
    slider = page.page.locator("main input")
    slider.focus()
    page.page.keyboard.press("ArrowRight")
    assert page.view().inner_text() == "What is stored for this setting cannot be shown."
    page.require_harmless()
    page.page.keyboard.press("ArrowLeft")
    assert page.view().inner_text() == "one"


@pytest.mark.parametrize("html", COSTLY.values(), ids=COSTLY)
def test_what_would_keep_the_browser_busy_is_left_out(page, html):
    assert page.show_view(html) == ""
    assert page.view().inner_text() == "a"
    page.require_harmless()


BOMB = base64.b64encode(zlib.compress(b"[" + b" " * 700_000_000 + b"]")).decode()
EXPLORER = stops("<b>a</b>")
(CONTROL,) = EXPLORER["controls"]
NO_EXPLORERS = {
    "nothing": None,
    "a list": [],
    "no controls": EXPLORER | {"controls": []},
    "a million controls": EXPLORER | {"controls": [CONTROL] * 100_000},
    "a million labels": EXPLORER | {"controls": [CONTROL | {"labels": ["a"] * 500_000}]},
    "a start beyond the end": EXPLORER | {"controls": [CONTROL | {"start": 7}]},
    "a name that is no text": EXPLORER | {"controls": [CONTROL | {"name": {"a": 1}}]},
    "left out without end": EXPLORER | {"left_out": ["a"] * 100_000},
    "a text that is none": EXPLORER | {"texts": [[{"toString": "b"}]]},
    "a view without a text": EXPLORER | {"views": [[5, ""]]},
    "a stop without a view": EXPLORER | {"stops": {"0": 9}},
}


@pytest.mark.parametrize("content", NO_EXPLORERS.values(), ids=NO_EXPLORERS)
def test_what_is_no_explorer_is_refused(page, content):
    assert page.show(STOPS, {"stops": packed(content)}).startswith(("TypeError", "RangeError"))


@pytest.mark.parametrize(("kind", "key"), [(STOPS, "stops"), (QUESTION, "packed")])
@pytest.mark.parametrize(
    "stored",
    [None, 7, "no base64 ✓", "AAAA", BOMB, "A" * 1_000_001],
    ids=["nothing", "a number", "no base64", "nothing deflated", "a bomb", "too long"],
)
def test_what_cannot_be_unpacked_is_refused(page, kind, key, stored):
    said = page.show(kind, {key: stored})
    assert said
    assert stored != BOMB or "too much is stored" in said


LETTERS = [["a", "A"], ["b", "B"]]
ASKED = {"question": "which?", "choices": ["a", "b"], "right": "a", "why": "it is"}
NUMBER = {"id": "n", "question": "how many?", "kind": "number", "right": 7, "why": "it is"}
QUIZ = {"id": "q", "questions": [ASKED | {"place": 0, "letters": LETTERS}]}
NO_QUESTIONS = {
    "nothing": None,
    "no kind": {"id": "p", **ASKED},
    "another kind": {"id": "p", "kind": "essay", **ASKED},
    "choices without end": {"id": "p", "kind": "choice", **ASKED, "choices": ["a"] * 1000},
    "a long answer": NUMBER | {"right": "1" + "%" * 1000},
    "a tolerance that is none": NUMBER | {"tolerance": "wide"},
    "a reason that is none": NUMBER | {"wrong": {"8": 9}},
    "questions without end": {"id": "q", "questions": QUIZ["questions"] * 1000},
    "a place far off": {"id": "q", "questions": [ASKED | {"place": 10**9, "letters": LETTERS}]},
    "letters that are none": {"id": "q", "questions": [ASKED | {"place": 0, "letters": [7]}]},
}


@pytest.mark.parametrize("content", NO_QUESTIONS.values(), ids=NO_QUESTIONS)
def test_what_is_no_question_is_refused(page, content):
    assert page.show(QUESTION, {"packed": packed(content)}).startswith("TypeError")


@pytest.mark.parametrize("content", [NUMBER, QUIZ], ids=["a number", "a quiz"])
def test_what_is_a_question_is_not(page, content):
    assert page.show(QUESTION, {"packed": packed(content)}) == ""


def test_the_texts_of_a_question_stay_texts(page):
    bad = f'<img src="{ELSEWHERE}" onerror="{RUN}">'
    texts = ASKED | {"question": bad, "choices": [bad, "b"], "right": bad, "why": bad}
    assert page.show(QUESTION, {"packed": packed({"id": "p", "kind": "choice", **texts})}) == ""
    main = page.page.locator("main")
    main.locator("input").first.check()
    main.get_by_text("Check").click()
    assert main.locator("[role=status]").inner_text() == f"✓ Right. {bad}"
    assert page.page.evaluate("window.ran") is None
    assert page.asked == []


@pytest.mark.parametrize("typed", ["1" + "%" * 59, "9" * 60, "1/" * 30, "," * 60, "(" * 60])
def test_no_answer_keeps_the_page_busy(page, typed):
    assert page.show(QUESTION, {"packed": packed(NUMBER)}) == ""
    main = page.page.locator("main")
    main.locator("input").fill(typed)
    main.get_by_text("Check").click()
    assert main.locator("[role=status]").inner_text()[0] in "✗○"


def test_jupyterlab_runs_nothing_of_a_notebook_that_nobody_trusts(chromium, lab):
    """All cases in one notebook: it opens, nothing runs, and what is harmless moves."""
    html = [f"{html}<p>{name}</p>" for name, html in {**RUNS, **COSTLY}.items()]
    views = [*html, *(html for html in REFUSED.values() if len(html) < 100_000)]
    contents = [(STOPS, "stops", stops(*views))]
    contents += [(STOPS, "stops", content) for content in NO_EXPLORERS.values()]
    contents += [(QUESTION, "packed", content) for content in NO_QUESTIONS.values()]
    cells = []
    for kind, key, content in contents:
        output = nbformat.v4.new_output(
            "execute_result",
            {"text/plain": "in words", kind: {"version": 1}},
            metadata={kind: {key: packed(content), "id": "p"}},
            execution_count=1,
        )
        cells.append(nbformat.v4.new_code_cell("1", outputs=[output], execution_count=1))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, lab.folder / "notebooks" / "crafted.ipynb")
    tab = Tab(chromium, lab, "notebooks/crafted.ipynb")
    slider = tab.page.locator(".ac-explorer input").first
    slider.focus()
    view = tab.page.locator(".ac-explorer-view").first
    reaches_out = """(view) => {
        const box = view.closest(".jp-OutputArea-output").getBoundingClientRect();
        return view.contains(document.elementFromPoint(box.left + 50, box.bottom + 20));
    }"""
    for name in [*RUNS, *COSTLY][:-1]:
        assert name in view.inner_text()
        assert not view.evaluate(reaches_out)
        tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("End")
    assert view.inner_text() == "What is stored for this setting cannot be shown."
    outputs = tab.page.locator(".jp-OutputArea-output")
    for output in outputs.all()[1:]:
        output.scroll_into_view_if_needed()
        assert output.inner_text() == "in words"
    assert tab.page.evaluate("window.ran") is None
    assert tab.complaints() == []
    tab.page.close()
