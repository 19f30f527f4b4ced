"""Renew the style sheet of views that JupyterLab serves: it shows them where no Python runs."""

from pathlib import Path

from course_utils.sliders.style import style_sheet

SHEET = Path(__file__).parent / "labextension" / "static" / "explorer.css"

if __name__ == "__main__":
    SHEET.write_text(style_sheet(), encoding="utf-8")
