"""Key press to changed pixels, and the first minutes, in a real JupyterLab in headless Chromium."""

import statistics
import tempfile
import time
from pathlib import Path

import nbformat

# The harness of the browser tests.
from conftest import FLAGS, NOTEBOOKS, Lab, Lesson, Tab, find_chromium
from playwright.sync_api import TimeoutError, sync_playwright
from table import Row, quartiles

SECTION = "Slider to pixels"

SETUP = """
import matplotlib.pyplot as plt, torch, ipywidgets as widgets
from IPython.display import display
from course_utils.attention import MultiHeadAttention as CourseLayer
from course_utils.sliders import *
torch.manual_seed(0)
layer, x = CourseLayer(64, 1), torch.randn(1, 8, 64)
long = torch.randn(1, 16, 64)
q, k, v = torch.randn(3, 8, 16)
"""

ECHO = """
def echo(options):
    slider = widgets.SelectionSlider(options=options, description="heads H")
    label = widgets.HTML(str(slider.value))
    slider.observe(lambda change: setattr(label, "value", str(change["new"])), "value")
    return widgets.VBox([slider, label])
"""

PYPLOT = """
def pyplot(layer, x, options):
    def draw(num_heads):
        cut = CourseLayer(64, num_heads)
        cut.load_state_dict(layer.state_dict())
        with torch.no_grad():
            _, weights = cut(x)
        figure, axes = plt.subplots(1, num_heads, figsize=(2.2 * num_heads, 2.4), squeeze=False)
        for head, ax in enumerate(axes[0]):
            ax.imshow(weights[0, head], vmin=0, vmax=1)
            ax.set_title(f"head {head}")
        plt.show()
    widgets.interact(draw, num_heads=widgets.SelectionSlider(options=options))
"""

NOTEBOOK_OF = {path.name[:2]: path for path in NOTEBOOKS}


def from_lesson(number: str, *ids: str) -> str:
    """The source of some cells of a lesson."""
    cells = nbformat.read(NOTEBOOK_OF[number], as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.id in ids)


REAL_MODEL = from_lesson("08", "setup", "attention", "encoder-layer", "encoder", "fill", "fill-all")
IMAGES = from_lesson("09", "setup", "class")

# name: (code of the cell, where it is drawn, the setting); the last line shows something.
SMALL, LARGE = "L = 8, D = 64", "L = 16, D = 64"
SUBJECTS = {
    "echo": ("echo([1, 2, 4, 8])", "html", SMALL),
    "explore_heads": ("explore_heads(layer, x)", "html", SMALL),
    "explore_split": ("explore_split(64)", "html", SMALL),
    "explore_query": ("explore_query(q, k, v)", "html", SMALL),
    "explore_query, drawn": ("explore_query(q[:, :4], k[:, :4], v[:, :2])", "html", SMALL),
    "explore_mixture": ("explore_mixture(q, k, v[:, :2])", "html", SMALL),
    "explore_lines": ("explore_lines(torch.rand(4, 8, 8).softmax(-1))", "html", SMALL),
    "explore_animal": ("explore_animal()", "html", "L = 16"),
    "explore_average": ("explore_average(torch.rand(2, 2, 3, 3).softmax(-1))", "html", SMALL),
    "explore_blocks": ("explore_blocks()", "html", "L = 3, D = 8"),
    "explore_block": ("explore_block()", "html", "L = 16, D = 384"),
    "explore_layer": ("explore_layer()", "html", "L = 6, D = 16"),
    "explore_scale": ("explore_scale(num_tokens=8)", "html", SMALL),
    "explore_shared_heads": (
        "explore_shared_heads(torch.randn(8, 8, 8), torch.randn(8, 8, 8))",
        "html",
        SMALL,
    ),
    "explore_masks": ("explore_masks(CourseLayer(64, 4), x)", "html", SMALL),
    "explore_head_counts": (
        "counts = [1, 2, 4, 8]\n"
        "accuracies = {h: torch.rand(5).tolist() for h in counts}\n"
        "maps = {h: torch.rand(5, h, 8).softmax(-1) for h in counts}\n"
        'explore_head_counts({"task": accuracies}, {"task": maps}, embed_dim=64)',
        "html",
        SMALL,
    ),
    "interact": ("pyplot(layer, x, [1, 2, 4, 8])", "output", SMALL),
    "echo, large": ("echo([1, 2, 4, 8, 16])", "html", LARGE),
    "explore_heads, large": ("explore_heads(layer, long)", "html", LARGE),
    "interact, large": ("pyplot(layer, long, [1, 2, 4, 8, 16])", "output", LARGE),
    # Last, since the lessons' cells use names of their own.
    "explore_sentence": (
        f'{REAL_MODEL}\nexplore_sentence(encoder, "The cat sat on the mat.")',
        "html",
        "lesson 8, 9 tokens",
    ),
    "explore_digits": (
        f"{IMAGES}\nmodels = {{h: PatchClassifier(h).eval().requires_grad_(False) "
        "for h in (1, 2, 4, 8)}\nexplore_digits(models, test_images[:20], test_labels[:20])",
        "html",
        "lesson 9, 16 patches",
    ),
}

