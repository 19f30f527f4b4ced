"""What build.py asks the kernel of a lesson for: the views of its explorers."""

import json
from collections.abc import Mapping

from course_utils.sliders import Explorer


def print_views(results: Mapping[int, object], limit: int) -> None:
    """Print the views of every explorer as JSON, by the execution count of the cell that shows it.

    Args:
        results: execution count to what the cell showed: IPython's ``Out``.
        limit: how many characters of HTML the views of one explorer may have; one with more is
            left out.
    """
    views = {
        number: result.views(limit)
        for number, result in results.items()
        if isinstance(result, Explorer)
    }
    print(json.dumps({number: found for number, found in views.items() if found}))
