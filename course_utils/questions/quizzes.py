"""Several questions that are handed in together: all in sight, or one at a time."""

import reprlib
from collections.abc import Mapping
from datetime import datetime

import ipywidgets as widgets

from course_utils.questions.bank import choice_letters, quiz_entry
from course_utils.questions.scores import add_score
from course_utils.questions.widgets import Asked, as_html, radio, show

OPEN = "."  # in place of a letter, where a question has no answer yet
SKIPPED = "?"  # the letter of "I do not know"


def quiz(quiz_id: str) -> "Quiz":
    """Several questions that are handed in together. They come back as they were left.

    Args:
        quiz_id: "pre-test", "post-test", or a lesson's, such as "lesson-01".

    Raises:
        ValueError: there is no such quiz; the message names the nearest ones.
    """
    entry = quiz_entry(quiz_id)
    asked = (SteppedQuiz if "invitation" in entry else Quiz)(quiz_id, entry)
    asked.keep()
    return asked


class Quiz(Asked):
    """Choice questions, one button for all of them, and a line with the score.

    Each hand-in adds a line to ``scores.csv``: when, quiz, right, of, and the answers, a letter
    for each choice in the order shown and "?" for "I do not know". The letters come in the order
    of the questions in the file, whatever the order they are asked in. The same answers are noted
    once, unless the quiz was started over.

    Args:
        quiz_id: its name.
        entry: title, questions and what to say, as ``README.md`` describes them.

    Attributes:
        state: the quiz's id, the ``answers`` that were handed in last (None before the first) and
            how many of them are ``right`` (None before), ``of`` how many.
        controls: the radio buttons of each question, in the order asked.
        notes: what is said to each answer, in the order asked.
    """

    def __init__(self, quiz_id: str, entry: Mapping) -> None:
        self._entry, in_file = entry, entry["questions"]
        rows = [question["row"] for question in in_file]
        # For each question as it is asked, its place in the file.
        self._places = [rows.index(row) for row in entry.get("order", ())] or range(len(rows))
        self._questions = [in_file[place] for place in self._places]
        self._letters = [choice_letters(entry)[place] for place in self._places]
        self.state = {"quiz": quiz_id, "answers": None, "right": None, "of": len(in_file)}
        self.controls = [radio(list(letters)) for letters in self._letters]
        self.notes = [widgets.HTML() for _ in in_file]
        self.asked = [
            widgets.HTML(as_html(f"{self._number(k)} {question['question']}"))
            for k, question in enumerate(self._questions, start=1)
        ]
        for asked in self.asked:
            asked.layout.margin = "10px 2px 0"
        super().__init__(quiz_id, self._parts(), "Hand in", self._submit)
        for control in self.controls:
            control.observe(self._on_chosen, "value")

    def _parts(self) -> list[widgets.Widget]:
        """What stands above the button."""
        columns = zip(self.asked, self.controls, self.notes, strict=True)
        intro = [widgets.HTML(as_html(self._entry["intro"]))] if "intro" in self._entry else []
        return intro + [part for column in columns for part in column]

    def _number(self, k: int) -> str:
        return f"{k}."

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
        for k, (letter, choices) in enumerate(zip(given, choice_letters(self._entry), strict=True)):
            known = choices.values()
            if letter not in known:
                raise ValueError(
                    f"letter {k + 1} must be one of {', '.join(known)}; got {reprlib.repr(letter)}"
                )
        with self._quiet():
            self._choose(letters)
        self.hand_in()

    def hand_in(self) -> None:
        """Mark what is chosen now and note the score, as the button does."""
        answers = [control.value for control in self.controls]
        *others, last = [str(k) for k, a in enumerate(answers, start=1) if a is None] or [None]
        if last:
            which = f"s {', '.join(others)} and {last} are" if others else f" {last} is"
            self._say(f"○ Question{which} still open.")
            return
        letters = self._chosen()
        again = letters == self.state["answers"]
        self._mark(letters)
        noted = self._note_score(again=again)
        kept = self._note(self._record())
        self._say(f"{self._result()} {noted} {kept}")

    def _note_score(self, *, again: bool) -> str:
        now = datetime.now().isoformat(timespec="minutes")
        return add_score({"when": now, **self.state}, again=again)

    def _submit(self) -> None:
        self.hand_in()

    def _chosen(self) -> str:
        """A letter for each question, in the order of the file."""
        letters = [OPEN] * len(self.controls)
        for place, known, control in zip(self._places, self._letters, self.controls, strict=True):
            letters[place] = known.get(control.value, OPEN)
        return " ".join(letters)

    def _choose(self, letters: str) -> None:
        """Take the choices with these letters, in the order of the file."""
        given = letters.split()
        for place, known, control in zip(self._places, self._letters, self.controls, strict=True):
            choices = {letter: choice for choice, letter in known.items()}
            control.value = choices.get(given[place]) if place < len(given) else None

    def _mark(self, letters: str) -> None:
        """Find out which of the letters are right, and say why."""
        given, right = letters.split(), 0
        for place, known, question, note in zip(
            self._places, self._letters, self._questions, self.notes, strict=True
        ):
            is_right = given[place] == known[question["right"]]
            right += is_right
            if self._entry["feedback"]:
                mark = "✓ Right." if is_right else f"✗ No. Right is “{question['right']}”."
                note.value = as_html(f"{mark} {question['why']}")
        self.state |= {"answers": letters, "right": right}

    def _result(self) -> str:
        return f"{self.state['right']} of {self.state['of']} right. {self._entry.get('after', '')}"

    def _record(self) -> dict:
        return {"chosen": self._chosen(), "handed_in": self.state["answers"]}

    def _restore(self, record: dict) -> None:
        chosen, handed_in = record.get("chosen"), record.get("handed_in")
        if isinstance(chosen, str):
            self._choose(chosen)
        if isinstance(handed_in, str) and self._fits(handed_in):
            self._mark(handed_in)
            self._say(f"You had {self._result()}")

    def _receive(self, record: dict) -> None:
        handed_in = self.state["answers"]
        super()._receive(record)
        if self.state["answers"] not in (None, handed_in):
            self._say(f"{self._result()} {self._note_score(again=True)}")

    def content(self) -> dict:
        """Id and entry, with place and letters of each question, for the browser."""
        # Letters as pairs: JavaScript would put choices that look like numbers into another order.
        parts = zip(self._places, self._letters, self._questions, strict=True)
        questions = [
            {**question, "place": place, "letters": list(known.items())}
            for place, known, question in parts
        ]
        return {"id": self.question_id, **self._entry, "questions": questions}

    def _fits(self, letters: str) -> bool:
        """Whether this quiz may have been handed in so."""
        given, known = letters.split(), choice_letters(self._entry)
        return len(given) == len(known) and all(
            letter in choices.values() for letter, choices in zip(given, known, strict=True)
        )

    def _reset(self) -> None:
        for control, note in zip(self.controls, self.notes, strict=True):
            control.value, note.value = None, ""
        self.state |= {"answers": None, "right": None}

    def _on_chosen(self, _change) -> None:
        if self._keeps:
            self._note(self._record())

    def __repr__(self) -> str:
        return f"Quiz: {self._entry['title']}, {len(self._questions)} questions"


