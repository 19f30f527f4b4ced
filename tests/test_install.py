"""``make install`` with made-up Pythons: which it takes, and how it goes on after a break."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the Makefile is not for Windows")

ROOT = Path(__file__).parent.parent

# Says what it is asked for. It makes an environment of itself; a file called "break" breaks it off.
PYTHON = """#!/bin/sh
echo "$*" >> log
case "$*" in
    -c*) exec {real} -c 'import sys; sys.version_info = {version}; exec(sys.argv[2])' "$@" ;;
    "-m venv"*) mkdir -p .venv/bin && cp python .venv/bin/python && echo "$*" ;;
    *--version) test ! -e no-pip ;;
    "-S "*) ;;
    "-m pip install"*) test ! -e break ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "course_utils" / "jupyter").mkdir(parents=True)
    (tmp_path / "course_utils" / "jupyter" / "settings.json").touch()

    def run(*arguments, version=(3, 11, 0)):
        python = tmp_path / "python"
        python.write_text(PYTHON.format(real=sys.executable, version=version))
        python.chmod(0o755)
        (tmp_path / "log").write_text("")
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        command = ["make", *(arguments or ("install",)), "PYTHON=./python", "VENV=.venv"]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        steps = [line for line in (tmp_path / "log").read_text().splitlines() if "-m" in line]
        return done, steps

    run.folder = tmp_path
    return run


VENV = "-m venv .venv"


def pip(extra):
    return f"-m pip install -c constraints.txt -e .[{extra}]"


PIP = pip("lab")


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 9)])
def test_it_installs_once(make, version):
    done, steps = make(version=version)
    assert (done.returncode, steps) == (0, [VENV, PIP])
    done, steps = make(version=version)
    assert (done.returncode, steps) == (0, [])


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 10, 14), (3, 15, 0)])
def test_a_python_that_is_too_old_or_too_new_gets_one_sentence(make, version):
    done, steps = make(version=version)
    assert done.returncode
    assert steps == []
    sentence, *rest = done.stderr.splitlines()
    assert sentence == (
        f"This course needs Python 3.11 to 3.14, and this is {version[0]}.{version[1]}. "
        "Try: make clean, then make PYTHON=python3.11 lab"
    )
    assert all(line.startswith("make: ***") for line in rest)


def test_an_environment_of_another_python_gets_the_same_sentence(make):
    (make.folder / ".venv" / "bin").mkdir(parents=True)
    old = make.folder / ".venv" / "bin" / "python"
    old.write_text(PYTHON.format(real=sys.executable, version=(3, 10, 1)))
    old.chmod(0o755)
    done, steps = make()
    assert "this is 3.10. Try: make clean" in done.stderr
    assert PIP not in steps


def test_a_target_adds_what_it_needs_itself(make):
    make()
    done, steps = make("install-site")
    assert (done.returncode, steps) == (0, ["-m pip --version", pip("site")])
    assert make("install-site")[1] == []


@pytest.mark.parametrize("changed", ["constraints.txt", "course_utils/jupyter/settings.json"])
def test_what_was_installed_is_renewed_when_it_changes(make, changed):
    make()
    (make.folder / changed).write_text("new")
    done, steps = make()
    assert (done.returncode, steps) == (0, ["-m pip --version", PIP])
    assert make()[1] == []


def test_newer_dates_mean_nothing(make):
    """In a folder that was copied each file is new, and the environment may be the oldest."""
    make()
    for name in ("pyproject.toml", "constraints.txt"):
        os.utime(make.folder / name, (2**31, 2**31))
    assert make()[1] == []


def test_an_environment_whose_python_has_gone_gets_one_sentence(make):
    make()
    (make.folder / ".venv" / "bin" / "python").unlink()
    done, steps = make()
    assert done.stdout == (
        "The Python that .venv was made with has gone. Try: make clean, then make lab\n"
    )
    assert (done.returncode, steps) == (2, [])


def test_pip_that_is_broken_off_goes_on(make):
    (make.folder / "break").touch()
    assert make()[0].returncode
    (make.folder / "break").unlink()
    done, steps = make()
    assert done.returncode == 0
    assert steps == ["-m pip --version", PIP]  # and what is there stays


def test_a_half_made_environment_is_finished(make):
    (make.folder / "break").touch()
    make()
    (make.folder / "break").unlink()
    (make.folder / "no-pip").touch()
    done, steps = make()
    assert (done.returncode, steps) == (0, ["-m pip --version", VENV, PIP])


def test_a_copy_of_a_lesson_is_no_lesson(make):
    """JupyterLab's "Duplicate" makes names that sort before the lesson's own."""
    (make.folder / "notebooks").mkdir()
    for name in ("01_a-Copy1.ipynb", "01_a-Copy12.ipynb", "01_a.ipynb", "10_b.ipynb", "x.ipynb"):
        (make.folder / "notebooks" / name).touch()
    done, _ = make("--dry-run", "-o", "install", "lab", "execute")
    assert "default_url=/lab/tree/notebooks/01_a.ipynb " in done.stdout
    assert "execute.py notebooks/01_a.ipynb notebooks/10_b.ipynb\n" in done.stdout


def test_every_lesson_is_taken(make):
    lessons = [path.name for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    shutil.copytree(ROOT / "notebooks", make.folder / "notebooks")
    done, _ = make("--dry-run", "-o", "install", "execute")
    assert all(f" notebooks/{name}" in done.stdout for name in lessons)
