"""Several stops of an explorer side by side, for the picture that is stored with a notebook."""

from collections.abc import Iterable

MAX_STILL_MAPS = 8  # maps in the picture that is stored with a notebook


def head_counts_of_still(counts: Iterable[int], shown: int) -> list[int]:
    """Return the head count shown, and the smallest others whose maps fit into the same picture."""
    chosen = [shown]
    for num_heads in sorted(set(counts) - {shown}):
        if sum(chosen) + num_heads > MAX_STILL_MAPS:
            break
        chosen.append(num_heads)
    return sorted(chosen)


def maps_side_by_side(states: Iterable[dict]) -> tuple[list, list[str]]:
    """Return the maps of several head counts in one list, and a name for each map."""
    named = [
        (weights, f"H = {state['num_heads']}, head {head}")
        for state in states
        for head, weights in enumerate(state["weights"])
    ]
    return [weights for weights, _ in named], [name for _, name in named]
