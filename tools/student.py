"""Write the copy of the course for learners: `make student`.

Solutions go, and so does every output but what moves before a cell has run. The folder must be new
or empty, since what is in it may be somebody's work, and it appears only when all is in it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import nbformat

from course_utils.jupyter.copies import clear_all_but_ours


def without_solutions(path: Path) -> str:
    """A lesson as learners get it."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [c for c in notebook.cells if "solution" not in c.metadata.get("tags", ())]
    clear_all_but_ours(notebook)
    return nbformat.writes(notebook) + "\n"


def main(folder: str, files: list[str]) -> bool:
    """Write all of them into the folder, or say why not; whether it was written."""
    target = Path(folder)
    if not folder or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        print(
            f"The folder '{folder}' must be new or empty: what is in it may be somebody's work. "
            "Move it away, or choose another: make student STUDENT=folder"
        )
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".student-") as beside:
            copy = Path(beside) / "copy"
            copy.mkdir()
            for file in map(Path, files):
                if file.suffix == ".ipynb":
                    (copy / file.name).write_text(without_solutions(file), encoding="utf-8")
                else:
                    shutil.copy(file, copy)
            if target.exists():
                target.rmdir()
            copy.rename(target)
    except OSError as error:
        print(f"Nothing was written to '{folder}': {error}")
        return False
    print(f"The copy for learners is in '{folder}'.")
    return True


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1], sys.argv[2:]))
