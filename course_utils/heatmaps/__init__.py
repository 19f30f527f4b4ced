"""Still figures of attention: data first, everything else by keyword."""

from course_utils.heatmaps.curves import plot_curves, plot_points, plot_spread
from course_utils.heatmaps.digits import plot_digits, plot_over_digit, plot_runs
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_attention, plot_heads
from course_utils.heatmaps.splits import plot_head_split

__all__ = [
    "CourseFigure",
    "plot_attention",
    "plot_curves",
    "plot_digits",
    "plot_head_split",
    "plot_heads",
    "plot_over_digit",
    "plot_points",
    "plot_runs",
    "plot_spread",
]
