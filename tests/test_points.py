"""Groups of points in one figure, and tables with upright names."""

import pytest

from course_utils.heatmaps import CourseFigure, plot_points

GROUPS = {"layer 0": ([0.1, 0.2, 0.3], [1, 10, 100]), "layer 1": ([0.5], [20])}


def draw(groups=GROUPS, **options) -> CourseFigure:
    return plot_points(groups, **{"x_label": "width", "y_label": "height", **options})


class TestPoints:
    def test_every_point_is_where_it_belongs(self):
        figure = draw(log_y=True, title="Points")
        (axes,) = figure.axes
        shown = [collection.get_offsets().tolist() for collection in axes.collections]
        assert shown == [[[0.1, 1], [0.2, 10], [0.3, 100]], [[0.5, 20]]]
        assert [text.get_text() for text in figure.legends[0].get_texts()] == list(GROUPS)
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("width", "height")
        assert axes.get_yscale() == "log"
        assert axes.get_title() == "Points"

    def test_any_text_is_drawn_as_it_is(self):
        figure = draw({"_a $x$": ([1], [2])}, title="$y$", names={"_b $z$": (1, 2)})
        (axes,) = figure.axes
        (legend,), (beside,) = figure.legends[0].get_texts(), axes.texts
        assert [t.get_text() for t in (legend, beside, axes.title)] == ["_a $x$", "_b $z$", "$y$"]
        assert not any(t.get_parse_math() for t in (legend, beside, axes.title))
        assert "_a $x$: 1 point" in figure.alt

    def test_groups_differ_in_more_than_colour(self):
        (axes,) = draw().axes
        first, second = (collection.get_paths()[0] for collection in axes.collections)
        assert first.vertices.shape != second.vertices.shape

    def test_names_stand_beside_their_points(self):
        (axes,) = draw(names={"4.5": (0.2, 10), "$x$": (0.5, 20)}).axes
        assert [(text.get_text(), text.xy) for text in axes.texts] == [
            ("4.5", (0.2, 10)),
            ("$x$", (0.5, 20)),
        ]
        assert all(text.arrow_patch for text in axes.texts), "a line leads to the point"

    def test_alt_says_what_is_there(self):
        assert draw(title="Points").alt == (
            "Points; height against width; layer 0: 3 points, x 0.1 to 0.3, y 1 to 1e+02; "
            "layer 1: 1 point, x 0.5 to 0.5, y 20 to 20"
        )

    @pytest.mark.parametrize(
        ("groups", "options", "said"),
        [
            ({}, {}, "groups must be one to six"),
            ({str(i): ([1], [1]) for i in range(7)}, {}, "groups must be one to six.*got 7"),
            ({"a": ([1, 2], [1])}, {}, r"groups\['a'\] must hold as many x as y"),
            ({"a": ([], [])}, {}, r"groups\['a'\] must hold as many x as y, at least one"),
            ([([1], [1])], {}, "groups must be one to six, by name.*got list"),
            ({"a": (["x"], [1])}, {}, r"groups\['a'\] must be numbers"),
            ({"a": ([1], [1])}, {"title": 5}, "title must be a string, got 5"),
            ({"a": ([1], [float("nan")])}, {}, r"groups\['a'\] must be finite numbers; got"),
            ({"a": ([1], [0])}, {"log_y": True}, "finite numbers, and y above 0 for log_y"),
        ],
    )
    def test_wrong_arguments(self, groups, options, said):
        with pytest.raises(ValueError, match=said):
            draw(groups, **options)
