"""A small extension of Jupyter's server: what stays of a widget when a notebook is saved.

A stored live view needs the kernel that made it. Opened without that kernel, it would be an error
("Error displaying widget") or sliders that move nothing. So a saved notebook keeps a widget's
picture and text, which can be read by anybody, and running the cell brings the widget back.
"""

import nbformat

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def leave_out_live_views(model: dict, **_kwargs) -> None:
    """Take live views out of a notebook that is about to be saved, where something else is shown.

    Args:
        model: what the server is about to save, changed in place.
    """
    if model.get("type") != "notebook":
        return
    for cell in model["content"]["cells"]:
        for output in cell.get("outputs", []):
            if len(output.get("data", {})) > 1:
                output["data"].pop(WIDGET_VIEW, None)


def tidy(notebook: nbformat.NotebookNode) -> None:
    """Make what was stored after a run the same after every run.

    Live views have a new id each time, and what a cell prints comes in pieces of chance size.

    Args:
        notebook: changed in place.
    """
    leave_out_live_views({"type": "notebook", "content": notebook})
    for cell in notebook.cells:
        joined = []
        for output in cell.get("outputs", []):
            last = joined[-1] if joined else {}
            if output.output_type == "stream" and output.name == last.get("name"):
                last["text"] += output.text
            else:
                joined.append(output)
        if cell.cell_type == "code":
            cell.outputs = joined


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": "course_utils.jupyter.saving"}]


def _load_jupyter_server_extension(server_app) -> None:
    server_app.contents_manager.register_pre_save_hook(leave_out_live_views)
