"""A class's gain, from made-up score files."""

import random
import re

import pytest

from course_utils.gain import Learner, main, plot_gain, read_scores
from course_utils.questions import quiz
from course_utils.questions.bank import letters_of

HEADER = "when,quiz,right,of,answers\n"


def line(test: str, wrong: int = 0, when: str = "2026-01-01T10:00") -> str:
    letters, right = letters_of(test)
    answers = [
        next(x for x in known if x != r) if k < wrong else r
        for k, (known, r) in enumerate(zip(letters, right, strict=True))
    ]
    return f"{when},{test},{len(right) - wrong},{len(right)},{' '.join(answers)}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ann.csv").write_text(HEADER + line("pre-test", 8) + line("post-test", 1))
    (tmp_path / "bo").mkdir()
    (tmp_path / "bo" / "scores.csv").write_text(HEADER + line("pre-test", 6) + line("post-test", 3))
    return tmp_path


def test_what_a_quiz_writes_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for test in ("pre-test", "post-test"):
        letters, right = letters_of(test)
        quiz(test).answer(" ".join([letters[0][-1], *right[1:]]))
    ((learner,), problems) = read_scores(tmp_path)
    assert learner.name == "scores"
    assert problems == []
    assert [learner.right(test) for test in ("pre-test", "post-test")] == [
        [False] + [True] * 11
    ] * 2


def test_what_a_spreadsheet_program_saved_is_read(folder):
    wanted = read_scores(folder)
    text = (folder / "ann.csv").read_text()
    (folder / "ann.csv").unlink()
    (folder / "ann.CSV").write_text(text.replace(",", ";"), encoding="utf-16")
    assert read_scores(folder) == wanted


def test_scores_and_means(folder, capsys):
    main(folder, folder / "gain.png")
    printed = capsys.readouterr().out
    assert re.search(r"^ann +4 +11 +\+7$", printed, re.M)
    assert re.search(r"^bo/scores +6 +9 +\+3$", printed, re.M)
    assert "2 learners had 5.0 of 12 right before the course and 10.0 after it" in printed
    assert (folder / "gain.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_shows_each_question_and_the_means(folder):
    figure = plot_gain(read_scores(folder)[0])
    ways, bars = figure.axes
    assert [list(y.get_ydata()) for y in ways.lines] == [[4, 11], [6, 9], [5, 10]]
    before, after = bars.containers
    # Ann had her first eight wrong, Bo his first six; then one and three.
    assert [bar.get_height() for bar in before] == [0] * 6 + [50, 50] + [100] * 4
    assert [bar.get_height() for bar in after] == [0, 50, 50] + [100] * 9


def test_the_first_pre_test_and_the_last_post_test_count(tmp_path):
    tests = [("pre-test", 9), ("post-test", 5), ("pre-test", 0), ("post-test", 2)]
    (tmp_path / "a.csv").write_text(HEADER + "".join(line(*test) for test in tests))
    ((learner,), _) = read_scores(tmp_path)
    assert (sum(learner.right("pre-test")), sum(learner.right("post-test"))) == (3, 10)


@pytest.mark.parametrize(
    "bad",
    ["x,pre-test,1,12,a b\n", "x,pre-test,1,12\n", f"x,pre-test,1,12,{' '.join('z' * 12)}\n"],
)
def test_a_line_that_cannot_be_read_is_named_and_the_rest_counts(folder, bad, capsys):
    (folder / "cy.csv").write_text(HEADER + bad + line("pre-test", 2) + line("post-test", 2))
    main(folder, folder / "gain.png")
    printed = capsys.readouterr()
    assert "cy.csv, line 2" in printed.err
    assert re.search(r"^cy +10 +10 +\+0$", printed.out, re.M)


def test_who_missed_a_test_is_listed_and_left_out_of_the_means(folder, capsys):
    (folder / "di.csv").write_text(HEADER + line("pre-test", 12))
    (folder / "el.csv").write_bytes(b"\xff\xfe\x00")
    main(folder, folder / "gain.png")
    printed = capsys.readouterr()
    assert re.search(r"^di +0 +– *$", printed.out, re.M)
    assert "2 learners" in printed.out
    assert "el.csv: cannot be read" in printed.err


def test_nothing_to_read_is_said(tmp_path):
    with pytest.raises(ValueError, match="one CSV file for each learner"):
        read_scores(tmp_path)
    with pytest.raises(ValueError, match="both tests, got none"):
        plot_gain([Learner("a", {"pre-test": letters_of("pre-test")[1]})])


def test_a_large_class(tmp_path):
    draw = random.Random(0)
    for k in range(200):
        text = (
            HEADER + line("pre-test", draw.randint(4, 12)) + line("post-test", draw.randint(0, 6))
        )
        (tmp_path / f"{k:03}.csv").write_text(text)
    learners, problems = read_scores(tmp_path)
    assert (len(learners), problems) == (200, [])
    assert len(plot_gain(learners).axes[0].lines) == 201
