"""The course as a learner meets it: JupyterLab from `make lab`, every notebook, every slider."""

import contextlib
import math
import re
import socket
import time
import urllib.error
import urllib.request
from itertools import groupby

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import EXPLORERS, NOTEBOOKS, PATIENCE, VIEWS, Explorer, Lab, Tab
from stored import Stored, stored_views

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


def test_jupyterlab_asks_for_no_news(lab):
    about = lab.api("lab/api/settings/@jupyterlab/apputils-extension:notification")
    settings = about["schema"]["properties"]
    assert settings["fetchNews"]["default"] == "false"
    assert settings["checkForUpdates"]["default"] is False


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
    """Sliders move although the notebook is not trusted, and no cell has run."""
    cells = lesson.lab.api(f"api/contents/{lesson.name}")["content"]["cells"]
    eventually(lesson, lambda: broken_outputs(lesson))
    notebook = lesson.stored()
    for explorer in lesson.explorers():
        assert cells[explorer.cell]["metadata"]["trusted"] is False
        Stored(lesson, explorer, stored_views(notebook, explorer)).walk()
    assert lesson.kernel.ask("str(get_ipython().execution_count)") == 1
    assert not lesson.tab.page.locator(".jp-mod-dirty").count()
    eventually(lesson, lambda: broken_outputs(lesson) or barriers(lesson))


def test_run_all(lesson):
    lesson.run_all()
    code = [cell for cell in lesson.stored().cells if cell.cell_type == "code" and cell.source]
    for output in [output for cell in code for output in cell.outputs]:
        assert output.output_type != "error", output
        assert output.get("name") != "stderr", output
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    eventually(lesson, lambda: broken_outputs(lesson))


def test_every_control_shows_what_the_kernel_holds(lesson):
    lesson.run_all()
    for explorer in lesson.explorers():
        Controls(lesson, explorer).walk()
        eventually(lesson, lambda: broken_outputs(lesson))


def test_pictures_fit_the_screen_and_nothing_below_them_moves(lesson):
    """At 1280 × 800 with the file browser open, at every stop of every control."""
    lesson.run_all()
    page = lesson.tab.page
    assert page.viewport_size == {"width": 1280, "height": 800}
    for explorer in lesson.explorers():
        output = lesson.output(explorer)
        if not output.locator(".ac-pic").count():
            continue
        sizes = set()
        for switch in [None, *output.locator("input[type=checkbox]").all()]:
            if switch:
                switch.check()
            handle = output.locator(".noUi-handle").first
            handle.focus()
            page.keyboard.press("Home")
            for _ in range(int(float(handle.get_attribute("aria-valuemax"))) + 1):
                # The picture of the next stop is there, and how its shapes come in is over.
                page.wait_for_timeout(100)
                box = output.bounding_box()
                sizes.add((box["width"], box["height"]))
                scrolled = "(e) => [...e.querySelectorAll('*')].some((part) => part.scrollTop)"
                assert not output.evaluate(scrolled)
                page.keyboard.press("ArrowRight")
        assert len(sizes) == 1, sizes
        assert sizes.pop()[1] <= 640
        overflow = """(e) => [...e.querySelectorAll(".ac-pic")]
            .filter((part) => part.scrollWidth > part.clientWidth + 1).length"""
        assert output.evaluate(overflow) == 0


def test_the_first_picture_is_near_the_top(lesson):
    """In lesson 1 it and its slider stand within the first screen and a half."""
    if not lesson.name.startswith("notebooks/01"):
        return
    lesson.run_all()
    first, *_ = lesson.explorers()
    page = lesson.tab.page
    page.locator(".jp-WindowedPanel-outer").first.evaluate("(e) => { e.scrollTop = 0; }")
    page.wait_for_timeout(500)
    panel = page.locator(".jp-WindowedPanel-outer").first.bounding_box()
    cell = page.locator(f".jp-Notebook-cell[data-windowed-list-index='{first.cell}']")
    box = cell.bounding_box()
    assert box["y"] + box["height"] - panel["y"] <= 1.5 * panel["height"]


