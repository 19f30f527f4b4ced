"""What all explorers share: moves, state, view, picture, words, and what they leave alone."""

import base64
import json
import random
import re

import numpy as np
import pytest
import torch
from helpers import (
    MAKERS,
    ODD_TOKENS,
    heatmap_tables,
    make_heads,
    make_masks,
    make_query,
    page,
    positions,
    put,
)
from ipywidgets import Checkbox, SelectionSlider
from ipywidgets.widgets import widget

from course_utils.heatmaps.texts import display_token, visible_token
from course_utils.sliders import Explorer, explore_split, stops
from course_utils.sliders.controls import make_text

each_explorer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
NOT_IN_WORDS = ("any_number", "seed")  # controls whose moves the line of text does not tell


@each_explorer
def test_every_move_updates_state_and_view(make):
    explorer = make()
    for control in explorer.controls.values():
        for position in [*positions(control)][::-1]:
            before, html = explorer.state, explorer.html
            changes = control.value
            put(control, position)
            if control.value != changes:
                assert explorer.state != before
                assert explorer.html != html or "any_number" in explorer.state
            for name, other in explorer.controls.items():
                assert explorer.state[name] == other.value
            json.dumps(explorer.state)  # a plain dict


@pytest.fixture
def computed(monkeypatch):
    """The control values of every state that explorers compute, in order."""
    seen, init = [], Explorer.__init__

    def watched(self, controls, *, compute, **rest):
        def noted(**values):
            seen.append(values)
            return compute(**values)

        init(self, controls, compute=noted, **rest)

    monkeypatch.setattr(Explorer, "__init__", watched)
    return seen


@each_explorer
def test_a_change_of_a_control_is_shown_once(make, computed):
    explorer = make()
    assert len(computed) == 1
    for name, control in explorer.controls.items():
        for position in [*positions(control)][::-1]:
            stood_at = control.value
            computed.clear()
            put(control, position)
            now = {name: control.value for name, control in explorer.controls.items()}
            assert computed == [now] * (control.value != stood_at), name


def test_a_switch_that_moves_a_slider_is_shown_once(computed):
    explorer = explore_split(8, num_heads=4)
    seen = []
    for start, end in ((5, 4), (3, 2), (8, 8)):
        explorer.controls["any_number"].value = True
        explorer.controls["num_heads"].value = start
        computed.clear()
        explorer.controls["any_number"].value = False
        assert computed == [{"num_heads": end, "any_number": False}]
        seen.append(explorer.state["num_heads"])
    assert seen == [4, 2, 8]


@each_explorer
def test_controls_that_move_together_are_shown_once(make, computed):
    explorer, twin = make(), make()
    for control in twin.controls.values():
        put(control, positions(control)[-1])
    where = twin.stop
    computed.clear()
    explorer.stop = where
    assert explorer.stop == where
    assert computed == [{name: control.value for name, control in twin.controls.items()}]
    assert explorer.state == twin.state
    explorer.stop = {}  # leaves them where they are
    assert explorer.stop == where


@each_explorer
def test_what_a_notebook_stores(make):
    explorer, twin = make(), make()
    before = len(widget._instances)
    data, metadata = explorer._repr_mimebundle_()
    assert len(widget._instances) == before
    assert set(data) == {
        "text/plain",
        "image/png",
        "application/vnd.jupyter.widget-view+json",
        stops.MIMETYPE,
    }
    view = data["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == explorer.model_id
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG\r\n\x1a\n")
    assert metadata["image/png"]["alt"] == explorer.still().alt
    assert data["text/plain"] == repr(explorer)
    # The same for every explorer, so that nbval has nothing to say.
    assert data[stops.MIMETYPE] == stops.MARK
    kept = stops.unpack(metadata[stops.MIMETYPE]["stops"])
    assert kept == explorer.views(stops.MAX_HTML)
    for name, control in explorer.controls.items():
        before = repr(explorer)
        put(control, positions(control)[-1])
        text = repr(explorer)
        assert (text == before) == (name in NOT_IN_WORDS)
        assert text.startswith("Explorer: ")
        assert "\n" not in text
        assert not re.search(r"0x[0-9a-f]{4}|IPY_MODEL", text)
    for name, control in twin.controls.items():
        control.value = explorer.controls[name].value
    assert repr(twin) == repr(explorer)


@each_explorer
def test_global_random_state_is_left_alone(make):
    def states():
        numpy_state = np.random.get_state()
        return torch.get_rng_state().tolist(), random.getstate(), numpy_state[1].tolist()

    before = states()
    explorer = make()
    for control in explorer.controls.values():
        for position in positions(control):
            put(control, position)
            assert states() == before
    explorer.figure().draw_without_rendering()
    assert states() == before


@each_explorer
def test_changing_a_state_does_not_change_the_explorer(make):
    explorer = make()
    sliders = (c for c in explorer.controls.values() if isinstance(c, SelectionSlider))
    control = next(sliders)
    before, start = json.dumps(explorer.state), control.index
    spoil(explorer.state)
    put(control, (start + 1) % len(control.options))
    put(control, start)
    assert json.dumps(explorer.state) == before


def spoil(held):
    """Empty a state's lists and dicts, the innermost first."""
    for inner in held.values() if isinstance(held, dict) else held:
        if isinstance(inner, list | dict):
            spoil(inner)
            inner.clear()


@pytest.mark.parametrize("make", [make_query, make_heads, make_masks])
@pytest.mark.parametrize("first", range(0, len(ODD_TOKENS), 4))
def test_odd_tokens_are_shown_not_run(make, first):
    tokens = ODD_TOKENS[first : first + 4]
    if make is make_heads:
        tokens = [*tokens, "cat"]
    explorer = make(tokens=tokens)
    if make is make_masks:
        explorer.controls["length"].value = 4  # no padding: all names are shown
    control = next(iter(explorer.controls.values()))
    for position in positions(control):
        put(control, position)
        shown = page(explorer)  # which refuses any tag that is not ours
        tables = [table for table in shown.tables if table["titles"]]
        assert tables
        for table in tables:
            names = [row[0] for row in table["rows"][1:]]
            assert [n for n in names if n != "sum"] == list(map(display_token, tokens))
            assert set(table["titles"]) <= set(map(visible_token, tokens))
    for cells in heatmap_tables(explorer)[0]["cells"][1:] if make is make_heads else ():
        for cell, key in zip(cells[1:], tokens, strict=True):
            assert f"→ {visible_token(key)}: 0." in cell["title"]
    text = repr(explorer)
    text.encode()
    assert "\n" not in text
    explorer.figure().draw_without_rendering()


def test_an_error_is_text_not_html():
    def compute(**values):
        raise ValueError("<b>bold</b> & <script>alert(1)</script>")

    explorer = Explorer(
        {"x": Checkbox()}, compute=compute, view=None, draw=None, describe=lambda state: ""
    )
    assert page(explorer).alerts == ["⚠ <b>bold</b> & <script>alert(1)</script>"]
    assert page(explorer).tags == ["p"]


def test_a_text_field_follows_every_key():
    field = make_text("text", "at first")
    assert (field.value, field.description, field.continuous_update) == (
        "at first",
        "text",
        True,
    )
