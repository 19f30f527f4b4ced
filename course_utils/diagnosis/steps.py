"""Does what surrounds the scores hold too: the columns of a head, the mixing, the merge?"""

import torch
from torch import Tensor

from course_utils.diagnosis.facts import find_order, projected
from course_utils.diagnosis.roles import Site, Source, token_readings
from course_utils.diagnosis.watch import LINEAR, Call


def first_difference(
    site: Site,
    calls: list[Call],
    output: object,
    sources: dict[str, Source | None],
    scale: float | None,
) -> str | None:
    """The first step that is not as in the textbook, and that no departure explains; or None."""
    for name, source in sources.items():
        if source is None or not _side_by_side(source.columns):
            return name
    # Query and key are turned alike, and values not at all.
    if sources["key"].rotary != sources["query"].rotary:
        return "key"
    if sources["value"].rotary:
        return "value"
    if scale is None:
        return "scaled_scores"
    if not site.dropout and not torch.allclose(site.mixing, site.weights, atol=1e-6):
        return "weights"
    return None if _is_merged(site, calls, output, sources["query"]) else "merged"


def _side_by_side(columns: Tensor) -> bool:
    return bool((columns.diff(dim=1) == 1).all())


def _is_merged(site: Site, calls: list[Call], output: object, query: Source) -> bool:
    """Whether the heads stand side by side in what comes next: a projection, or the output."""
    order, batch_size = find_order(site, query)
    heads = (site.mixing @ site.value)[order].unflatten(0, (batch_size, -1))
    merged = heads.transpose(1, 2).flatten(2)  # (N, L, H·d_v)
    later = (projected(call) for call in calls[site.end + 1 :] if call.name in LINEAR)
    came = next(later, output[0] if isinstance(output, (tuple, list)) else output)
    if not isinstance(came, Tensor) or came.numel() != merged.numel():
        return False
    came = came.reshape(-1, merged.shape[-1])
    return any(
        tokens.shape == merged.shape and torch.allclose(tokens, merged, rtol=1e-4, atol=1e-5)
        for tokens in token_readings(came, merged.shape[1])
    )
