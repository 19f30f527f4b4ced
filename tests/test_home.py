"""`make lab` where the home folder cannot be written."""

import os
import subprocess
import sys

import pytest


def run_home(home, **env):
    """What is checked before JupyterLab starts, with the folders that follow from a home."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "XDG"))}
    command = [sys.executable, "-m", "course_utils.jupyter.home"]
    env = kept | {"HOME": str(home)} | env
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the folders are others")
def test_a_home_that_cannot_be_written_gets_two_sentences(tmp_path):
    (tmp_path / "home").write_text("a file, in which even root can make no folder")
    run = run_home(tmp_path / "home")
    assert run.returncode == 1
    assert run.stderr == (
        f"JupyterLab cannot write to {tmp_path}/home/.jupyter (Not a directory), where it keeps "
        "its settings. Try: make lab HOME=folder, with a folder that you can write to.\n"
    )


def test_another_folder_helps(tmp_path):
    run = run_home(tmp_path / "other")
    assert (run.returncode, run.stderr) == (0, "")
