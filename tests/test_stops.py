"""The stops that a notebook stores with an explorer: packed, kept where they belong, up to date."""

import json
import math
import re
from pathlib import Path

import nbformat
import pytest
from helpers import MAKERS, make_heads, make_small
from IPython.core.interactiveshell import InteractiveShell

from course_utils.jupyter.sheet import SHEET
from course_utils.sliders import Explorer, explore_split, stops
from course_utils.sliders.controls import make_slider, make_text
from course_utils.sliders.stops import MAX_HTML, MIMETYPE, pack, unpack
from course_utils.sliders.style import style_sheet

SHOWS_ONE = re.compile(r"^(\w+ = )?explore_", re.MULTILINE)
LESSONS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
# What is trained in a lesson comes out another way on another processor.
TRAINED = ("09",)
QUICK = LESSONS[:1]  # all of them take a core more than a minute

each_explorer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@each_explorer
def test_what_was_packed_comes_out_again(make):
    views = make().views(MAX_HTML)
    packed = pack(views)
    assert re.fullmatch(r"[\w+/=]+", packed, re.ASCII)
    assert unpack(packed) == views
    assert pack(make().views(MAX_HTML)) == packed


def test_views_that_differ_in_numbers_take_little_room():
    views = {f"{i}": f"<p>{'text ' * 1000}{i:04d} of 1,000</p>" for i in range(1000)}
    controls = [{"key": "i", "name": "i", "labels": list(views), "start": 0}]
    packed = pack({"controls": controls, "views": views, "left_out": []})
    assert len(packed) < 20_000 < len("".join(views.values())) / 200
    assert unpack(packed)["views"] == views


def stored(explorer) -> tuple[dict, dict]:
    data, metadata = explorer._repr_mimebundle_()
    return data, metadata.get(MIMETYPE)


def test_what_is_too_large_or_shows_an_error_has_no_stops(monkeypatch):
    explorer = explore_split(8)
    explorer.controls["any_number"].value = True
    explorer.controls["num_heads"].value = 3
    assert "error" in explorer.state
    assert MIMETYPE not in stored(explorer)[0]
    monkeypatch.setattr(stops, "MAX_PACKED", 100)
    data, metadata = stored(make_heads())
    assert MIMETYPE not in data
    assert metadata is None
    assert {"image/png", "text/plain"} <= set(data)


# --- where an explorer was left -------------------------------------------------------------------


@each_explorer
def test_an_explorer_goes_where_another_one_was_left(make):
    moved, fresh = make(), make()
    for control in moved.controls.values():
        if hasattr(control, "index"):
            control.index = len(control.options) - 1
        elif isinstance(control.value, bool):
            control.value = not control.value
        else:
            control.value = "a b"
    fresh.stop = json.loads(json.dumps(moved.stop))
    assert fresh.stop == moved.stop
    assert fresh.state == moved.state
    assert fresh.html == moved.html


def test_a_stop_says_where_each_control_stands():
    explorer = Explorer(
        {"size": make_slider("size", "abc", "b"), "text": make_text("text", "typed")},
        compute=dict,
        view=str,
        draw=None,
        describe=str,
    )
    assert explorer.stop == {"size": 1, "text": "typed"}
    assert make_small().stop == {"size": 1, "loud": 1, "fast": 0}


@pytest.mark.parametrize("place", [-1, 2, 10**9, 0.5, "1", None, [1], {"index": 1}, True], ids=repr)
def test_a_stop_that_does_not_exist_is_none(place):
    explorer = make_small()
    explorer.stop = {"size": place, "loud": 0, "nobody": 1}
    assert explorer.stop == {"size": 1, "loud": 0, "fast": 0}


def test_a_head_count_that_another_control_lets_in():
    explorer = explore_split(8)
    explorer.stop = {"num_heads": 2, "any_number": 1}
    assert explorer.controls["num_heads"].value == 3


# --- what is committed ----------------------------------------------------------------------------


