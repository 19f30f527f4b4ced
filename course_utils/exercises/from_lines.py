"""Functions from lines put in order."""

import linecache
from collections.abc import Callable, Mapping

import torch

from course_utils.exercises.calling import CheckFailed


def from_lines(signature: str, lines: Mapping[str, str], order: str) -> Callable:
    """Make a function from given lines, put in order by their letters.

    Args:
        signature: for example "merge_heads(x)".
        lines: letter to line of code.
        order: letters, for example "CAB"; empty, the function is one not attempted yet.

    Raises:
        CheckFailed: a letter that names no line, comes twice, or stands behind the return.
    """
    letters = [letter for letter in str(order).upper() if letter not in " ,"]
    if not set(letters) <= set(lines) or len(set(letters)) < len(letters):
        raise CheckFailed(
            f"✗ order must be made of the letters {', '.join(lines)}, each at most once; "
            f"got {order!r}"
        )
    body = [lines[letter] for letter in letters] or ["raise NotImplementedError"]
    if any(line.startswith("return") for line in body[:-1]):
        raise CheckFailed("✗ order: what stands behind the return is never run; leave it out")
    source = [f"def {signature}:\n", *(f"    {line}\n" for line in body)]
    name = f"<order {''.join(letters)}>"
    linecache.cache[name] = (len("".join(source)), None, source, name)  # for error messages
    namespace = {"torch": torch}
    exec(compile("".join(source), name, "exec"), namespace)
    return namespace[signature.partition("(")[0]]
