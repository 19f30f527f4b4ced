import copy

import nbformat

from course_utils.jupyter.saving import WIDGET_VIEW, leave_out_live_views, tidy


def notebook(*bundles: dict) -> dict:
    outputs = [{"output_type": "display_data", "data": bundle} for bundle in bundles]
    outputs.append({"output_type": "stream", "name": "stdout", "text": "printed"})
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": outputs}]
    return {"type": "notebook", "content": {"cells": cells}}


def test_picture_and_text_stay():
    shown = {"image/png": "iVBOR", "text/plain": "Explorer: …"}
    model = notebook({WIDGET_VIEW: {"model_id": "1"}, **shown}, {"text/plain": "1"})
    leave_out_live_views(model=model, path="a.ipynb", contents_manager=None)
    assert model == notebook(shown, {"text/plain": "1"})


def test_a_view_stays_where_nothing_else_is_shown():
    model = notebook({WIDGET_VIEW: {"model_id": "1"}})
    before = copy.deepcopy(model)
    leave_out_live_views(model=model)
    assert model == before


def test_other_files_are_left_alone():
    model = {"type": "file", "format": "text", "content": "{}"}
    leave_out_live_views(model=model)
    assert model == {"type": "file", "format": "text", "content": "{}"}


def test_what_was_printed_in_pieces_is_joined():
    pieces = [
        nbformat.v4.new_output("stream", name=name, text=text)
        for name, text in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d"))
    ]
    cells = [nbformat.v4.new_markdown_cell("m"), nbformat.v4.new_code_cell("1", outputs=pieces)]
    run = nbformat.v4.new_notebook(cells=cells)
    tidy(run)
    once = nbformat.writes(run)
    assert [output.text for output in run.cells[1].outputs] == ["ab", "c", "d"]
    tidy(run)
    assert nbformat.writes(run) == once
