"""The controls that explorers share."""

from collections.abc import Sequence
from typing import NamedTuple

import ipywidgets as widgets

from course_utils.arguments import divisors, require_num_heads

WIDE = "38em"  # of a slider that moves a picture as wide as the page
_WITH_OPTIONS = widgets.SelectionSlider | widgets.RadioButtons


def head_count_slider(embed_dim: int, *, value: int | None = None) -> widgets.SelectionSlider:
    """Make a slider over the head counts that divide ``embed_dim``.

    Args:
        embed_dim: D.
        value: where it starts; left out, at 1.

    Raises:
        ValueError: embed_dim is not a whole number of at least 1, or value does not divide it.
    """
    return make_slider(
        "heads H", divisors(embed_dim), 1 if value is None else require_num_heads(embed_dim, value)
    )


def make_slider(
    name: str, options: Sequence, value, *, width: str | None = None
) -> widgets.SelectionSlider:
    """Make a slider over a list of values, or of (name, value) pairs.

    Args:
        name: shown in front of it.
        options: its stops, in order.
        value: where it starts, one of these values.
        width: in CSS; left out, 24em with names and 18em without.
    """
    has_names = isinstance(options[0], tuple)
    slider = widgets.SelectionSlider(
        options=list(options),
        value=value,
        description=name,
        style={"description_width": "initial"},
        layout=widgets.Layout(width=width or ("24em" if has_names else "18em"), max_width="98%"),
    )
    slider.add_class("ac-names" if has_names else "ac-numbers")
    return slider


def make_buttons(name: str, options: Sequence[str], value: str) -> widgets.RadioButtons:
    """Make a row of radio buttons, for a few options that have names.

    Args:
        name: shown in front of them.
        options: their names.
        value: the one that is chosen at the start.
    """
    buttons = widgets.RadioButtons(
        options=list(options),
        value=value,
        description=name,
        orientation="horizontal",
        style={"description_width": "initial"},
        layout=widgets.Layout(width="auto", max_width="98%"),
    )
    buttons.add_class("ac-buttons")
    return buttons


def make_switch(name: str, value: bool) -> widgets.Checkbox:
    """Make a checkbox with its name beside it."""
    return widgets.Checkbox(
        value=value,
        description=name,
        indent=False,
        layout=widgets.Layout(width="auto", margin="2px 16px 2px 2px"),
    )


def make_text(name: str, value: str) -> widgets.Text:
    """Make a text field; the view follows every key.

    Args:
        name: shown in front of it.
        value: the text at the start.
    """
    return widgets.Text(
        value=value,
        description=name,
        continuous_update=True,
        style={"description_width": "initial"},
        layout=widgets.Layout(width="98%"),
    )


class Stop(NamedTuple):
    """A place where a control can stand."""

    label: str  # what a slider says there, or the name of a button
    value: object


def stops_of(control: widgets.Widget) -> list[Stop]:
    """Return the stops of a slider, a switch or buttons, in order; a text field has none."""
    if isinstance(control, widgets.Checkbox):
        return [Stop("off", False), Stop("on", True)]
    if isinstance(control, _WITH_OPTIONS):
        pairs = (o if isinstance(o, tuple) else (str(o), o) for o in control.options)
        return [Stop(*pair) for pair in pairs]
    return []


def place_of(control: widgets.Widget) -> int | str:
    """Return where a control stands: the number of its stop, or the text that is typed."""
    if isinstance(control, _WITH_OPTIONS):
        return control.index
    return int(control.value) if isinstance(control, widgets.Checkbox) else control.value


def put(control: widgets.Widget, place: object) -> None:
    """Move a control to such a place, or leave it where it is if it has no such place."""
    if isinstance(control, widgets.Text):
        if isinstance(place, str):
            control.value = place
    elif type(place) is int and 0 <= place < len(stops := stops_of(control)):
        control.value = stops[place].value