class SteppedQuiz(Quiz):
    """A quiz that is an invitation of one line at first, and then asks one question at a time.

    A question may be skipped, which counts as "I do not know", and one may go back.

    Attributes:
        step: which question is in sight, counted from 0; None before the start and after the end.
    """

    def __init__(self, quiz_id: str, entry: Mapping) -> None:
        self.step: int | None = None
        super().__init__(quiz_id, entry)
        self.add_class("aq-steps")
        self._show()

    def _parts(self) -> list[widgets.Widget]:
        self.start, self.back, self.onward = (
            widgets.Button(description=label) for label in ("Start", "Back", "Skip")
        )
        self.onward.add_class("aq-onward")
        self.start.on_click(lambda _button: self._go_to(0))
        self.back.on_click(lambda _button: self._go(-1))
        self.onward.on_click(lambda _button: self._go(1))
        invitation = widgets.HTML(as_html(self._entry["invitation"]))
        self._invited = widgets.HBox([invitation, self.start])
        self._ways = widgets.HBox([self.back, self.onward])
        self._intro, *columns = super()._parts()
        return [self._invited, self._intro, *columns, self._ways]

    def _number(self, k: int) -> str:
        return f"{k} of {len(self._questions)} ·"

    def hand_in(self) -> None:
        """Mark what is chosen now and note the score."""
        super().hand_in()
        self._show()

    def _mark(self, letters: str) -> None:
        super()._mark(letters)
        self.step = None

    def _submit(self) -> None:
        if self.step is not None:
            self._skip_if_open()
            self.hand_in()

    def _go(self, steps: int) -> None:
        # A press on a button may come late, when another question is in sight already, or none.
        if self.step is not None and self.step + steps in range(len(self.controls)):
            if steps > 0:
                self._skip_if_open()
            self._go_to(self.step + steps)

    def _skip_if_open(self) -> None:
        control, known = self.controls[self.step], self._letters[self.step]
        if control.value is None:
            control.index = list(known.values()).index(SKIPPED)

    def _go_to(self, step: int) -> None:
        self.step = step
        self._show()
        self._on_chosen(None)

    def _show(self) -> None:
        """Show what belongs to this step and hide the rest."""
        asking, last = self.step is not None, len(self.controls) - 1
        done = self.state["answers"] is not None and not asking
        show(self._invited, not asking and not done)
        show(self._intro, self.step == 0)
        # The buttons first: who sees a question may press them.
        show(self._ways, asking)
        self.back.disabled = self.step == 0
        show(self.onward, asking and self.step < last)
        show(self.button, self.step == last)
        if asking:
            is_open = self.controls[self.step].value is None
            self.onward.description = "Skip" if is_open else "Next"
        for k, column in enumerate(zip(self.asked, self.controls, self.notes, strict=True)):
            for part in column:
                show(part, k == self.step or (done and self._entry["feedback"]))
            self.controls[k].disabled = done

    def _record(self) -> dict:
        return {**super()._record(), "step": self.step}

    def _restore(self, record: dict) -> None:
        super()._restore(record)
        step = record.get("step")
        self.step = step if step in range(len(self.controls)) else None
        self._show()

    def _reset(self) -> None:
        super()._reset()
        self.step = None
        self._show()

    def _on_chosen(self, change) -> None:
        super()._on_chosen(change)
        self._show()
