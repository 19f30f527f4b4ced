"""Questions to answer in a notebook: predictions before a cell, quizzes, pre- and post-test.

The questions and their answers stand in two files in the folder ``questions``, so that no answer
stands in a notebook. Each file is read when its first question is asked for.
"""

import codecs
import csv
import io
import math
import re
import reprlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from html import escape
from pathlib import Path
from string import ascii_lowercase

import ipywidgets as widgets

FOLDER = Path(__file__).with_suffix("")
SCORES = Path("scores.csv")  # in the folder of the notebook
SCORE_COLUMNS = ["when", "quiz", "right", "of", "answers"]
MAX_ANSWER = 60  # characters; what is longer is no shape and no number
NOT_SURE = "I do not know"

# ipywidgets gives every label of a RadioButtons one line of fixed height; here they may be long.
STYLE = """<style>
.aq{max-width:52em;padding:4px 10px;border-left:3px solid var(--jp-border-color1,#bbb)}
.aq .widget-html,.aq .widget-html-content{width:auto;height:auto;overflow:visible}
.aq .widget-html-content{color:var(--jp-content-font-color1,#000);line-height:1.5;
font-size:var(--jp-content-font-size1,14px)}
.aq .widget-html-content p{margin:4px 0}
.aq code{display:inline-block;max-width:100%;box-sizing:border-box;white-space:pre-wrap;
padding:0 3px;background:var(--jp-layout-color2,#eee)}
.aq .widget-radio{width:auto;height:auto;margin:0 2px}
.aq .widget-radio-box{flex:1 1 auto;max-width:none;margin:0!important;padding:0}
.aq .widget-radio-box label{display:flex;align-items:flex-start;gap:8px;width:auto;height:auto;
margin:0;padding:3px 0;line-height:20px;white-space:normal;cursor:pointer;
font-size:var(--jp-content-font-size1,14px);color:var(--jp-content-font-color1,#000)}
.aq .widget-radio-box label input{order:-1;flex:none;width:14px;height:14px;margin:3px 0;
position:static}
</style>"""


def predict(question_id: str) -> "Prediction":
    """A question to answer before the next cell is run.

    Args:
        question_id: a name in ``questions/predictions.toml``.

    Raises:
        ValueError: there is no such question; the message names the nearest ones.
    """
    return Prediction(question_id, _entry("predictions", question_id))


def quiz(quiz_id: str) -> "Quiz":
    """Several questions that are handed in together.

    Args:
        quiz_id: a name in ``questions/quizzes.toml``.

    Raises:
        ValueError: there is no such quiz; the message names the nearest ones.
    """
    return Quiz(quiz_id, _entry("quizzes", quiz_id))


class _Asked(widgets.VBox):
    """Questions in a column, a button, and a line that answers."""

    def __init__(self, parts: Sequence[widgets.Widget], label: str, submit: Callable) -> None:
        button = widgets.Button(description=label)
        button.on_click(lambda _button: submit())
        self._feedback = widgets.HTML()
        self._say("")
        super().__init__([widgets.HTML(STYLE), *parts, button, self._feedback])
        self.add_class("aq")

    def _say(self, sentence: str) -> None:
        # A polite live region: a screen reader says it when it has finished its own sentence.
        self._feedback.value = f'<div role="status">{_html(sentence)}</div>'

    def _repr_mimebundle_(self, **kwargs) -> dict:
        # The text is the same whether answered or not: nbval compares it, and GitHub shows it.
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}


