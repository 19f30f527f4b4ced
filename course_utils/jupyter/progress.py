"""A progress bar for loops that take a while."""

import reprlib
from collections.abc import Iterator, Sized

import ipywidgets as widgets
from IPython.display import display


def progress(steps: Sized, name: str) -> Iterator:
    """Go through ``steps`` and show how far the loop has come.

    The bar moves while the loop runs. What a notebook stores of it is one line of text that is the
    same in every run: the name, and how many steps there are.

    Args:
        steps: what to loop over; its length must be known.
        name: stands in front of the bar, and in the stored line.

    Returns:
        An iterator over the steps; the bar appears with the first of them.

    Raises:
        ValueError: steps of unknown length, or a name that is no string.
    """
    if not isinstance(steps, Sized):
        raise ValueError(
            f"steps must have a length, got {type(steps).__name__}; "
            "turn it into a list first, progress(list(steps), name)"
        )
    if not isinstance(name, str):
        raise ValueError(f"name must be a string, got {reprlib.repr(name)}")
    return _walk(steps, name)


def _walk(steps: Sized, name: str) -> Iterator:
    bar = ProgressBar(name, len(steps))
    display(bar)
    for step in steps:
        yield step
        bar.advance()


class ProgressBar(widgets.HBox):
    """A bar with a count beside it, whose text form never changes.

    Args:
        name: stands in front of it.
        total: how many steps there are.
    """

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._bar = widgets.IntProgress(
            max=max(total, 1), description=name, style={"description_width": "initial"}
        )
        self._count = widgets.Label(f"0 of {total}")
        super().__init__([self._bar, self._count])

    def advance(self) -> None:
        """One more step is done."""
        self._bar.value += 1
        self._count.value = f"{self._bar.value} of {self._total}"
        if self._bar.value == self._total:
            self._bar.bar_style = "success"

    def __repr__(self) -> str:
        return f"Progress: {self._name}, {self._total} steps"
