"""Predictions and quizzes as a learner answers them: by mouse, by keyboard, before a first run."""

import html
import itertools
import json
import re
from pathlib import Path

import pytest
from conftest import NOTEBOOKS, PATIENCE, ROOT, Lab, Lesson

from course_utils.questions import quiz
from course_utils.questions.answers import remember
from course_utils.questions.bank import letters_of, load, quiz_entry
from course_utils.questions.predictions import Prediction
from course_utils.questions.reading import read
from course_utils.questions.stored import pack

STATIC = ROOT / "course_utils" / "jupyter" / "labextension" / "static"
PREDICTIONS, QUIZZES = load()["predictions"], load()["quizzes"]


@pytest.fixture
def lab(tmp_path):
    """A course in which nobody has answered anything yet."""
    server = Lab(tmp_path)
    yield server
    server.stop()


class Questions:
    """One lesson in JupyterLab, with an eye on its questions."""

    def __init__(self, chromium, lab: Lab, number: int) -> None:
        self.lesson = Lesson(chromium, lab, NOTEBOOKS[number - 1])
        self.page, self.keyboard = self.lesson.tab.page, self.lesson.tab.page.keyboard
        cells = self.lesson.stored().cells
        self.places = {cell.source: place for place, cell in enumerate(cells)}

    def cell(self, source: str):
        cell = self.page.locator(f".jp-Notebook-cell[data-windowed-list-index='{self[source]}']")
        cell.scroll_into_view_if_needed()
        return cell

    def __getitem__(self, source: str) -> int:
        return self.places[source]

    def go_to(self, source: str) -> None:
        """Select a cell, as somebody does who comes by arrow keys."""
        self.cell(source).locator(".jp-InputPrompt").first.click()
        self.keyboard.press("Escape")

    def run(self, source: str) -> None:
        """Run one cell with Shift + Enter, and wait for the widget it shows."""
        self.go_to(source)
        self.keyboard.press("Shift+Enter")
        self.cell(source).locator(".widget-vbox.aq").wait_for()

    def active(self) -> int:
        return int(
            self.page.locator(".jp-Notebook-cell.jp-mod-active").get_attribute(
                "data-windowed-list-index"
            )
        )

    def says(self, source: str, text: str) -> None:
        self.cell(source).locator("[role=status]", has_text=text).wait_for()

    def focused(self) -> str:
        return self.page.evaluate("document.activeElement.type ?? document.activeElement.tagName")


SCORE, SPLIT, QUIZ, TEST = (
    'predict("l1-score")',
    'predict("l3-split")',
    'quiz("lesson-01")',
    'quiz("pre-test")',
)


def test_answers_are_there_after_shift_enter(chromium, lab):
    asked = Questions(chromium, lab, 1)
    asked.lesson.run_all()
    cell = asked.cell(SCORE)
    cell.get_by_label("slept").click()
    cell.get_by_role("button", name="Check").click()
    asked.says(SCORE, "✗ Not yet.")
    asked.keyboard.press("Shift+Enter")
    asked.says(SCORE, "You said “slept”. ✗ Not yet.")
    assert asked.active() == asked[SCORE] + 1
    assert cell.get_by_label("slept").is_checked()

    quiz = asked.cell(QUIZ)
    quiz.get_by_label("all 0.25").click()
    asked.keyboard.press("Shift+Enter")
    asked.page.wait_for_function("document.activeElement.matches('.jp-Notebook-cell')")
    asked.cell(QUIZ).locator("input:checked").wait_for()
    assert quiz.get_by_label("all 0.25").is_checked()
    assert asked.lesson.tab.complaints() == []

    # A new day: another kernel, and another browser.
    asked.lesson.save()
    asked.lesson.close()
    asked = Questions(chromium, lab, 1)
    assert '"when"' not in asked.lesson.path.read_text(), "an answer stands in the notebook"
    asked.lesson.has_run = False
    asked.lesson.run_all()
    asked.says(SCORE, "You said “slept”. ✗ Not yet.")
    cell = asked.cell(SCORE)
    cell.get_by_role("button", name="Start over").click()
    asked.page.wait_for_function("!document.querySelector('.jp-mod-active :checked')")
    asked.page.wait_for_function("document.activeElement.matches('.aq input')")
    asked.keyboard.press("Shift+Enter")
    asked.page.wait_for_function("document.activeElement.matches('.jp-Notebook-cell')")
    assert asked.cell(SCORE).locator("[role=status]").inner_text() == ""


