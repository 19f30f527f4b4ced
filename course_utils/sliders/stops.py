"""All stops of an explorer, packed for the output that a notebook stores.

A notebook keeps them in the metadata of ``MIMETYPE``. There JupyterLab's renderer (see
``jupyter/labextension``) and the static site find them; nbval compares no metadata, so the last
digit of another processor fails nothing.

Views differ in their numbers more than in their HTML. So a view is kept as its numbers and the
place of its text, the HTML with a gap for each number; many views share one text. All of it is
JSON, deflated, in base64.
"""

import base64
import json
import re
import zlib

from course_utils.sliders.views import Views

MIMETYPE = "application/vnd.attention-course.stops+json"
MARK = {"version": 1}  # what stands under ``data``: the same for every explorer
MAX_HTML = 4_000_000  # characters of the views of one explorer, before they are packed
MAX_PACKED = 200_000  # characters that they add to a notebook


def pack(views: Views) -> str | None:
    """The views as a short string of ASCII; None if it is longer than ``MAX_PACKED``."""
    texts: dict[tuple[str, ...], int] = {}
    filled: dict[tuple[int, str], int] = {}
    stops = {}
    for stop, html in views["views"].items():
        parts = re.split(r"(\d+)", html)  # text, number, text, …, text
        text = texts.setdefault(tuple(parts[::2]), len(texts))
        view = text, " ".join(parts[1::2])
        stops[stop] = filled.setdefault(view, len(filled))
    content = {
        "controls": views["controls"],
        "left_out": views["left_out"],
        "texts": list(texts),
        "views": list(filled),
        "stops": stops,
    }
    plain = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(plain.encode(), level=9)).decode()
    return packed if len(packed) <= MAX_PACKED else None


def unpack(packed: str) -> Views:
    """The views that were packed."""
    content = json.loads(zlib.decompress(base64.b64decode(packed)))

    def html(view: int) -> str:
        text, numbers = content["views"][view]
        parts = content["texts"][text]
        return "".join(map("".join, zip(parts, [*numbers.split(), ""], strict=True)))

    return Views(
        controls=content["controls"],
        views={stop: html(view) for stop, view in content["stops"].items()},
        left_out=content["left_out"],
    )
