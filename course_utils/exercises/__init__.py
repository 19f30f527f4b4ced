"""Checks of the exercises: right, not attempted yet, or wrong and which mistake it was."""

from course_utils.exercises.bug_hunt import check_repair
from course_utils.exercises.core import (
    check_merge_heads,
    check_multi_head_attention,
    check_scaled_dot_product_attention,
    check_split_heads,
)
from course_utils.exercises.cost import check_layer_cost
from course_utils.exercises.from_lines import from_lines
from course_utils.exercises.images import check_add_places, check_cls_maps, check_cut_into_patches
from course_utils.exercises.maps import check_per_head_weights, check_previous_token
from course_utils.exercises.masks import check_attention_mask, check_cross_attention
from course_utils.exercises.one_head import check_head_projection, check_remove_head
from course_utils.exercises.one_row import check_one_row
from course_utils.exercises.scale import check_attention_scale, check_gradient_norms
from course_utils.exercises.sentences import check_mean_pool
from course_utils.exercises.trial import CheckFailed
from course_utils.exercises.weights import check_copy_weights, check_permute_heads

__all__ = [
    "CheckFailed",
    "check_add_places",
    "check_attention_mask",
    "check_attention_scale",
    "check_cls_maps",
    "check_copy_weights",
    "check_cross_attention",
    "check_cut_into_patches",
    "check_gradient_norms",
    "check_head_projection",
    "check_layer_cost",
    "check_mean_pool",
    "check_merge_heads",
    "check_multi_head_attention",
    "check_one_row",
    "check_per_head_weights",
    "check_permute_heads",
    "check_previous_token",
    "check_remove_head",
    "check_repair",
    "check_scaled_dot_product_attention",
    "check_split_heads",
    "from_lines",
]