def test_by_keyboard_alone(chromium, lab):
    """What lesson 1 says about keys is true, for choices and for what is typed."""
    asked = Questions(chromium, lab, 3)
    asked.lesson.run_all()
    width = 'predict("l3-width")'
    asked.run(width)
    for key in ("Shift+Tab", "Shift+Tab"):
        asked.keyboard.press(key)
    assert (asked.focused(), asked.active()) == ("radio", asked[width])
    asked.keyboard.press("Space")
    asked.keyboard.press("ArrowUp")
    asked.keyboard.press("Enter")
    asked.says(width, "✓ Right.")
    asked.keyboard.press("Shift+Enter")
    asked.says(width, "You said")
    assert asked.active() == asked[width] + 1

    asked.run(SPLIT)
    for key in ("Shift+Tab", "Shift+Tab"):
        asked.keyboard.press(key)
    assert (asked.focused(), asked.active()) == ("text", asked[SPLIT])
    asked.keyboard.type("2, 5, 3, 4")
    asked.keyboard.press("Enter")
    asked.says(SPLIT, "✗ Not yet.")
    assert asked.focused() == "text"
    asked.keyboard.press("Escape")
    assert asked.focused() == "DIV"
    assert asked.active() == asked[SPLIT]
    asked.keyboard.press("ArrowDown")  # the notebook has the keys again
    assert asked.active() == asked[SPLIT] + 1
    for key in ("Shift+Tab", "Shift+Tab", "Shift+Tab"):  # with "Start over" on the way
        asked.keyboard.press(key)
    asked.keyboard.press("Control+a")
    asked.keyboard.type("2, 3, 5, 4")
    asked.keyboard.press("Shift+Enter")
    asked.says(SPLIT, "You said “2, 3, 5, 4”. ✓ Right.")
    assert asked.active() == asked[SPLIT] + 1
    assert asked.lesson.tab.complaints() == []


def test_before_anything_has_run(chromium, lab):
    asked = Questions(chromium, lab, 1)
    cell = asked.cell(SCORE)
    cell.get_by_label("it", exact=True).click()
    asked.keyboard.press("Enter")
    asked.says(SCORE, "✗ Not yet. A token has no preference for itself")
    quiz = asked.cell(QUIZ)
    letters, right = letters_of("lesson-01")
    for k, letter in enumerate(right):
        quiz.locator(".aq-choices").nth(k).locator("input").nth(letters[k].index(letter)).check()
    quiz.get_by_role("button", name="Hand in").click()
    asked.says(QUIZ, "3 of 3 right.")
    assert quiz.get_by_text("✓ Right.").count() == 3
    assert asked.lesson.tab.complaints() == []

    asked.page.reload()
    asked.says(SCORE, "You said “it”. ✗ Not yet.")
    asked.says(QUIZ, "You had 3 of 3 right.")
    assert not (asked.lesson.path.parent / "answers.json").exists()

    asked.lesson.tab.complaints()  # what the reload broke off
    asked.lesson.run_all()  # and the kernel takes over
    asked.says(SCORE, "You said “it”. ✗ Not yet.")
    asked.says(QUIZ, "Noted in scores.csv.")
    kept = json.loads((asked.lesson.path.parent / "answers.json").read_text())
    assert (kept["l1-score"]["checked"], kept["l1-score"]["tries"]) == ("it", 1)
    line = (asked.lesson.path.parent / "scores.csv").read_text().splitlines()[1]
    assert line.endswith(f"lesson-01,3,3,{' '.join(right)}")

    # What is answered now is newer than what the browser had, also once the kernel is gone.
    asked.cell(SCORE).get_by_label("cat", exact=True).click()
    asked.keyboard.press("Enter")
    asked.says(SCORE, "✓ Right.")
    asked.lesson.save()
    asked.page.reload()
    asked.says(SCORE, "You said “cat”. ✓ Right.")


