"""What predictions and quizzes share: how they look, and that their answers are kept."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from pathlib import Path

import ipywidgets as widgets

from course_utils.questions.answers import forget, recall, remember


class Asked(widgets.VBox):
    """Questions in a column, a button, a line that answers, and a button to start over.

    Args:
        question_id: the name under which answers are kept.
        parts: what stands above the button.
        label: the button's text.
        submit: called when the button is pressed.

    Attributes:
        feedback: the line that answers.
        again: the button to start over, seen once there is something to lose.
    """

    def __init__(
        self, question_id: str, parts: Sequence[widgets.Widget], label: str, submit: Callable
    ) -> None:
        self.question_id, self._keeps = question_id, False
        self.button = widgets.Button(description=label)
        self.button.on_click(lambda _button: submit())
        self.feedback = widgets.HTML()
        self.again = widgets.Button(description="Start over")
        self.again.on_click(lambda _button: self.start_over())
        self.again.add_class("aq-again")
        show(self.again, False)
        self._say("")
        super().__init__(
            [
                widgets.HTML(_style()),
                *parts,
                self.button,
                widgets.HBox([self.feedback, self.again]),
            ]
        )
        self.add_class("aq")

    def keep(self) -> None:
        """Show what was answered before, and keep what is answered from now on."""
        if record := recall(self.question_id):
            self._restore(record)
            show(self.again, True)
        self._keeps = True

    def start_over(self) -> None:
        """Forget all answers, as the button does."""
        with self._quiet():
            self._reset()
        show(self.again, False)
        self._say("")
        if self._keeps:
            forget(self.question_id)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Keep nothing meanwhile: what changes was not changed by the learner."""
        keeps, self._keeps = self._keeps, False
        yield
        self._keeps = keeps

    def _note(self, record: dict) -> str:
        """Keep a record, and say so if it will be lost with the kernel."""
        show(self.again, True)
        if not self._keeps or remember(self.question_id, record):
            return ""
        return "(Kept until the kernel stops: `answers.json` cannot be written here.)"

    def _restore(self, record: dict) -> None:
        raise NotImplementedError

    def _reset(self) -> None:
        raise NotImplementedError

    def _say(self, sentence: str) -> None:
        # A polite live region: a screen reader says it when it has finished its own sentence.
        self.feedback.value = f'<div role="status">{as_html(sentence)}</div>'

    def _repr_mimebundle_(self, **kwargs) -> dict:
        # The text is the same whether answered or not: nbval compares it, and GitHub shows it.
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}


@cache
def _style() -> str:
    css = Path(__file__).with_name("questions.css").read_text(encoding="utf-8")
    return f"<style>{css}</style>"


def show(widget: widgets.Widget, is_shown: bool) -> None:
    """Show a widget or hide it; hidden, it takes no room and no focus."""
    widget.layout.display = None if is_shown else "none"


def radio(choices: Sequence[str]) -> widgets.RadioButtons:
    """Choices of which none is taken yet."""
    return widgets.RadioButtons(options=choices, value=None)


def as_html(text: str) -> str:
    """A text as HTML: everything escaped, `code` as code, an empty line between paragraphs."""
    text = text.encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be sent
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip()))
    return "".join(f"<p>{part}</p>" for part in text.split("\n\n") if part)
