"""Run one lesson as a learner might, in a process of its own, and report what happened as JSON.

    python run_lesson.py lesson.ipynb

First every cell twice in a row; then every cell alone, right after the setup cell. All along it is
noted which files are opened and which connections are made: whoever asks for that cannot stop it.
"""

import contextlib
import io
import json
import os
import sys

import nbformat
import torch
from IPython.core.interactiveshell import InteractiveShell

from course_utils.jupyter import cell_order


def run(shell, cell) -> dict:
    """Run a cell; what it printed, and its error with what was said about it."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        result = shell.run_cell(cell.source, store_history=True)
    error = result.error_in_exec or result.error_before_exec
    return {
        "id": cell.id,
        "tags": cell.metadata.get("tags", []),
        "printed": out.getvalue(),
        "error": type(error).__name__ if error else None,
        "message": str(error or ""),
        "said": getattr(error, "__notes__", []),
    }


def main(path: str) -> dict:
    """Both runs and all that was noted."""
    events = []

    def note(event: str, arguments: tuple) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            _, mode, flags = arguments
            writes = "w" if flags & (os.O_WRONLY | os.O_RDWR) or "w" in (mode or "") else "r"
            events.append((writes, os.path.realpath(os.fsdecode(arguments[0]))))
        elif event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir"):
            events.append(("w", os.path.realpath(os.fsdecode(arguments[0]))))
        elif event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            raise OSError(f"no network here: {event}{arguments}")
        elif event == "subprocess.Popen":
            events.append(("run", str(arguments[0])))

    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    os.environ["JPY_SESSION_NAME"] = path  # as Jupyter's server does
    os.chdir(os.path.dirname(path))
    shell = InteractiveShell.instance()
    cell_order.load_ipython_extension(shell)
    sys.addaudithook(note)

    twice = [[run(shell, cell), run(shell, cell)] for cell in code]

    shell.reset(new_session=True)
    torch.set_grad_enabled(True)
    run(shell, code[0])
    after_setup, gradients = dict(shell.user_ns), torch.is_grad_enabled()
    alone = []
    for cell in code[1:]:
        alone.append(run(shell, cell))
        shell.user_ns.clear()
        shell.user_ns.update(after_setup)
        torch.set_grad_enabled(gradients)
    return {"twice": twice, "alone": alone, "events": sorted(set(events))}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # figures and widgets print their text
        report = main(os.path.realpath(sys.argv[1]))
    print(json.dumps(report))
