"""Re-run notebooks and store their outputs: `make execute`.

Neither times nor versions nor live views are stored, so a second run changes nothing. Each notebook
is replaced as a whole once it has run to its end.
"""

import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors import (
    CellExecutionError,
    ClearMetadataPreprocessor,
    ExecutePreprocessor,
)

from course_utils.files import replace
from course_utils.jupyter.saving import tidy


def execute(path: Path) -> None:
    """Run a notebook in its folder, and replace it.

    Raises:
        CellExecutionError: a cell failed; the notebook is then as it was.
        OSError: it cannot be written; likewise.
    """
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": path.parent}}
    run = ExecutePreprocessor(timeout=None, record_timing=False, store_widget_state=False)
    run.preprocess(notebook, resources)
    ClearMetadataPreprocessor(
        enabled=True, clear_cell_metadata=False, preserve_nb_metadata_mask={"kernelspec"}
    ).preprocess(notebook, resources)
    # Without a language JupyterLab would write one as it opens the notebook: "unsaved" at once.
    notebook.metadata["language_info"] = {"name": "python"}
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
