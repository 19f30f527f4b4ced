"""Explorers: sliders over a live view of attention."""

from course_utils.sliders.average import explore_average
from course_utils.sliders.block import explore_block
from course_utils.sliders.blocks import explore_blocks
from course_utils.sliders.controls import head_count_slider
from course_utils.sliders.digits import explore_digits
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.head_counts import explore_head_counts
from course_utils.sliders.heads import explore_heads
from course_utils.sliders.lines import explore_animal, explore_lines
from course_utils.sliders.masks import explore_masks
from course_utils.sliders.mixture import explore_mixture
from course_utils.sliders.query import explore_query
from course_utils.sliders.scale import explore_scale
from course_utils.sliders.sentence import explore_sentence
from course_utils.sliders.shared_heads import explore_shared_heads
from course_utils.sliders.split import explore_split
from course_utils.sliders.views import Views
from course_utils.sliders.whole_layer import explore_layer

__all__ = [
    "Explorer",
    "Views",
    "explore_animal",
    "explore_average",
    "explore_block",
    "explore_blocks",
    "explore_digits",
    "explore_head_counts",
    "explore_heads",
    "explore_layer",
    "explore_lines",
    "explore_masks",
    "explore_mixture",
    "explore_query",
    "explore_scale",
    "explore_sentence",
    "explore_shared_heads",
    "explore_split",
    "head_count_slider",
]
