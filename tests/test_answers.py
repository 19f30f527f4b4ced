"""Right and wrong answers in the styles of public code, each with the verdict that it must get.

An answer is a file of ``tests/answers/`` that makes ``answer``, a function, a class or a module.
Its first lines are TOML behind ``# ``: ``exercise`` and ``verdict``, which is "right" or "wrong",
and what else must hold:

- right: ``note``, words of the printed line's note; without it, there must be no note;
- wrong: ``mistakes``, the ids, or ``first_difference``, the step's name, or ``says``, words of a
  message that needs neither.

``needs_mask`` and ``mask`` are passed on to the check.
"""

import runpy
import tomllib
from pathlib import Path

import pytest

from course_utils import exercises
from course_utils.exercises import CheckFailed

pytestmark = pytest.mark.slow
ANSWERS = sorted((Path(__file__).parent / "answers").glob("*.py"))
OPTIONS = ("needs_mask", "mask")
KEYS = {"exercise", "verdict", "note", "mistakes", "first_difference", "says", *OPTIONS}


def header(path: Path) -> dict:
    lines = path.read_text().splitlines()
    return tomllib.loads(
        "\n".join(line[2:] for line in lines[: len(lines)] if line[2:].split(" = ")[0] in KEYS)
    )


def judged(path: Path, capsys) -> dict:
    """What the check says of an answer, in the words of the header."""
    wanted = header(path)
    name = f"check_{wanted['exercise']}"
    check = getattr(exercises, name)
    options = {key: wanted[key] for key in OPTIONS if key in wanted}
    answer = runpy.run_path(str(path))["answer"]
    try:
        passed = check(answer, **options)
    except CheckFailed as failed:
        first = getattr(failed, "first_difference", None)
        return {
            "verdict": "wrong",
            "mistakes": list(failed.mistakes),
            "first_difference": first,
            "says": str(failed),
        }
    printed = capsys.readouterr().out
    return {"verdict": "right" if passed else "open", "note": printed.partition("; but ")[2]}


def faults(wanted: dict, got: dict) -> list[str]:
    if wanted["verdict"] != got["verdict"]:
        return [f"{wanted['verdict']} is called {got['verdict']}"]
    if wanted["verdict"] == "right":
        note = wanted.get("note", "")
        return [] if bool(note) == bool(got["note"]) and note in got["note"] else ["the note"]
    found = []
    if set(wanted.get("mistakes", [])) != set(got["mistakes"]):
        found.append(f"mistakes {got['mistakes']}")
    if "first_difference" in wanted and wanted["first_difference"] != got["first_difference"]:
        found.append(f"first_difference {got['first_difference']}")
    if wanted.get("says", "") not in got["says"]:
        found.append("the message")
    return found


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_an_answer_gets_its_verdict(path, capsys):
    wanted = header(path)
    got = judged(path, capsys)
    assert not faults(wanted, got), (wanted, got)


def test_the_corpus_is_large_and_every_verdict_says_something():
    headers = [header(path) for path in ANSWERS]
    assert len(headers) >= 60
    for wanted in headers:
        assert wanted["verdict"] in ("right", "wrong")
        if wanted["verdict"] == "wrong":
            assert {"mistakes", "first_difference", "says"} & set(wanted)
