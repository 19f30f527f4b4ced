"""What the tests of questions share: made-up entries, and what a learner reads."""

import html
import re

from course_utils.questions.predictions import Prediction

CHOICE = {
    "kind": "choice",
    "question": "Which?",
    "choices": ["one", "two", "three"],
    "right": "two",
    "why": "So it is.",
    "wrong": {"one": "Too few.", "three": "Too many."},
}
SHAPE = {
    "kind": "shape",
    "question": "Which shape?",
    "right": [2, 3, 5, 5],
    "why": "So it is.",
    "hint": "Count again.",
    "wrong": {"2, 5, 5": "Where are the heads?"},
}
NUMBER = {
    "kind": "number",
    "question": "How many?",
    "right": 1600,
    "why": "So it is.",
    "hint": "Count again.",
    "wrong": {"40": "That is the root."},
}


def ask(entry: dict, **changes) -> Prediction:
    return Prediction("test", entry | changes)


def text_of(shown) -> str:
    """What a reader sees of an HTML widget."""
    return html.unescape(re.sub("<[^>]+>", "", shown.value))


def said(widget) -> str:
    """The feedback line as a reader sees it."""
    return text_of(widget.feedback)
