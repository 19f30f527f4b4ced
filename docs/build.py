"""Build the static edition: the stored notebooks as pages that need neither server nor network.

Sphinx with MyST-NB makes the pages. This script hands it the notebooks with three things changed:
solutions are folded in, figures get their alt text, and what is stored of explorers and questions
moves.
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

from course_utils.files import replace_all
from course_utils.questions.stored import MIMETYPE as QUESTION
from course_utils.sliders.stops import MIMETYPE as STOPS

HERE = Path(__file__).parent
ROOT = HERE.parent

# Sphinx's settings import what lies beside this file.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH")))),
}


def stored_html(kind: str, output: nbformat.NotebookNode) -> str:
    """What moves in the browser (see ``stored.js``), and a picture or text where it does not."""
    stored, picture = escape(json.dumps(output.metadata[kind])), output.data.get("image/png")
    still = f'<p class="ac-stored-still">{escape(output.data["text/plain"])}</p>'
    if picture:
        source, alt = picture.strip(), escape(output.metadata["image/png"]["alt"])
        still = f'<img class="ac-stored-still" src="data:image/png;base64,{source}" alt="{alt}">'
    return f'<div class="ac-stored" data-kind="{kind}" data-stored="{stored}">{still}</div>'


def figure_html(output: nbformat.NotebookNode) -> str:
    """A figure in its two themes, of which Furo shows the page's own."""
    metadata = output.metadata["image/png"]
    look = f'width="{metadata["width"]}" alt="{escape(metadata["alt"])}"'
    sources = {"light": output.data["image/png"].strip(), "dark": metadata["dark"]}
    return "".join(
        f'<img class="only-{theme}" {look} src="data:image/png;base64,{source}">'
        for theme, source in sources.items()
    )


def prepare(path: Path, folder: Path) -> None:
    """Write a lesson as Sphinx is to read it."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if "solution" in cell.metadata.get("tags", ()):
            cell.metadata.tags.append("hide-cell")
            cell.metadata["mystnb"] = {"code_prompt_show": "Show a solution"}
        for output in cell.get("outputs", ()):
            metadata = output.get("metadata", {})
            if "dark" in metadata.get("image/png", ()):
                output.data = {"text/html": figure_html(output)}
            for kind in {STOPS, QUESTION} & metadata.keys():
                output.data = {"text/html": stored_html(kind, output)}
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
        readme = re.sub(r"\]\((notebooks|\.github)/", "](", readme)
        others = [path.stem for path in sorted(ROOT.glob("*.md")) if path.stem != "README"]
        bench = "tests/bench/results", "tests/bench/why"
        titles = [*(path.stem for path in lessons), "mistakes", *reversed(others), *bench]
        pages = "\n".join(titles)
        for name in others:
            text = (ROOT / f"{name}.md").read_text()
            text = text.replace("](README.md", "](index.md").replace("](notebooks/", "](")
            (source / f"{name}.md").write_text(text)
        (source / "index.md").write_text(f"{readme}\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n")
        pictures = ".github/moving.svg", ".github/explorer.png"
        for file in (*pictures, "notebooks/mistakes.md", "LICENSE"):
            shutil.copy(ROOT / file, source)
        shutil.copytree(ROOT / "deploy", source / "deploy")  # TEACHING links to a file in it
        (source / "tests" / "bench").mkdir(parents=True)
        for page in bench:
            shutil.copy(ROOT / f"{page}.md", source / f"{page}.md")
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going"]
        command += ["-q", "-b", "html"] if target else ["-b", "linkcheck"]
        # MyST-NB puts a folder of its own next to the pages, so they are made elsewhere at first.
        pages_folder = Path(scratch) / "built" / "pages"
        subprocess.run([*command, "-c", HERE, source, pages_folder], check=True, env=ENVIRONMENT)
        if target:
            replace_all(pages_folder, target)
            print(f"Open {target / 'index.html'}")


if __name__ == "__main__":
    main(None if sys.argv[1] == "--links" else Path(sys.argv[1]))
