"""Where a layer departs from the textbook: an id, the step, and the two numbers that differ."""

import math
from typing import Any

import torch
from torch import Tensor


def find_departures(
    facts: dict[str, Any], owners: Tensor
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids of the departures, and one line of evidence for each.

    Args:
        facts: see ``read_facts``.
        owners: (H,), the first head that has the same keys as head h.
    """
    found = {}
    scale, head_dim = facts["scale"], facts["head_dim"]
    usual = 1 / math.sqrt(head_dim)
    if scale is not None and not math.isclose(scale, usual, rel_tol=1e-3):
        known = {
            "no-scale": 1,
            "scale-without-root": 1 / head_dim,
            "scale-by-embed-dim": 1 / math.sqrt(head_dim * facts["num_heads"]),
            "scale-multiplied": math.sqrt(head_dim),
        }
        fits = (k for k, x in known.items() if math.isclose(scale, x, rel_tol=1e-3))
        id_ = next(fits, "other-scale")
        found[id_] = f"scaled_scores: the scale is {scale:.4g}, usual is 1/√d_h = {usual:.4g}"
    shared = facts["num_key_value_heads"]
    if 1 < shared < len(owners) and torch.equal(owners, torch.arange(len(owners)) % shared):
        found["key-value-heads-tiled"] = (
            f"heads: head 1 uses key/value head 1, usual is {shared // len(owners)}"
        )
    return tuple(found), tuple(found.values())
