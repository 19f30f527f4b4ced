"""What a head of a real model does with two sentences, for the first picture of the course.

The weights are those of all-MiniLM-L6-v2, layer 3, head 1, to four decimals; a test computes them
anew with the encoder of lesson 8. They are stored so that lesson 1 need not load the model.
"""

import json
from dataclasses import dataclass
from pathlib import Path

LAYER, HEAD = 3, 1


@dataclass(frozen=True)
class Sentence:
    """A sentence as the head sees it.

    Attributes:
        text: as it was written.
        tokens: its L tokens, ``[CLS]`` and ``[SEP]`` included.
        weights: (L, L), rows are queries.
    """

    text: str
    tokens: list[str]
    weights: list[list[float]]


def load_animal() -> list[Sentence]:
    """Two sentences that differ in one word, with *tired* and with *wide*."""
    path = Path(__file__).with_name("animal.json")
    return [Sentence(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