@pytest.mark.parametrize("runs", [False, True], ids=["stored", "live"])
def test_the_pre_test_by_keyboard(chromium, lab, runs):
    asked = Questions(chromium, lab, 1)
    if runs:
        asked.lesson.run_all()
    cell, keyboard = asked.cell(TEST), asked.keyboard
    assert cell.locator("input[type=radio]:visible").count() == 0
    asked.go_to(TEST)
    keyboard.press("ArrowDown")
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")  # on Start
    entry = quiz_entry("pre-test")
    rows = [question["row"] for question in entry["questions"]]
    given = ["?"] * 12
    for k, row in enumerate(entry["order"]):
        asked.page.wait_for_function(
            """(number) => document.activeElement.matches("input[type=radio]") &&
                document.activeElement.checkVisibility() &&
                [...document.querySelectorAll(".aq-steps p")].filter((p) => p.checkVisibility())
                    .map((p) => p.textContent.match(/^\\d+ of 12 ·/)?.[0]).join("") == number""",
            arg=f"{k + 1} of 12 ·",
        )
        if k % 2 == 0:
            keyboard.press("Space")  # takes the first choice
            given[rows.index(row)] = "a"
        keyboard.press("Enter")
    asked.says(TEST, f"{sum(map(str.__eq__, given, letters_of('pre-test')[1]))} of 12 right.")
    if not runs:
        asked.lesson.run_all()
    asked.says(TEST, "Noted in scores.csv.")
    lines = (asked.lesson.path.parent / "scores.csv").read_text().splitlines()
    assert len(lines) == 2
    assert lines[1].endswith(",".join(("12", " ".join(given))))
    assert asked.lesson.tab.complaints() == []


# --- the same with Python and without -------------------------------------------------------------


@pytest.fixture(scope="module")
def page(chromium):
    """An empty page with the scripts that show what is stored."""
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    for name in ("stored.js", "reading.js", "questions.js"):
        page.add_script_tag(path=STATIC / name)
    page.evaluate("""() => {
        window.show = async (packed, kept) => {
            const node = document.createElement("div"), place = { toRun: "Run this cell" };
            place.kept = () => kept;
            place.keep = (value) => { kept = value; };
            document.body.replaceChildren(node);
            const kind = "application/vnd.attention-course.question+json";
            await attentionCourse.kinds[kind](node, { packed }, place);
            return node;
        };
        window.press = (name) => [...document.querySelectorAll("button")]
            .find((button) => button.textContent == name).click();
        window.said = () => document.querySelector("[role=status]").textContent;
    }""")
    yield page
    page.close()


TYPED = [
    *("2, 3, 5, 5", "(2,3,5,5)", "2 3 5 5", "[2, 3]", "torch.Size([2, 3])", "(2, 3,)", "2×3", "()"),
    *("", " ", "(", "2.5, 3", "2,,3", "-2, 3", "02, 3", "2;3", "x", ",", "(,)", "[]", "2x3", "(2)"),
    *("64", "64.0", "64.", "128/2", "≈ 64", "1,600", "1.600", "1 600", "1'600", "1,234,567"),
    *("1.234,5", "1,234.5", "1e6", "1/3", "50 %", "50%", "0,5", ",5", "0,500", "-3", "−3", "1/0"),
    *("1,2,3", "1/2/3", "2 + 3", "%", "/", "--3", "1e", "1E3", "١٢", "२, ३", "𝟏𝟐", "1\u2009600"),
    *("1_600", "1_60", "~5", "≈≈5", "+5", "5 % %", "1e999", "9" * 60, "'600", "a" * 61),
]


