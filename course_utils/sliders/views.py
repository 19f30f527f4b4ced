"""Every view of an explorer, made beforehand, so that its controls move where no kernel runs."""

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import TypedDict

import ipywidgets as widgets

from course_utils.sliders.controls import stops_of


class Control(TypedDict):
    """A control whose stops can be listed.

    Attributes:
        key: its name in ``explorer.controls`` and in ``explorer.state``.
        name: the text beside it.
        labels: what a slider says at each of its stops, or the names of buttons, in order; for a
            switch None, and its stops are off (0) and on (1).
        buttons: whether there is a button for each stop.
        start: the number of the stop at which it stands, counted from 0.
    """

    key: str
    name: str
    labels: list[str] | None
    buttons: bool
    start: int


class Views(TypedDict):
    """All views of an explorer; plain strings, numbers, lists and dicts, ready for JSON.

    The HTML needs the rules of ``course_utils.sliders.style.style_sheet``.

    Attributes:
        controls: the controls that move, in the order in which they are shown.
        views: the HTML of each view, by the numbers of its stops in the order of ``controls``,
            such as "2,0,1".
        left_out: the texts beside the controls that stay as they are, in the order in which they
            are shown.
    """

    controls: list[Control]
    views: dict[str, str]
    left_out: list[str]


def collect_views(
    controls: Mapping[str, widgets.Widget],
    show: Callable[..., str],
    *,
    fixed: Collection[str],
    limit: int,
) -> Views | None:
    """Show every combination of stops without moving a control.

    Args:
        controls: name to ipywidget.
        show: control values, each under its control's name, to the HTML of their view.
        fixed: names of controls that stay as they are.
        limit: how many characters of HTML the views may have in all.

    Returns:
        The views of all controls with stops; where these are too long, of all but the switches;
        where these are too long as well, or no control has stops, None.
    """
    movable = [key for key in controls if key not in fixed and stops_of(controls[key])]
    sliders = [key for key in movable if not isinstance(controls[key], widgets.Checkbox)]
    now = {key: control.value for key, control in controls.items()}
    made: dict[tuple, str] = {}  # what the sliders show is needed again with the switches
    found = None
    for keys in filter(None, (sliders, movable)):
        stops = [stops_of(controls[key]) for key in keys]
        views, size = {}, 0
        for places in itertools.product(*(range(len(own)) for own in stops)):
            chosen = (own[place].value for own, place in zip(stops, places, strict=True))
            values = {**now, **dict(zip(keys, chosen, strict=True))}
            at = tuple(values.values())
            if at not in made:
                made[at] = show(**values)
            views[",".join(map(str, places))] = made[at]
            size += len(made[at])
            if size > limit:
                return found
        found = Views(
            controls=[_describe(key, controls[key]) for key in keys],
            views=views,
            left_out=[control.description for key, control in controls.items() if key not in keys],
        )
    return found


def _describe(key: str, control: widgets.Widget) -> Control:
    is_switch = isinstance(control, widgets.Checkbox)
    return Control(
        key=key,
        name=control.description,
        labels=None if is_switch else [stop.label for stop in stops_of(control)],
        buttons=isinstance(control, widgets.RadioButtons),
        start=int(control.value) if is_switch else control.index,
    )
