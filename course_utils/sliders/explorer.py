"""What every explorer is made of: the column of controls over a view, and the HTML of the view.

The view is HTML tables: a thousand cells are redrawn at once, and their numbers stay text.
"""

from collections.abc import Callable, Mapping
from html import escape

import ipywidgets as widgets

from course_utils.heatmaps.figure import CourseFigure
from course_utils.sliders.tables import style


class Explorer(widgets.VBox):
    """Controls over a live view that also works as a dict, a figure and a sentence.

    Args:
        controls: name to ipywidget; each value goes to ``compute`` under that name.
        compute: control values to a plain dict with everything that is shown. A ``ValueError``
            it raises is shown in the view instead of a picture.
        view: such a dict to HTML.
        draw: such a dict to a figure.
        describe: such a dict to one line of text.
        still: such a dict to the figure that is stored with a notebook, for those who cannot move
            the controls: several of their stops side by side. Left out, ``draw``.

    Attributes:
        controls: the widgets by name; ``explorer.controls["num_heads"].value = 4`` moves one.
        state: what is shown now, as a plain dict of numbers, strings and lists; when the
            controls ask for something impossible, their values and an ``error``.
    """

    def __init__(
        self,
        controls: Mapping[str, widgets.Widget],
        *,
        compute: Callable[..., dict],
        view: Callable[[dict], str],
        draw: Callable[[dict], CourseFigure],
        describe: Callable[[dict], str],
        still: Callable[[dict], CourseFigure] | None = None,
    ) -> None:
        self.controls = dict(controls)
        self._compute, self._view, self._draw, self._describe = compute, view, draw, describe
        self._still = still or draw
        self._live = widgets.HTML()
        bar = widgets.HBox(
            list(self.controls.values()), layout=widgets.Layout(flex_flow="row wrap")
        )
        super().__init__([bar, widgets.HTML(style()), self._live])
        for control in self.controls.values():
            control.observe(self._refresh, "value")
        self._refresh()

    def _refresh(self, _change=None) -> None:
        values = {name: control.value for name, control in self.controls.items()}
        try:
            self.state = self._compute(**values)
        except ValueError as error:
            self.state = {**values, "error": str(error)}
            self._live.value = f'<p class="ac-error" role="alert">⚠ {escape(str(error))}</p>'
        else:
            self._live.value = self._view(self.state)

    def figure(self) -> CourseFigure:
        """The view as a closed matplotlib figure.

        Raises:
            ValueError: the message in the view, while the controls ask for something impossible.
        """
        if "error" in self.state:
            raise ValueError(self.state["error"])
        return self._draw(self.state)

    def __repr__(self) -> str:
        shown = self.state.get("error") or self._describe(self.state)
        return f"Explorer: {shown}"

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        # The picture is what GitHub, a printed page and an untrusted notebook show.
        data = {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}
        if "error" in self.state:
            return data, {}
        try:
            figure = self._still(self.state)
        except ValueError:  # at another stop than the one that is shown
            figure = self.figure()
        figure_data, metadata = figure._repr_mimebundle_()
        return {**data, "image/png": figure_data["image/png"]}, metadata


# --- controls and HTML --------------------------------------------------------------------------