class Prediction(_Asked):
    """One question, a control to answer it, a button, and a line that says right or not yet.

    Args:
        question_id: its name.
        entry: kind, question, right answer and sentences; ``questions/predictions.toml`` says how.

    Attributes:
        state: the question's id, the ``answer`` that was checked last (None before the first),
            whether it is ``right`` (None before) and how many ``tries`` there were; to check the
            same answer again is no new try.
    """

    def __init__(self, question_id: str, entry: Mapping) -> None:
        self._entry, self._kind = entry, entry["kind"]
        self.state = {"question": question_id, "answer": None, "right": None, "tries": 0}
        self._entered = False
        if self._kind == "choice":
            self._control = _radio(entry["choices"])
        else:
            self._control = widgets.Text(
                description="Your answer",
                placeholder=f"a {self._kind}",
                continuous_update=False,
                style={"description_width": "initial"},
                layout=widgets.Layout(width="22em"),
            )
            self._control.on_msg(self._on_enter)
            self._control.observe(self._on_typed, "value")
        super().__init__(
            [widgets.HTML(_html(entry["question"])), self._control], "Check", self.check
        )

    def answer(self, value: object) -> None:
        """Give an answer from code and check it: a choice's text, a shape or a number.

        Raises:
            ValueError: not one of the choices.
        """
        choices = self._entry.get("choices")
        if choices and not (isinstance(value, str) and value in choices):
            raise ValueError(
                f"value must be one of {', '.join(map(repr, choices))}; got {reprlib.repr(value)}"
            )
        self._control.value = value if choices else str(value)
        self.check()

    def check(self) -> None:
        """Check what is chosen or typed now, as the button does."""
        self._entered = False
        answer = self._control.value
        if not answer or not answer.strip():
            do = "choose" if self._kind == "choice" else "write"
            self._say(f"○ Nothing to check yet: {do} your answer first.")
            return
        meant = self._read(answer) if len(answer) <= MAX_ANSWER else set()
        if not meant:  # nothing that could be right or wrong, so it is no try
            example = "its sizes with commas: 4, 7" if self._kind == "shape" else "digits: 12, 0.25"
            shown = answer if len(answer) <= MAX_ANSWER else f"{answer[:MAX_ANSWER]}…"
            self._say(f"○ “{shown}” is no {self._kind} that I can read. Write just {example}.")
            return
        self.state |= {
            "tries": self.state["tries"] + (answer != self.state["answer"]),
            "answer": answer,
            "right": self._same(meant, self._entry["right"]),
        }
        if self.state["right"]:
            self._say(f"✓ Right. {self._entry['why']}")
            return
        known = self._entry.get("wrong", {})
        reason = next((known[key] for key in known if self._same(meant, key)), None)
        self._say(f"✗ Not yet. {reason or self._entry['hint']} Try again.")

    def _read(self, text: str) -> set:
        """All that a text may mean; empty if it is no answer of this kind."""
        return {"choice": lambda choice: {choice}, "shape": read_shape, "number": read_number}[
            self._kind
        ](text)

    def _same(self, meant: set, other: object) -> bool:
        """Whether something that the learner may have meant is the other answer, from the file."""
        others = self._read(str(other))
        if self._kind != "number":
            return not meant.isdisjoint(others)
        off = self._entry.get("tolerance", 0)
        return any(math.isclose(a, b, rel_tol=1e-9, abs_tol=off) for a in meant for b in others)

    # The browser says "Enter" first and then what was typed, if that is new. It also says what was
    # typed when the field is left, but this is no answer yet: one may just look something up.
    def _on_enter(self, _widget, content: Mapping, _buffers) -> None:
        if content.get("event") == "submit":
            if self._control.value:
                self.check()
            self._entered = True

    def _on_typed(self, _change) -> None:
        if self._entered:
            self.check()

    def __repr__(self) -> str:
        choices = self._entry.get("choices")
        how = f"Choices: {' · '.join(choices)}" if choices else f"(a {self._kind})"
        return f"Predict: {' '.join(self._entry['question'].split())} {how}"


