"""The questions themselves, from the TOML files of this folder; ``README.md`` says how they look.

All files are read when the first question is asked for, and not before.
"""

import reprlib
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from string import ascii_lowercase

FOLDER = Path(__file__).parent
NOT_SURE = "I do not know"


@cache
def load() -> dict[str, dict[str, dict]]:
    """Read all files.

    Returns:
        ``"predictions"`` and ``"quizzes"``, each with its entries by id.
    """
    found = {"predictions": {}, "quizzes": {}}
    for file in sorted(FOLDER.glob("*.toml")):
        for kind, entries in tomllib.loads(file.read_text(encoding="utf-8")).items():
            found[kind] |= entries
    return found


def prediction_entry(question_id: str) -> dict:
    """The prediction with this id.

    Raises:
        ValueError: there is none; the message names the nearest.
    """
    return _entry("prediction", load()["predictions"], question_id)


def quiz_entry(quiz_id: str) -> dict:
    """The quiz with this id.

    Raises:
        ValueError: there is none; the message names the nearest.
    """
    return _entry("quiz", load()["quizzes"], quiz_id)


def _entry(what: str, entries: Mapping[str, dict], entry_id: str) -> dict:
    if not isinstance(entry_id, str) or entry_id not in entries:
        nearest = ", ".join(get_close_matches(str(entry_id), entries, n=3, cutoff=0))
        raise ValueError(f"there is no {what} {reprlib.repr(entry_id)}; the nearest are {nearest}")
    return entries[entry_id]


def choice_letters(entry: Mapping) -> list[dict[str, str]]:
    """For each question of a quiz, its choices and the letter of each, "?" for not knowing."""
    extra = {NOT_SURE: "?"} if entry.get("not_sure") else {}
    return [
        dict(zip(question["choices"], ascii_lowercase, strict=False)) | extra
        for question in entry["questions"]
    ]


def letters_of(quiz_id: str) -> tuple[list[list[str]], list[str]]:
    """For each question of a quiz, the letters it may be answered with, and the right one.

    Raises:
        ValueError: there is no such quiz; the message names the nearest.
    """
    entry = quiz_entry(quiz_id)
    letters = choice_letters(entry)
    right = [known[q["right"]] for known, q in zip(letters, entry["questions"], strict=True)]
    return [list(known.values()) for known in letters], right
