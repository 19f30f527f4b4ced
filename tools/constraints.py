"""Write the version of every package that the course brings along into constraints.txt.

`make constraints` installs all extras, then runs this. What else lies in the environment is left
out. Packages that only another system needs are not installed here, and so not pinned.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

COURSE = "attention-course"
FILE = Path(__file__).resolve().parent.parent / "constraints.txt"
HEAD = """\
# The versions that the course was tested with, of all packages that it brings along, written by
# `make constraints`. To try another version, change its line, take out the lines of what it needs
# in other versions as well, and run `make constraints test`.
"""


def tree(extras: set[str]) -> dict[str, str]:
    """What is installed of all that the course needs, directly or not.

    Args:
        extras: those of the course, such as "test".

    Returns:
        For each package its version, without the label of a build such as "+cpu".
    """
    found: dict[str, str] = {}
    seen, ahead = set(), [(COURSE, frozenset(extras))]
    while ahead:
        name, wanted = here = ahead.pop()
        if here in seen:
            continue
        seen.add(here)
        try:
            package = distribution(name)
        except PackageNotFoundError:  # an extra that is not installed, or meant for another system
            continue
        found[name] = Version(package.version).public
        for line in package.requires or ():
            needed = Requirement(line)
            if not needed.marker or any(
                needed.marker.evaluate({"extra": extra}) for extra in wanted or ("",)
            ):
                ahead.append((canonicalize_name(needed.name), frozenset(needed.extras)))
    del found[COURSE]
    return found


def main() -> None:
    """Write the file."""
    extras = set(distribution(COURSE).metadata.get_all("Provides-Extra"))
    pins = [f"{name}=={version}\n" for name, version in sorted(tree(extras).items())]
    FILE.write_text(HEAD + "".join(pins), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
