"""One thread a process: two workers and their kernels would only fight for the cores."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh folder to work in, where nobody has answered or handed in anything yet."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
