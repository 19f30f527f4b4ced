"""A real JupyterLab, started by `make lab`, and a headless Chromium in front of it."""

import ast
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import nbformat
import pytest
from jupyter_client import BlockingKernelClient
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PATIENCE = 180  # seconds; only a failure waits that long

FLAGS = (  # of Chromium: it runs as root here, and asks for nothing by itself
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
NO_CHROMIUM = (
    "The browser tests need Chromium: on Debian run `apt-get install chromium`, elsewhere set "
    "CHROMIUM=/path/to/chrome."
)


def find_chromium() -> str | None:
    if "CHROMIUM" in os.environ:
        return shutil.which(os.environ["CHROMIUM"])
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def pytest_sessionstart():
    # Said once and at once, instead of by every test; a failure, since a skip would look green.
    if find_chromium() is None:
        pytest.exit(NO_CHROMIUM, returncode=1)


def wait_until(condition, what: str):
    """Ask again and again until the answer is true, and return it."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE} s for {what}")
        time.sleep(0.05)
    return answer


# --- the server ---------------------------------------------------------------------------------


class Lab:
    """`make lab` on a copy of the course, with empty settings: a learner's first start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignore = shutil.ignore_patterns(".ipynb_checkpoints")
        shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=ignore)
        shutil.copy(ROOT / "Makefile", folder)
        self.runtime = folder / "jupyter" / "runtime"
        # Whatever this machine has set for Jupyter, or for a make around this one, stays outside.
        outside = "JUPYTER|MAKE|MFLAGS|COURSE_ANSWERS"
        env = {k: v for k, v in os.environ.items() if not re.match(outside, k)}
        env |= {
            "JUPYTER_CONFIG_DIR": str(folder / "jupyter" / "config"),
            "JUPYTER_DATA_DIR": str(folder / "jupyter" / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "IPYTHONDIR": str(folder / "ipython"),
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # -o install: the copy shall not be installed, the course itself is.
        command = ["make", "-o", "install", "lab", f"VENV={sys.prefix}"]
        self.process = subprocess.Popen(
            [*command, f"LAB_FLAGS=--no-browser --port={port}"],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that make and JupyterLab can be stopped together
        )
        self.log: list[str] = []
        threading.Thread(target=lambda: self.log.extend(self.process.stdout), daemon=True).start()

        def address():
            log = "".join(self.log)
            if self.process.poll() is not None:
                pytest.fail(f"`make lab` ended by itself:\n{log}")
            return re.search(r"^\s+(http://\S+token=(\w+))$", log, re.MULTILINE)

        try:
            self.printed_url, self.token = wait_until(address, "the address of JupyterLab").groups()
        except BaseException:
            self.stop()
            raise
        self.base = re.match(r"http://[^/]+", self.printed_url).group()

    def api(self, path: str, *, method: str = "GET", token: str | None = None):
        request = urllib.request.Request(f"{self.base}/{path}", method=method)
        request.add_header("Authorization", f"token {self.token if token is None else token}")
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def sessions(self, path: str) -> list[dict]:
        return [s for s in self.api("api/sessions") if s["path"] == path]

    def stop(self) -> None:
        for stop_signal in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
                return


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    server = Lab(tmp_path_factory.mktemp("course"))
    yield server
    server.stop()


# --- the browser --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def chromium():
    executable = find_chromium()
    if executable is None:
        pytest.fail(NO_CHROMIUM, pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A notebook in a JupyterLab page of its own, and everything that went wrong in it.

    Args:
        path: of the notebook, as the server names it.
        url: left out, one with a fresh workspace, so that nothing is open from another visit.
    """

    _visits = itertools.count()

    def __init__(self, chromium, lab: Lab, path: str, url: str | None = None) -> None:
        self.lab, self._complaints = lab, []
        self.page = chromium.new_page(viewport={"width": 1280, "height": 800})
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self._complaints.append(f"uncaught: {error}"))
        self.page.on("requestfailed", self._on_failed)
        self.page.on("response", self._on_response)
        workspace = f"lab/workspaces/visit-{next(self._visits)}"
        self.path = path
        self.page.goto(url or f"{lab.base}/{workspace}/tree/{quote(path)}?token={lab.token}")
        self.wait()

    def wait(self) -> None:
        """Wait until the notebook is there, and its kernel."""

        def kernel():
            for session in self.lab.sessions(self.path):
                kernel = session["kernel"]
                if kernel["connections"] and kernel["execution_state"] == "idle":
                    return kernel
            return None

        # The page shows "idle" before it has a kernel too, and a Run All at that moment is lost:
        # so the server is asked first.
        self.kernel_id = wait_until(kernel, f"the kernel of {self.path}")["id"]
        idle = ".jp-Notebook-ExecutionIndicator[data-status=idle]"
        self.page.wait_for_selector(idle, state="attached")

    def _on_console(self, message) -> None:
        if message.type in ("error", "warning"):
            self._complaints.append(f"console {message.type}: {message.text}")

    def _on_failed(self, request) -> None:
        if request.failure == "net::ERR_ABORTED":  # the page called it off, as F5 does
            return
        self._complaints.append(f"{request.method} {request.url}: {request.failure}")

    def _on_response(self, response) -> None:
        if response.status >= 400:
            self._complaints.append(f"{response.request.method} {response.url}: {response.status}")
        if not response.url.startswith((self.lab.base, "data:", "blob:")):
            self._complaints.append(f"not from our server: {response.url}")

    def complaints(self) -> list[str]:
        """What went wrong since this was last asked, and dialogs and pop-ups that are open."""
        popups = self.page.locator(".jp-Dialog, .Toastify__toast").all_inner_texts()
        found, self._complaints = self._complaints + [f"pop-up: {text}" for text in popups], []
        return found

    def menu(self, *names: str) -> None:
        for name in names:
            self.page.locator(".lm-MenuBar-item, .lm-Menu-item").get_by_text(
                name, exact=True
            ).click()


# --- a kernel -----------------------------------------------------------------------------------


class Kernel:
    """Asks a running kernel, past JupyterLab. Nothing of it is left in the learner's names."""

    def __init__(self, connection_file: Path) -> None:
        client = BlockingKernelClient()
        client.load_connection_file(str(connection_file))
        self._session, self._socket = client.session, client.connect_shell()

    def ask(self, expression: str):
        """The value of an expression that gives JSON."""
        question = {"code": "", "silent": True, "user_expressions": {"answer": expression}}
        while True:
            self._session.send(self._socket, "execute_request", question)
            if not self._socket.poll(PATIENCE * 1000):
                pytest.fail(f"the kernel did not answer in {PATIENCE} s")
            content = self._session.recv(self._socket)[1]["content"]
            if content["status"] != "aborted":  # a cell just failed, and the queue was emptied
                break
        answer = content["user_expressions"]["answer"]
        assert answer["status"] == "ok", answer
        return json.loads(ast.literal_eval(answer["data"]["text/plain"]))

    def close(self) -> None:
        self._socket.close()


# What every explorer holds, by the number of the cell that shows it.
EXPLORERS = """__import__("json").dumps({
    number: {
        "state": widget.state,
        "controls": {
            name: {
                "position": control.index if hasattr(control, "index") else control.value,
                "value": control.value,
                "buttons": type(control).__name__ == "RadioButtons",
                "labels": [
                    option[0] if isinstance(option, tuple) else str(option)
                    for option in getattr(control, "options", ())
                ],
            }
            for name, control in widget.controls.items()
        },
    }
    for number, widget in Out.items()
    if type(widget).__name__ == "Explorer"
})"""

# The views of every explorer and where it stands, by the number of the cell that shows it.
VIEWS = """__import__("json").dumps({
    number: {"views": widget.views(10**9), "stop": widget.stop}
    for number, widget in Out.items()
    if type(widget).__name__ == "Explorer"
})"""


# --- a notebook in the browser ------------------------------------------------------------------

# What a reader sees of one output: pictures, error texts, and tables as text. (innerText leaves
# out what is not shown; textContent has what is scrolled away as well.)
READ_OUTPUT = """async (output) => {
    // JupyterLab draws a cell when it comes into sight, which takes a frame or two.
    const frame = () => new Promise(requestAnimationFrame);
    await frame(); await frame();
    const seen = (node) => node.checkVisibility() && node.getBoundingClientRect().width > 1;
    const shade = (cell) => getComputedStyle(cell).backgroundColor;
    // A map of coloured pixels, turned back into numbers by the colours of the cells of a table.
    const readSmallMap = (figure) => {
        const picture = figure.querySelector("img"), canvas = document.createElement("canvas");
        const [width, height] = [picture.naturalWidth, picture.naturalHeight];
        Object.assign(canvas, {width, height});
        const paper = canvas.getContext("2d");
        paper.drawImage(picture, 0, 0);
        const probe = output.appendChild(document.createElement("i")), numbers = {};
        for (let i = 0; i <= 100; i++) {
            probe.className = `ac-w${i}`;
            numbers[shade(probe)] = (i / 100).toFixed(2);
        }
        probe.remove();
        const number = (x, y) => numbers[`rgb(${[...paper.getImageData(x, y, 1, 1).data]
            .slice(0, 3).join(", ")})`];
        const row = (_, y) => Array.from({length: width}, (_, x) => number(x, y));
        const rows = Array.from({length: height}, row);
        return {kind: "map", caption: figure.innerText, rows, hovers: [], shades: []};
    };
    const texts = (nodes) => [...nodes].filter(seen).map((node) => node.innerText.trim());
    return {
        text: output.innerText.trim(),
        pictures: [...output.querySelectorAll("img")]
            .filter((img) => seen(img) && img.complete && img.naturalWidth > 0)
            .map((img) => img.src),
        errors: texts(output.querySelectorAll(".ac-error")),
        readouts: texts(output.querySelectorAll(".widget-readout")),
        chosen: texts(output.querySelectorAll(".ac-buttons label:has(:checked)")),
        tables: [...output.querySelectorAll("table.ac, figure.ac-small")].filter(seen).map(
            (table) => table.matches("figure") ? readSmallMap(table) : ({
                kind: table.matches(".ac-strip") ? "strip"
                    : table.matches(".ac-map") ? "map" : "plain",
                caption: table.caption.innerText,
                rows: [...table.querySelectorAll("tbody tr, tfoot tr")].map((row) =>
                    [...row.querySelectorAll("td")].map((cell) => cell.innerText)),
                hovers: [...table.querySelectorAll("td[title]")].map((cell) => cell.title),
                shades: [...table.querySelectorAll("td")].map(shade),
            })),
    };
}"""


class Explorer(NamedTuple):
    """Where an explorer stands, and what its notebook has stored of it."""

    cell: int  # counted from 0, Markdown too
    output: int
    number: int  # the execution count
    picture: str | None


class Lesson:
    """One notebook of the course, open in JupyterLab."""

    def __init__(self, chromium, lab: Lab, notebook: Path) -> None:
        self._chromium, self.lab = chromium, lab
        self.name = f"notebooks/{notebook.name}"
        self.path = lab.folder / self.name
        self.has_run = False
        self.open()

    def open(self) -> None:
        self.tab = Tab(self._chromium, self.lab, self.name)
        self.kernel = Kernel(self.lab.runtime / f"kernel-{self.tab.kernel_id}.json")

    def close(self) -> None:
        """Close the page and shut the kernel down."""
        self.tab.page.close()
        self.kernel.close()
        for session in self.lab.sessions(self.name):
            self.lab.api(f"api/sessions/{session['id']}", method="DELETE")
        assert self.lab.sessions(self.name) == []

    def reload(self) -> None:
        """F5, with the kernel alive."""
        self.tab.page.reload()
        self.tab.wait()

    def run_all(self) -> None:
        """Run All by the menu, once in a lesson's life, and wait for its end."""
        if self.has_run:
            return
        self.tab.menu("Run", "Run All Cells")
        wait_until(
            lambda: self.kernel.ask("str(get_ipython().execution_count)") > 1, "the first cell"
        )
        self.tab.page.wait_for_function(
            """() => document.querySelector(".jp-Notebook-ExecutionIndicator").dataset.status
                == "idle" && [...document.querySelectorAll(".jp-Notebook .jp-InputPrompt")]
                .every((prompt) => !prompt.textContent.includes("*"))"""
        )
        self.save()
        self.has_run = True

    def save(self) -> None:
        with self.tab.page.expect_response(
            lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url
        ) as answer:
            self.tab.menu("File", "Save Notebook")
        assert answer.value.ok

    def stored(self) -> nbformat.NotebookNode:
        return nbformat.read(self.path, as_version=4)

    def explorers(self) -> list[Explorer]:
        """Every explorer in the file as it is now."""
        cells = self.stored().cells
        found = [
            Explorer(i, j, cell.execution_count, output.data.get("image/png"))
            for i, cell in enumerate(cells)
            for j, output in enumerate(cell.get("outputs", ()))
            if output.get("data", {}).get("text/plain", "").startswith("Explorer: ")
        ]
        wanted = any("explore_" in cell.source for cell in cells if cell.cell_type == "code")
        assert bool(found) == wanted, "the notebook was stored without the output of its explorers"
        return found

    def output(self, explorer: Explorer):
        """Where the page shows an explorer; scrolled to, as a reader would."""
        area = self.tab.page.locator(
            f".jp-Notebook-cell[data-windowed-list-index='{explorer.cell}'] .jp-Cell-outputArea > "
            f".jp-OutputArea-child:nth-of-type({explorer.output + 1}) > .jp-OutputArea-output"
        )
        area.scroll_into_view_if_needed()
        return area

    def shown(self, explorer: Explorer) -> dict:
        return self.output(explorer).evaluate(READ_OUTPUT)


@pytest.fixture(scope="session", params=NOTEBOOKS, ids=lambda path: path.stem)
def opened(request, chromium, lab):
    lesson = Lesson(chromium, lab, request.param)
    yield lesson
    lesson.close()


@pytest.fixture
def lesson(opened):
    """A lesson, open in JupyterLab; whatever the browser complains of meanwhile is a failure."""
    yield opened
    assert opened.tab.complaints() == []
