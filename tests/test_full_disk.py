"""A full disk: what was there before stays as it was, and nothing is left half written.

A limit to the size of files stands for the full disk: beyond it, each write fails.
"""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from course_utils import gain
from course_utils.files import replace_all
from course_utils.questions.bank import letters_of

resource = pytest.importorskip("resource")  # Windows has no such limits

ROOT = Path(__file__).parent.parent
LIMIT = 200_000  # bytes: a kernel's own files are smaller


@contextlib.contextmanager
def full_disk(limit: int = LIMIT) -> Iterator[None]:
    """For this process, and for those that it starts meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def tool(monkeypatch):
    """The function behind a target, from its file in ``tools``."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return lambda name: importlib.import_module(name).main


def files(folder: Path) -> dict[Path, bytes]:
    """All that is in a folder, hidden files too."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def lesson(tmp_path):
    """A notebook whose output is larger than the disk."""
    cells = [nbformat.v4.new_code_cell(f"print('x' * {2 * LIMIT})")]
    path = tmp_path / "lesson" / "01_a.ipynb"
    path.parent.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_execute_leaves_the_notebook(lesson, tool):
    before = files(lesson.parent)
    with full_disk():
        assert f"{lesson} is as it was" in tool("execute")([lesson])
    assert files(lesson.parent) == before
    assert tool("execute")([lesson]) is None
    assert len(nbformat.read(lesson, as_version=4).cells[0].outputs[0].text) > LIMIT


def test_execute_leaves_a_notebook_whose_cell_fails(tmp_path, tool):
    path = tmp_path / "01_a.ipynb"
    cells = [nbformat.v4.new_code_cell("print('first')"), nbformat.v4.new_code_cell("1 / 0")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    before = files(tmp_path)
    assert "ZeroDivisionError" in tool("execute")([path])
    assert files(tmp_path) == before


@pytest.mark.parametrize("exists", [True, False], ids=["an empty folder", "a new folder"])
def test_student_writes_all_or_nothing(lesson, tmp_path, tool, capsys, exists):
    large = lesson.with_name("mistakes.md")
    large.write_text("x" * 2 * LIMIT)
    target = tmp_path / "student"
    if exists:
        target.mkdir()
    before = sorted(tmp_path.rglob("*"))
    with full_disk():
        assert not tool("student")(target, [lesson, large])
    assert f"Nothing was written to '{target}'" in capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before
    assert tool("student")(target, [lesson, large])
    assert sorted(path.name for path in target.iterdir()) == ["01_a.ipynb", "mistakes.md"]


def test_gain_leaves_the_picture_of_the_last_time(tmp_path):
    answers = {test: " ".join(letters_of(test)[1]) for test in gain.TESTS}
    lines = [f"{test},{letters}" for test, letters in answers.items()]
    (tmp_path / "ann.csv").write_text("\n".join(["quiz,answers", *lines]))
    picture = tmp_path / "gain.png"
    picture.write_bytes(b"the last one")
    before = files(tmp_path)
    with full_disk(10_000), pytest.raises(OSError, match="File too large"):
        gain.main(tmp_path, picture)
    assert files(tmp_path) == before
    gain.main(tmp_path, picture)
    assert picture.stat().st_size > 10_000


def test_site_leaves_the_pages_of_the_last_time(tmp_path):
    """`make site` puts its pages in place with this, once all of them have been made."""
    new, site = tmp_path / "new", tmp_path / "site"
    for folder in (new, site):
        (folder / "sub").mkdir(parents=True)
    (new / "index.html").write_text("new")
    (new / "sub" / "page.html").write_text("x" * 2 * LIMIT)
    (site / "index.html").write_text("old")
    (site / "CNAME").write_text("of the user's own")
    before = sorted(site.rglob("*")), files(site)
    with full_disk(), pytest.raises(OSError):  # noqa: PT011 - of shutil, which gathers many
        replace_all(new, site)
    assert (sorted(site.rglob("*")), files(site)) == before
    replace_all(new, site)
    assert (site / "index.html").read_text() == "new"
    assert (site / "sub" / "page.html").stat().st_size == 2 * LIMIT
    assert (site / "CNAME").read_text() == "of the user's own"
    assert not list(site.glob(".*"))
