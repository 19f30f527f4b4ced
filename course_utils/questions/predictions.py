"""A question to answer before the next cell is run."""

import reprlib
from collections.abc import Mapping

import ipywidgets as widgets

from course_utils.questions.bank import prediction_entry
from course_utils.questions.reading import read, same
from course_utils.questions.widgets import Asked, as_html, radio

MAX_ANSWER = 60  # characters; what is longer is no shape and no number


def predict(question_id: str) -> "Prediction":
    """A question to answer before the next cell is run. It comes back as it was left.

    Args:
        question_id: such as "l1-score"; the lesson's TOML file has it.

    Raises:
        ValueError: there is no such question; the message names the nearest ones.
    """
    asked = Prediction(question_id, prediction_entry(question_id))
    asked.keep()
    return asked


class Prediction(Asked):
    """One question, a control to answer it, a button, and a line that says right or not yet.

    Args:
        question_id: its name.
        entry: kind, question, right answer and sentences, as ``README.md`` describes them.

    Attributes:
        state: the question's id, the ``answer`` that was checked last (None before the first),
            whether it is ``right`` (None before) and how many ``tries`` there were; to check the
            same answer again is no new try.
        control: the radio buttons, or the field to type in.
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
        super().__init__(
            question_id,
            [widgets.HTML(as_html(entry["question"])), self.control],
            "Check",
            self.check,
        )
        self.control.observe(self._on_chosen, "value")

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
        meant = self._read(answer)
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
        self._say(f"{self._verdict(meant)} {self._note(self._record())}")

    def _read(self, answer: str) -> set:
        return read(self._kind, answer) if len(answer) <= MAX_ANSWER else set()

    def _is(self, meant: set, other: object) -> bool:
        return same(self._kind, meant, other, self._entry.get("tolerance", 0))

    def _verdict(self, meant: set) -> str:
        """What is said to an answer that can be read."""
        if self._is(meant, self._entry["right"]):
            return f"✓ Right. {self._entry['why']}"
        known = self._entry.get("wrong", {})
        reason = next((known[key] for key in known if self._is(meant, key)), None)
        return f"✗ Not yet. {reason or self._entry['hint']} Try again."

    def _record(self) -> dict:
        checked, tries = self.state["answer"], self.state["tries"]
        return {"chosen": self.control.value, "checked": checked, "tries": tries}

    def _restore(self, record: dict) -> None:
        chosen, checked = record.get("chosen"), record.get("checked")
        if self._can_be(chosen):
            self.control.value = chosen
        if self._can_be(checked) and (meant := self._read(checked)):
            tries = record.get("tries")
            self.state |= {
                "tries": tries if isinstance(tries, int) else 1,
                "answer": checked,
                "right": self._is(meant, self._entry["right"]),
            }
            self._say(f"You said “{checked}”. {self._verdict(meant)}")

    def content(self) -> dict:
        """Id and entry, for the browser."""
        return {"id": self.question_id, **self._entry}

    def _can_be(self, answer: object) -> bool:
        """Whether this question may have been answered so."""
        return (
            isinstance(answer, str)
            and len(answer) < 1000
            and answer in self._entry.get("choices", [answer])
        )

    def _reset(self) -> None:
        self.control.value = None if self._kind == "choice" else ""
        self.state |= {"answer": None, "right": None, "tries": 0}

    # The browser says "Enter" first and then what was typed, if that is new. It also says what was
    # typed when the field is left, but this is no answer yet: one may just look something up.
    def _on_enter(self, _widget, content: Mapping, _buffers) -> None:
        if content.get("event") == "submit":
            if self.control.value:
                self.check()
            self._entered = True

    def _on_chosen(self, _change) -> None:
        if self._entered:
            self.check()
        elif self._keeps:
            self._note(self._record())

    def __repr__(self) -> str:
        choices = self._entry.get("choices")
        how = f"Choices: {' · '.join(choices)}" if choices else f"(a {self._kind})"
        return f"Predict: {' '.join(self._entry['question'].split())} {how}"
