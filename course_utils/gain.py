"""A class's gain: what learners knew before the course and after it, from their score files.

``make gain SCORES=folder`` reads every CSV file in the folder, one for each learner, as the quizzes
write them (see ``course_utils.questions.scores``). It prints a table and writes a picture.
"""

import csv
import io
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.files import replace
from course_utils.heatmaps.figure import CourseFigure
from course_utils.questions.bank import letters_of
from course_utils.questions.scores import read_score_file

TESTS = ("pre-test", "post-test")


@dataclass(frozen=True)
class Learner:
    """One score file.

    Attributes:
        name: the file's path inside the folder, without ".csv".
        answers: for each test that was handed in, "pre-test" or "post-test", the letters: of the
            first pre-test and of the last post-test.
    """

    name: str
    answers: dict[str, list[str]]

    def right(self, test: str) -> list[bool]:
        """Whether each answer of a test was right."""
        _, right = letters_of(test)
        return [given == wanted for given, wanted in zip(self.answers[test], right, strict=True)]


def read_scores(folder: Path) -> tuple[list[Learner], list[str]]:
    """Read all score files in a folder and its subfolders.

    Returns:
        The learners, by name, and one sentence for each line that could not be read.

    Raises:
        ValueError: there is no such folder, or no CSV file in it.
    """
    files = sorted(
        file for file in Path(folder).rglob("*") if file.suffix.lower() == ".csv" and file.is_file()
    )
    if not files:
        raise ValueError(
            f"folder must hold one CSV file for each learner, got {str(folder)!r} without any"
        )
    learners, problems = [], []
    for file in files:
        answers: dict[str, list[str]] = {}
        name = file.relative_to(folder).with_suffix("").as_posix()
        for where, test, letters in _lines(file, problems):
            known, _ = letters_of(test)
            if len(letters) != len(known) or not all(map(list.__contains__, known, letters)):
                problems.append(f"{where}: these are no answers to the {test}: {' '.join(letters)}")
            elif test == "post-test" or test not in answers:
                answers[test] = letters
        learners.append(Learner(name, answers))
    return learners, problems


def _lines(file: Path, problems: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield where, test and letters of each line that holds one of the two tests."""
    try:
        first, *lines = read_score_file(file) or [[]]
    except (OSError, ValueError, csv.Error) as error:
        problems.append(f"{file}: cannot be read ({error})")
        return
    if not {"quiz", "answers"} <= set(first):
        problems.append(f"{file}: its first line does not name the columns quiz and answers")
    for number, line in enumerate(lines, start=2):
        named = dict(zip(first, line, strict=False))
        if named.get("quiz") in TESTS:
            yield f"{file}, line {number}", named["quiz"], named.get("answers", "").split()


def plot_gain(learners: list[Learner]) -> CourseFigure:
    """Draw each learner's way from the pre-test to the post-test, and each question's.

    Args:
        learners: those without both tests are left out.

    Returns:
        A closed figure with two axes.

    Raises:
        ValueError: nobody handed in both tests.
    """
    both = [learner for learner in learners if len(learner.answers) == 2]
    if not both:
        raise ValueError("learners must hold at least one who handed in both tests, got none")
    scores = {test: [sum(learner.right(test)) for learner in both] for test in TESTS}
    means = {test: statistics.fmean(scores[test]) for test in TESTS}
    shares = {
        test: [100 * statistics.fmean(q) for q in zip(*(x.right(test) for x in both), strict=True)]
        for test in TESTS
    }
    questions = range(1, len(shares["pre-test"]) + 1)

    figure = CourseFigure(figsize=(10, 4.2))
    ways, bars = figure.subplots(1, 2, width_ratios=(2, 3))
    for pair in zip(*scores.values(), strict=True):
        ways.plot(TESTS, pair, color="#555", alpha=max(0.15, min(1, 8 / len(both))), linewidth=1)
    ways.plot(TESTS, means.values(), marker="o", color="#440154", linewidth=3, label="mean")
    ways.set_ylim(-0.3, len(questions) + 0.3)
    ways.set_ylabel(f"right answers, of {len(questions)}")
    ways.set_title(f"{len(both)} learners")
    ways.legend(loc="lower right")
    for offset, (test, share) in zip((-0.2, 0.2), shares.items(), strict=True):
        hatch = "//" if test == "pre-test" else None  # told by more than colour
        colour = "#9bd0c3" if test == "pre-test" else "#2a788e"
        places = [question + offset for question in questions]
        bars.bar(places, share, 0.4, label=test, hatch=hatch, color=colour, edgecolor="#222")
    bars.set_xticks(questions)
    bars.set_xlabel("question")
    bars.set_ylabel("learners who were right, %")
    bars.set_ylim(0, 105)
    bars.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    figure.alt = (
        f"{len(both)} learners had {means['pre-test']:.1f} of {len(questions)} right before the "
        f"course and {means['post-test']:.1f} after it, on average"
    )
    return figure


def main(folder: str, picture: str) -> None:
    """Print the class's gain and write the picture."""
    learners, problems = read_scores(Path(folder))
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    print(f"{'learner':<30} before  after  gain")
    for learner in learners:
        before, after = (
            sum(learner.right(test)) if test in learner.answers else None for test in TESTS
        )
        gain = "" if None in (before, after) else f"{after - before:+d}"
        shown = ["–" if score is None else score for score in (before, after)]
        print(f"{learner.name:<30} {shown[0]!s:>6} {shown[1]!s:>6} {gain:>5}")
    figure = plot_gain(learners)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=Path(picture).suffix[1:] or None, dpi=150)
    replace(Path(picture), drawn.getvalue())
    print(f"\n{figure.alt}. The picture is {picture}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(str(error))
