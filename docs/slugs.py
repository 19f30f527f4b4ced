"""Names of headings, as links inside the notebooks use them."""


def as_jupyterlab(heading: str) -> str:
    """The anchor that JupyterLab gives a heading."""
    return heading.replace(" ", "-")
