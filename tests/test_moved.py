"""The course's folder is moved, copied, or has a name that is no ASCII: the environment follows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the Makefile is not for Windows")

ROOT = Path(__file__).parent.parent
SAY_WHERE = "import course_utils; print(course_utils.__file__)"


@pytest.fixture
def course(tmp_path):
    """A folder with an environment, as pip leaves it: a link and a script, with absolute paths."""
    folder = tmp_path / "a course"
    (folder / "course_utils").mkdir(parents=True)
    (folder / "course_utils" / "__init__.py").touch()
    shutil.copytree(ROOT / "tools", folder / "tools")
    venv = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    link = packages(folder) / "_editable_impl_attention_course.pth"
    link.write_text(str(folder), encoding="utf-8")
    script = venv / "bin" / "where"
    script.write_text(
        f"#!/bin/sh\n'''exec' \"{venv}/bin/python\" \"$0\" \"$@\"\n' '''\n{SAY_WHERE}\n"
    )
    script.chmod(0o755)
    return folder


def packages(folder: Path) -> Path:
    return next(folder.glob(".venv/lib/python*/site-packages"))


def relink(folder: Path) -> str:
    command = [folder / ".venv/bin/python", "-S", "tools/relink.py", ".venv"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def where(command: list[str | Path], **env: str) -> Path:
    """Which ``course_utils`` a command imports."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | env
    # Elsewhere, since Python looks first where it is started.
    run = subprocess.run(command, cwd="/", env=env, check=True, capture_output=True, text=True)
    return Path(run.stdout.strip()).parent.parent


def python(folder: Path) -> list[str | Path]:
    return [folder / ".venv/bin/python", "-c", SAY_WHERE]


def test_nothing_is_said_or_written_where_nothing_has_moved(course):
    assert relink(course) == ""
    before = {path: path.stat().st_mtime_ns for path in course.rglob("*") if path.name != ".where"}
    assert relink(course) == ""
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_folder_that_was_moved(course, tmp_path):
    relink(course)
    moved = course.rename(tmp_path / "there")
    assert where(python(moved)) == moved
    assert str(moved) in relink(moved)
    assert where([moved / ".venv/bin/where"]) == moved


def test_a_script_whose_first_line_names_python(course, tmp_path):
    """This is pip's other form, which holds no path with a space."""
    plain = course.rename(tmp_path / "plain")
    (plain / ".venv/bin/where").write_text(f"#!{plain}/.venv/bin/python\n{SAY_WHERE}\n")
    relink(plain)
    moved = plain.rename(tmp_path / "with a space")
    relink(moved)
    assert where([moved / ".venv/bin/where"]) == moved


def test_a_copy_runs_its_own_code_and_leaves_the_other_alone(course, tmp_path):
    relink(course)
    copy = shutil.copytree(course, tmp_path / "copy", symlinks=True)
    assert where(python(copy)) == copy
    relink(copy)
    assert where([copy / ".venv/bin/where"]) == copy
    assert where([course / ".venv/bin/where"]) == course
    assert where(python(course)) == course


def test_programs_stay_as_they_are(course, tmp_path):
    program = course / ".venv/bin/program"
    program.write_bytes(f"\x7fELF\0{course}/.venv".encode())
    relink(course)
    moved = course.rename(tmp_path / "there")
    relink(moved)
    assert (moved / ".venv/bin/program").read_bytes() == f"\x7fELF\0{course}/.venv".encode()


def test_python_starts_where_the_system_knows_only_ascii(course, tmp_path):
    """Python 3.11 reads links in the system's encoding as it starts, and ends at an ``ä``."""
    moved = course.rename(tmp_path / "Aufmerksamkeit für Anfänger")
    link = packages(moved) / "_editable_impl_attention_course.pth"
    link.write_text(str(moved), encoding="utf-8")
    relink(moved)
    run = subprocess.run(python(moved), cwd="/", env={"LC_ALL": "C"}, capture_output=True)
    assert run.returncode == 0, run.stderr.decode(errors="replace")
    assert os.fsencode(moved) in run.stdout


def test_an_environment_elsewhere(course, tmp_path):
    """It does not move along, so its link stays absolute, and follows at the next `make`."""
    elsewhere = (course / ".venv").rename(tmp_path / "environment")
    moved = course.rename(tmp_path / "there")
    command = [elsewhere / "bin/python", "-S", "tools/relink.py", elsewhere]
    subprocess.run(command, cwd=moved, check=True)
    assert where([elsewhere / "bin/python", "-c", SAY_WHERE]) == moved


@pytest.mark.slow
def test_a_real_install_is_moved_and_copied(tmp_path):
    """By pip, but without the packages that the course needs: they would take minutes."""
    first = tmp_path / "für Anfänger"
    for folder in ("course_utils", "tools"):
        shutil.copytree(ROOT / folder, first / folder)
    for name in ("Makefile", "README.md", "constraints.txt"):
        shutil.copy(ROOT / name, first)
    project = (ROOT / "pyproject.toml").read_text()
    project = re.sub(r"(?ms)^(dependencies|lab) = \[.*?\]$", r"\1 = []", project)
    (first / "pyproject.toml").write_text(project)

    def make(folder):
        command = ["make", "install", f"PYTHON={sys.executable}", "VENV=.venv"]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MAKE"))}
        env["LC_ALL"] = "C"
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "pip install" in make(first)
    assert where(python(first)) == first
    moved = first.rename(tmp_path / "moved")
    assert "has moved" in make(moved)
    copy = shutil.copytree(moved, tmp_path / "copy", symlinks=True)
    assert "pip install" not in make(copy)
    for folder in (moved, copy):
        assert where(python(folder)) == folder
        pip = subprocess.run(
            [folder / ".venv/bin/pip", "--version"], capture_output=True, text=True
        )
        assert str(folder) in pip.stdout