# Follows one view. A frame counts as changed when what it shows is another than at the key press
# and every picture in it is there; its pixels are on the screen when the next frame begins.
WATCH = """(output, kind) => {
    // What is shown: the last HTML widget's text, or all pictures of an output; null if nothing is.
    const shown = () => {
        if (kind == "output") {
            const pictures = [...output.querySelectorAll("img")];
            const there = pictures.length && pictures.every((img) => img.complete);
            return there ? pictures.map((img) => img.src).join() : null;
        }
        const node = [...output.querySelectorAll(".widget-html-content")].at(-1);
        return node && node.getBoundingClientRect().height > 2 ? node.innerHTML : null;
    };
    const w = window.bench = {before: shown(), key: 0, change: 0, blanks: 0, dirty: false};
    w.stop && w.stop();
    const pressed = () => { w.key = performance.now(); };
    document.addEventListener("keydown", pressed, true);
    const observer = new MutationObserver(() => { w.dirty = true; });
    const all = {childList: true, subtree: true, characterData: true, attributes: true};
    observer.observe(output, all);
    let last = w.before, running = true;
    const frame = () => {
        if (!running) return;
        if (w.dirty) {
            w.dirty = false;
            const now = shown();
            if (now === null) { w.blanks += 1; w.dirty = true; }
            else if (now !== last) {
                last = now;
                requestAnimationFrame(() => { w.change = performance.now(); w.changes += 1; });
            }
        }
        requestAnimationFrame(frame);
    };
    w.changes = 0;
    requestAnimationFrame(frame);
    w.stop = () => { running = false; observer.disconnect();
                     document.removeEventListener("keydown", pressed, true); };
}"""


class Bench:
    """A notebook with every subject in a cell of its own, open and run."""

    def __init__(self, chromium, folder: Path) -> None:
        self.lab = Lab(folder)
        cells = [nbformat.v4.new_code_cell(SETUP + ECHO + PYPLOT)]
        cells += [nbformat.v4.new_code_cell(code) for code, _, _ in SUBJECTS.values()]
        notebook = nbformat.v4.new_notebook(cells=cells)
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, folder / "notebooks" / "bench.ipynb")
        self.tab = Tab(chromium, self.lab, "notebooks/bench.ipynb")
        self.page = self.tab.page
        self.page.set_viewport_size({"width": 1600, "height": 1000})
        self.tab.menu("Run", "Run All Cells")
        self.page.wait_for_function(
            """(count) => document.querySelector(".jp-Notebook-ExecutionIndicator").dataset.status
                == "idle" && [...document.querySelectorAll(".jp-InputPrompt")]
                .filter((prompt) => /\\d/.test(prompt.textContent)).length >= 1""",
            arg=len(cells),
        )
        time.sleep(5)

    def subject(self, name: str):
        """The output of a subject, its slider's handle, and how many stops the slider has."""
        index = list(SUBJECTS).index(name) + 1
        cell = self.page.locator(f".jp-Notebook-cell[data-windowed-list-index='{index}']")
        if not cell.count():
            self.page.locator(".jp-WindowedPanel-outer").first.evaluate(
                "(e, share) => e.scrollTop = share * e.scrollHeight", index / len(SUBJECTS)
            )
        output = cell.locator(".jp-Cell-outputArea").first
        output.scroll_into_view_if_needed()
        output.evaluate("(e) => e.scrollIntoView({block: 'start'})")
        self.page.wait_for_timeout(300)
        return output, output.locator(".noUi-handle").first

    def moves(self, name: str, count: int) -> tuple[list[float], int]:
        """Milliseconds from key press to changed pixels, and frames in which nothing was shown."""
        output, handle = self.subject(name)
        kind = SUBJECTS[name][1]
        handle.focus()
        self.page.keyboard.press("Home")
        self.page.wait_for_timeout(700)
        times, blanks, key = [], 0, "ArrowRight"
        for _ in range(count):
            now, last = (float(handle.get_attribute(f"aria-value{end}")) for end in ("now", "max"))
            key = "ArrowLeft" if now == last else "ArrowRight" if now == 0 else key
            output.evaluate(WATCH, kind)
            self.page.keyboard.press(key)
            try:
                self.page.wait_for_function("() => bench.change > bench.key", timeout=10_000)
            except TimeoutError as error:
                raise RuntimeError(f"{name} shows nothing new after {key} at {now}") from error
            self.page.wait_for_timeout(60)
            seen = self.page.evaluate("() => { bench.stop(); return bench; }")
            times.append(seen["change"] - seen["key"])
            blanks += seen["blanks"]
        return times, blanks

    def hold(self, name: str, keys: int = 30) -> float:
        """Milliseconds from the last of 30 quick key presses to the last picture."""
        output, handle = self.subject(name)
        handle.focus()
        self.page.keyboard.press("Home")
        self.page.wait_for_timeout(700)
        output.evaluate(WATCH, SUBJECTS[name][1])
        # To the end and back, as fast as a held key repeats: 33 ms.
        lag = self.page.evaluate(
            """async ([handle, keys, stops]) => {
                const pause = (ms) => new Promise((done) => setTimeout(done, ms));
                for (let i = 0; i < keys; i++) {
                    const right = Math.floor(i / (stops - 1)) % 2 == 0;
                    handle.dispatchEvent(new KeyboardEvent("keydown", {
                        key: right ? "ArrowRight" : "ArrowLeft", bubbles: true}));
                    await pause(33);
                }
                await pause(2500);
                bench.stop();
                return [bench.change - bench.key, bench.changes];
            }""",
            [handle.element_handle(), keys, self.stops(handle)],
        )
        return lag[0]

    def stops(self, handle) -> int:
        return int(handle.evaluate("(e) => Math.round(+e.getAttribute('aria-valuemax'))")) + 1


