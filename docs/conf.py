"""Sphinx's settings for the static edition; `make site` prepares what it reads (see build.py)."""

from docutils import nodes
from latex2mathml.converter import convert

project = html_title = "Attention heads, one cell at a time"
extensions = ["myst_nb"]
html_theme = "furo"
# What moves here moves in JupyterLab, by the same files.
styles = ["explorer.css", "stored.css", "questions.css"]
scripts = ["stored.js", "stops.js", "reading.js", "questions.js"]
labextension = "../course_utils/jupyter/labextension/static"
html_static_path = ["static", *(f"{labextension}/{name}" for name in [*styles, *scripts])]
html_css_files = [*styles, "course.css"]
html_js_files = [*scripts, "course.js"]
html_copy_source = False
html_show_sphinx = html_show_copyright = False
html_math_renderer = "mathml"

nb_execution_mode = "off"  # what is shown is what nbval compares
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "slugs.as_jupyterlab"


def mathml(self, node):
    """Formulas in a form that browsers draw by themselves, without a script from elsewhere."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    self.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.registry.html_inline_math_renderers["mathml"] = (mathml, None)
    app.registry.html_block_math_renderers["mathml"] = (mathml, None)
