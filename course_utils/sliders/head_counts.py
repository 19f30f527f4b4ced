"""Choose a head count and see what trained layers can do with it."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from torch import Tensor

from course_utils.arguments import (
    count_of,
    names_or_numbers,
    require_num_heads,
    require_numbers,
    require_text,
    require_weights,
    require_whole,
)
from course_utils.heatmaps.curves import plot_spread
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import two_decimals, visible_token
from course_utils.sliders.controls import make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import (
    facts_table,
    heat_tables,
    html_table,
    maps_height,
    side_by_side,
)

_Measured = dict[str, dict[int, np.ndarray]]  # by task and head count


def explore_head_counts(
    accuracies: Mapping[str, Mapping[int, Sequence[float]]],
    maps: Mapping[str, Mapping[int, Tensor]],
    *,
    embed_dim: int,
    keys: Mapping[str, Sequence[str]] | None = None,
) -> Explorer:
    """Choose a head count and see what layers that were trained with it can do.

    Args:
        accuracies: task to head count to one accuracy from 0 to 1 for each seed.
        maps: task to head count to the weights that one query gives to the keys, (S, H, L): the
            heads of all S seeds.
        embed_dim: D; every head count must divide it.
        keys: task to L names; left out, the positions.

    Returns:
        An explorer with the controls ``num_heads`` (the head counts that were trained) and
        ``seed``. Its state holds ``head_dim``, ``rank_bound`` (of a head's QKᵀ), ``stored_weights``
        (of one sample and query, H·L, by task), ``accuracies`` (task to one number per seed) and
        ``maps`` (task to (H, L), of the seed chosen).

    Raises:
        ValueError: no task, tasks that differ between the arguments or in their head counts, a
            head count that does not divide embed_dim, or accuracies and maps of another shape.
    """
    embed_dim = require_whole("embed_dim", embed_dim)
    counts = _require_tasks(accuracies, maps)
    if keys is not None and not isinstance(keys, Mapping):
        raise ValueError(f"keys must be a dict, task to names, got {reprlib.repr(keys)}")
    for num_heads in counts:
        require_num_heads(embed_dim, num_heads)
    accuracies = _require_accuracies(accuracies, counts)
    seeds = len(next(iter(accuracies.values()))[counts[0]])
    maps = _require_maps(maps, counts, seeds)
    names = {
        task: names_or_numbers((keys or {}).get(task), own[counts[0]].shape[-1], f"keys[{task!r}]")
        for task, own in maps.items()
    }
    shown = _HeadCounts(embed_dim, counts, seeds, accuracies, maps, names)
    return Explorer(
        {
            "num_heads": make_slider("heads H", counts, counts[0]),
            "seed": make_slider("seed", range(seeds), 0),
        },
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
    )


def _require_tasks(accuracies: Mapping, maps: Mapping) -> list[int]:
    """Return the head counts, which must be the same for every task in both."""
    for name, given in (("accuracies", accuracies), ("maps", maps)):
        if not _is_filled(given) or not all(map(_is_filled, given.values())):
            raise ValueError(
                f"{name} must hold at least one task, and each task at least one head count"
            )
    counts = list(next(iter(accuracies.values())))
    for name, given in (("accuracies", accuracies), ("maps", maps)):
        if list(given) != list(accuracies):
            raise ValueError(f"{name} must have the tasks {list(accuracies)}, got {list(given)}")
        for task, by_count in given.items():
            require_text(f"each task in {name}", task)
            if list(by_count) != counts:
                raise ValueError(
                    f"{name}[{task!r}] must have the head counts {counts}, got {list(by_count)}"
                )
    return counts


def _is_filled(given: object) -> bool:
    return isinstance(given, Mapping) and len(given) > 0


def _require_accuracies(accuracies: Mapping, counts: Sequence[int]) -> _Measured:
    """Return accuracies as arrays (S,), if each has as many seeds as the first one."""
    seeds, checked = None, {}
    for task, by_count in accuracies.items():
        checked[task] = {}
        for h in counts:
            name = f"accuracies[{task!r}][{h}]"
            own = require_numbers(name, by_count[h], "one per seed")
            seeds = seeds or max(1, own.size)
            if own.shape != (seeds,) or not ((own >= 0) & (own <= 1)).all():
                raise ValueError(
                    f"{name} must be {seeds} numbers from 0 to 1, one per seed; "
                    f"got {reprlib.repr(own.tolist())}"
                )
            checked[task][h] = own
    return checked


def _require_maps(maps: Mapping, counts: Sequence[int], seeds: int) -> _Measured:
    """Return maps as arrays (S, H, L), if each task has one L."""
    checked = {}
    for task, by_count in maps.items():
        length, checked[task] = None, {}
        for h in counts:
            name = f"maps[{task!r}][{h}]"
            own = require_weights(by_count[h], "(S, H, L)", name)
            length = length or own.shape[-1]
            if own.shape != (seeds, h, length):
                raise ValueError(
                    f"{name} must be (S, H, L) = {(seeds, h, length)}, got shape {own.shape}"
                )
            checked[task][h] = own
    return checked


@dataclass(frozen=True)
class _HeadCounts:
    """What was measured on layers of one width, by task and head count."""

    embed_dim: int
    counts: list[int]  # the head counts that were trained
    seeds: int  # how many
    accuracies: _Measured  # (S,)
    maps: _Measured  # (S, H, L)
    names: dict[str, list[str]]  # of the L keys

    def compute(self, num_heads: int, seed: int) -> dict:
        head_dim = self.embed_dim // num_heads
        return {
            "num_heads": num_heads,
            "seed": seed,
            "head_dim": head_dim,
            "rank_bound": head_dim,
            "stored_weights": {task: num_heads * len(keys) for task, keys in self.names.items()},
            "accuracies": {task: own[num_heads].tolist() for task, own in self.accuracies.items()},
            "maps": {task: own[num_heads][seed].tolist() for task, own in self.maps.items()},
        }

    def view(self, state: dict) -> str:
        head = ["", *(f"seed {seed}" for seed in range(self.seeds)), "mean", "spread"]
        return side_by_side(
            facts_table("the layer", self.facts(state)),
            html_table("accuracy", head, self.accuracy_rows(state)),
        ) + side_by_side(
            *(
                table
                for task, weights in state["maps"].items()
                for table in heat_tables(
                    [weights],
                    [f"head {head}" for head in range(state["num_heads"])],
                    self.names[task],
                    [f"{visible_token(task)}, seed {state['seed']}: where each head looks"],
                    corner="head ↓ key →",
                    upright=True,
                )
            ),
            height=self.height,
        )

    @property
    def height(self) -> int:
        """Of the maps at the largest head count, so that the view is as high at all others."""
        most = [f"head {head}" for head in range(max(self.counts))]
        return max(maps_height(1, most, keys, upright=True) for keys in self.names.values())

    def facts(self, state: dict) -> list[list[str]]:
        num_heads, head_dim = state["num_heads"], state["head_dim"]
        return [
            ["width of a head, d_h", f"{self.embed_dim} / {num_heads} = {head_dim}"],
            ["rank of a head's QKᵀ", f"at most {state['rank_bound']}"],
            *(
                [
                    f"stored weights, {escape(visible_token(task))}",
                    f"{num_heads} · {len(self.names[task])} = {stored}",
                ]
                for task, stored in state["stored_weights"].items()
            ),
        ]

    def accuracy_rows(self, state: dict) -> list[list[str]]:
        return [
            [
                escape(visible_token(task)),
                *map(two_decimals, (*own, sum(own) / self.seeds)),
                f"{min(own):.2f} to {max(own):.2f}",
            ]
            for task, own in state["accuracies"].items()
        ]

    def draw(self, state: dict) -> CourseFigure:
        return plot_spread(
            self.counts,
            {task: list(by_count.values()) for task, by_count in self.accuracies.items()},
            x_label="heads H",
            y_label="accuracy",
            title=f"{self.seeds} seeds each, D = {self.embed_dim}",
            marked=state["num_heads"],
        )

    def describe(self, state: dict) -> str:
        return (
            f"H = {state['num_heads']}, d_h = {state['head_dim']}, rank of QKᵀ at most "
            f"{state['rank_bound']}; accuracies and maps for "
            f"{', '.join(map(visible_token, self.names))}, {count_of(self.seeds, 'seed')} each"
        )
