"""Every mutant of every solution, and what the checks make of it."""

from collections import Counter

import mutation
from table import Row

SECTION = "Mutants of the solutions"


def measure(quick: bool) -> list[Row]:
    verdicts = [
        mutation.verdict(solution, source)
        for solution, source in mutation.sample(37 if quick else 1)
    ]
    rows = []
    for exercise in dict.fromkeys(v.exercise for v in verdicts):
        rows.append(_row(exercise, [v for v in verdicts if v.exercise == exercise]))
    differ = [v for v in verdicts if v.kind != "equivalent"]
    refused = sum(v.kind != "accepted" for v in differ)
    compared = sum(v.compared for v in verdicts)
    return [
        *rows,
        _row("all exercises", verdicts, goal=("<=", 5)),
        Row(
            SECTION,
            "refused, of those that are not equivalent",
            100 * refused / len(differ),
            goal=(">=", 100),
            unit=" %",
            note=f"{len(verdicts) - len(differ)} are equivalent: {compared:,} numbers are the same",
        ),
    ]


def _row(what: str, verdicts: list, goal: tuple[str, float] | None = None) -> Row:
    kinds = Counter(v.kind for v in verdicts)
    ran = kinds["named"] + kinds["located"] + kinds["silent"]
    value = 100 * kinds["silent"] / ran if ran else 0.0
    note = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return Row(
        SECTION,
        f"{what}: neither named nor located, of those that run",
        value,
        goal=goal,
        unit=" %",
        note=f"{len(verdicts)} mutants: {note}",
    )
