"""What every explorer is made of: a row of controls over a view.

The view is HTML tables: a thousand cells are redrawn at once, and their numbers stay text.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from html import escape

import ipywidgets as widgets
import traitlets

from course_utils.arguments import require_whole
from course_utils.heatmaps.figure import CourseFigure
from course_utils.sliders.controls import place_of, put
from course_utils.sliders.stops import MARK, MAX_HTML, MIMETYPE, pack
from course_utils.sliders.style import style_sheet
from course_utils.sliders.views import Views, collect_views


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
        adjust: for a control that changes what another one offers, its name and a function that
            makes that change, given the new value. It runs before the view is renewed.

    Attributes:
        controls: the widgets by name; ``explorer.controls["num_heads"].value = 4`` moves one.
        state: what is shown now, as a plain dict of numbers, strings and lists; when the
            controls ask for something impossible, their values and an ``error``.
        stop: where the controls stand: by name the number of a slider's or a switch's stop, and
            what is typed. JupyterLab sets it when a cell runs again, to where it was left.
    """

    stop = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        controls: Mapping[str, widgets.Widget],
        *,
        compute: Callable[..., dict],
        view: Callable[[dict], str],
        draw: Callable[[dict], CourseFigure],
        describe: Callable[[dict], str],
        still: Callable[[dict], CourseFigure] | None = None,
        adjust: Mapping[str, Callable[[object], None]] | None = None,
    ) -> None:
        self.controls = dict(controls)
        self._compute, self._view, self._draw, self._describe = compute, view, draw, describe
        self._still = still or draw
        self._adjust, self._is_held = dict(adjust or {}), False
        self._live = widgets.HTML()
        self._live.add_class("ac-live")
        bar = widgets.HBox(
            list(self.controls.values()), layout=widgets.Layout(flex_flow="row wrap")
        )
        super().__init__([bar, widgets.HTML(f"<style>{style_sheet()}</style>"), self._live])
        for name, control in self.controls.items():
            control.observe(partial(self._on_change, name), "value")
        self._refresh()

    def _on_change(self, name: str, change: dict) -> None:
        with self._one_view():
            if name in self._adjust:
                self._adjust[name](change["new"])

    @traitlets.observe("stop")
    def _go_to(self, change: dict) -> None:
        if change["new"] == self._places():  # the view says where it stands
            return
        with self._one_view():
            # Those first that change what others offer.
            for name in sorted(change["new"], key=lambda name: name not in self._adjust):
                if name in self.controls:
                    put(self.controls[name], change["new"][name])

    @contextmanager
    def _one_view(self) -> Iterator[None]:
        """However many controls move meanwhile, the view follows once, at the end."""
        is_held, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = is_held
        if not is_held:
            self._refresh()

    def _refresh(self) -> None:
        values = {name: control.value for name, control in self.controls.items()}
        self.state, self._live.value = self._show(values)
        self.stop = self._places()

    def _places(self) -> dict[str, int | str]:
        return {name: place_of(control) for name, control in self.controls.items()}

    def _show(self, values: dict) -> tuple[dict, str]:
        """The state for these control values, and its HTML."""
        try:
            state = self._compute(**values)
        except ValueError as error:
            html = f'<p class="ac-error" role="alert">⚠ {escape(str(error))}</p>'
            return {**values, "error": str(error)}, html
        return state, self._view(state)

    @property
    def html(self) -> str:
        """The HTML of the view that is shown now, without the style sheet."""
        return self._live.value

    def figure(self) -> CourseFigure:
        """The view as a closed matplotlib figure.

        Raises:
            ValueError: the message in the view, while the controls ask for something impossible.
        """
        if "error" in self.state:
            raise ValueError(self.state["error"])
        return self._draw(self.state)

    def still(self) -> CourseFigure:
        """The figure that is stored with a notebook: several stops side by side.

        Where one of the other stops cannot be computed, it is ``figure()``.

        Raises:
            ValueError: the message in the view, while the controls ask for something impossible.
        """
        if "error" in self.state:
            raise ValueError(self.state["error"])
        try:
            return self._still(self.state)
        except ValueError:  # at another stop than the one that is shown
            return self.figure()

    def views(self, limit: int) -> Views | None:
        """Make the views of all stops beforehand; no control moves, and the view stays as it is.

        Sliders and switches are taken through all their combinations. A text stays as it is, and so
        does a control that changes what another one offers.

        Args:
            limit: how many characters of HTML the views may have in all.

        Returns:
            The views; where they are longer than ``limit``, those of the sliders alone, and where
            these are longer too, or nothing has stops, None. At a stop that cannot be computed, the
            view says why.

        Raises:
            ValueError: a limit that is not a whole number of at least 1.
        """
        return collect_views(
            self.controls,
            lambda **values: self._show(values)[1],
            fixed=self._adjust,
            limit=require_whole("limit", limit),
        )

    def __repr__(self) -> str:
        shown = self.state.get("error") or self._describe(self.state)
        return f"Explorer: {shown}"

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        # The picture is what GitHub, a printed page and an untrusted notebook show.
        data = {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}
        if "error" in self.state:
            return data, {}
        figure_data, metadata = self.still().bundle()
        data["image/png"] = figure_data["image/png"]
        views = self.views(MAX_HTML)
        if packed := views and pack(views):
            data[MIMETYPE], metadata[MIMETYPE] = MARK, {"stops": packed}
        return data, metadata
