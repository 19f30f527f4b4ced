"""What all tests share: one thread per process, slow tests only in CI, and a fresh folder."""

import os

import pytest
import torch
from hypothesis import settings

# Two workers and their kernels would only fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Lessons that are run neither read nor change what somebody has answered in them.
os.environ["COURSE_ANSWERS"] = os.devnull

# They train, or hold a real model. If one began last, the other worker would be idle meanwhile.
LONGEST = ("07_", "08_", "09_", "10_")

IS_CI = bool(os.environ.get("CI"))

settings.register_profile("course", max_examples=100 if IS_CI else 10)
settings.load_profile("course")


def pytest_collection_modifyitems(items):
    """Skip slow tests unless the variable CI is set, and begin with the longest notebooks."""
    items.sort(key=lambda item: not item.path.name.startswith(LONGEST))
    for item in items:
        if not IS_CI and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: runs where the variable CI is set"))


@pytest.fixture
def as_it_was(monkeypatch, tmp_path):
    """Lessons switch gradients off and set the print format; other tests must not notice."""
    monkeypatch.chdir(tmp_path)
    yield
    torch.set_grad_enabled(True)
    torch.set_printoptions(profile="default")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh folder to work in, where nobody has answered or handed in anything yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COURSE_ANSWERS", raising=False)
    return tmp_path
