"""The progress bar: it moves while a loop runs, and leaves the same one line in every run."""

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from course_utils.jupyter import progress as module
from course_utils.jupyter.progress import ProgressBar, progress
from course_utils.jupyter.saving import WIDGET_VIEW, leave_out_live_views


@pytest.fixture
def shown(monkeypatch):
    bars = []
    monkeypatch.setattr(module, "display", bars.append)
    return bars


def held(bar):
    fill, count = bar.children
    return fill.value, fill.max, fill.bar_style, count.value


def test_it_hands_on_each_step_and_moves_after_it(shown):
    seen = []
    for step in progress((1, 2, 4), "training"):
        seen.append((step, held(shown[0])))
    assert seen == [
        (1, (0, 3, "", "0 of 3")),
        (2, (1, 3, "", "1 of 3")),
        (4, (2, 3, "", "2 of 3")),
    ]
    assert len(shown) == 1
    assert held(shown[0]) == (3, 3, "success", "3 of 3")


def test_a_loop_that_breaks_off_stays_where_it_was(shown):
    for step in progress(range(5), "training"):
        if step == 2:
            break
    assert held(shown[0]) == (2, 5, "", "2 of 5")


def test_no_steps(shown):
    assert list(progress([], "nothing")) == []
    assert held(shown[0])[0] == 0


def test_its_text_never_changes():
    bar = ProgressBar("training on fetch", 2)
    before = repr(bar)
    bar.advance()
    bar.advance()
    assert repr(bar) == before == "Progress: training on fetch, 2 steps"


def test_steps_must_have_a_length():
    with pytest.raises(ValueError, match=r"steps must have a length, got generator; turn it into"):
        progress((i for i in range(3)), "training")


def test_a_notebook_stores_one_line_and_nothing_on_stderr():
    code = (
        "from course_utils.jupyter.progress import progress\n"
        "for _ in progress(range(3), 'all'): pass"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, kernel_name="python3", store_widget_state=False).execute()
    (output,) = notebook.cells[0].outputs
    assert WIDGET_VIEW in output.data
    leave_out_live_views({"type": "notebook", "content": notebook})
    assert output.data == {"text/plain": "Progress: all, 3 steps"}


def test_without_a_kernel_it_prints_its_line(capsys):
    InteractiveShell.instance()
    assert list(progress(range(2), "all")) == [0, 1]
    assert capsys.readouterr() == ("Progress: all, 2 steps\n", "")
