"""Helpers of the attention course: the reference layer, heatmaps and live explorers."""
