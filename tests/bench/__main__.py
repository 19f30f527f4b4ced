"""`make bench`: measures the course and writes the table; `--quick` only proves that it works.

Every figure is taken on one machine in one run; ratios compare things timed in turns.
"""

import argparse
import datetime
import os
import platform
import re
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

import browser
import kernels
import layer
import mutants
import torch
from table import Row, as_markdown

HERE = Path(__file__).parent

PARTS = {
    "layer": layer.measure,
    "finder": layer.measure_finder,
    "mutants": mutants.measure,
    "slider": browser.measure,
    "stored": browser.measure_stored,
    "lab": browser.measure_first_lesson,
    "start": kernels.measure_start,
    "memory": kernels.measure_memory,
    "suite": kernels.measure_suite,
}
# What the README tells of.
HEADLINES = (
    "explore_heads, L = 8, D = 64: against the echo slider",
    "explore_heads, L = 8, D = 64: how much quicker than interact + pyplot",
    "explore_heads, L = 16, D = 64: against the echo slider",
    "explore_heads, L = 16, D = 64: how much quicker than interact + pyplot",
    "import course_utils against torch + matplotlib + ipywidgets",
    "make lab until lesson 1 can be read, in seconds",
    "growth after 1,000 moves",
    "forward and backward, weights on, L = 256, H = 4",
    "make test, in seconds",
)
MARK = "<!-- make bench -->"
BUDGET = 1200  # seconds; parts that would start later are left out, and the table says so


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists() and (name := re.search(r"model name\s*: (.+)", info.read_text())):
        cpu = name[1]
    return (
        f"{os.cpu_count()} cores of {cpu}, {platform.system()}, Python "
        f"{platform.python_version()}, torch {torch.__version__}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions, writes no file")
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; left out, all")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    start, rows, failed = time.monotonic(), [], False
    for name in asked.parts or PARTS:
        if (spent := time.monotonic() - start) > BUDGET * 0.8:
            rows.append(Row(name, "everything", None, note=f"{spent:.0f} s had gone by already"))
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows += PARTS[name](asked.quick)
        except Exception as error:
            failed = True
            traceback.print_exc()
            rows.append(Row(name, "everything", None, note=f"{type(error).__name__}: {error}"))
    table = (
        f"Measured on {datetime.date.today()}: {machine()}.\n{as_markdown(rows)}"
        f"\n{time.monotonic() - start:.0f} seconds in all.\n"
    )
    print(table)
    if not asked.quick and not asked.parts:
        (HERE / "results.md").write_text(f"# What `make bench` measured\n\n{table}")
        readme = HERE.parents[1] / "README.md"
        chosen = [replace(row, section="") for row in rows if row.what in HEADLINES]
        lines = as_markdown(chosen).replace("\n## \n", "", 1).strip()
        text = f"{MARK}\nMeasured on {datetime.date.today()}: {machine()}.\n\n{lines}\n{MARK}"
        old = readme.read_text()
        readme.write_text(re.sub(f"{MARK}.*{MARK}", lambda _: text, old, flags=re.DOTALL))
    sys.exit(failed)


if __name__ == "__main__":
    main()
