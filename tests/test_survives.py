"""What learners do to a lesson: cells twice, cells alone, a restart, fast hands, no network."""

import gc
import getpass
import json
import os
import random
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import matplotlib
import nbformat
import pytest
from helpers import MAKERS, page, positions, put
from ipywidgets.widgets import widget
from jupyter_client.manager import start_new_kernel

from course_utils.jupyter.cell_order import cell_that_makes

ROOT = Path(__file__).parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code_cells(path: Path) -> list:
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


# --- A whole lesson, in a process of its own ----------------------------------------------------


@pytest.fixture(
    scope="module",  # a lesson takes a core some seconds
    params=[pytest.param(path, marks=pytest.mark.slow, id=path.stem) for path in LESSONS],
)
def report(request, tmp_path_factory):
    """What happened to a lesson, and the folder for what Jupyter and others write for a while."""
    own = str(tmp_path_factory.mktemp("temporary"))
    env = {**os.environ, "IPYTHONDIR": own, "TMPDIR": own, "PYTHONPATH": str(ROOT)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "run_lesson.py", request.param],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {**json.loads(done.stdout), "temporary": own}


def test_cells_run_twice(report):
    """A second run shows what the first one did; only times are never the same."""
    assert report["twice"]
    for first, second in report["twice"]:
        assert (first["error"], second["error"]) == (None, None), second
        if first["id"] != "time-numbers":
            shown = (re.sub(r"^Out\[\d+\]", "Out", run["printed"]) for run in (first, second))
            assert next(shown) == next(shown), f"{first['id']}: seed it, if chance is at work"


def test_a_cell_alone_runs_or_says_which_cell_to_run_first(report):
    for cell in report["alone"]:
        if cell["error"]:
            assert cell["error"] == "NameError", cell
            (sentence,) = cell["said"]
            assert sentence.startswith("First run the cell that makes "), cell
    assert any(cell["error"] for cell in report["alone"])


def test_nothing_outside_the_course_is_read_or_written(report):
    """Python, its packages, fonts and matplotlib's list of them are read, and nothing else."""
    course = (ROOT, report["temporary"], "/dev/null")
    python = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    fonts = ("/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig", "/etc/fonts")
    machine = ("/proc", "/sys", "/dev", "/etc/mime.types", "/usr/share/zoneinfo", "/etc/localtime")
    lists = (matplotlib.get_cachedir(), matplotlib.get_configdir())
    # torch makes this folder when it counts multiply-adds, and leaves it empty.
    lists += (f"/tmp/torchinductor_{getpass.getuser()}",)
    may = {"w": (*course, *lists), "r": (*course, *python, *fonts, *machine, *lists), "run": ()}
    assert report["events"]
    for how, what in report["events"]:
        assert any(Path(what).is_relative_to(os.path.realpath(p)) for p in may[how]), (how, what)


# --- Which cell to run first --------------------------------------------------------------------


def test_the_first_cell_that_makes_a_name_is_found():
    sources = [
        "%matplotlib inline",
        "def f():\n    x = 1",
        "import math",
        "for x in []: pass",
        "x=2",
    ]
    assert cell_that_makes("x", sources) == "for x in []: pass"
    assert cell_that_makes("f", sources) == sources[1]
    assert cell_that_makes("math", sources) == "import math"
    assert cell_that_makes("y", sources) is None


def test_every_kernel_of_the_course_says_it():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    targets = data["targets"]["wheel"]["shared-data"]
    name = "ipython_kernel_config.json"
    assert targets[f"course_utils/jupyter/{name}"] == f"etc/ipython/{name}"


@pytest.mark.slow  # two kernels take ten seconds
def test_a_kernel_that_is_restarted_in_the_middle():
    """Going on gives NameErrors that lead back; from the top, all is as before."""
    path = LESSONS[2]
    code = code_cells(path)
    middle = len(code) // 2
    config = ROOT / "course_utils" / "jupyter" / "ipython_kernel_config.json"
    manager, client = start_new_kernel(
        extra_arguments=[f"--config={config}"],
        env={**os.environ, "JPY_SESSION_NAME": str(path), "PYTHONPATH": str(ROOT)},
        cwd=str(path.parent),
    )

    def errors(cells):
        for cell in cells:
            reply = client.execute_interactive(
                cell.source, output_hook=lambda message: None, timeout=60
            )["content"]
            if reply["status"] == "error":
                yield cell.id, reply

    try:
        assert list(errors(code[:middle])) == []
        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=60)
        lost = list(errors(code[middle:]))
        assert lost
        for _, reply in lost:
            assert reply["ename"] == "NameError"
            assert "First run the cell that makes" in "".join(reply["traceback"])
        assert list(errors(code)) == []
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


# --- Fast hands ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["heads", *(pytest.param(name, marks=pytest.mark.slow) for name in MAKERS if name != "heads")],
)
def test_two_explorers_at_once_and_two_hundred_fast_moves(name):
    """Each shows what a fresh one shows at the same place; nothing is left over from a move."""
    make = MAKERS[name]
    pair, fresh, draw = (make(), make()), (make(), make()), random.Random(0)
    start = {name: control.value for name, control in pair[0].controls.items()}

    def go_to(explorer, values):
        for name in sorted(values, key=lambda name: name != "any_number"):  # it moves another
            explorer.controls[name].value = values[name]

    def move(times):
        for _ in range(times):
            explorer = draw.choice(pair)
            control = draw.choice(list(explorer.controls.values()))
            put(control, draw.choice([*positions(control)]))

    def count():
        for explorer in (*pair, *fresh):
            go_to(explorer, start)
        gc.collect()
        return len(widget._instances), len(gc.get_objects())

    move(200)
    for explorer, other in zip(pair, fresh, strict=True):
        go_to(other, {name: control.value for name, control in explorer.controls.items()})
        assert explorer.state == other.state
        assert explorer.html == other.html
        assert page(explorer).tables
    widgets, objects = count()
    move(200)
    more_widgets, more_objects = count()
    assert more_widgets == widgets
    assert more_objects - objects < 100  # one list left over a move would be 200
