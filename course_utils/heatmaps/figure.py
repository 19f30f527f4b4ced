"""What all figures are made of: a figure that fits the page, and text that any font can draw."""

import base64
import io
import logging
import textwrap
from functools import cache, lru_cache
from pathlib import Path

from matplotlib import font_manager
from matplotlib.figure import Figure
from PIL import Image

from course_utils.heatmaps.dark import on_dark_paper
from course_utils.heatmaps.texts import escape_character

PAGE_WIDTH = 9  # inches
LINE_INCHES = 1.15 / 72  # inches a line of text needs for each point of its size
TICK_SIZE, SMALLEST_TEXT, TITLE_SIZE = 10, 7, 12  # points
_PNG_DPI = 144
_SCREEN_DPI = 80  # a 7-inch figure is 560 pixels wide, and fits a narrow window


class CourseFigure(Figure):
    """A figure that was never open in pyplot and describes itself.

    Attributes:
        alt: one line that says in words what the picture shows. It is the figure's text form in
            a notebook, and the picture's alt text where the page has one.
    """

    def __init__(self, *args, alt: str = "", **kwargs) -> None:
        kwargs.setdefault("layout", "constrained")
        super().__init__(*args, **kwargs)
        self.alt = alt

    def __repr__(self) -> str:
        return f"Figure: {self.alt}"

    def png(self, *, dark: bool = False) -> bytes:
        """The picture as PNG bytes, in 256 colours: a notebook holds many, and no eye sees more."""
        if dark:
            with on_dark_paper(self) as paper:
                return self._png(paper)
        return self._png("white")

    def _png(self, paper: object) -> bytes:
        drawn, stored = io.BytesIO(), io.BytesIO()
        self.savefig(drawn, format="png", dpi=_PNG_DPI, facecolor=paper)
        with Image.open(drawn) as picture:
            picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(stored, "PNG")
        return stored.getvalue()

    def bundle(self) -> tuple[dict, dict]:
        """What a notebook stores: text and picture, with its alt text and its width in pixels."""
        width = round(self.get_figwidth() * _SCREEN_DPI)
        return (
            {"text/plain": repr(self), "image/png": base64.b64encode(self.png()).decode()},
            {"image/png": {"alt": self.alt, "width": width}},
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data, metadata = self.bundle()
        # JupyterLab and the static edition show this one where the page is dark. Everything has
        # its place by now, and finding it again would take as long as drawing.
        layout = self.get_layout_engine()
        self.set_layout_engine("none")
        metadata["image/png"]["dark"] = base64.b64encode(self.png(dark=True)).decode()
        self.set_layout_engine(layout)
        return data, metadata


def inches_of(name: dict) -> float:
    """Width of a text at the size of tick labels."""
    return _text_inches(name["label"], tuple(name["fontfamily"]))


@lru_cache(maxsize=4096)
def _text_inches(text: str, fonts: tuple[str, ...]) -> float:
    artist = Figure(dpi=144).text(
        0, 0, text, fontfamily=list(fonts), fontsize=TICK_SIZE, parse_math=False
    )
    return artist.get_window_extent().width / 144


def wrap_title(title: str, width: float) -> str:
    """Break a title that is wider than so many inches into lines."""
    lines = []
    for line in title.splitlines() or [""]:
        inches = inches_of(drawable(line)) * TITLE_SIZE / TICK_SIZE
        per_line = len(line) if inches <= width else int(0.9 * len(line) * width / inches)
        lines += textwrap.wrap(line, max(per_line, 1)) or [""]
    return "\n".join(lines)


def drawable(text: str, called: str = "label") -> dict:
    """Text and fonts for matplotlib: a character that no installed font has becomes its code.

    Dollar signs are dollar signs here, not mathematics. ``called`` is matplotlib's name for text.
    """
    label, fonts = "", ["DejaVu Sans"]
    for character in text:
        if character == "\n":
            label += character
            continue
        font = "DejaVu Sans" if character in _charmap(_default_font()) else _font_with(character)
        label += character if font else escape_character(character)
        if font and font not in fonts:
            fonts.append(font)
    return {called: label, "fontfamily": fonts, "parse_math": False}


@cache
def _default_font() -> str:
    return font_manager.findfont("DejaVu Sans")  # ships with matplotlib


@cache
def _charmap(path: str) -> frozenset[str]:
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))


@cache
def _font_with(character: str) -> str | None:
    """Name of an installed font that can draw a character, the plain ones first."""
    for path in _installed_fonts():
        try:
            if character in _charmap(path) and font_manager.get_font(path).scalable:
                font_manager.fontManager.addfont(path)
                return font_manager.get_font(path).family_name
        except (OSError, RuntimeError, ValueError) as error:  # a font that matplotlib cannot read
            logging.getLogger(__name__).debug("font %s: %s", path, error)
    return None


@cache
def _installed_fonts() -> tuple[str, ...]:
    def plain_first(path: str) -> tuple:
        name = Path(path).name.lower()
        fancy = any(word in name for word in ("bold", "italic", "oblique", "serif", "mono", "thin"))
        return fancy, "sans" not in name, name

    def draws(path: str) -> bool:  # colour fonts come out blank, "last resort" fonts as boxes
        name = Path(path).name.lower().replace(" ", "")
        return "color" not in name and "lastresort" not in name

    return tuple(sorted(filter(draws, font_manager.findSystemFonts()), key=plain_first))


def clamp(x: float, low: float, high: float) -> float:
    """``x``, or the end of the range that it passes."""
    return min(max(x, low), high)
