"""The suite, the first minutes and memory: what the course costs against bare kernels."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from jupyter_client.manager import start_new_kernel
from table import Row, quartiles

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CORE = [path for path in NOTEBOOKS if path.name < "06"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}

IMPORTS = "import torch, matplotlib.pyplot, ipywidgets"
MEMORY = """
def _memory():
    import re
    with open("/proc/self/status") as status:
        return int(re.search(r"VmRSS:\\s+(\\d+)", status.read())[1])
print(_memory())
"""


class Kernel:
    """A kernel that runs code and says what it printed."""

    def __init__(self) -> None:
        self.manager, self.client = start_new_kernel(env=ENVIRONMENT, cwd=str(ROOT / "notebooks"))

    def run(self, code: str) -> str:
        printed = []

        def output(message):
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = self.client.execute_interactive(code, output_hook=output, timeout=300)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{code[:200]}: {reply['content'].get('evalue')}")
        return "".join(printed)

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def code_cells(path: Path) -> list[str]:
    notebook = nbformat.read(path, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def imports_of(path: Path) -> str:
    """The import statements of a notebook, wherever they stand."""
    import ast

    lines = []
    for source in code_cells(path):
        for node in ast.parse(source).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                lines.append(ast.unparse(node))
    return "\n".join(lines)


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def run_in_new_kernel(code: list[str]) -> float:
    """Seconds from starting a kernel to the end of its last cell."""

    def everything():
        kernel = Kernel()
        for cell in code:
            kernel.run(cell)
        kernel.stop()

    return seconds(everything)


def measure_suite(quick: bool) -> list[Row]:
    section = "The suite"
    if quick:
        return []
    workers = os.cpu_count() or 1

    def only_imports():
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda path: run_in_new_kernel([imports_of(path)]), NOTEBOOKS))

    bare = seconds(only_imports)
    pytest = [sys.executable, "-m", "pytest", "-q"]

    def suite():
        subprocess.run(pytest, cwd=ROOT, check=True, capture_output=True)

    whole = seconds(suite)
    note = f"{len(NOTEBOOKS)} kernels with their imports: {bare:.0f} s"
    return [
        Row(section, "make test, in seconds", whole, goal=("<=", 60), unit=" s"),
        Row(section, "make test against bare kernels", whole / bare, goal=("<=", 2), note=note),
    ]


def measure_start(quick: bool) -> list[Row]:
    section = "First minutes"
    times = 2 if quick else 5

    def python(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    names = ("sliders", "exercises", "questions", "jupyter.progress", "data.digits", "data.minilm")
    ours = f"import {', '.join(f'course_utils.{name}' for name in names)}"
    python(ours)
    ratios = [python(f"{IMPORTS}; {ours}") / python(IMPORTS) for _ in range(times)]
    rows = [
        Row(
            section,
            "import course_utils against torch + matplotlib + ipywidgets",
            *quartiles(ratios),
            goal=("<=", 1.1),
        )
    ]
    largest = max(NOTEBOOKS, key=lambda path: path.stat().st_size)
    rows.append(
        Row(
            section,
            "the largest notebook",
            largest.stat().st_size / 1000,
            goal=("<=", 500),
            unit=" kB",
            note=largest.name,
        )
    )
    return rows


def measure_memory(quick: bool) -> list[Row]:
    """Each lesson in a new kernel: its memory, and its time against its imports alone."""
    section = "Memory and time of a lesson"
    if not Path("/proc/self/status").exists():
        return [Row(section, "everything", None, note="this system has no /proc")]
    bare = Kernel()
    bare.run("import torch, matplotlib.pyplot")
    base = int(bare.run(MEMORY))
    bare.stop()
    rows = []
    for path in CORE[:1] if quick else NOTEBOOKS:
        imports = run_in_new_kernel([imports_of(path)])
        start, kernel = time.perf_counter(), Kernel()
        for cell in code_cells(path):
            kernel.run(cell)
        run_all = time.perf_counter() - start
        kilobytes = int(kernel.run(MEMORY))
        figures = int(kernel.run("import matplotlib.pyplot as _p; print(len(_p.get_fignums()))"))
        kernel.stop()
        what = f"lesson {path.name[:2]}"
        rows += [
            Row(
                section,
                f"{what}: memory after Run All, against torch + matplotlib",
                kilobytes / base,
                goal=("<=", 1.2) if path in CORE else None,
                note=f"{kilobytes / 1000:.0f} MB; open pyplot figures: {figures}",
            ),
            Row(
                section,
                f"{what}: time of Run All, against a kernel with its imports",
                run_all / imports,
                note=f"{run_all:.0f} s",
            ),
        ]
    kernel = Kernel()
    kernel.run(MOVES)
    grown = float(kernel.run("print(_grown(1000))"))
    kernel.stop()
    note = "explore_heads, L = 8, D = 64, all head counts"
    rows.append(
        Row(
            section, "growth after 1,000 moves", grown / 1000, goal=("<=", 2), unit=" MB", note=note
        )
    )
    return rows


MOVES = (
    MEMORY
    + """
import torch
from course_utils.attention import MultiHeadAttention
from course_utils.sliders import explore_heads
_explorer = explore_heads(MultiHeadAttention(64, 1), torch.randn(1, 8, 64))
_slider = _explorer.controls["num_heads"]

def _move(times):
    for i in range(times):
        _slider.index = (i + 1) % len(_slider.options)

def _grown(times):
    import gc
    _move(times)  # caches are full after that
    gc.collect(); before = _memory()
    _move(times)
    gc.collect()
    return _memory() - before
"""
)
