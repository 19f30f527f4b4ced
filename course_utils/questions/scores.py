"""The score file: one line for each quiz that was handed in, beside the notebook."""

import codecs
import csv
import io
import re
from pathlib import Path

from course_utils.files import alone_in, replace

SCORES = Path("scores.csv")  # in the folder of the notebook
COLUMNS = ["when", "quiz", "right", "of", "answers"]


def add_score(line: dict[str, object], *, again: bool = False) -> str:
    """Add a line to the score file, and say whether that worked.

    Args:
        line: a value for each of ``COLUMNS``.
        again: the same answers were handed in before, so they are noted only if that line is not
            there.
    """
    try:
        with alone_in(SCORES.resolve().parent):
            lines = read_score_file(SCORES) if SCORES.exists() else []
            if lines and lines[0] != COLUMNS:
                return f"`{SCORES}` here is some other file, so note it yourself."
            if not (again and _last_answers(lines, line["quiz"]) == line["answers"]):
                # All of it anew: another program may have changed separator, encoding, line ends.
                written = io.StringIO(newline="")
                new = [line[column] for column in COLUMNS]
                csv.writer(written).writerows([*(lines or [COLUMNS]), new])
                replace(SCORES, written.getvalue().encode())
    except OSError as error:
        return f"`{SCORES}` cannot be written here ({error.strerror}), so note it yourself."
    except (ValueError, csv.Error) as error:
        return f"`{SCORES}` cannot be read ({error}), so note it yourself."
    return f"Noted in `{SCORES}`."


def _last_answers(lines: list[list[str]], quiz_id: object) -> str | None:
    """What was handed in last for a quiz."""
    quiz, answers = COLUMNS.index("quiz"), COLUMNS.index("answers")
    found = [line[answers] for line in lines if len(line) == len(COLUMNS) and line[quiz] == quiz_id]
    return found[-1] if found else None


def read_score_file(path: Path) -> list[list[str]]:
    """All lines of a score file, also of one that a spreadsheet program has saved anew.

    Commas, semicolons or tabs separate its columns, and it is UTF-8 or UTF-16.

    Raises:
        ValueError, OSError, csv.Error: it cannot be read.
    """
    data = path.read_bytes()
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if utf16 else "utf-8-sig")
    text = re.sub(r"^sep=.\r?\n", "", text)  # a line for the program that wrote it
    separator = max(",;\t", key=text.partition("\n")[0].count)
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