# Whether the first pixel of every figure, its paper, is as light as that.
PAPERS = """(wanted) => [...document.querySelectorAll(".jp-RenderedImage img")].every((picture) => {
    const paper = document.createElement("canvas").getContext("2d");
    paper.drawImage(picture, 0, 0);
    return paper.getImageData(0, 0, 1, 1).data[0] === wanted;
})"""


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_no_output_puts_up_a_serious_barrier(lesson, theme):
    lesson.run_all()
    page = lesson.tab.page
    if page.locator("body").get_attribute("data-jp-theme-name") != theme:
        lesson.tab.menu("Settings")
        items = page.locator(".lm-Menu-item")
        items.get_by_text("Theme", exact=True).hover()
        items.get_by_text(theme, exact=True).click()
        page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
        page.wait_for_timeout(500)  # its colours are loaded after that
    for part in page.locator(".jp-Notebook-cell").all():
        part.scroll_into_view_if_needed()
    eventually(lesson, lambda: barriers(lesson))  # names are given a moment after a thing appears
    page.wait_for_function(PAPERS, arg=255 if theme == "JupyterLab Light" else 17)


def test_numbers_do_not_run_together_in_a_narrow_window(lesson):
    lesson.run_all()
    page = lesson.tab.page
    before = page.viewport_size
    page.set_viewport_size({"width": 820, "height": 900})
    page.wait_for_function("document.querySelector('.jp-Notebook').clientWidth < 600")
    for explorer in lesson.explorers():
        cells = """(output) => [...output.querySelectorAll(".ac-map:not(.ac-strip) td")]
            .filter((cell) => !cell.closest(".ac-mini"))  // these show numbers once they have grown
            .map((cell) => cell.getBoundingClientRect().width)"""
        output = lesson.output(explorer)
        output.scroll_into_view_if_needed()  # the page may have moved while it took its new width
        widths = output.evaluate(cells)
        assert min(widths, default=99) >= 28  # a number of 12 pixels takes 24
    page.set_viewport_size(before)


def test_arrow_keys_move_between_choices(lesson):
    lesson.run_all()
    choices = lesson.tab.page.locator(".widget-radio-box:visible").first.locator(
        "input[type=radio]"
    )
    choices.first.focus()
    lesson.tab.page.keyboard.press("Space")
    lesson.tab.page.keyboard.press("ArrowDown")
    assert [choice.is_checked() for choice in choices.all()][:2] == [False, True]


def test_after_f5_and_opened_again(lesson):
    """Explorers stand where they were left, and move, with the kernel alive and with it gone."""
    lesson.run_all()
    held = lesson.kernel.ask(VIEWS).values()
    lesson.save()  # the file's own numbers may come from another processor, with another last digit
    lesson.reload()
    left = [walk_stored(lesson, explorer, **own) for explorer, own in each(lesson, held)]
    lesson.save()
    assert lesson.tab.complaints() == []
    lesson.close()

    lesson.open()
    assert lesson.kernel.ask("str(get_ipython().execution_count)") == 1  # a new kernel
    held = [{**own, "stop": stop} for own, stop in zip(held, left, strict=True)]
    for explorer, own in each(lesson, held):
        walk_stored(lesson, explorer, **own)
    eventually(lesson, lambda: broken_outputs(lesson) or barriers(lesson))


def each(lesson, held):
    return zip(lesson.explorers(), held, strict=True)


def walk_stored(lesson, explorer: Explorer, views: dict, stop: dict) -> dict:
    """A stored explorer stands at its stop and moves; what it shows is what the kernel computed."""
    stored = Stored(lesson, explorer, views)
    assert stored.stop() == {key: stop[key] for key in stored.controls}
    stored.compare()
    stored.walk()
    return stored.stop()


# --- moving controls ----------------------------------------------------------------------------


