"""Choose a head count and see what trained layers can do with it."""

import reprlib
from collections.abc import Mapping, Sequence
from html import escape

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
from course_utils.sliders.tables import facts_table, heat_tables, html_table, side_by_side


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
        maps: task to head count to what one query gives each key, (S, H, L): every seed's heads.
        embed_dim: D; every head count must divide it.
        keys: task to L names; left out, the positions.

    Returns:
        An explorer with the controls ``num_heads`` (the head counts that were trained) and
        ``seed``; its state holds ``head_dim``, ``rank_bound`` (of a head's QKᵀ), ``stored_weights``
        (of one sample and query, H·L, by task), ``accuracies`` (task to one number a seed) and
        ``maps`` (task to (H, L), of the seed chosen).

    Raises:
        ValueError: no task, tasks that differ between the arguments or in their head counts, a
            head count that does not divide embed_dim, or accuracies and maps of another shape.
    """
    embed_dim = require_whole("embed_dim", embed_dim)
    for name, given in (("accuracies", accuracies), ("maps", maps)):
        if (
            not isinstance(given, Mapping)
            or not given
            or not all(isinstance(by_count, Mapping) and by_count for by_count in given.values())
        ):
            raise ValueError(
                f"{name} must hold at least one task, and for it one head count or more"
            )
        counts = list(next(iter(accuracies.values())))
        if list(given) != list(accuracies):
            raise ValueError(f"{name} must have the tasks {list(accuracies)}, got {list(given)}")
        for task, by_count in given.items():
            require_text(f"each task in {name}", task)
            if list(by_count) != counts:
                raise ValueError(
                    f"{name}[{task!r}] must have the head counts {counts}, got {list(by_count)}"
                )
    if keys is not None and not isinstance(keys, Mapping):
        raise ValueError(f"keys must be a dict, task to names, got {reprlib.repr(keys)}")
    for num_heads in counts:
        require_num_heads(embed_dim, num_heads)
    accuracies = {
        task: {
            h: require_numbers(f"accuracies[{task!r}][{h}]", by_count[h], "one a seed")
            for h in counts
        }
        for task, by_count in accuracies.items()
    }
    maps = {
        task: {h: require_weights(by_count[h], "(S, H, L)", f"maps[{task!r}][{h}]") for h in counts}
        for task, by_count in maps.items()
    }
    seeds = max(1, next(iter(accuracies.values()))[counts[0]].size)
    names = {}
    for task in accuracies:
        length = maps[task][counts[0]].shape[-1]
        names[task] = names_or_numbers((keys or {}).get(task), length, f"keys[{task!r}]")
        for h in counts:
            own = accuracies[task][h]
            if own.shape != (seeds,) or not ((own >= 0) & (own <= 1)).all():
                raise ValueError(
                    f"accuracies[{task!r}][{h}] must be {seeds} numbers from 0 to 1, one a seed; "
                    f"got {reprlib.repr(own.tolist())}"
                )
            if maps[task][h].shape != (seeds, h, length):
                raise ValueError(
                    f"maps[{task!r}][{h}] must be (S, H, L) = {(seeds, h, length)}, "
                    f"got shape {maps[task][h].shape}"
                )
    accuracies, maps = (
        {task: {h: by_count[h].tolist() for h in counts} for task, by_count in given.items()}
        for given in (accuracies, maps)
    )

    shown = {task: visible_token(task) for task in accuracies}

    def compute(num_heads: int, seed: int) -> dict:
        return {
            "num_heads": num_heads,
            "seed": seed,
            "head_dim": embed_dim // num_heads,
            "rank_bound": embed_dim // num_heads,
            "stored_weights": {task: num_heads * len(names[task]) for task in maps},
            "accuracies": {task: accuracies[task][num_heads] for task in accuracies},
            "maps": {task: maps[task][num_heads][seed] for task in maps},
        }

    def view(state: dict) -> str:
        heads = [f"head {head}" for head in range(state["num_heads"])]
        facts = [
            [
                "width of a head, d_h",
                f"{embed_dim} / {state['num_heads']} = {state['head_dim']}",
            ],
            ["rank of a head's QKᵀ", f"at most {state['rank_bound']}"],
            *(
                [
                    f"stored weights, {escape(shown[task])}",
                    f"{state['num_heads']} · {len(names[task])} = {n}",
                ]
                for task, n in state["stored_weights"].items()
            ),
        ]
        table = [
            [
                escape(shown[task]),
                *map(two_decimals, (*all_seeds, sum(all_seeds) / seeds)),
                f"{min(all_seeds):.2f} to {max(all_seeds):.2f}",
            ]
            for task, all_seeds in state["accuracies"].items()
        ]
        head = ["", *(f"seed {seed}" for seed in range(seeds)), "mean", "spread"]
        return side_by_side(
            facts_table("the layer", facts), html_table("accuracy", head, table)
        ) + side_by_side(
            *(
                part
                for task, rows in state["maps"].items()
                for part in heat_tables(
                    [rows],
                    heads,
                    names[task],
                    [f"{shown[task]}, seed {state['seed']}: where each head looks"],
                    corner="head ↓ key →",
                )
            )
        )

    def draw(state: dict) -> CourseFigure:
        return plot_spread(
            counts,
            {task: [by_count[h] for h in counts] for task, by_count in accuracies.items()},
            x_label="heads H",
            y_label="accuracy",
            title=f"{seeds} seeds each, D = {embed_dim}",
            marked=state["num_heads"],
        )

    def describe(state: dict) -> str:
        return (
            f"H = {state['num_heads']}, d_h = {state['head_dim']}, rank of QKᵀ at most "
            f"{state['rank_bound']}; accuracies and maps for {', '.join(shown.values())}, "
            f"{count_of(seeds, 'seed')} each"
        )

    return Explorer(
        {
            "num_heads": make_slider("heads H", counts, counts[0]),
            "seed": make_slider("seed", range(seeds), 0),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
    )
