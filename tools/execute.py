"""Re-run notebooks and store their outputs: `make execute`.

Neither times nor versions nor live views nor anybody's answers are stored, so a second run changes
nothing. Each notebook is replaced as a whole once it has run to its end.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from course_utils.files import replace
from course_utils.jupyter.saving import tidy


def execute(path: Path) -> None:
    """Run a notebook in its folder, and replace it.

    Raises:
        CellExecutionError: a cell failed; the notebook is then as it was.
        OSError: it cannot be written; likewise.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=None,
        resources={"metadata": {"path": path.parent}},
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--IPKernelApp.log_level=40"],  # errors only
    ).execute(env={**os.environ, "COURSE_ANSWERS": os.devnull})
    # Without a language JupyterLab would write one as it opens the notebook: "unsaved" at once.
    kept = {name: notebook.metadata[name] for name in ("kernelspec",) if name in notebook.metadata}
    notebook.metadata = nbformat.from_dict({**kept, "language_info": {"name": "python"}})
    tidy(notebook)
    replace(path, (nbformat.writes(notebook) + "\n").encode())


def main(paths: list[str]) -> str | None:
    """Run all of them, up to the first that fails, and say which that was."""
    for path in map(Path, paths):
        print(f"{path} …", flush=True)
        try:
            execute(path)
        except (CellExecutionError, OSError) as error:
            return f"{path} is as it was, because it could not be run and stored:\n{error}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
