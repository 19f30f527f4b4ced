import copy

from course_utils.saving import WIDGET_VIEW, leave_out_live_views


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
