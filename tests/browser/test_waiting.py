"""A slider that is moved while the kernel is busy: its explorer says that it will follow."""

import pytest
from conftest import NOTEBOOKS, Lesson
from jupyter_client import BlockingKernelClient


@pytest.fixture
def lesson(chromium, lab):
    lesson = Lesson(chromium, lab, NOTEBOOKS[0])
    yield lesson
    lesson.close()


@pytest.fixture
def busy(lesson):
    """Somebody else who asks the same kernel."""
    client = BlockingKernelClient()
    client.load_connection_file(str(lesson.lab.runtime / f"kernel-{lesson.tab.kernel_id}.json"))
    client.start_channels()
    yield client
    client.stop_channels()


def test_an_explorer_says_that_the_kernel_is_busy(lesson, busy):
    lesson.run_all()
    tab, explorer = lesson.tab, lesson.explorers()[0]
    area = lesson.output(explorer)
    note = "getComputedStyle(node.querySelector('.ac-live'), '::before').content"
    assert area.evaluate(f"(node) => {note}") == "none"
    busy.execute("__import__('time').sleep(8)", silent=True)
    handle = area.locator(".noUi-handle").first
    handle.focus()
    tab.page.keyboard.press("ArrowRight")
    tab.page.wait_for_selector(".ac-waiting")
    assert "kernel is busy" in area.evaluate(f"(node) => {note}")
    tab.page.wait_for_function("() => !document.querySelector('.ac-waiting')")
    assert area.evaluate(f"(node) => {note}") == "none"
    assert tab.complaints() == []