def count_of(name: str, quick: bool) -> int:
    """How many moves: a hundred where the goals were set, fewer for the other explorers."""
    main = name.startswith(("echo", "explore_heads", "interact"))
    return 6 if quick else 100 if main else 40


def measure(quick: bool) -> list[Row]:
    if find_chromium() is None:
        return [Row(SECTION, "everything", None, note="there is no Chromium")]
    rows = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        bench = Bench(browser, Path(folder))
        try:
            found = {name: bench.moves(name, count_of(name, quick)) for name in SUBJECTS}
            held = {name: bench.hold(name) for name in SUBJECTS}
        finally:
            bench.lab.stop()
            browser.close()
    for name, (_, _, setting) in SUBJECTS.items():
        size = ", large" if setting == LARGE else ""
        floor, rival = found[f"echo{size}"][0], found[f"interact{size}"][0]
        rows += rows_of(
            f"{name.removesuffix(size)}, {setting}", *found[name], held[name], floor, rival
        )
    return rows


def rows_of(what: str, times: list, blanks: int, lag: float, floor: list, rival: list) -> list[Row]:
    """The lines about one subject; the goals are for the explorers."""
    goals = [("<=", 1.5), ("<=", 3), (">=", 4), ("<=", 0), ("<=", 2)]
    if not what.startswith("explore_"):
        goals = [None] * 5
    base, (median, low, high) = statistics.median(floor), quartiles(times)
    note = f"{median:.0f} ms, worst {max(times):.0f} ms"
    against = f"{what}: against the echo slider"
    return [
        Row(SECTION, against, median / base, low / base, high / base, goals[0], note=note),
        Row(SECTION, f"{what}: worst against its worst", max(times) / max(floor), goal=goals[1]),
        Row(
            SECTION,
            f"{what}: how much quicker than interact + pyplot",
            statistics.median(rival) / median,
            goal=goals[2],
        ),
        Row(SECTION, f"{what}: blank frames", blanks, goal=goals[3], unit=""),
        Row(
            SECTION, f"{what}: last picture after a held key, in echoes", lag / base, goal=goals[4]
        ),
    ]


# Milliseconds of work for each move through the stops of a stored explorer's first control: the
# view built anew and laid out. What is painted comes with the next frame.
MOVE_STORED = """(node) => {
    const input = node.querySelector("input[type=range]"), times = [];
    for (let i = 1; i <= 40; i++) {
        input.value = i % (+input.max + 1);
        const start = performance.now();
        input.dispatchEvent(new Event("input", { bubbles: true }));
        node.getBoundingClientRect();
        times.push(performance.now() - start);
    }
    return times;
}"""


def measure_stored(quick: bool) -> list[Row]:
    """The work of a move before any cell has run, for every explorer of every lesson."""
    section = "Before any cell has run"
    if find_chromium() is None:
        return [Row(section, "work of a move", None, note="there is no Chromium")]
    rows = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        lab = Lab(Path(folder))
        try:
            for path in NOTEBOOKS[3:4] if quick else NOTEBOOKS:
                lesson = Lesson(browser, lab, path)
                for k, explorer in enumerate(lesson.explorers(), start=1):
                    node = lesson.output(explorer)
                    node.locator(".ac-explorer-view > *").first.wait_for()
                    times = node.evaluate(MOVE_STORED)
                    what = f"lesson {int(path.stem[:2])}, explorer {k}: work of a move"
                    note = f"worst {max(times):.0f} ms"
                    rows.append(
                        Row(section, what, *quartiles(times), ("<=", 17), unit=" ms", note=note)
                    )
                lesson.close()
        finally:
            lab.stop()
            browser.close()
    return rows


def measure_first_lesson(quick: bool) -> list[Row]:
    """Seconds from `make lab`, everything installed, until lesson 1 can be read."""
    section = "First minutes"
    if find_chromium() is None:
        return [Row(section, "make lab until lesson 1 is there", None, note="there is no Chromium")]
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        for _ in range(1 if quick else 3):
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                lab = Lab(Path(folder))
                try:
                    page = browser.new_page()
                    page.goto(lab.printed_url)
                    page.locator(".jp-NotebookPanel:visible h1").first.wait_for(timeout=90_000)
                    found.append(time.perf_counter() - start)
                finally:
                    lab.stop()
        browser.close()
    what = "make lab until lesson 1 can be read, in seconds"
    return [Row(section, what, *quartiles(found), unit=" s")]