@pytest.mark.parametrize("kind", ["shape", "number"])
def test_a_text_is_read_alike(page, kind):
    script = """([kind, texts]) => texts.map((text) => attentionCourse.read(kind, text)
        .map((one) => kind == "number" ? String(one) : one).sort())"""
    found = page.evaluate(script, [kind, TYPED])
    for text, meant in zip(TYPED, found, strict=True):
        wanted = read(kind, text)
        if kind == "number":
            assert sorted({float(number) for number in meant if number != "NaN"}) == pytest.approx(
                sorted(wanted), rel=1e-15
            ), text
        else:
            assert meant == [",".join(map(str, shape)) or "()" for shape in wanted], text


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_prediction_says_the_same(page, name):
    entry = PREDICTIONS[name]
    right = entry["right"]
    right = ", ".join(map(str, right)) if isinstance(right, list) else str(right)
    answers = [right, *entry.get("wrong", {})]
    if entry["kind"] != "choice":
        answers += ["", "no idea", "x" * 100, "7", "7, 7"]
    for answer in answers:
        live = Prediction(name, entry)
        live.control.value = answer
        live.check()
        said = page.evaluate(
            """async ([packed, answer]) => {
                await show(packed);
                const field = document.querySelector("[type=text]");
                if (field) {
                    field.value = answer;
                    field.dispatchEvent(new Event("input"));
                } else [...document.querySelectorAll("label")]
                    .find((label) => label.textContent == answer).click();
                press("Check");
                return said();
            }""",
            [pack(live.content()), answer],
        )
        assert said.strip() == text_of(live.feedback.value).strip(), answer


@pytest.mark.parametrize("name", QUIZZES)
def test_a_quiz_says_the_same(page, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    letters, right = letters_of(name)
    ways = (right, [known[0] for known in letters], [known[-1] for known in letters])
    for when, given in enumerate(ways):
        record = {"chosen": " ".join(given), "handed_in": " ".join(given), "when": when}
        remember(name, record)
        live = quiz(name)
        shown = page.evaluate(
            """async ([packed, letters]) => {
                await show(packed, {
                    question: "NAME", when: 1, chosen: letters, handed_in: letters, step: null,
                });
                return [said(), [...document.querySelectorAll(".aq-text")]
                    .map((text) => text.textContent).filter((text) => /^[✓✗]/.test(text))];
            }""".replace("NAME", name),
            [pack(live.content()), " ".join(given)],
        )
        notes = [text_of(note.value) for note in live.notes if note.value]
        assert shown == [text_of(live.feedback.value), notes]


def text_of(shown: str) -> str:
    return html.unescape(re.sub("<[^>]+>", "", shown))


EVIL = '<img src=x onerror="window.stolen = 1"><script>window.stolen = 1</script>`<b>`'


def test_what_a_notebook_holds_is_shown_and_never_run(page):
    entry = {
        "kind": "choice",
        "question": EVIL,
        "choices": [EVIL, "b"],
        "right": EVIL,
        "why": EVIL,
        "wrong": {"b": EVIL},
    }
    page.evaluate("(packed) => show(packed)", pack({"id": "evil", **entry}))
    for label in (EVIL, "b"):
        page.get_by_text(label, exact=True).last.click()
        page.evaluate("press('Check')")
    assert page.locator(".aq img, .aq script, .aq b").count() == 0
    assert page.evaluate("window.stolen") is None


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"id": "x", "kind": "choice", "question": "?"},
        {"id": "x", "kind": "poem", "question": "?", "why": "."},
        {"id": "x", "questions": [{"question": "?"}]},
        {"id": "x", "questions": {"length": 1}},
        {"id": 3, "kind": "number", "question": "?", "right": 1, "why": ".", "hint": "."},
    ],
)
def test_what_is_no_question_is_not_shown(page, content):
    shown = page.evaluate("(packed) => show(packed).then(() => 1, () => 0)", pack(content))
    assert shown == 0


@pytest.mark.parametrize(
    "kept", [None, 3, {"question": "l1-and", "when": 1, "chosen": "cat"}, {"question": "l1-score"}]
)
def test_what_is_no_answer_to_this_question_is_passed_over(page, kept):
    packed = pack(Prediction("l1-score", PREDICTIONS["l1-score"]).content())
    page.evaluate("([packed, kept]) => show(packed, kept).then(() => {})", [packed, kept])
    assert page.locator(".aq :checked").count() == 0
    assert page.evaluate("said()") == ""


def test_no_right_answer_can_be_read_in_a_stored_notebook():
    for path in NOTEBOOKS:
        text = Path(path).read_text()
        for entry in itertools.chain(
            PREDICTIONS.values(), *(q["questions"] for q in QUIZZES.values())
        ):
            assert not entry.get("why") or entry["why"].strip() not in text