def test_jupyterlab_has_the_style_sheet_of_today():
    assert SHEET.read_text(encoding="utf-8") == style_sheet(), (
        "the looks of views have changed: python -m course_utils.jupyter.sheet"
    )


def stored_stops(notebook) -> list[dict]:
    """What is stored of each explorer of a notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [o.metadata[MIMETYPE] for o in outputs if MIMETYPE in o.get("data", {})]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_explorer_is_stored_with_its_stops(path):
    notebook = nbformat.read(path, as_version=4)
    shown = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.get("data", {}).get("text/plain", "").startswith("Explorer: ")
    ]
    kept = stored_stops(notebook)
    assert len(kept) == len(shown) > 0
    assert all(set(metadata) == {"stops"} for metadata in kept), "it was moved before it was stored"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path not in QUICK), id=path.stem)
        for path in LESSONS
    ],
)
@pytest.mark.usefixtures("as_it_was")
def test_stored_stops_are_what_an_explorer_computes(path):
    notebook = nbformat.read(path, as_version=4)
    before = [unpack(metadata["stops"]) for metadata in stored_stops(notebook)]
    last = max(i for i, cell in enumerate(notebook.cells) if SHOWS_ONE.search(cell.source))
    now = [unpack(metadata["stops"]) for metadata in shown_stops(notebook.cells[: last + 1])]
    for old, new in zip(before, now, strict=True):
        if difference := difference_of(old, new, only_tags=path.name.startswith(TRAINED)):
            pytest.fail(f"{path.name}: {difference}. The stored stops are stale: make execute")


def shown_stops(cells) -> list[dict]:
    """What would be stored of each explorer if these cells ran; a kernel would take longer."""
    shell = InteractiveShell.instance()
    shell.reset(new_session=True)
    found = []
    for cell in cells:
        if cell.cell_type == "code":
            result = shell.run_cell(cell.source)
            assert result.success, f"{cell.id}: {result.error_in_exec}"
            if isinstance(result.result, Explorer):
                found.append(stored(result.result)[1])
    return found


def difference_of(old: dict, new: dict, *, only_tags: bool = False) -> str | None:
    """The first difference between the views of an explorer, but for the last digit of a number."""
    for key in ("controls", "left_out"):
        if old[key] != new[key]:
            return f"{key} were {old[key]}, and are {new[key]}"
    if old["views"].keys() != new["views"].keys():
        return "there are other stops"
    for stop, was in old["views"].items():
        now = new["views"][stop]
        tags = [re.findall(r"<\w+", html) for html in (was, now)]
        texts, numbers = zip(*(split_numbers(html) for html in (was, now)), strict=True)
        is_same = texts[0] == texts[1] and all(map(nearly_the_same, *numbers))
        if tags[0] != tags[1] or not (only_tags or is_same):
            return f"at stop {stop} it was {was}, and is {now}"
    return None


def split_numbers(html: str) -> tuple[list[str], list[str]]:
    parts = re.split(r"(\d+(?:\.\d+)?)", html)
    return parts[::2], parts[1::2]


def nearly_the_same(old: str, new: str) -> bool:
    places = len(old.partition(".")[2])
    return math.isclose(float(old), float(new), rel_tol=0, abs_tol=1.01 * 10**-places)


@pytest.mark.parametrize(
    ("was", "now", "is_stale"),
    [
        ("0.12", "0.13", False),
        ("0.12", "0.14", True),
        ("0.5000", "0.5002", True),
        ("12", "13", False),  # a shade is a number too
        ("12 heads", "12 head", True),
        ("1", "1 2", True),
    ],
)
def test_stale_stops_are_noticed(was, now, is_stale):
    old, new = (
        {"controls": [], "left_out": [], "views": {"0": f"<b>{html}</b>"}} for html in (was, now)
    )
    assert bool(difference_of(old, new)) == is_stale
    assert difference_of(old, {**new, "views": {}})
    assert difference_of(old, {**old, "left_out": ["text"]})
