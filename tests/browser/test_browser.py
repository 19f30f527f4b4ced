"""The course as a learner meets it: JupyterLab from `make lab`, every notebook, every slider."""

import base64
import contextlib
import math
import re
import socket
import time
import urllib.error
import urllib.request

import pytest
from conftest import EXPLORERS, NOTEBOOKS, PATIENCE, WIDGET, Lab, Tab, is_explorer

# --- the server ---------------------------------------------------------------------------------


def test_first_start_opens_lesson_1_and_nothing_else(chromium, tmp_path):
    lab = Lab(tmp_path)
    try:
        first = NOTEBOOKS[0].name
        tab = Tab(chromium, lab, f"notebooks/{first}", lab.printed_url)
        # JupyterLab's question about news comes up before the kernel is there.
        assert tab.complaints() == []
        assert tab.page.locator(".lm-DockPanel-tabBar .lm-mod-current").inner_text() == first
        tab.page.locator(".jp-NotebookPanel:visible h1").first.wait_for()
        tab.page.close()
    finally:
        lab.stop()


@pytest.mark.parametrize(
    ("plugin", "setting", "wanted"),
    [
        ("@jupyterlab/apputils-extension:notification", "fetchNews", "false"),
        ("@jupyterlab/apputils-extension:notification", "checkForUpdates", False),
        ("@jupyter-widgets/jupyterlab-manager:plugin", "saveState", True),
    ],
)
def test_the_course_settings_reach_jupyterlab(lab, plugin, setting, wanted):
    about = lab.api(f"lab/api/settings/{plugin}")
    assert about["schema"]["properties"][setting]["default"] == wanted


