"""A small extension of IPython: where a name is missing, say which cell to run first.

Who runs cells in another order, or goes on after a restart of the kernel, meets a NameError. It
tells which name is missing; this adds the cell of the notebook that makes it.
"""

import dis
import os
from collections.abc import Iterable


def cell_that_makes(name: str, sources: Iterable[str]) -> str | None:
    """The first cell that binds a name by itself, not inside a function; None if there is none.

    Args:
        name: of a variable, function, class or module.
        sources: code cells, in order. One that is no plain Python is passed over.
    """
    for source in sources:
        try:
            code = compile(source, "<cell>", "exec")
        except (SyntaxError, ValueError):
            continue
        if any(
            step.opname == "STORE_NAME" and step.argval == name
            for step in dis.get_instructions(code)
        ):
            return source
    return None


def load_ipython_extension(shell) -> None:
    """Add the sentence to each NameError; IPython calls this when the kernel starts."""
    shell.set_custom_exc((NameError,), _show)


def _show(shell, etype, error, traceback, tb_offset=None) -> None:
    # Jupyter's server gives the kernel the path of its notebook. Others may not, or it has moved.
    path = os.environ.get("JPY_SESSION_NAME", "")
    if error.name and os.path.isfile(path):
        import nbformat  # here, since every kernel loads this module as it starts

        just_run = shell.user_ns["In"][-1]
        cells = nbformat.read(path, as_version=4).cells
        others = [c.source for c in cells if c.cell_type == "code" and c.source != just_run]
        if source := cell_that_makes(error.name, others):
            start = source.strip().splitlines()[0]
            error.add_note(f"First run the cell that makes {error.name}. It starts with: {start}")
    shell.showtraceback((etype, error, traceback), tb_offset=tb_offset)
