"""The tables of a view, and the colours of their cells."""

import re

from helpers import Page, body

from course_utils.heatmaps.colours import text_colour
from course_utils.sliders.style import style_sheet
from course_utils.sliders.tables import heat_tables


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
    for _, back, front in rules:
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
