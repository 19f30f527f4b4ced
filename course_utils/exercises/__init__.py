"""Checks of the exercises: right, not attempted yet, or wrong and which mistake it was."""

from course_utils.exercises.attention import check_scaled_dot_product_attention
from course_utils.exercises.bug_hunt import check_repair
from course_utils.exercises.calling import CheckFailed
from course_utils.exercises.cls_maps import check_cls_maps
from course_utils.exercises.copy_weights import check_copy_weights
from course_utils.exercises.cost import check_layer_cost
from course_utils.exercises.cross_attention import check_cross_attention
from course_utils.exercises.from_lines import from_lines
from course_utils.exercises.heads import check_merge_heads, check_split_heads
from course_utils.exercises.language_model import (
    check_cached_attention,
    check_grouped_attention,
    check_rotary,
)
from course_utils.exercises.layer import check_multi_head_attention
from course_utils.exercises.maps import check_per_head_weights, check_previous_token
from course_utils.exercises.masks import check_attention_mask
from course_utils.exercises.one_head import check_head_projection, check_remove_head
from course_utils.exercises.one_row import check_one_row
from course_utils.exercises.patches import check_add_places, check_cut_into_patches
from course_utils.exercises.permute_heads import check_permute_heads
from course_utils.exercises.scale import check_attention_scale, check_gradient_norms
from course_utils.exercises.sentences import check_mean_pool

__all__ = [
    "CheckFailed",
    "check_add_places",
    "check_attention_mask",
    "check_attention_scale",
    "check_cached_attention",
    "check_cls_maps",
    "check_copy_weights",
    "check_cross_attention",
    "check_cut_into_patches",
    "check_gradient_norms",
    "check_grouped_attention",
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
    "check_rotary",
    "check_scaled_dot_product_attention",
    "check_split_heads",
    "from_lines",
]
