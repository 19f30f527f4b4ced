"""What a learner answered: kept in this process, and in a small file beside the notebook.

So a cell that is run again, a restart of the kernel or a new day brings an answer back. The file is
JSON: for each question's id a record, a dict that its widget makes and reads, with the time under
"when" (ms since 1970). Of two records the newer one wins; one that holds no more than the time says
that its question was started over.

The environment variable COURSE_ANSWERS names another file. Where notebooks are run to be tested or
stored it is the null device: what was answered here must not come into their outputs.
"""

import json
import os
import time
from pathlib import Path

from course_utils.files import alone_in, replace

_known: dict[Path, dict[str, dict]] = {}  # what this process knows of each file of answers


def recall(question_id: str) -> dict | None:
    """The newest record of a question, None if there is none or it was started over."""
    path = _file()
    record = _newest(path, _read(path) or {}).get(question_id, {})
    return record if len(record) > 1 else None


def remember(question_id: str, record: dict) -> bool:
    """Keep a record.

    Args:
        question_id: whose.
        record: any JSON with its time under "when". One that is older than what is known is passed
            over.

    Returns:
        Whether it is in the file too, so that it outlives this process.
    """
    path = _file()
    known = _newest(path, {question_id: record})
    try:
        with alone_in(path.parent):
            there = _read(path)
            if there is None:  # some other file, or one that was damaged: left as it is
                return False
            text = json.dumps(_newest(path, there), ensure_ascii=False, indent=1)
            replace(path, f"{text}\n".encode(errors="backslashreplace"))
    except OSError:
        return False
    return known[question_id] == record


def time_for(question_id: str) -> int:
    """The time for a new record: now, and in any case later than the record that is known."""
    known = _known.get(_file(), {})
    return max(int(time.time() * 1000), known.get(question_id, {"when": 0})["when"] + 1)


def _file() -> Path:
    """The file of answers, in the folder of the notebook unless the environment says otherwise."""
    return Path(os.environ.get("COURSE_ANSWERS") or "answers.json").resolve()


def _newest(path: Path, records: dict[str, dict]) -> dict[str, dict]:
    """What is known of a file, and these records where they are newer."""
    known = _known.setdefault(path, {})
    for question_id, record in records.items():
        if record["when"] > known.get(question_id, {"when": -1})["when"]:
            known[question_id] = record
    return known


def _read(path: Path) -> dict[str, dict] | None:
    """The records of a file: empty if there is no file, None if it is no file of answers."""
    try:
        found = json.loads(path.read_bytes())
        if all(isinstance(record["when"], int) for record in found.values()):
            return found
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    return None
