"""A small extension of Jupyter's server: what stays of a widget when a notebook is saved.

A stored live view needs the kernel that made it. Opened without that kernel, it would be an error
("Error displaying widget") or sliders that move nothing. So a saved notebook keeps a widget's
picture and text, which can be read by anybody, and running the cell brings the widget back.
"""

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


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": "course_utils.saving"}]


def _load_jupyter_server_extension(server_app) -> None:
    server_app.contents_manager.register_pre_save_hook(leave_out_live_views)
