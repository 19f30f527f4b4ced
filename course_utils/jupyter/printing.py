"""A small extension of Jupyter's server: how JupyterLab prints and exports a notebook."""

from pathlib import Path

TEMPLATE = "attention-course"


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": "course_utils.jupyter.printing"}]


def _load_jupyter_server_extension(server_app) -> None:
    """Use the course's template, unless somebody has chosen another one."""
    config = server_app.web_app.settings["config"]
    config.TemplateExporter.setdefault("extra_template_basedirs", []).append(
        str(Path(__file__).with_name("templates"))
    )
    config.HTMLExporter.setdefault("template_name", TEMPLATE)