class Controls:
    """The controls of one explorer on the page, moved by keyboard."""

    def __init__(self, lesson, explorer: Explorer) -> None:
        self.lesson, self.explorer = lesson, explorer
        controls = self.held()["controls"]
        found = lesson.output(explorer).locator(
            ".noUi-handle, input[type=checkbox], input[type=text], .ac-buttons"
        )
        assert found.count() == len(controls) > 0
        self.on_page = {name: found.nth(i) for i, name in enumerate(controls)}
        self.switches = [name for name in controls if isinstance(self.position(name), bool)]
        self.texts = [name for name in controls if isinstance(self.position(name), str)]
        self.buttons = [name for name in controls if controls[name]["buttons"]]
        others = self.switches + self.texts + self.buttons
        self.sliders = [name for name in controls if name not in others]

    def held(self) -> dict:
        """The explorer's state and controls, from the kernel."""
        return self.lesson.kernel.ask(EXPLORERS)[str(self.explorer.number)]

    def position(self, name: str) -> int | bool | str:
        return self.held()["controls"][name]["position"]

    def last(self, name: str) -> int:
        return len(self.held()["controls"][name]["labels"]) - 1

    def focus(self, name: str) -> None:
        node = self.on_page[name]
        (node.locator(":checked") if name in self.buttons else node).focus()

    def press(self, name: str, key: str) -> None:
        """Press a key on a control, and wait until kernel and page have followed."""
        wanted = {
            "Home": lambda: 0,
            "End": lambda: self.last(name),
            "ArrowLeft": lambda: max(self.position(name) - 1, 0),
            "ArrowRight": lambda: min(self.position(name) + 1, self.last(name)),
            "Space": lambda: not self.position(name),
        }[key]()
        if name in self.buttons and key == "ArrowRight":  # after the last one comes the first
            wanted = (self.position(name) + 1) % (self.last(name) + 1)
        self.focus(name)
        self.lesson.tab.page.keyboard.press(key)

        def difference():
            held = self.held()
            position = held["controls"][name]["position"]
            if position != wanted:
                return f"after {key} {name} stands at {position}, not at {wanted}"
            found = compare(self.lesson.shown(self.explorer), held)
            return found and f"after {key} on {name}: {found}"

        eventually(self.lesson, difference)

    def type(self, name: str, text: str, *, by_key: bool = False) -> None:
        """Replace what stands in a text field, and wait until kernel and page have followed."""
        keyboard = self.lesson.tab.page.keyboard
        self.focus(name)
        keyboard.press("Control+a")
        keyboard.press("Delete")
        if by_key:
            keyboard.type(text)
        else:
            keyboard.insert_text(text)

        def difference():
            held = self.held()
            if self.position(name) != text:
                return f"after typing {text!r} {name} holds {self.position(name)!r}"
            return compare(self.lesson.shown(self.explorer), held)

        eventually(self.lesson, difference)
        keyboard.press("Enter")  # changes nothing, and adds no cell
        eventually(self.lesson, difference)

    def walk(self) -> None:
        """Move every slider through its whole range, under every setting of the switches."""
        self.tab_through()
        for name in self.texts:
            at_first = self.position(name)
            for text in TEXTS:
                self.type(name, text)
                assert broken_outputs(self.lesson) == []
            self.type(name, at_first, by_key=True)
        for turn in range(2 ** len(self.switches)):
            if turn:  # one switch at a time, and each combination is met once
                self.press(self.switches[(turn & -turn).bit_length() - 1], "Space")
            for name in self.sliders:
                self.press(name, "Home")
                for _ in range(self.last(name) + 1):  # the last one changes nothing
                    self.press(name, "ArrowRight")
                self.press(name, "ArrowLeft")
            for name in self.buttons:
                for _ in range(self.last(name) + 1):
                    self.press(name, "ArrowRight")
        for name in self.switches:  # off again while a slider may stand where it must not then
            if self.position(name):
                self.press(name, "Space")

    def tab_through(self) -> None:
        """Reach every control from the first one, with the Tab key alone."""
        first, *others = self.on_page
        self.focus(first)
        for control in map(self.on_page.get, others):
            for _ in range(2):  # the number beside a slider takes the focus as well
                self.lesson.tab.page.keyboard.press("Tab")
                if control.evaluate("(node) => node.contains(document.activeElement)"):
                    break
            else:
                pytest.fail(f"Tab does not lead to {control}")


TEXTS = (
    "<b>bold</b> &amp; <script>alert(1)</script>",
    "مرحبا 你好 ሰላם hello",
    "notwithstanding international representatives " * 8,
    "word " * 300,
    "",
)


def eventually(lesson, problem) -> None:
    """Wait until there is no problem any more; the last one is the failure's text."""
    deadline = time.monotonic() + 20
    while found := problem():
        if time.monotonic() > deadline:
            pytest.fail(str(found))
        lesson.tab.page.wait_for_timeout(10)


