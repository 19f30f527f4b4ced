"""Pictures as SVG inside HTML, and the style sheet that they need.

There are no ids, scripts, style elements or references in it: colours are classes, so that the
same view fits a light and a dark theme, and may be stored with a notebook.
"""

from functools import cache
from html import escape
from pathlib import Path

from course_utils.heatmaps.colours import palette
from course_utils.pictures.shapes import TEXT_SIZE, Area, Dot, Line, Picture, Shape, Text


def picture_html(picture: Picture, name: str, *, least: float = 0) -> str:
    """A picture as HTML.

    Args:
        picture: what is drawn.
        name: what it shows, for those who do not see it.
        least: how narrow it may become, in pixels; on a narrower page it can be scrolled sideways.
    """
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    return (
        f'<div class="ac-pic" style="--least:{least:.0f}px"><svg role="img" '
        f'aria-label="{escape(name, quote=True)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-size="{TEXT_SIZE}" text-anchor="middle">'
        f"{''.join(map(_svg, picture.shapes))}</svg></div>"
    )


def by_room(broad: str, narrow: str) -> str:
    """Two pictures as HTML, of which a page shows the one that it has room for."""
    return (
        f'<div class="ac-by-room"><div class="ac-broad">{broad}</div>'
        f'<div class="ac-narrow">{narrow}</div></div>'
    )


@cache
def picture_style() -> str:
    """CSS for the pictures: the rules of ``pictures.css`` and the colours of both themes."""
    light, dark = (
        "".join(f"--ac-{name}:{colour};" for name, colour in palette(theme).items())
        for theme in ("light", "dark")
    )
    names = "".join(
        f".ac-f-{name}{{fill:var(--ac-{name})}}.ac-s-{name}{{stroke:var(--ac-{name})}}"
        for name in palette("light")
    )
    owners = ":is(.ac-pic,.ac-view)"
    by_name = ":is([data-jp-theme-light=false],[data-theme=dark])"
    rules = Path(__file__).with_name("pictures.css").read_text(encoding="utf-8")
    # JupyterLab says on its body which theme it has, the static edition's pages as well.
    return (
        f"{owners}{{{light}}}\n"
        f"@media not print{{{by_name} {owners}{{{dark}}}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{[data-theme=auto] {owners}{{{dark}}}}}\n"
        f"{names}\n{rules}"
    )


# --- parts --------------------------------------------------------------------------------------


def _svg(shape: Shape) -> str:
    classes = []
    if shape.motion:
        classes += [f"ac-{shape.motion}", f"ac-wait-{shape.wait}"]
    if isinstance(shape, Text):
        return _text(shape, classes)
    tag, attributes = _outline(shape, classes)
    attributes |= _shift(shape)
    if classes:
        attributes["class"] = " ".join(classes)
    opacity = getattr(shape, "opacity", 1)
    if opacity != 1:
        attributes["stroke-opacity" if isinstance(shape, Line) else "fill-opacity"] = _short(
            opacity, 2
        )
    if dash := getattr(shape, "dash", ()):
        attributes["stroke-dasharray"] = " ".join(map(_short, dash))
    inside = "".join(f' {name}="{value}"' for name, value in attributes.items())
    if title := getattr(shape, "title", ""):
        return f"<{tag}{inside}><title>{escape(title)}</title></{tag}>"
    return f"<{tag}{inside}/>"


def _outline(shape: Shape, classes: list[str]) -> tuple[str, dict[str, str]]:
    """Tag and attributes of a shape; its colours are added to the classes."""
    if isinstance(shape, Line):
        classes += ["ac-l", f"ac-s-{shape.colour}"]
        first, *rest = (f"{_short(x)} {_short(y)}" for x, y in shape.points)
        path = f"M{first}{'C' if shape.curved else 'L'}{' '.join(rest)}"
        attributes = {"d": path, "stroke-width": _short(shape.width)}
        if shape.motion == "draw":
            attributes["pathLength"] = "1"
        return "path", attributes
    if isinstance(shape, Area):
        classes.append(f"ac-f-{shape.colour}")
        return "polygon", {"points": " ".join(f"{_short(x)},{_short(y)}" for x, y in shape.points)}
    classes.append(f"ac-f-{shape.fill}" if shape.fill else "ac-l")
    if shape.outline:
        classes.append(f"ac-s-{shape.outline}")
    if isinstance(shape, Dot):
        place = {"cx": shape.x, "cy": shape.y, "r": shape.radius}
        if shape.outline:
            place["stroke-width"] = shape.width
        return "circle", {name: _short(number) for name, number in place.items()}
    place = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height}
    if shape.radius:
        place["rx"] = shape.radius
    return "rect", {name: _short(number) for name, number in place.items()}


def _shift(shape: Shape) -> dict[str, str]:
    """From where a shape slides, as properties that the style sheet reads."""
    if shape.motion != "slide":
        return {}
    return {"style": ";".join(f"--d{c}:{n:.0f}px" for c, n in zip("xy", shape.shift, strict=True))}


def _text(shape: Text, classes: list[str]) -> str:
    attributes = f' x="{_short(shape.x)}" y="{_short(shape.y)}"'
    if shape.colour != "ink":
        classes.append(f"ac-f-{shape.colour}")
    if shape.bold:
        classes.append("ac-b")
    if classes:
        attributes += f' class="{" ".join(classes)}"'
    if shape.size != TEXT_SIZE:
        attributes += f' font-size="{_short(shape.size)}"'
    if shape.anchor != "middle":
        attributes += f' text-anchor="{shape.anchor}"'
    attributes += "".join(f' {name}="{value}"' for name, value in _shift(shape).items())
    return f"<text{attributes}>{escape(shape.text)}</text>"


def _short(number: float, digits: int = 1) -> str:
    return f"{number:z.{digits}f}".rstrip("0").rstrip(".")
