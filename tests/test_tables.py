"""The tables of a view, and the colours of their cells."""

import re

import pytest
from helpers import Page, body

from course_utils.heatmaps.colours import contrast, text_colour
from course_utils.sliders.style import style_sheet
from course_utils.sliders.tables import heat_tables, maps_height


def test_a_cell_is_rounded_like_every_other_number():
    value = 0.005  # 0.005 * 100 is 0.5, and 0.5 rounds to 0; but 0.005 prints as 0.01
    (html,) = heat_tables([[[value, 1 - value]] * 2], "ab", "ab", ["head 0"])
    (table,) = Page(html).tables
    assert body(table) == [["0.01", "0.99"]] * 2
    assert [cell["class"] for cell in table["cells"][1][1:]] == ["ac-w1", "ac-w99"]


def test_colours_of_cells():
    pattern = r"\.ac-w(\d+) \{ background: (#\w{6}); color: (#\w{6}); \}"
    rules = re.findall(pattern, style_sheet())
    assert [int(number) for number, _, _ in rules] == list(range(101))
    (_, back, front), *others = rules
    assert 4.5 <= contrast(front, back) < 5  # a zero stands back
    for _, back, front in others:
        assert front == text_colour(back)
    assert len({back for _, back, _ in rules}) > 90


def test_the_corner_of_a_map_is_escaped():
    (table,) = heat_tables([[[1.0]]], ["a"], ["b"], ["t"], corner="<i>")
    assert "&lt;i&gt;" in table


def test_corner_and_upright_names():
    (table,) = heat_tables([[[1.0]]], ["a"], ["b"], ["one"], corner="<here>", upright=True)
    assert '<table class="ac ac-map ac-upright">' in table
    assert "&lt;here&gt;" in table


def test_as_it_was_without_them():
    (table,) = heat_tables([[[1.0]]], ["a"], ["b"], ["one"])
    assert '<table class="ac ac-map"><caption>one' in table
    assert "query ↓ key →" in table


def maps_of(heads, length):
    weights = [[[1 / length] * length] * length] * heads
    names = [f"t{i}" for i in range(length)]
    return heat_tables(weights, names, names, [f"head {i}" for i in range(heads)])


def test_few_maps_have_their_own_names_and_numbers():
    assert len(maps_of(4, 6)) == 4
    assert "ac-grid" not in "".join(maps_of(4, 6))


def test_many_maps_share_a_grid_and_lose_no_number():
    (html,) = maps_of(16, 6)
    tables = Page(html).tables
    assert [table["caption"] for table in tables] == [f"head {i}" for i in range(16)]
    assert all(body(table) == [["0.17"] * 6] * 6 for table in tables)
    assert html.count('tabindex="0"') == 16  # the keyboard enlarges what the mouse enlarges


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_maps_take_the_room_that_is_reserved_and_no_more(heads, length):
    names = ["token"] * length
    height = maps_height(heads, names, names)
    assert 0 < height < 500
    if "ac-grid" in (html := "".join(maps_of(heads, length))):
        columns, cell = map(int, re.search(r"repeat\((\d+),.*?--ac-cell:(\d+)px", html).groups())
        assert columns * cell * length < 840
        assert -(-heads // columns) * (cell * length + 22) <= 450
        assert cell >= 11
