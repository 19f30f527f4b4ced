"""Build the static edition: the stored notebooks as pages that need neither server nor network.

Sphinx with MyST-NB makes the pages. This script hands it the notebooks with three things changed:
solutions are folded in, figures get their alt text, and each explorer whose views are few enough
gets all of them, so that its controls move without a kernel.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from course_utils.files import replace_all
from course_utils.sliders import Views
from course_utils.sliders.style import style_sheet

HERE = Path(__file__).parent
ROOT = HERE.parent
LIMIT = 2_500_000  # characters of HTML that the views of one explorer may add to a page

# The kernel of a lesson and Sphinx's settings import what lies beside this file.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH")))),
}


def views_of(path: Path) -> dict[str, Views]:
    """Run a lesson and return the views of its explorers, by execution count."""
    notebook = nbformat.read(path, as_version=4)
    collect = f"from live_views import print_views; print_views(Out, {LIMIT})"
    notebook.cells.append(nbformat.v4.new_code_cell(collect))
    with tempfile.TemporaryDirectory() as folder:  # scores and the like are no part of the course
        NotebookClient(
            notebook,
            timeout=600,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--IPKernelApp.log_level=40"],  # errors only
        ).execute(env=ENVIRONMENT)
    return json.loads("".join(output["text"] for output in notebook.cells[-1].outputs))


def explorer_html(explorer: Views, png: str, alt: str) -> str:
    """The controls and all views of one explorer, and its picture for paper."""
    controls = []
    for control in explorer["controls"]:
        name, labels = escape(control["name"]), control["labels"]
        if labels:
            controls.append(
                f'<label>{name} <input type="range" min="0" max="{len(labels) - 1}" '
                f'value="{control["start"]}" data-labels="{escape(json.dumps(labels))}">'
                f"<output>{escape(labels[control['start']])}</output></label>"
            )
        else:
            checked = " checked" if control["start"] else ""
            controls.append(f'<label><input type="checkbox"{checked}> {name}</label>')
    first = explorer["views"][",".join(str(control["start"]) for control in explorer["controls"])]
    data = json.dumps(explorer["views"]).replace("</", "<\\/")
    others = ", ".join(explorer["left_out"])
    note = f"<p>In JupyterLab there is more to move: {escape(others)}.</p>" if others else ""
    return (
        f'<div class="ac-explorer">{note}'
        f'<div class="ac-explorer-controls">{"".join(controls)}</div>'
        f'<div class="ac-explorer-view">{first}</div>'
        f'<img class="ac-explorer-still" src="data:image/png;base64,{png}" alt="{escape(alt)}">'
        f'<script type="application/json">{data}</script></div>'
    )


def prepare(path: Path, folder: Path) -> None:
    """Write a lesson as Sphinx is to read it."""
    notebook, live, number = nbformat.read(path, as_version=4), views_of(path), 0
    for cell in notebook.cells:
        # As the fresh kernel counted: the stored numbers are those of whoever ran it last.
        number += cell.cell_type == "code" and bool(cell.source.strip())
        if "solution" in cell.metadata.get("tags", ()):
            cell.metadata.tags.append("hide-cell")
            cell.metadata["mystnb"] = {"code_prompt_show": "Show a solution"}
        for output in cell.get("outputs", ()):
            explorer = live.get(str(number))
            if explorer and output.get("data", {}).get("text/plain", "").startswith("Explorer: "):
                alt = output.metadata["image/png"]["alt"]
                html = explorer_html(explorer, output.data["image/png"].strip(), alt)
                output.data = {"text/html": html}
            elif alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata.setdefault("mystnb", {})["image"] = {"alt": alt}
    nbformat.write(notebook, folder / path.name)


def main(target: Path | None) -> None:
    """Build everything into target; without one, only try each link that leads elsewhere."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        lessons = sorted((ROOT / "notebooks").glob("*.ipynb"))
        for path in lessons:
            prepare(path, source)
        readme = (ROOT / "README.md").read_text()
        readme = re.sub(r"\]\(notebooks/", "](", readme).replace(
            ".github/explorer.png", "explorer.png"
        )
        others = [path.stem for path in sorted(ROOT.glob("*.md")) if path.stem != "README"]
        bench = "tests/bench/results", "tests/bench/why"
        titles = [*(path.stem for path in lessons), "mistakes", *reversed(others), *bench]
        pages = "\n".join(titles)
        for name in others:
            text = (ROOT / f"{name}.md").read_text()
            text = text.replace("](README.md", "](index.md").replace("](notebooks/", "](")
            (source / f"{name}.md").write_text(text)
        (source / "index.md").write_text(f"{readme}\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n")
        for file in (".github/explorer.png", "notebooks/mistakes.md", "LICENSE"):
            shutil.copy(ROOT / file, source)
        shutil.copytree(ROOT / "deploy", source / "deploy")  # TEACHING links to a file in it
        (source / "tests" / "bench").mkdir(parents=True)
        for page in bench:
            shutil.copy(ROOT / f"{page}.md", source / f"{page}.md")
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going"]
        command += ["-q", "-b", "html"] if target else ["-b", "linkcheck"]
        # MyST-NB puts a folder of its own next to the pages, so they are made elsewhere at first.
        pages_folder = Path(scratch) / "built" / "pages"
        (pages_folder / "_static").mkdir(parents=True)
        (pages_folder / "_static" / "explorer.css").write_text(style_sheet(), encoding="utf-8")
        subprocess.run([*command, "-c", HERE, source, pages_folder], check=True, env=ENVIRONMENT)
        if target:
            replace_all(pages_folder, target)
            print(f"Open {target / 'index.html'}")


if __name__ == "__main__":
    main(None if sys.argv[1] == "--links" else Path(sys.argv[1]))