def compare(shown: dict, held: dict) -> str | None:
    """The first difference between what is seen and what the kernel holds."""
    state, controls = held["state"], held["controls"]
    for name, control in controls.items():
        if state[name] != control["value"]:
            return f"the state has {name} {state[name]}, its control {control['value']}"
    chosen = [(c["buttons"], c["labels"][c["position"]]) for c in controls.values() if c["labels"]]
    for kind, buttons in (("readouts", False), ("chosen", True)):
        labels = [label for is_button, label in chosen if is_button == buttons]
        if shown[kind] != labels:
            return f"{kind} are {shown[kind]}, not {labels}"
    if "error" in state:
        # Only the switch that lets any number in, or an empty text, may lead to an error.
        asked_for = controls.get("any_number", {}).get("value") or state.get("text") == ""
        if not asked_for:
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
    if "says" in state:  # explore_block
        return [("plain", [[None, size] for size in state["sizes"]])]
    if "W_O" in state.get("shapes", ()):  # explore_layer
        return [("plain", [[shape] for shape in state["shapes"].values()])]
    if "features" in state:  # explore_split
        strip = [[feature for own in state["features"] for feature in own]]
        return [
            ("strip", strip),
            ("plain", [[None, shape] for shape in state["shapes"].values()]),
        ]
    if "maps" in state and "step" in state:  # explore_average, all heads in one list
        own = [state["maps"]] if state["step"] == "averaged" else state["maps"]
        return [("plain", rows) for maps in own for rows in maps]
    if "reads" in state:  # explore_shared_heads
        cached, unshared = state["cached_numbers"], state["unshared_numbers"]
        count = state["num_kv_heads"]
        kept = [2, count, cached // (2 * count), cached]
        facts = [None, kept, [round(100 * cached / unshared)]]
        maps = [("map", head) for head in state["weights"]]
        return [("plain", [[fact] for fact in facts]), *maps]
    if "cards" in state:  # explore_blocks, whose cells say "cat 3"
        return [("plain", [[None] * len(row) for row in card]) for card in state["cards"]]
    if "factor" in state:  # explore_mixture
        rows = zip(state["scores"], state["weights"], state["shares"], strict=True)
        total = [None, sum(state["weights"]), state["output"]]
        return [("plain", [*map(list, rows), total])]
    if "key_tokens" in state:  # explore_lines, explore_animal
        keys = zip(state["blocked"], *state["weights"], strict=True)
        return [("plain", [[None if is_shut else w for w in row] for is_shut, *row in keys])]
    if "output" in state:  # explore_query
        weights, values = state["weights"], state["values"]
        looks = [[s, None, w] for s, w in zip(state["scores"], weights, strict=True)]
        mixes = [[v, [w * x for x in v]] for w, v in zip(weights, values, strict=True)]
        return [
            ("plain", [*looks, [None, None, sum(weights)]]),
            ("plain", [*mixes, [None, state["output"]]]),
        ]
    if "rank_bound" in state:  # explore_head_counts
        heads, accuracies = state["num_heads"], state["accuracies"].values()
        stored = [[heads, n // heads, n] for n in state["stored_weights"].values()]
        facts = [
            [state["head_dim"] * heads, heads, state["head_dim"]],
            state["rank_bound"],
            *stored,
        ]
        rows = [[*s, sum(s) / len(s), [min(s), max(s)]] for s in accuracies]
        return [
            ("plain", [[fact] for fact in facts]),
            ("plain", rows),
            *(("map", one_map) for one_map in state["maps"].values()),
        ]
    if "pixels" in state:  # explore_digits: a cell a pixel, and the weight in each patch's first
        grids = []
        for head in state["weights"]:
            size = len(state["pixels"]) // len(head)
            between = [None] * (size - 1)
            grid = []
            for row in head:
                grid.append([cell for weight in row for cell in (weight, *between)])
                grid += [[None] * len(grid[-1])] * (size - 1)
            grids.append(("plain", grid))
        return [("plain", [[p] for p in state["probabilities"]]), *grids]
    maps = [("map", head) for head in state["weights"]]
    if "shares" in state:  # explore_sentence
        return [*maps, ("map", state["shares"])]
    if "entropy" in state:  # explore_scale
        softness = [
            list(row) for row in zip(state["entropy"], state["derivative_norm"], strict=True)
        ]
        means = [state["mean_entropy"], state["mean_derivative_norm"]]
        return [("plain", state["scores"][0]), *maps, ("plain", [*softness, means])]
    if "blocked" in state:  # explore_masks
        length = len(state["sees"])
        sums = [
            [[sees, length] if sees else [], *row_sums]
            for sees, row_sums in zip(
                state["sees"], zip(*state["row_sums"], strict=True), strict=True
            )
        ]
        facts = [
            [],
            [],
            [sum(map(sum, state["blocked"])), length**2],
            state["to_padding"],
            state["to_later"],
        ]
        return [*maps, ("plain", sums), ("plain", [[fact] for fact in facts])]
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


def barriers(lesson) -> list[str]:
    """What keeps some people from reading or moving an output."""
    what = {"include": [[".jp-Notebook .jp-OutputArea-output"], [".jp-RenderedMarkdown"]]}
    found = Axe().run(lesson.tab.page, context=what).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['html'][:120]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def broken_outputs(lesson) -> list[str]:
    """Outputs of the whole page that are missing, blank, errors, or do not fit into their box."""

    def kind(output):  # JupyterLab joins prints that follow each other
        return output.get("name") or id(output)

    stored = hidden = 0
    for cell in lesson.stored().cells:
        outputs = len(list(groupby(cell.get("outputs", ()), kind)))
        stored += outputs
        # What a solution prints is folded away, until its cell is run.
        hidden += outputs if cell.metadata.get("jupyter", {}).get("outputs_hidden") else 0
    found = lesson.tab.page.evaluate(BROKEN_OUTPUTS)
    if not stored - hidden <= found["outputs"] <= stored:
        return [f"{found['outputs']} outputs on the page, {stored} in the file"]
    return found["broken"]


BROKEN_OUTPUTS = """() => {
    const broken = [];
    const note = (what, node) => broken.push(`${what}: ${node.textContent.slice(0, 80)}`);
    const outputs = document.querySelectorAll(".jp-OutputArea-output");
    for (const output of outputs) {
        const text = output.textContent.trim();
        if (/^(Error displaying|Loading) widget/.test(text)) note("widget", output);
        if (/error|stderr/.test(output.dataset.mimeType)) note("error", output);
        if (!text && !output.querySelector("img, svg, canvas, input")) note("blank", output);
    }
    for (const cell of document.querySelectorAll(".jp-Notebook-cell")) {
        cell.scrollIntoView();  // what is out of sight has no size yet
        if (cell.matches(".jp-mod-outputsScrolled")) note("scrolled", cell);
        const inside = ".jp-Cell-outputArea, .jp-Cell-outputArea *, .jp-RenderedMarkdown";
        for (const node of cell.querySelectorAll(inside)) {
            const style = getComputedStyle(node);
            const scrolls = (overflow) => /auto|scroll/.test(overflow);
            if (scrolls(style.overflowX) && node.scrollWidth > node.clientWidth + 1
                || scrolls(style.overflowY) && node.scrollHeight > node.clientHeight + 1)
                note(`${node.className} is ${node.scrollWidth} x ${node.scrollHeight} in ` +
                    `${node.clientWidth} x ${node.clientHeight}`, node);
        }
    }
    return {outputs: outputs.length, broken};
}"""


def test_printed_pages_have_no_large_gap_and_show_all_code(chromium, lab):
    """File → Print: what is never cut in two is at most a quarter of a page high."""
    page = chromium.new_page(viewport={"width": 718, "height": 1047})  # A4 within its margins
    page.emulate_media(media="print")
    for path in NOTEBOOKS:
        page.goto(f"{lab.base}/nbconvert/html/notebooks/{path.name}?token={lab.token}")
        heights = page.locator("img").evaluate_all("(all) => all.map((one) => one.height)")
        assert heights
        assert max(heights) < 1047 / 4
        cut = """(all) => all.filter((one) => one.scrollWidth > one.clientWidth)
            .map((one) => one.innerText)"""
        assert page.locator(".jp-InputArea pre, .jp-InputArea").evaluate_all(cut) == []
        kinds = page.locator(".jp-InputArea-editor").evaluate_all(
            "(all) => all.map((one) => getComputedStyle(one).display)"
        )
        assert set(kinds) == {"block"}  # a table's row goes to the next page as a whole
    page.close()
