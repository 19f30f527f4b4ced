"""What predictions and quizzes share: how they look, and that their answers are kept."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from pathlib import Path

import ipywidgets as widgets
import traitlets

from course_utils.questions.answers import recall, remember, time_for
from course_utils.questions.stored import MARK, MIMETYPE, pack

# JupyterLab serves it as well, for what is answered before anything has run.
SHEET = Path(__file__).parents[1] / "jupyter" / "labextension" / "static" / "questions.css"

_shown: dict[str, "Asked"] = {}  # by question, the widget that was shown last


class Asked(widgets.VBox):
    """Questions in a column, a button, a line that answers, and a button to start over.

    Args:
        question_id: the name under which answers are kept.
        parts: what stands above the button.
        label: the button's text.
        submit: called when the button is pressed.

    Attributes:
        feedback: the line that answers.
        button: what hands an answer in.
        again: the button to start over, seen once there is something to lose.
        stop: what was answered last, as JupyterLab keeps it: the question's id and its record, with
            the time (see ``answers``). JupyterLab sets it when a cell runs, to what was answered in
            the browser before; the newer answer wins.
    """

    stop = traitlets.Dict().tag(sync=True)

    def __init__(
        self, question_id: str, parts: Sequence[widgets.Widget], label: str, submit: Callable
    ) -> None:
        self.question_id, self._keeps = question_id, False
        self.button = widgets.Button(description=label)
        self.button.on_click(lambda _button: submit())
        self.button.add_class("aq-submit")
        self.feedback = widgets.HTML()
        self.again = widgets.Button(description="Start over")
        self.again.on_click(lambda _button: self.start_over())
        self.again.add_class("aq-again")
        show(self.again, False)
        self._say("")
        answering = widgets.HBox([self.feedback, self.again])
        super().__init__([widgets.HTML(_style()), *parts, self.button, answering])
        self.add_class("aq")

    def keep(self) -> None:
        """Show what was answered before, and keep what is answered from now on."""
        if record := recall(self.question_id):
            self._bring_back(record)
            self._tell_browser(record)
        self._keeps = True
        _shown[self.question_id] = self

    def start_over(self) -> None:
        """Forget all answers, as the button does."""
        with self._quiet():
            self._clear()
        self._note({})

    def _clear(self) -> None:
        self._reset()
        self._say("")
        show(self.again, False)

    def _bring_back(self, record: dict) -> None:
        self._restore(record)
        show(self.again, True)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Keep nothing meanwhile: what changes was not changed by the learner."""
        keeps, self._keeps = self._keeps, False
        yield
        self._keeps = keeps

    def _note(self, record: dict) -> str:
        """Keep a record, and say so if it will be lost with the kernel."""
        if record.keys() - {"when"}:
            show(self.again, True)
        if not self._keeps:
            return ""
        record = {"when": time_for(self.question_id)} | record
        is_safe = remember(self.question_id, record)
        self._tell_browser(record)
        # An answer may reach a widget when its cell is running again already: Jupyter handles
        # widgets beside running cells. So the one that took its place is told.
        shown = _shown.get(self.question_id, self)
        if shown is not self:
            shown.stop = self.stop
        return "" if is_safe else "(Kept until the kernel stops: `answers.json` cannot be written.)"

    def _tell_browser(self, record: dict) -> None:
        with self._quiet():
            self.stop = {"question": self.question_id, **record}

    @traitlets.observe("stop")
    def _take_over(self, change: dict) -> None:
        """An answer comes from the browser: it was given before this cell ran."""
        answered, own = change["new"], change["old"]
        if not self._keeps or answered.get("question") != self.question_id:
            return
        when = answered.get("when")
        if not isinstance(when, int) or when <= own.get("when", -1):
            self._tell_browser(own)
            return
        with self._quiet():
            self._receive({key: answered[key] for key in answered.keys() - {"question", "when"}})
        self._note({"when": when, **(self._record() if len(answered) > 2 else {})})

    def _receive(self, record: dict) -> None:
        """Show what was answered in the browser; empty, it was started over there."""
        self._clear()
        if record:
            self._bring_back(record)

    def _record(self) -> dict:
        """What is chosen and what was checked, as JSON."""
        raise NotImplementedError

    def _restore(self, record: dict) -> None:
        """Show a record, as far as it fits: a file may be damaged, or a question written anew."""
        raise NotImplementedError

    def _reset(self) -> None:
        """Choose nothing, and take back what was said to each answer."""
        raise NotImplementedError

    def content(self) -> dict:
        """What the browser needs to ask this without a kernel, as JSON."""
        raise NotImplementedError

    def _say(self, sentence: str) -> None:
        # A polite live region: a screen reader says it when it has finished its own sentence.
        self.feedback.value = f'<div role="status">{as_html(sentence)}</div>'

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        # The text is the same whether answered or not: nbval compares it, and GitHub shows it.
        data = {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self), MIMETYPE: MARK}
        return data, {MIMETYPE: {"packed": pack(self.content())}}


@cache
def _style() -> str:
    return f"<style>{SHEET.read_text(encoding='utf-8')}</style>"


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
