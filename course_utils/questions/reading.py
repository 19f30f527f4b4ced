"""Reading what a learner typed: a shape or a number, in many ways to write it."""

import math
import re


def read(kind: str, text: str) -> set:
    """All that a text may mean as an answer of a kind; empty if it is no such answer.

    Args:
        kind: "choice", "shape" or "number".
        text: what was chosen or typed.
    """
    return {"choice": lambda choice: {choice}, "shape": read_shape, "number": read_number}[kind](
        text
    )


def same(kind: str, meant: set, other: object, tolerance: float = 0) -> bool:
    """Whether something that a learner may have meant is the other answer.

    Args:
        kind: "choice", "shape" or "number".
        meant: what ``read`` returned.
        other: an answer as it stands in a file: a text, a list of sizes or a number.
        tolerance: how far apart numbers may be.
    """
    others = read(kind, str(other))
    if kind != "number":
        return not meant.isdisjoint(others)
    return any(math.isclose(a, b, rel_tol=1e-9, abs_tol=tolerance) for a in meant for b in others)


def read_shape(text: str) -> set[tuple[int, ...]]:
    """The shape that a text means, as a set of one; empty if it is none."""
    text = re.sub(r"^torch\.Size\((.*)\)$", r"\1", text.strip(), flags=re.IGNORECASE)
    bracketed = re.fullmatch(r"\((.*)\)|\[(.*)\]", text)
    inside = (bracketed[1] or bracketed[2] or "") if bracketed else text
    sizes = re.split(r"\s*[,;×x]\s*|\s+", re.sub(r",\s*$", "", inside.strip()))
    if sizes == [""]:
        return {()} if bracketed else set()  # () is the shape of a single number
    return {tuple(map(int, sizes))} if all(s.isdecimal() for s in sizes) else set()


def read_number(text: str) -> set[float]:
    """All that a text may mean as a number; empty if it is none.

    Commas and points mean thousands to some people and decimals to others: "1,600" is read both
    ways, "0,5" in the only way that makes sense. "50 %" may stand for 0.5 or for 50.
    """
    text = text.strip().lstrip("≈~ ").replace("−", "-")
    if re.search(r"%\s*%$", text):
        return set()
    if text.endswith("%"):
        return {x for n in read_number(text[:-1]) for x in (n, n / 100)}
    if text.count("/") == 1:
        above, below = map(read_number, text.split("/"))
        return {a / b for a in above for b in below if b}
    meant = set()
    if re.fullmatch(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", text, re.IGNORECASE):
        meant.add(float(text.replace(",", ".")))
    for mark in ",.' _\u2009\u00a0":  # also a thin space and one that does not break
        grouped = rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+([{',.'.replace(mark, '')}]\d+)?"
        if re.fullmatch(grouped, text):
            meant.add(float(text.replace(mark, "").replace(",", ".")))
    return meant
