"""What a question looks like in a notebook: a prediction, and a quiz."""

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path

import ipywidgets as widgets

from course_utils.questions.bank import choice_letters, prediction_entry, quiz_entry
from course_utils.questions.reading import read, same
from course_utils.questions.scores import add_score

MAX_ANSWER = 60  # characters; what is longer is no shape and no number


def predict(question_id: str) -> "Prediction":
    """A question to answer before the next cell is run.

    Args:
        question_id: such as "l1-score"; the lesson's TOML file has it.

    Raises:
        ValueError: there is no such question; the message names the nearest ones.
    """
    return Prediction(question_id, prediction_entry(question_id))


def quiz(quiz_id: str) -> "Quiz":
    """Several questions that are handed in together.

    Args:
        quiz_id: "pre-test", "post-test", or a lesson's, such as "lesson-01".

    Raises:
        ValueError: there is no such quiz; the message names the nearest ones.
    """
    return Quiz(quiz_id, quiz_entry(quiz_id))


class Asked(widgets.VBox):
    """Questions in a column, a button, and a line that answers."""

    def __init__(self, parts: Sequence[widgets.Widget], label: str, submit: Callable) -> None:
        button = widgets.Button(description=label)
        button.on_click(lambda _button: submit())
        self.feedback = widgets.HTML()
        self._say("")
        super().__init__([widgets.HTML(_style()), *parts, button, self.feedback])
        self.add_class("aq")

    def _say(self, sentence: str) -> None:
        # A polite live region: a screen reader says it when it has finished its own sentence.
        self.feedback.value = f'<div role="status">{as_html(sentence)}</div>'

    def _repr_mimebundle_(self, **kwargs) -> dict:
        # The text is the same whether answered or not: nbval compares it, and GitHub shows it.
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}


class Prediction(Asked):
    """One question, a control to answer it, a button, and a line that says right or not yet.

    Args:
        question_id: its name.
        entry: kind, question, right answer and sentences, as ``README.md`` describes them.

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
            self.control = radio(entry["choices"])
        else:
            self.control = widgets.Text(
                description="Your answer",
                placeholder=f"a {self._kind}",
                continuous_update=False,
                style={"description_width": "initial"},
                layout=widgets.Layout(width="22em"),
            )
            self.control.on_msg(self._on_enter)
            self.control.observe(self._on_typed, "value")
        super().__init__(
            [widgets.HTML(as_html(entry["question"])), self.control], "Check", self.check
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
        self.control.value = value if choices else str(value)
        self.check()

    def check(self) -> None:
        """Check what is chosen or typed now, as the button does."""
        self._entered = False
        answer = self.control.value
        if not answer or not answer.strip():
            do = "choose" if self._kind == "choice" else "write"
            self._say(f"○ Nothing to check yet: {do} your answer first.")
            return
        meant = read(self._kind, answer) if len(answer) <= MAX_ANSWER else set()
        if not meant:  # nothing that could be right or wrong, so it is no try
            example = "its sizes with commas: 4, 7" if self._kind == "shape" else "digits: 12, 0.25"
            shown = answer if len(answer) <= MAX_ANSWER else f"{answer[:MAX_ANSWER]}…"
            self._say(f"○ “{shown}” is no {self._kind} that I can read. Write just {example}.")
            return
        self.state |= {
            "tries": self.state["tries"] + (answer != self.state["answer"]),
            "answer": answer,
            "right": self._is(meant, self._entry["right"]),
        }
        if self.state["right"]:
            self._say(f"✓ Right. {self._entry['why']}")
            return
        known = self._entry.get("wrong", {})
        reason = next((known[key] for key in known if self._is(meant, key)), None)
        self._say(f"✗ Not yet. {reason or self._entry['hint']} Try again.")

    def _is(self, meant: set, other: object) -> bool:
        return same(self._kind, meant, other, self._entry.get("tolerance", 0))

    # The browser says "Enter" first and then what was typed, if that is new. It also says what was
    # typed when the field is left, but this is no answer yet: one may just look something up.
    def _on_enter(self, _widget, content: Mapping, _buffers) -> None:
        if content.get("event") == "submit":
            if self.control.value:
                self.check()
            self._entered = True

    def _on_typed(self, _change) -> None:
        if self._entered:
            self.check()

    def __repr__(self) -> str:
        choices = self._entry.get("choices")
        how = f"Choices: {' · '.join(choices)}" if choices else f"(a {self._kind})"
        return f"Predict: {' '.join(self._entry['question'].split())} {how}"


class Quiz(Asked):
    """Choice questions, one button for all of them, and a line with the score.

    Each hand-in adds a line to ``scores.csv``: when, quiz, right, of, and the answers, a letter
    for each choice in the order shown and "?" for "I do not know".

    Args:
        quiz_id: its name.
        entry: title, questions and what to say, as ``README.md`` describes them.

    Attributes:
        state: the quiz's id, the ``answers`` that were handed in last (None before the first) and
            how many of them are ``right`` (None before), ``of`` how many.
    """

    def __init__(self, quiz_id: str, entry: Mapping) -> None:
        self._entry, self._questions = entry, entry["questions"]
        self.state = {"quiz": quiz_id, "answers": None, "right": None, "of": len(self._questions)}
        self._letters = choice_letters(entry)
        self.controls = [radio(list(letters)) for letters in self._letters]
        self.notes = [widgets.HTML() for _ in self._questions]
        parts = [widgets.HTML(as_html(entry["intro"]))] if "intro" in entry else []
        for k, question in enumerate(self._questions):
            asked = widgets.HTML(as_html(f"{k + 1}. {question['question']}"))
            asked.layout.margin = "10px 2px 0"
            parts += [asked, self.controls[k], self.notes[k]]
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
        for letter, known, control in zip(given, self._letters, self.controls, strict=True):
            control.index = list(known.values()).index(letter)
        self.hand_in()

    def hand_in(self) -> None:
        """Mark what is chosen now and note the score, as the button does."""
        answers = [control.value for control in self.controls]
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
            for is_right, question, note in zip(right, self._questions, self.notes, strict=True):
                mark = "✓ Right." if is_right else f"✗ No. Right is “{question['right']}”."
                note.value = as_html(f"{mark} {question['why']}")
        noted = add_score({"when": datetime.now().isoformat(timespec="minutes"), **self.state})
        after = self._entry.get("after", "")
        self._say(f"{sum(right)} of {len(right)} right. {after} {noted}")

    def __repr__(self) -> str:
        return f"Quiz: {self._entry['title']}, {len(self._questions)} questions"


@cache
def _style() -> str:
    css = Path(__file__).with_name("questions.css").read_text(encoding="utf-8")
    return f"<style>{css}</style>"


def radio(choices: Sequence[str]) -> widgets.RadioButtons:
    """Choices of which none is taken yet."""
    return widgets.RadioButtons(options=choices, value=None)


def as_html(text: str) -> str:
    """A text as HTML: everything escaped, `code` as code, an empty line between paragraphs."""
    text = text.encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be sent
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip()))
    return "".join(f"<p>{part}</p>" for part in text.split("\n\n") if part)