class Quiz(_Asked):
    """Choice questions, one button for all of them, and a line with the score.

    Each hand-in adds a line to ``scores.csv``: when, quiz, right, of, and the answers, a letter
    for each choice in the order shown and "?" for "I do not know".

    Args:
        quiz_id: its name.
        entry: title, questions and what to say; ``questions/quizzes.toml`` says how.

    Attributes:
        state: the quiz's id, the ``answers`` that were handed in last (None before the first) and
            how many of them are ``right`` (None before), ``of`` how many.
    """

    def __init__(self, quiz_id: str, entry: Mapping) -> None:
        self._entry, self._questions = entry, entry["questions"]
        self.state = {"quiz": quiz_id, "answers": None, "right": None, "of": len(self._questions)}
        self._letters = _letters(entry)
        self._controls = [_radio(list(letters)) for letters in self._letters]
        self._notes = [widgets.HTML() for _ in self._questions]
        parts = [widgets.HTML(_html(entry["intro"]))] if "intro" in entry else []
        for k, question in enumerate(self._questions):
            asked = widgets.HTML(_html(f"{k + 1}. {question['question']}"))
            asked.layout.margin = "10px 2px 0"
            parts += [asked, self._controls[k], self._notes[k]]
        super().__init__(parts, "Hand in", self.hand_in)

    def answer(self, letters: str) -> None:
        """Give all answers from code and hand them in, as ``scores.csv`` has them: "b a ? c".

        Raises:
            ValueError: not one letter for each question, or a letter that no choice has.
        """
        if not isinstance(letters, str):
            raise ValueError(f"letters must be a string, got {reprlib.repr(letters)}")
        given = letters.split()
        if len(given) != len(self._letters):
            raise ValueError(f"letters must be {len(self._letters)}, got {len(given)}")
        for k, (letter, known) in enumerate(zip(given, self._letters, strict=True), start=1):
            if letter not in known.values():
                choices = ", ".join(known.values())
                raise ValueError(f"letter {k} must be one of {choices}; got {reprlib.repr(letter)}")
        for letter, known, control in zip(given, self._letters, self._controls, strict=True):
            control.index = list(known.values()).index(letter)
        self.hand_in()

    def hand_in(self) -> None:
        """Mark what is chosen now and note the score, as the button does."""
        answers = [control.value for control in self._controls]
        *others, last = [str(k) for k, a in enumerate(answers, start=1) if a is None] or [None]
        if last:
            which = f"s {', '.join(others)} and {last} are" if others else f" {last} is"
            self._say(f"○ Question{which} still open.")
            return
        right = [a == q["right"] for a, q in zip(answers, self._questions, strict=True)]
        self.state |= {
            "answers": " ".join(k[a] for k, a in zip(self._letters, answers, strict=True)),
            "right": sum(right),
        }
        if self._entry["feedback"]:
            for is_right, question, note in zip(right, self._questions, self._notes, strict=True):
                mark = "✓ Right." if is_right else f"✗ No. Right is “{question['right']}”."
                note.value = _html(f"{mark} {question['why']}")
        after = self._entry.get("after", "")
        self._say(f"{sum(right)} of {len(right)} right. {after} {self._note_score()}")

    def _note_score(self) -> str:
        """Add a line to the file of scores, and say whether that worked."""
        now = datetime.now().isoformat(timespec="minutes")
        line = {"when": now, **self.state}
        try:
            lines = read_score_file(SCORES) if SCORES.exists() else []
            if lines and lines[0] != SCORE_COLUMNS:
                return f"`{SCORES}` here is some other file, so note it yourself."
            # All of it anew: another program may have changed separator, encoding or line ends.
            written = SCORES.with_suffix(".tmp")
            with written.open("w", newline="", encoding="utf-8") as file:
                new = [line[column] for column in SCORE_COLUMNS]
                csv.writer(file).writerows([*(lines or [SCORE_COLUMNS]), new])
            written.replace(SCORES)
        except OSError as error:
            return f"`{SCORES}` cannot be written here ({error.strerror}), so note it yourself."
        except (ValueError, csv.Error) as error:
            return f"`{SCORES}` cannot be read ({error}), so note it yourself."
        return f"Noted in `{SCORES}`."

    def __repr__(self) -> str:
        return f"Quiz: {self._entry['title']}, {len(self._questions)} questions"


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


# --- reading what was typed -----------------------------------------------------------------------


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


def letters_of(quiz_id: str) -> tuple[list[list[str]], list[str]]:
    """For each question of a quiz, the letters it may be answered with, and the right one.

    Raises:
        ValueError: there is no such quiz; the message names the nearest.
    """
    entry = _entry("quizzes", quiz_id)
    letters = _letters(entry)
    right = [known[q["right"]] for known, q in zip(letters, entry["questions"], strict=True)]
    return [list(known.values()) for known in letters], right


def _letters(entry: Mapping) -> list[dict[str, str]]:
    """For each question of a quiz, its choices and the letter of each."""
    extra = {NOT_SURE: "?"} if entry.get("not_sure") else {}
    return [
        dict(zip(question["choices"], ascii_lowercase, strict=False)) | extra
        for question in entry["questions"]
    ]


# --- what both share ------------------------------------------------------------------------------


@cache
def _load(name: str) -> dict:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _entry(name: str, entry_id: str) -> dict:
    entries = _load(name)
    if not isinstance(entry_id, str) or entry_id not in entries:
        nearest = ", ".join(get_close_matches(str(entry_id), entries, n=3, cutoff=0))
        raise ValueError(
            f"there is no {reprlib.repr(entry_id)} in {name}.toml; the nearest are {nearest}"
        )
    return entries[entry_id]


def _radio(choices: Sequence[str]) -> widgets.RadioButtons:
    return widgets.RadioButtons(options=choices, value=None)


def _html(text: str) -> str:
    """A text as HTML: everything escaped, `code` as code, an empty line between paragraphs."""
    text = text.encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be sent
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip()))
    return "".join(f"<p>{part}</p>" for part in text.split("\n\n") if part)
