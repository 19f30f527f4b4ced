"""Draw the moving picture that the README opens with: ``python tools/moving.py``.

A plain SVG image, which plays wherever images are shown: styles and numbers stand in the file, and
there are no scripts. Readers who asked for less motion see its first part.
"""

import re
from pathlib import Path

from course_utils.data.animal import load_animal
from course_utils.files import replace
from course_utils.heatmaps.colours import palette
from course_utils.pictures.sentence import sentence_lines
from course_utils.pictures.shapes import Picture, Text
from course_utils.pictures.svg import picture_html, picture_style

FILE = Path(__file__).parent.parent / ".github" / "moving.svg"
SECONDS = 3.5  # that each part is shown
TOP = 40  # for the line above the picture

NAME = (
    "A sentence, and lines from one word to the words that a head looks at, as thick as its "
    "weights. With another word in the sentence, or another query, the lines go elsewhere."
)


def moving() -> str:
    """The picture as SVG: three parts, one after the other."""
    tired, wide = load_animal()
    it, cross = (tired.tokens.index(word) for word in ("it", "cross"))
    shown = [(tired, it, "too tired"), (wide, it, "too wide"), (tired, cross, "too tired")]
    parts = []
    for sentence, query, said in shown:
        picture = sentence_lines(sentence.tokens, query, [sentence.weights[query]])
        title = f"Where does “{sentence.tokens[query]}” look? … because it was {said}."
        parts.append((picture, Text(x=2, y=-18, text=title, size=16, bold=True, anchor="start")))
    width = max(picture.width for picture, _ in parts)
    height = max(picture.height for picture, _ in parts) + TOP
    slides = "".join(
        f'<g class="slide" style="animation-delay:{SECONDS * i:g}s">{_inside(*part)}</g>'
        for i, part in enumerate(parts)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ac-pic" role="img" viewBox="0 {-TOP} '
        f'{width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" font-size="14" '
        f'text-anchor="middle"><title>{NAME}</title><style>{_style(len(parts))}</style>'
        f"{slides}</svg>\n"
    )


def _inside(picture: Picture, title: Text) -> str:
    still = Picture(picture.width, picture.height, (title, *picture.shapes))
    inside = re.search(r"<svg[^>]*>(.*)</svg>", picture_html(still, "")).group(1)
    # A shape that comes in does so once, and each part is shown again and again.
    return re.sub(r"\bac-(draw|fade|wait-\d+) ?", "", inside)


def _style(parts: int) -> str:
    dark = "".join(f"--ac-{name}:{colour};" for name, colour in palette("dark").items())
    end = 100 / parts
    return (
        f"{picture_style()}"
        "svg{font-family:sans-serif;fill:var(--ac-ink)}"
        f"@media (prefers-color-scheme:dark){{.ac-pic{{{dark}}}}}"
        ".slide:not(:nth-of-type(1)){opacity:0}"
        "@media (prefers-reduced-motion:no-preference){.slide{opacity:0;"
        f"animation:turn {parts * SECONDS:g}s infinite}}}}"
        f"@keyframes turn{{0%{{opacity:0}}2%,{end - 2:.1f}%{{opacity:1}}"
        f"{end:.1f}%,to{{opacity:0}}}}"
    )


if __name__ == "__main__":
    replace(FILE, moving().encode())
