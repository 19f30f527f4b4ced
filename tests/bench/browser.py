"""Key press to changed pixels, and the first minutes, in a real JupyterLab in headless Chromium."""

import statistics
import tempfile
import time
from pathlib import Path

import nbformat

# The harness of the browser tests.
from conftest import Lab, Tab, find_chromium
from playwright.sync_api import sync_playwright
from table import Row, quartiles

SECTION = "Slider to pixels"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update"
)

SETUP = """
import matplotlib.pyplot as plt, torch, ipywidgets as widgets
from IPython.display import display
from course_utils.attention import MultiHeadAttention
from course_utils.sliders import *
torch.manual_seed(0)
layer, x = MultiHeadAttention(64, 1), torch.randn(1, 8, 64)
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
        cut = MultiHeadAttention(64, num_heads)
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

# name: (code of the cell, where it is drawn, the setting)
SMALL, LARGE = "L = 8, D = 64", "L = 16, D = 64, up to H = 16"
SUBJECTS = {
    "echo": ("echo([1, 2, 4, 8])", "html", SMALL),
    "explore_heads": ("explore_heads(layer, x)", "html", SMALL),
    "explore_split": ("explore_split(64)", "html", SMALL),
    "explore_query": ("explore_query(q, k, v)", "html", SMALL),
    "explore_scale": ("explore_scale(num_tokens=8)", "html", SMALL),
    "interact": ("pyplot(layer, x, [1, 2, 4, 8])", "output", SMALL),
    "echo, large": ("echo([1, 2, 4, 8, 16])", "html", LARGE),
    "explore_heads, large": ("explore_heads(layer, long)", "html", LARGE),
    "interact, large": ("pyplot(layer, long, [1, 2, 4, 8, 16])", "output", LARGE),
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
        times, blanks, key, stuck = [], 0, "ArrowRight", 0
        while len(times) < count:
            output.evaluate(WATCH, kind)
            handle.focus()
            self.page.keyboard.press(key)
            try:
                self.page.wait_for_function("() => bench.change > bench.key", timeout=1500)
            except Exception:  # the end of the slider: turn round
                key = {"ArrowRight": "ArrowLeft", "ArrowLeft": "ArrowRight"}[key]
                stuck += 1
                if stuck > count:
                    raise
                self.page.evaluate("() => bench.stop()")
                continue
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


def measure(quick: bool) -> list[Row]:
    if find_chromium() is None:
        return [Row(SECTION, "everything", None, note="there is no Chromium")]
    count = 6 if quick else 100
    rows = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS.split())
        bench = Bench(browser, Path(folder))
        try:
            found = {name: bench.moves(name, count) for name in SUBJECTS}
            held = {name: bench.hold(name) for name in SUBJECTS}
        finally:
            bench.lab.stop()
            browser.close()
    for name, (_, _, setting) in SUBJECTS.items():
        times, blanks = found[name]
        echo, _ = found["echo" if setting == SMALL else "echo, large"]
        rival, _ = found["interact" if setting == SMALL else "interact, large"]
        median, low, high = quartiles(times)
        base = statistics.median(echo)
        ms = f"{median:.0f} ms, worst {max(times):.0f} ms"
        what = f"{name.removesuffix(', large')}, {setting}"
        if name.startswith("echo"):
            rows.append(Row(SECTION, f"{what}: the floor", 1.0, low / base, high / base, note=ms))
            continue
        goal = None if name.startswith("interact") else ("<=", 1.5)
        rows.append(
            Row(
                SECTION,
                f"{what}, against the echo",
                median / base,
                low / base,
                high / base,
                goal,
                note=ms,
            )
        )
        lag = held[name] / statistics.median(echo)
        if name.startswith("interact"):
            rows.append(Row(SECTION, f"{what}: blank frames in {count} moves", blanks, unit=""))
            rows.append(Row(SECTION, f"{what}: last picture after a held key, in echoes", lag))
            continue
        rows += [
            Row(
                SECTION,
                f"{what}: worst against the echo's worst",
                max(times) / max(echo),
                goal=("<=", 3),
            ),
            Row(
                SECTION,
                f"{what}: interact + pyplot against it",
                statistics.median(rival) / median,
                goal=(">=", 4),
            ),
            Row(SECTION, f"{what}: blank frames in {count} moves", blanks, goal=("<=", 0), unit=""),
            Row(SECTION, f"{what}: last picture after a held key, in echoes", lag, goal=("<=", 2)),
        ]
    return rows


def measure_first_lesson(quick: bool) -> list[Row]:
    """Seconds from `make lab`, everything installed, until lesson 1 can be read."""
    section = "First minutes"
    if find_chromium() is None:
        return [Row(section, "make lab until lesson 1 is there", None, note="there is no Chromium")]
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS.split())
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
