"""An explorer that no kernel stands behind: its stored stops on the page, moved by keyboard."""

import re
from html import unescape

import nbformat
from conftest import Explorer
from playwright.sync_api import expect

from course_utils.sliders.stops import MIMETYPE, unpack


def stored_views(notebook: nbformat.NotebookNode, explorer: Explorer) -> dict:
    output = notebook.cells[explorer.cell].outputs[explorer.output]
    return unpack(output.metadata[MIMETYPE]["stops"])


def numbers_of(html: str) -> list[str]:
    """All numbers that a view shows as text."""
    return re.findall(r"\d+(?:[.,]\d+)*", unescape(re.sub(r"<[^>]*>", " ", html)))


def attributes_of(html: str, name: str) -> list[str]:
    return list(map(unescape, re.findall(rf'\b{name}="([^"]*)"', html)))


class Stored:
    """The controls of one stored explorer on the page.

    Args:
        views: what it has to show, as ``Explorer.views`` gives it.
    """

    def __init__(self, lesson, explorer: Explorer, views: dict) -> None:
        self.page, self.views = lesson.tab.page, views
        self.node = lesson.output(explorer)
        self.node.locator(".ac-explorer-view > *").first.wait_for()
        nodes = self.node.locator(".ac-explorer-controls > :is(label, .ac-buttons)").all()
        keys = [control["key"] for control in views["controls"]]
        self.controls = dict(zip(keys, nodes, strict=True))

    def stop(self) -> dict[str, int]:
        """Where each control stands."""
        read = """(node) => {
            const inputs = [...node.querySelectorAll("input")], [{ type, value, checked }] = inputs;
            if (type == "radio") return inputs.findIndex((input) => input.checked);
            return type == "range" ? +value : +checked;
        }"""
        return {key: node.evaluate(read) for key, node in self.controls.items()}

    def walk(self) -> None:
        """Take the first control through all its stops; each shows what it has to."""
        control = self.views["controls"][0]
        key, labels, node = control["key"], control["labels"], self.controls[control["key"]]
        node.locator("input:checked" if control["buttons"] else "input").focus()
        while self.stop()[key]:
            self.page.keyboard.press("ArrowLeft")
        for place, label in enumerate(labels):
            if place:
                self.page.keyboard.press("ArrowRight")
            assert self.stop()[key] == place
            if control["buttons"]:
                assert node.locator("label:has(:checked)").inner_text() == label
            else:
                assert node.locator("input").get_attribute("aria-valuetext") == label
                assert node.locator("output").inner_text() == label
            self.compare()
        assert node.evaluate("(node) => node.contains(document.activeElement)")

    def compare(self) -> None:
        """What is shown is the view of this stop: its numbers, texts, titles and classes."""
        html = self.views["views"][",".join(map(str, self.stop().values()))]
        view = self.node.locator(".ac-explorer-view")
        expect(view).not_to_have_text(
            "", timeout=20_000
        )  # JupyterLab draws a cell when it comes into sight
        assert numbers_of(view.inner_html()) == numbers_of(html)
        for name in ("title", "class"):
            assert attributes_of(view.inner_html(), name) == attributes_of(html, name), name
