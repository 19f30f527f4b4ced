"""The report on a layer, and what to print of it."""

from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from course_utils.heatmaps import plot_heads


@dataclass(frozen=True)
class Report:
    """What a layer computes, as far as one call showed it.

    ``weights`` is (N, H, L_q, L_k) before dropout, or None. ``evidence`` has one line per
    departure: the step, what is usual and what came.
    """

    verdict: str  # "attention", "departs", "unknown"
    facts: dict[str, Any] = field(default_factory=dict)
    departures: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    first_difference: str | None = None
    weights: Tensor | None = None

    def expect(self, **facts: object) -> None:
        """Raise ``AssertionError`` if a fact differs, ``ValueError`` if there is no such fact."""
        for name, expected in facts.items():
            if name not in self.facts:
                raise ValueError(f"no fact is called {name!r}; there are {', '.join(self.facts)}")
            if self.facts[name] != expected:
                raise AssertionError(f"{name} is {self.facts[name]}, expected {expected}")

    def figure(self) -> Figure:
        """Draw the maps of the first sequence, one per head.

        Raises:
            ValueError: no weights were found.
        """
        if self.weights is None:
            raise ValueError("no attention weights were found in this call")
        return plot_heads(self.weights[0])

    def __str__(self) -> str:
        if self.weights is None:
            return f"unknown: nothing fits from the step {self.first_difference} on"
        f = self.facts
        kind = {True: "cross-attention", False: "self-attention", None: "attention"}[f["cross"]]
        heads = f"{f['num_heads']} heads of {f['head_dim']} features"
        if f["num_key_value_heads"] != f["num_heads"]:
            heads += f" sharing {f['num_key_value_heads']} key/value heads"
        lines = [("causal " if f["causal"] else "") + f"{kind}, {heads}"]
        scale = "unknown" if f["scale"] is None else f"{f['scale']:.4g}"
        lines.append(f"scale {scale}, rotary {f['rotary']}, weights {f['layout'] or 'unknown'}")
        lines += self.evidence
        if self.first_difference:
            lines.append(f"unknown from the step {self.first_difference} on")
        return "\n".join(lines)
