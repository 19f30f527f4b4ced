"""Questions to answer in a notebook: predictions before a cell is run.

The questions and their answers stand in a file in the folder ``questions``, so that no answer
stands in a notebook. Each file is read when its first question is asked for.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from html import escape
from pathlib import Path

import ipywidgets as widgets

FOLDER = Path(__file__).with_suffix("")

STYLE = """<style>
.aq{max-width:52em;padding:4px 10px;border-left:3px solid var(--jp-border-color1,#bbb)}
.aq .widget-html,.aq .widget-html-content{width:auto;height:auto;overflow:visible}
.aq .widget-html-content{color:var(--jp-content-font-color1,#000);line-height:1.5;
font-size:var(--jp-content-font-size1,14px)}
.aq .widget-html-content p{margin:4px 0}
.aq code{white-space:pre-wrap}
.aq .widget-radio{width:auto;height:auto;margin:0}
.aq .widget-radio-box{flex:1 1 auto;max-width:none;margin:0!important;padding:0}
.aq .widget-radio-box label{display:flex;align-items:baseline;gap:8px;width:auto;height:auto;
margin:0;padding:3px 0;line-height:1.4;white-space:normal;cursor:pointer;
font-size:var(--jp-content-font-size1,14px);color:var(--jp-content-font-color1,#000)}
.aq .widget-radio-box label input{order:-1;flex:none;margin:0;position:static}
</style>"""


def predict(question_id: str) -> "Prediction":
    """A question to answer before the next cell is run.

    Args:
        question_id: a name in ``questions/predictions.toml``.

    Raises:
        ValueError: there is no such question; the message names the nearest ones.
    """
    return Prediction(question_id, _entry("predictions", question_id))


class Prediction(widgets.VBox):
    """One question, a control to answer it, a button, and a line that says right or not yet.

    Args:
        question_id: its name.
        entry: kind, question, right answer and sentences; ``questions/predictions.toml`` says how.

    Attributes:
        state: the question's id, the last answer that was checked, whether it is ``right``
            (None before the first) and how many different ``tries`` there were.
    """

    def __init__(self, question_id: str, entry: Mapping) -> None:
        self._entry = entry
        self._kind = entry["kind"]
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
        button = widgets.Button(description="Check")
        button.on_click(lambda _button: self.check())
        self._feedback = widgets.HTML(_status(""))
        super().__init__(
            [widgets.HTML(STYLE + _html(entry["question"])), self._control, button, self._feedback]
        )
        self.add_class("aq")

    def answer(self, value: object) -> None:
        """Give an answer from code and check it: a choice's text, a shape or a number.

        Raises:
            ValueError: not one of the choices.
        """
        if self._kind == "choice":
            _check_choice(value, self._entry["choices"])
            self._control.value = value
        else:
            self._control.value = str(value)
        self.check()

    def check(self) -> None:
        """Check what is chosen or typed now, as the button does."""
        self._entered = False
        answer = self._control.value
        if self._kind == "choice":
            meant = {answer} - {None}
            empty = "choose one of the answers first"
            unclear = ""
        else:
            answer = answer.strip()
            meant = read_shape(answer) if self._kind == "shape" else read_number(answer)
            empty = "write your answer first"
            unclear = f"“{answer}” is no {self._kind} that I can read. " + (
                "Write its sizes with commas, such as 4, 7."
                if self._kind == "shape"
                else "Write just digits, such as 12 or 0.25."
            )
        if not meant:
            # No answer yet, so nothing is judged and no try is counted.
            self._say("○ " + (unclear if answer else f"Nothing to check yet: {empty}."))
            return
        if answer != self.state["answer"]:
            self.state["tries"] += 1
        self.state["answer"] = answer
        self.state["right"] = self._same(meant, self._entry["right"])
        if self.state["right"]:
            self._say(f"✓ Right. {self._entry['why']}")
            return
        known = self._entry.get("wrong", {})
        reason = next((known[key] for key in known if self._same(meant, key)), None)
        self._say(f"✗ Not yet. {reason or self._entry['hint']} Try again.")

    def _same(self, meant: set, other: object) -> bool:
        """Whether one of the ways to read an answer is the other, which TOML or a table gave."""
        if self._kind == "choice":
            return other in meant
        if self._kind == "shape":
            return not meant.isdisjoint(read_shape(str(other)))
        tolerance = self._entry.get("tolerance", 0)
        return any(
            math.isclose(a, b, rel_tol=1e-9, abs_tol=tolerance)
            for a in meant
            for b in read_number(str(other))
        )

    def _say(self, sentence: str) -> None:
        self._feedback.value = _status(sentence)

    # The browser says "Enter" first and what was typed after it, if that is new. Leaving the
    # field sends what was typed too, but is no answer yet: the learner may just look something up.
    def _on_enter(self, _widget, content: Mapping, _buffers) -> None:
        if content.get("event") == "submit":
            if self._control.value:
                self.check()
            self._entered = True

    def _on_typed(self, _change) -> None:
        if self._entered:
            self.check()

    def __repr__(self) -> str:
        # The same whether answered or not: nbval compares it.
        choices = self._entry.get("choices")
        how = f"Choices: {' · '.join(choices)}" if choices else f"(a {self._kind})"
        return f"Predict: {_one_line(self._entry['question'])} {how}"

    def _repr_mimebundle_(self, **kwargs) -> dict:
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}


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
    """What a text may mean as a number; empty if it is none.

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
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.IGNORECASE):
        meant.add(float(text))
    if re.fullmatch(r"[+-]?\d+,\d+", text):
        meant.add(float(text.replace(",", ".")))
    for mark in ",.' _\u2009\u00a0":  # also a thin space and one that does not break
        point = "," if mark == "." else "."
        grouped = rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+({re.escape(point)}\d+)?"
        if re.fullmatch(grouped, text):
            meant.add(float(text.replace(mark, "").replace(",", ".")))
    return meant


# --- what both share ------------------------------------------------------------------------------


@cache
def _load(name: str) -> dict:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _entry(name: str, entry_id: str) -> dict:
    entries = _load(name)
    if entry_id not in entries:
        nearest = ", ".join(get_close_matches(str(entry_id), entries, n=3, cutoff=0))
        raise ValueError(f"there is no {entry_id!r} in {name}.toml; the nearest are {nearest}")
    return entries[entry_id]


def _radio(choices: list[str]) -> widgets.RadioButtons:
    return widgets.RadioButtons(options=choices, value=None)


def _check_choice(value: object, choices: list[str]) -> None:
    if value not in choices:
        raise ValueError(f"answer must be one of {', '.join(map(repr, choices))}; got {value!r}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _html(text: str) -> str:
    """A text as HTML: everything escaped, and `code` between backticks as code."""
    return "<p>" + re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip())) + "</p>"


def _status(text: str) -> str:
    # A polite live region: a screen reader says what changed when it has finished its sentence.
    return f'<div role="status">{_html(text) if text else ""}</div>'
