"""One solution for each exercise, with a switch for each mistake; no line of it is the course's."""

from course_utils.exercises.search import Mistake
from solutions.attention import ATTENTION, LAYER, MERGE, SPLIT
from solutions.cost import COST
from solutions.images import MAPS, PATCHES, PLACES
from solutions.language_model import CACHED, GROUPED, ROTATION
from solutions.maps import BLOCK, PREVIOUS
from solutions.masks import CROSS, MASK
from solutions.one_head import PROJECTION, REMOVAL
from solutions.parameters import COPY, PERMUTE
from solutions.scale import NORMS, SCALE
from solutions.sentences import POOL
from solutions.solution import Solution

SOLUTIONS: dict[str, Solution] = {
    solution.exercise.name: solution
    for solution in (
        *(SPLIT, MERGE, ATTENTION, LAYER),
        *(SCALE, NORMS, PROJECTION, REMOVAL, COPY, PERMUTE, BLOCK, PREVIOUS, MASK, CROSS, COST),
        *(POOL, PATCHES, PLACES, MAPS, GROUPED, CACHED, ROTATION),
    )
}


def all_mistakes() -> list[Mistake]:
    """Return every known mistake once, though several exercises may share it."""
    mistakes = [m for s in SOLUTIONS.values() for m in s.exercise.all_mistakes]
    return list({mistake.id: mistake for mistake in mistakes}.values())
