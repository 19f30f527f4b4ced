"""One line of the bench's table, and the two ways to print it."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        section: the heading it stands under.
        what: what was compared with what.
        value: usually a ratio, or None if it could not be measured.
        low: what a quarter of the repetitions fell below, as far as there are repetitions.
        high: what a quarter of them exceeded.
        goal: ("<=", 1.5) or (">=", 4); None where the figure is there to be known.
        unit: shown behind the value; ratios get "×".
        note: absolute figures, or the reason why there is no value.
    """

    section: str
    what: str
    value: float | None
    low: float | None = None
    high: float | None = None
    goal: tuple[str, float] | None = None
    unit: str = "×"
    note: str = ""

    def cells(self) -> list[str]:
        if self.value is None:
            return [self.what, "not measured", "", self._goal(), self.note]
        spread = "" if self.low is None else f"{self.low:.2f} to {self.high:.2f}"
        return [self.what, f"{self.value:.2f}{self.unit}", spread, self._goal(), self.note]

    def _goal(self) -> str:
        if self.goal is None:
            return ""
        sign, limit = self.goal
        text = f"{'≤' if sign == '<=' else '≥'} {limit:g}{self.unit}"
        if self.value is None:
            return text
        met = self.value <= limit if sign == "<=" else self.value >= limit
        return f"{text}, {'met' if met else 'MISSED'}"


def as_markdown(rows: Sequence[Row]) -> str:
    lines = []
    for section in dict.fromkeys(row.section for row in rows):
        lines += [
            f"\n## {section}\n",
            "| | median | quartiles | goal | |",
            "|---|---|---|---|---|",
        ]
        lines += [f"| {' | '.join(row.cells())} |" for row in rows if row.section == section]
    return "\n".join(lines) + "\n"


def compare(
    ours: Callable[[], object], theirs: Callable[[], object], repetitions: int
) -> tuple[float, float, float]:
    """Median and quartiles of ours / theirs, timed in turns so that noise meets both alike."""
    ratios = []
    ours(), theirs()
    for _ in range(repetitions):
        start = perf_counter()
        ours()
        between = perf_counter()
        theirs()
        ratios.append((between - start) / (perf_counter() - between))
    return quartiles(ratios)


def quartiles(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Median, lower and upper quartile."""
    if len(numbers) == 1:
        return numbers[0], numbers[0], numbers[0]
    low, median, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return median, low, high
