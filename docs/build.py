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

HERE = Path(__file__).parent
ROOT = HERE.parent
LIMIT = 2_500_000  # characters of HTML that the views of one explorer may add to a page

# Runs in a lesson's kernel after its last cell: every view of every explorer, by execution count.
COLLECT = """
def _views():
    import itertools, json
    from course_utils.sliders.tables import style

    def collect(explorer, moved):
        # A slider is moved by the number of its stop, a switch by 0 and 1.
        sliders = {name for name, control in moved.items() if hasattr(control, "index")}
        ways = [range(len(c.options)) if n in sliders else (0, 1) for n, c in moved.items()]
        start = {n: c.index if n in sliders else int(c.value) for n, c in moved.items()}
        views, size = {}, 0
        for way in itertools.product(*ways):
            for (name, control), at in zip(moved.items(), way):
                if name in sliders:
                    control.index = at
                else:
                    control.value = bool(at)
            views[",".join(map(str, way))] = explorer.children[-1].value
            size += len(explorer.children[-1].value)
            if size > LIMIT:
                return None
        controls = [{"name": c.description, "start": start[n],
                     "labels": list(c._options_labels) if n in sliders else None}
                    for n, c in moved.items()]
        others = [c.description for n, c in explorer.controls.items() if n not in moved]
        return {"controls": controls, "views": views, "others": others}

    found = {}
    for number, explorer in list(Out.items()):
        if type(explorer).__name__ != "Explorer":
            continue
        sliders = {n: c for n, c in explorer.controls.items() if hasattr(c, "index")}
        # A switch that changes the stops of a slider stays as it is, and so does a text.
        switches = {n: c for n, c in explorer.controls.items()
                    if isinstance(c.value, bool) and n != "any_number"}
        before = {n: c.value for n, c in explorer.controls.items()}
        for moved in ({**sliders, **switches}, sliders):
            for name, value in before.items():
                explorer.controls[name].value = value
            if views := collect(explorer, moved):
                found[number] = views
                break
    return json.dumps({"style": style(), "explorers": found})

print(_views())
"""


def views_of(path: Path) -> dict:
    """Run a lesson and return what COLLECT prints."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(COLLECT.replace("LIMIT", str(LIMIT))))
    with tempfile.TemporaryDirectory() as folder:  # scores and the like are no part of the course
        NotebookClient(
            notebook,
            timeout=600,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--IPKernelApp.log_level=40"],  # errors only
        ).execute()
    return json.loads("".join(output["text"] for output in notebook.cells[-1].outputs))


def explorer_html(explorer: dict, png: str, alt: str) -> str:
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
    others = ", ".join(explorer["others"])
    note = f"<p>In JupyterLab there is more to move: {escape(others)}.</p>" if others else ""
    return (
        f'<div class="ac-explorer">{note}'
        f'<div class="ac-explorer-controls">{"".join(controls)}</div>'
        f'<div class="ac-explorer-view">{first}</div>'
        f'<img class="ac-explorer-still" src="data:image/png;base64,{png}" alt="{escape(alt)}">'
        f'<script type="application/json">{data}</script></div>'
    )


def prepare(path: Path, folder: Path) -> None:
    """Write a lesson as Sphinx shall read it."""
    notebook, live = nbformat.read(path, as_version=4), views_of(path)
    style, number = live["style"], 0
    for cell in notebook.cells:
        # As the fresh kernel counted: the stored numbers are those of whoever ran it last.
        number += cell.cell_type == "code" and bool(cell.source.strip())
        if "solution" in cell.metadata.get("tags", ()):
            cell.metadata.tags.append("hide-cell")
            cell.metadata["mystnb"] = {"code_prompt_show": "Show a solution"}
        for output in cell.get("outputs", ()):
            explorer = live["explorers"].get(str(number))
            if explorer and output.get("data", {}).get("text/plain", "").startswith("Explorer: "):
                alt = output.metadata["image/png"]["alt"]
                html = explorer_html(explorer, output.data["image/png"].strip(), alt)
                output.data = {"text/html": style + html}
                style = ""
            elif alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata.setdefault("mystnb", {})["image"] = {"alt": alt}
    nbformat.write(notebook, folder / path.name)


def main(target: Path) -> None:
    """Build everything into target."""
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
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        # MyST-NB puts a folder of its own next to the pages, so they are made elsewhere at first.
        pages_folder = Path(scratch) / "built" / "pages"
        subprocess.run([*command, "-c", HERE, source, pages_folder], check=True, env=environment)
        shutil.copytree(pages_folder, target, dirs_exist_ok=True)
    print(f"Open {target / 'index.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
