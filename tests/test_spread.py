"""The figure of runs with their spread."""

import numpy as np
import pytest

from course_utils.heatmaps import plot_spread

SCORES = {"fetch": [[0.1, 0.3], [0.9, 0.95], [0.7, 0.9]], "match": [[1, 1], [0.5], [0, 0.2]]}


@pytest.mark.filterwarnings("error")
class TestSpread:
    def draw(self, scores=SCORES, x=(1, 2, 4), **options):
        return plot_spread(x, scores, x_label="heads H", y_label="score", **options)

    def test_it_draws_mean_spread_and_every_run(self):
        (axes,) = self.draw().axes
        means = [line.get_ydata() for line in axes.lines if line.get_linewidth() > 0]
        assert np.allclose(means, [[0.2, 0.925, 0.8], [1, 0.5, 0.1]])
        dots = [line for line in axes.lines if line.get_linewidth() == 0]
        drawn = [[float(y) for y in line.get_ydata()] for line in dots]
        assert drawn == [*SCORES["fetch"], *SCORES["match"]]
        assert len({line.get_marker() for line in dots}) == 2  # not told apart by colour alone
        lows = [area.get_paths()[0].vertices[:, 1].min() for area in axes.collections]
        assert np.allclose(lows, [0.1, 0])
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
        assert axes.get_ylim() == (0, 1.05)

    def test_its_text_is_coarse(self):
        assert self.draw(title="two tasks").alt == (
            "two tasks against heads H; fetch: all runs above 0.8 at 2, all below at 1; "
            "match: all runs above 0.8 at 1, all below at 2, 4"
        )

    @pytest.mark.parametrize(
        ("x", "scores", "said"),
        [
            ([0, 1, 2], SCORES, "x must be positive"),
            ([1, 2], SCORES, r"scores\['fetch'\] must hold one list of runs for each of the 2 x"),
            ([1], {"a": [[]]}, r"scores\['a'\] must hold one list of runs"),
            ([1], {"a": [[1.2]]}, r"scores\['a'\] must lie between 0 and 1"),
            ([1], {"a": [[float("nan")]]}, "must lie between 0 and 1"),
            ([1], {}, "scores must be one to five"),
        ],
    )
    def test_wrong_scores(self, x, scores, said):
        with pytest.raises(ValueError, match=said):
            self.draw(scores, x)
