"""Make the environment belong to the folder that it lies in; `make install` runs this each time.

pip writes absolute paths into an environment. When the course's folder is moved, they lead nowhere,
and in a copy of it they lead to the old folder, whose ``course_utils`` would then be imported. Here
the link to ``course_utils`` becomes relative: a copy takes it along, and it is plain ASCII, which
Python 3.11 needs under ``LC_ALL=C``. The paths in scripts such as ``.venv/bin/jupyter`` follow.

    python -S tools/relink.py .venv

Without ``-S`` Python would read the link before it is mended.
"""

import os
import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent
RECORD = ".where"  # in the environment: its own path, as it was the last time


def link_package(environment: Path) -> None:
    """Let the link to ``course_utils``, if pip has made one, lead to this course."""
    for link in environment.glob("lib/python*/site-packages/_editable_impl_attention_course.pth"):
        packages = link.resolve().parent
        inside = COURSE in packages.parents
        path = os.fsencode(os.path.relpath(COURSE, packages) if inside else COURSE)
        if link.read_bytes().strip() != path:
            link.write_bytes(path)


def follow(environment: Path) -> bool:
    """Write the environment's path into its scripts, if it has moved since the last time.

    Returns:
        Whether it had.
    """
    record, here = environment / RECORD, os.fsencode(environment)
    before = record.read_bytes() if record.exists() else here
    if before != here:
        for script in (environment / "bin").iterdir():
            if script.is_file() and not script.is_symlink():
                old = script.read_bytes()
                new = with_path(old, before, here)
                if new != old:
                    script.write_bytes(new)
    record.write_bytes(here)
    return before != here


def with_path(script: bytes, before: bytes, here: bytes) -> bytes:
    """A script with another path of its environment; one that is no text stays as it is."""
    if b"\0" in script:
        return script
    first, newline, rest = script.partition(b"\n")
    if first.startswith(b"#!" + before):  # such a line may hold neither spaces nor a long path
        first = b"#!/bin/sh\n'''exec' \"" + first[2:].strip() + b'" "$0" "$@"\n\' \'\'\''
    return (first + newline + rest).replace(before, here)


if __name__ == "__main__":
    venv = Path(os.path.abspath(sys.argv[1]))
    link_package(venv)
    if follow(venv):
        print(f"The environment has moved to {venv}; its scripts were changed to fit.")
