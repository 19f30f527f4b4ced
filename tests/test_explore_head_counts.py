"""The explorer of head counts that were trained."""

import pytest
import torch
from helpers import body, every_state, make_head_counts, page, trained, two

from course_utils.sliders import explore_head_counts

COUNTS, D = (1, 2, 4), 8


def test_controls():
    explorer = make_head_counts()
    assert list(explorer.controls) == ["num_heads", "seed"]
    assert explorer.controls["num_heads"].options == COUNTS
    assert explorer.controls["seed"].options == (0, 1, 2)


def test_state_holds_what_was_trained():
    accuracies, maps = trained()
    seen = []
    for state in every_state(make_head_counts()):
        h, seed = state["num_heads"], state["seed"]
        seen.append((h, seed))
        assert state["head_dim"] == state["rank_bound"] == D // h
        assert state["stored_weights"] == {"fetch": 5 * h, "match": 6 * h}
        assert state["accuracies"] == {task: accuracies[task][h].tolist() for task in accuracies}
        assert state["maps"] == {task: maps[task][h][seed].tolist() for task in maps}
    assert len(set(seen)) == 9


def test_the_page_shows_the_state():
    explorer = make_head_counts()
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
        assert maps[0]["rows"][0][1:] == ["red", "<b>", "2", "3", "4"]
        assert maps[1]["rows"][0][1:] == list("012345")


def test_the_figure_marks_the_head_count():
    explorer = make_head_counts()
    explorer.controls["num_heads"].value = 4
    (axes,) = explorer.figure().axes
    assert list(axes.lines[0].get_xdata()) == [4, 4]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["fetch", "match"]


def test_its_text_says_nothing_that_training_could_change():
    explorer, other = make_head_counts(), explore_head_counts(*trained(1), embed_dim=D)
    assert repr(explorer) == repr(other)
    assert repr(explorer) == (
        "Explorer: H = 1, d_h = 8, rank of QKᵀ at most 8; "
        "accuracies and maps for fetch, match, 3 seeds each"
    )


def test_what_is_given_later_changes_nothing():
    accuracies, maps = trained()
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
def test_results_that_do_not_fit(spoil, said):
    accuracies, maps = trained()
    spoil(accuracies, maps)
    with pytest.raises(ValueError, match=said):
        explore_head_counts(accuracies, maps, embed_dim=D)


def test_a_head_count_must_divide_the_width():
    with pytest.raises(ValueError, match="embed_dim=6 cannot be split into num_heads=4"):
        explore_head_counts(*trained(), embed_dim=6)


def test_names_of_another_number():
    with pytest.raises(ValueError, match="must be 5 strings"):
        explore_head_counts(*trained(), embed_dim=D, keys={"fetch": ["a"]})
