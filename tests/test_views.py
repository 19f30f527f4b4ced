"""The views of all stops of an explorer, made beforehand, and what else an explorer gives away."""

import json

import pytest
from helpers import ENCODER, MAKERS, every_state, make_small, page
from ipywidgets import Checkbox, Text
from ipywidgets.widgets import widget

from course_utils.sliders import Explorer, explore_sentence, explore_split

EVERYTHING = 10**9
each_explorer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def stop_of(control):
    return int(control.value) if isinstance(control, Checkbox) else control.index


def length_of(views):
    return sum(map(len, views["views"].values()))


@each_explorer
def test_every_view_is_the_one_that_moving_the_controls_shows(make):
    explorer, twin = make(), make()
    found = explorer.views(EVERYTHING)
    keys = [control["key"] for control in found["controls"]]
    assert keys == [key for key in explorer.controls if key not in ("text", "any_number")]
    shown = {}
    for _ in every_state(twin, keys):
        shown[",".join(str(stop_of(twin.controls[key])) for key in keys)] = twin.html
    assert found["views"] == shown
    for control in found["controls"]:
        own = explorer.controls[control["key"]]
        assert control["name"] == own.description
        if isinstance(own, Checkbox):
            assert (control["labels"], control["start"]) == (None, own.value)
        else:
            options = [o[0] if isinstance(o, tuple) else str(o) for o in own.options]
            assert (control["labels"], control["start"]) == (options, stop_of(own))
    start = ",".join(str(control["start"]) for control in found["controls"])
    assert found["views"][start] == explorer.html
    assert json.loads(json.dumps(found)) == found


@each_explorer
def test_nobody_sees_the_explorer_move(make):
    explorer, seen = make(), []
    before, state, html = len(widget._instances), explorer.state, explorer.html
    for one in list(widget._instances.values()):
        one.observe(seen.append)
    explorer.views(EVERYTHING)
    for one in list(widget._instances.values()):
        one.unobserve(seen.append)
    assert seen == []
    assert (explorer.state, explorer.html) == (state, html)
    assert len(widget._instances) == before


def test_controls_by_their_stops():
    found = make_small().views(EVERYTHING)
    assert found["controls"] == [
        {
            "key": "size",
            "name": "how large",
            "labels": ["small", "large"],
            "buttons": False,
            "start": 1,
        },
        {"key": "loud", "name": "loudly", "labels": None, "buttons": False, "start": 1},
        {"key": "fast", "name": "quickly", "labels": None, "buttons": False, "start": 0},
    ]
    assert found["left_out"] == []
    assert found["views"]["0,1,0"] == str({"size": 1, "loud": True, "fast": False})
    assert len(found["views"]) == 8


def test_too_long_views_are_those_of_the_sliders_alone_or_none():
    explorer = make_small()
    everything = explorer.views(EVERYTHING)
    total = length_of(everything)
    assert explorer.views(total) == everything
    sliders = explorer.views(total - 1)
    assert [control["key"] for control in sliders["controls"]] == ["size"]
    assert sliders["left_out"] == ["loudly", "quickly"]
    assert sliders["views"] == {str(i): everything["views"][f"{i},1,0"] for i in (0, 1)}
    assert explorer.views(length_of(sliders)) == sliders
    assert explorer.views(length_of(sliders) - 1) is None


def test_a_control_that_changes_what_another_offers_stays_as_it_is():
    explorer = explore_split(4)
    found = explorer.views(EVERYTHING)
    assert found["left_out"] == ["allow any number"]
    assert found["controls"][0]["labels"] == ["1", "2", "4"]
    explorer.controls["any_number"].value = True
    found = explorer.views(EVERYTHING)
    assert list(found["views"]) == ["0", "1", "2", "3"]
    assert 'role="alert"' in found["views"]["2"]
    assert "embed_dim=4 cannot be split into num_heads=3" in found["views"]["2"]
    assert "error" not in explorer.state


def test_what_is_typed_stays_as_it_is():
    explorer = explore_sentence(ENCODER, "a cat")
    assert explorer.views(EVERYTHING)["left_out"] == ["text"]
    typed = Explorer(
        {"text": Text("a")}, compute=dict, view=str, draw=None, describe=lambda state: ""
    )
    assert typed.views(EVERYTHING) is None


@pytest.mark.parametrize("limit", [0, -1, 2.5, None])
def test_a_limit_is_a_number_of_characters(limit):
    with pytest.raises(ValueError, match=r"^limit must be a whole number of at least 1"):
        make_small().views(limit)


def test_there_is_no_still_figure_of_something_impossible():
    explorer = explore_split(4)
    explorer.controls["any_number"].value = True
    explorer.controls["num_heads"].value = 3
    with pytest.raises(ValueError, match="cannot be split"):
        explorer.still()
    assert page(explorer).alerts
