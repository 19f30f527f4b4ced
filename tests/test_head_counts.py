"""The explorer over trained head counts, and the figure of runs with their spread."""

import numpy as np
import pytest
import torch
from test_sliders import body, every_state, page, two

from course_utils.heatmaps import plot_spread
from course_utils.sliders import explore_head_counts
from course_utils.sliders.tables import heat_tables

COUNTS, SEEDS, D = (1, 2, 4), 3, 8
SCORES = {"fetch": [[0.1, 0.3], [0.9, 0.95], [0.7, 0.9]], "match": [[1, 1], [0.5], [0, 0.2]]}
KEYS = {"fetch": ["red", "<b>", "2", "3", "4"]}


def results(seed=0):
    torch.manual_seed(seed)
    lengths = {"fetch": 5, "match": 6}
    accuracies = {task: {h: torch.rand(SEEDS) for h in COUNTS} for task in lengths}
    maps = {
        task: {h: torch.randn(SEEDS, h, length).softmax(-1) for h in COUNTS}
        for task, length in lengths.items()
    }
    return accuracies, maps


def make():
    return explore_head_counts(*results(), embed_dim=D, keys=KEYS)


class TestExplorer:
    def test_controls(self):
        explorer = make()
        assert list(explorer.controls) == ["num_heads", "seed"]
        assert explorer.controls["num_heads"].options == COUNTS
        assert explorer.controls["seed"].options == (0, 1, 2)

    def test_state_holds_what_was_trained(self):
        accuracies, maps = results()
        seen = []
        for state in every_state(make()):
            h, seed = state["num_heads"], state["seed"]
            seen.append((h, seed))
            assert state["head_dim"] == state["rank_bound"] == D // h
            assert state["stored_weights"] == {"fetch": 5 * h, "match": 6 * h}
            assert state["accuracies"] == {
                task: accuracies[task][h].tolist() for task in accuracies
            }
            assert state["maps"] == {task: maps[task][h][seed].tolist() for task in maps}
        assert len(set(seen)) == 9

    def test_the_page_shows_the_state(self):
        explorer = make()
        for state in every_state(explorer):
            h = state["num_heads"]
            facts, table_of_all, *maps = page(explorer).tables
            assert [row[-1] for row in facts["rows"]] == [
                f"8 / {h} = {8 // h}",
                f"at most {8 // h}",
                f"{h} · 5 = {5 * h}",
                f"{h} · 6 = {6 * h}",
            ]
            assert table_of_all["rows"][0] == ["", "seed 0", "seed 1", "seed 2", "mean", "spread"]
            assert body(table_of_all) == [
                [*two(s), f"{sum(s) / 3:.2f}", f"{min(s):.2f} to {max(s):.2f}"]
                for s in state["accuracies"].values()
            ]
            for table, (task, rows) in zip(maps, state["maps"].items(), strict=True):
                assert table["caption"] == f"{task}, seed {state['seed']}: where each head looks"
                assert table["rows"][0][0] == "head ↓ key →"
                assert [row[0] for row in table["rows"][1:]] == [f"head {i}" for i in range(h)]
                assert body(table) == [two(row) for row in rows]
            assert maps[0]["rows"][0][1:] == KEYS["fetch"]
            assert maps[1]["rows"][0][1:] == list("012345")

    def test_the_figure_marks_the_head_count(self):
        explorer = make()
        explorer.controls["num_heads"].value = 4
        (axes,) = explorer.figure().axes
        assert list(axes.lines[0].get_xdata()) == [4, 4]
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["fetch", "match"]

    def test_its_text_says_nothing_that_training_could_change(self):
        explorer, other = make(), explore_head_counts(*results(1), embed_dim=D)
        assert repr(explorer) == repr(other)
        assert repr(explorer) == (
            "Explorer: H = 1, d_h = 8, rank of QKᵀ at most 8; "
            "accuracies and maps for fetch, match, 3 seeds each"
        )

    def test_what_is_given_later_changes_nothing(self):
        accuracies, maps = results()
        explorer = explore_head_counts(accuracies, maps, embed_dim=D)
        before = explorer.state
        maps["fetch"][1].zero_()
        accuracies["fetch"][1].zero_()
        explorer.controls["seed"].value = 1
        explorer.controls["seed"].value = 0
        assert explorer.state == before

    @pytest.mark.parametrize(
        ("spoil", "said"),
        [
            (lambda s, m: (s.clear(), m.clear()), "accuracies must hold at least one task"),
            (lambda s, m: s.pop("match"), r"maps must have the tasks \['fetch'\], got"),
            (lambda s, m: s["match"].pop(4), r"accuracies\['match'\] must have the head counts"),
            (lambda s, m: m["fetch"].pop(2), r"maps\['fetch'\] must have the head counts"),
            (
                lambda s, m: s["fetch"].update({2: [0.5]}),
                r"accuracies\['fetch'\]\[2\] must be 3 num",
            ),
            (lambda s, m: s["fetch"].update({2: [0.5, 2, 0]}), "must be 3 numbers from 0 to 1"),
            (
                lambda s, m: m["match"].update({2: torch.rand(3, 1, 6)}),
                r"maps\['match'\]\[2\] must be \(S, H, L\) = \(3, 2, 6\), got shape \(3, 1, 6\)",
            ),
            (
                lambda s, m: m["match"][4].fill_(torch.nan),
                r"maps\['match'\]\[4\] must be numbers of",
            ),
        ],
    )
    def test_results_that_do_not_fit(self, spoil, said):
        accuracies, maps = results()
        spoil(accuracies, maps)
        with pytest.raises(ValueError, match=said):
            explore_head_counts(accuracies, maps, embed_dim=D)

    def test_a_head_count_must_divide_the_width(self):
        with pytest.raises(ValueError, match="embed_dim=6 cannot be split into num_heads=4"):
            explore_head_counts(*results(), embed_dim=6)

    def test_names_of_another_number(self):
        with pytest.raises(ValueError, match="must be 5 strings"):
            explore_head_counts(*results(), embed_dim=D, keys={"fetch": ["a"]})


def test_the_corner_of_a_map_is_escaped():
    (table,) = heat_tables([[[1.0]]], ["a"], ["b"], ["t"], corner="<i>")
    assert "&lt;i&gt;" in table


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