def test_server_is_reached_from_this_machine_only(lab):
    port = int(lab.base.rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    # A server that listens on every address of the machine would answer on these too.
    others = ["127.0.0.2"]
    with socket.socket(type=socket.SOCK_DGRAM) as no_packet, contextlib.suppress(OSError):
        no_packet.connect(("192.0.2.1", 9))
        others.append(no_packet.getsockname()[0])
    for address in others:
        with socket.socket() as stranger:
            stranger.settimeout(2)
            assert stranger.connect_ex((address, port)) != 0, address


@pytest.mark.parametrize("token", ["", "0" * 48])
def test_server_refuses_who_has_no_token(lab, token):
    for path in ("api/contents", "api/sessions", "api/kernels"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            lab.api(path, token=token)
    with urllib.request.urlopen(f"{lab.base}/lab?token={token}", timeout=PATIENCE) as answer:
        assert "/login" in answer.url


# --- every notebook -----------------------------------------------------------------------------


def test_opened_before_running(lesson):
    code = [cell.source for cell in lesson.stored().cells if cell.cell_type == "code"]
    assert bool(lesson.explorers()) == ("explore_" in "".join(code))
    for cell, output, stored in lesson.widgets():
        shown = lesson.shown(cell, output)
        if is_explorer(stored):
            assert "image/png" in stored, "an explorer's output was stored without its picture"
            assert list(map(png, shown["pictures"])) == [png(stored["image/png"])]
            assert shown["text"] == ""
        else:
            assert shown["text"].split() == stored["text/plain"].split()
    assert scroll_bars(lesson) == []


def test_run_all(lesson):
    lesson.run_all()
    code = [cell for cell in lesson.stored().cells if cell.cell_type == "code" and cell.source]
    for output in [output for cell in code for output in cell.outputs]:
        assert output.output_type != "error", output
        assert output.get("name") != "stderr", output
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    page = lesson.tab.page
    assert page.locator("[data-mime-type$=error], [data-mime-type$=stderr]").count() == 0
    assert "Error displaying widget" not in page.locator(".jp-Notebook").text_content()
    assert scroll_bars(lesson) == []


def test_every_control_shows_what_the_kernel_holds(lesson):
    lesson.run_all()
    for cell, output, stored in lesson.explorers():
        Controls(lesson, cell, output, stored).walk()
        assert scroll_bars(lesson) == []


def test_saved_closed_and_opened_again(lesson):
    lesson.run_all()
    for cell, output, stored in lesson.explorers():
        controls = Controls(lesson, cell, output, stored)
        controls.press(controls.sliders[0], "End")  # not where it stood at first
    last_views = [lesson.shown(cell, output) for cell, output, _ in lesson.widgets()]
    lesson.save()
    assert lesson.tab.complaints() == []
    lesson.close()

    lesson.open()
    assert lesson.kernel.ask("str(get_ipython().execution_count)") == 1  # a new kernel
    for (cell, output, stored), last in zip(lesson.widgets(), last_views, strict=True):
        assert last["text"]

        def difference(cell=cell, output=output, stored=stored, last=last):
            shown = lesson.shown(cell, output)
            if shown["pictures"]:  # a picture is as good
                same = list(map(png, shown["pictures"])) == [png(stored["image/png"])]
                return None if same else "another picture than the stored one"
            return None if shown == last else f"{shown['text']!r} instead of {last['text']!r}"

        eventually(lesson, difference)
    assert scroll_bars(lesson) == []


# --- moving controls ----------------------------------------------------------------------------


class Controls:
    """The controls of one explorer on the page, moved by keyboard."""

    def __init__(self, lesson, cell: int, output: int, stored: dict) -> None:
        self.lesson, self.place, self.model_id = lesson, (cell, output), stored[WIDGET]["model_id"]
        controls = self.held()["controls"]
        found = lesson.output(cell, output).locator(".noUi-handle, input[type=checkbox]")
        assert found.count() == len(controls) > 0
        self.on_page = {name: found.nth(i) for i, name in enumerate(controls)}
        self.switches = [name for name in controls if isinstance(self.position(name), bool)]
        self.sliders = [name for name in controls if name not in self.switches]

    def held(self) -> dict:
        """The explorer's state and controls, from the kernel."""
        return self.lesson.kernel.ask(EXPLORERS)[self.model_id]

    def position(self, name: str) -> int | bool:
        return self.held()["controls"][name]["position"]

    def last(self, name: str) -> int:
        return len(self.held()["controls"][name]["labels"]) - 1

    def press(self, name: str, key: str) -> None:
        """Press a key on a control, and wait until kernel and page have followed."""
        wanted = {
            "Home": lambda: 0,
            "End": lambda: self.last(name),
            "ArrowLeft": lambda: max(self.position(name) - 1, 0),
            "ArrowRight": lambda: min(self.position(name) + 1, self.last(name)),
            "Space": lambda: not self.position(name),
        }[key]()
        self.on_page[name].focus()
        self.lesson.tab.page.keyboard.press(key)

        def difference():
            held = self.held()
            position = held["controls"][name]["position"]
            if position != wanted:
                return f"after {key} {name} stands at {position}, not at {wanted}"
            found = compare(self.lesson.shown(*self.place), held)
            return found and f"after {key} on {name}: {found}"

        eventually(self.lesson, difference)

    def walk(self) -> None:
        """Move every slider through its whole range, under every setting of the switches."""
        self.tab_through()
        for turn in range(2 ** len(self.switches)):
            if turn:  # one switch at a time, and each combination is met once
                self.press(self.switches[(turn & -turn).bit_length() - 1], "Space")
            for name in self.sliders:
                self.press(name, "Home")
                for _ in range(self.last(name) + 1):  # the last one changes nothing
                    self.press(name, "ArrowRight")
                self.press(name, "ArrowLeft")
        for name in self.switches:  # off again while a slider may stand where it must not then
            if self.position(name):
                self.press(name, "Space")

    def tab_through(self) -> None:
        """Reach every control from the first one, with the Tab key alone."""
        first, *others = self.on_page.values()
        first.focus()
        for control in others:
            for _ in range(2):  # the number beside a slider takes the focus as well
                self.lesson.tab.page.keyboard.press("Tab")
                if control.evaluate("(node) => node == document.activeElement"):
                    break
            else:
                pytest.fail(f"Tab does not lead to {control}")


def eventually(lesson, difference) -> None:
    """Wait until a comparison finds no difference; the last one found is the failure's text."""
    deadline = time.monotonic() + 20
    while found := difference():
        if time.monotonic() > deadline:
            pytest.fail(found)
        lesson.tab.page.wait_for_timeout(10)


def compare(shown: dict, held: dict) -> str | None:
    """The first difference between what is seen and what the kernel holds."""
    state, controls = held["state"], held["controls"]
    for name, control in controls.items():
        if state[name] != control["value"]:
            return f"the state has {name} {state[name]}, its control {control['value']}"
    labels = [c["labels"][c["position"]] for c in controls.values() if c["labels"]]
    if shown["readouts"] != labels:
        return f"beside the sliders stands {shown['readouts']}, not {labels}"
    if "error" in state:
        # Only the switch that lets any number in may lead to an error.
        if not controls.get("any_number", {}).get("value"):
            return f"an error without having asked for it: {state['error']}"
        if shown["errors"] != [f"⚠ {state['error']}"] or shown["tables"]:
            return f"not just the message {state['error']!r}: {shown['text']}"
        return None
    if shown["errors"]:
        return f"error text: {shown['errors']}"
    wanted = tables_of(state)
    if [table["kind"] for table in shown["tables"]] != [kind for kind, _ in wanted]:
        return f"{[t['kind'] for t in shown['tables']]} tables, not {[k for k, _ in wanted]}"
    for table, (kind, rows) in zip(shown["tables"], wanted, strict=True):
        where = f"{table['caption']!r}"
        if [len(row) for row in table["rows"]] != [len(row) for row in rows]:
            return f"{where} has other rows: {table['rows']} for {rows}"
        for row, numbers in zip(table["rows"], rows, strict=True):
            for text, number in zip(row, numbers, strict=True):
                if number is not None and not same_numbers(text, number):
                    return f"{where} shows {text} for {number}"
        if kind == "map":
            exact = [text.rpartition(": ")[2] for text in table["hovers"]]
            weights = [weight for row in rows for weight in row]
            if exact and not (
                len(exact) == len(weights) and all(map(same_numbers, exact, weights))
            ):
                return f"{where} says {table['hovers']} for {weights}"
            if "rgba(0, 0, 0, 0)" in table["shades"]:
                return f"{where} has cells without a colour"
    return None


def tables_of(state: dict) -> list[tuple[str, list[list]]]:
    """Kind and numbers of each table that shows a state; None where no number is held."""
    if "features" in state:  # explore_split
        strip = [[feature for own in state["features"] for feature in own]]
        return [
            ("strip", strip),
            ("plain", [[None, shape] for shape in state["shapes"].values()]),
        ]
    if "output" in state:  # explore_query
        weights, values = state["weights"], state["values"]
        looks = [[s, None, w] for s, w in zip(state["scores"], weights, strict=True)]
        mixes = [[v, [w * x for x in v]] for w, v in zip(weights, values, strict=True)]
        return [
            ("plain", [*looks, [None, None, sum(weights)]]),
            ("plain", [*mixes, [None, state["output"]]]),
        ]
    maps = [("map", head) for head in state["weights"]]
    if "entropy" in state:  # explore_scale
        softness = [list(row) for row in zip(state["entropy"], state["gradient_norm"], strict=True)]
        means = [state["mean_entropy"], state["mean_gradient_norm"]]
        return [("plain", state["scores"][0]), *maps, ("plain", [*softness, means])]
    if "stored_weights" in state:  # explore_heads
        heads = state["num_heads"]
        assert len(maps) == (1 if state["averaged"] else heads)
        low, high = state["row_sums"]
        n, length = state["output_shape"][:2]
        facts = [
            [state["head_dim"] * heads, heads, state["head_dim"]],
            state["output_shape"],
            state["weights_shape"],
            state["parameters"],
            [n, heads, length, state["stored_weights"]],
            [low, high] if high - low >= 0.005 else low,
        ]
        return [("plain", [[fact] for fact in facts]), *maps]
    return maps  # an explorer of which only the maps are known here


def same_numbers(text: str, wanted) -> bool:
    """Whether a text shows just these numbers, each rounded to the places that it shows."""
    found = re.findall(r"-?\d+(?:,\d{3})*(?:\.\d+)?", text)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    return len(found) == len(wanted) and all(map(same_number, found, wanted))


def same_number(text: str, wanted: float) -> bool:
    places = len(text.partition(".")[2])
    rounding = 0.5 * 10**-places if places else 0
    return math.isclose(float(text.replace(",", "")), wanted, rel_tol=0, abs_tol=rounding + 1e-9)


# --- reading the page ---------------------------------------------------------------------------


def png(source: str) -> bytes:
    return base64.b64decode(source.rpartition(",")[2])


def scroll_bars(lesson) -> list[str]:
    """Everything inside a cell that is wider or higher than the box that would scroll it."""
    return lesson.tab.page.evaluate("""() => {
        const found = [];
        for (const cell of document.querySelectorAll(".jp-Notebook-cell")) {
            cell.scrollIntoView();
            if (cell.matches(".jp-mod-outputsScrolled")) found.push("scrolled: " + cell.innerText);
            const inside = ".jp-Cell-outputArea, .jp-Cell-outputArea *, .jp-RenderedMarkdown";
            for (const node of cell.querySelectorAll(inside)) {
                const style = getComputedStyle(node);
                const scrolls = (overflow) => /auto|scroll/.test(overflow);
                if (scrolls(style.overflowX) && node.scrollWidth > node.clientWidth + 1
                    || scrolls(style.overflowY) && node.scrollHeight > node.clientHeight + 1)
                    found.push(`${node.className}: ${node.scrollWidth}x${node.scrollHeight} in ` +
                        `${node.clientWidth}x${node.clientHeight}: ${node.innerText.slice(0, 80)}`);
            }
        }
        return found;
    }""")
