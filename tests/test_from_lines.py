"""Lines to put in order."""

import pytest

from course_utils.exercises import CheckFailed, check_merge_heads, from_lines

LINES = {
    "A": "return x.reshape(N, L, H * d_h)",
    "B": "x = x.transpose(1, 2)",
    "C": "N, H, L, d_h = x.shape",
    "D": "x = x.transpose(1, 3)",
}


@pytest.mark.parametrize("order", ["CBA", "c b a", "C, B, A"])
def test_lines_in_the_right_order(order):
    assert check_merge_heads(from_lines("merge_heads(x)", LINES, order)) is True


def test_no_order_is_not_attempted(capsys):
    assert check_merge_heads(from_lines("merge_heads(x)", LINES, "")) is False
    assert "not attempted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("CA", "merge-without-transpose"),
        ("CB", "is there a return line"),
        ("CD", "is there a return line"),
        ("BCA", "result has shape"),
    ],
)
def test_lines_in_a_wrong_order(order, said):
    with pytest.raises(CheckFailed, match=said):
        check_merge_heads(from_lines("merge_heads(x)", LINES, order))


@pytest.mark.parametrize("order", ["CBX", "CCB", 3, None])
def test_letters_that_name_no_line(order):
    with pytest.raises(CheckFailed, match="order must be made of the letters A, B, C, D"):
        from_lines("merge_heads(x)", LINES, order)


def test_nothing_stands_behind_the_return():
    with pytest.raises(CheckFailed, match="behind the return is never run"):
        from_lines("merge_heads(x)", LINES, "CBAD")
