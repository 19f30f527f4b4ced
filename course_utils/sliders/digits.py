"""Explore where the heads of an image model look."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_utils.arguments import count_of, require_numbers, require_rank, require_whole
from course_utils.data.digits import cls_maps, cut_into_patches
from course_utils.heatmaps.colours import shade_of
from course_utils.heatmaps.digits import INK, LOW, PAPER, plot_over_digit
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import two_decimals
from course_utils.sliders.controls import make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.stills import head_counts_of_still, maps_side_by_side
from course_utils.sliders.tables import html_table, side_by_side, weight_bar

Models = Mapping[int, Callable[[Tensor], tuple[Tensor, Tensor]]]


PROBABILITIES, DIGIT = 280, 190  # the height of that table, and of a digit, in pixels
BESIDE = 4  # digits that stand beside the probabilities; others are below


def explore_digits(
    models: Models,
    images: Tensor,
    labels: Tensor,
    *,
    num_heads: int | None = None,
) -> Explorer:
    """Choose a head count and an image; see each head's map over it, and what the model says.

    Args:
        models: head count H to a model that takes patches (N, 16, 4) and returns scores (N, 10)
            and weights (N, H, L_q, 17), whose first query and key are [CLS].
        images: (M, 8, 8), ink from 0 to 1.
        labels: (M,), the digits that they show.
        num_heads: where the slider starts; left out, at the first model.

    Returns:
        An explorer with the controls ``num_heads`` and ``image`` (a position). Its state holds
        ``weights`` (nested lists, (H, 4, 4)), ``cls_weights`` (what [CLS] gives to itself, one
        number per head), ``pixels`` (8, 8), ``label``, ``prediction``, ``probabilities`` (ten) and
        ``right``.

    Raises:
        ValueError: no model, images and labels that do not fit, a num_heads without model, or a
            model that returns other shapes.
    """
    if not isinstance(models, Mapping) or not models:
        raise ValueError("models must be a dict from head count to model, with at least one")
    models = {require_whole("a key of models", count): model for count, model in models.items()}
    _require_images(images)
    labels = _require_labels(labels, len(images))
    first = next(iter(models)) if num_heads is None else require_whole("num_heads", num_heads)
    if first not in models:
        raise ValueError(f"num_heads={first} has no model; there are {', '.join(map(str, models))}")
    images = images.clone()
    shown = _Digits(images, labels, {h: _ask(h, model, images) for h, model in models.items()})
    stops = [(f"{i}: {_named(label)}", i) for i, label in enumerate(labels)]
    return Explorer(
        {
            "num_heads": make_slider("heads H", list(models), first),
            "image": make_slider("image", stops, 0),
        },
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
    )


def _require_images(images: Tensor) -> None:
    require_rank("images", images, "(M, 8, 8)", 3)
    if len(images) == 0 or images.shape[1:] != (8, 8):
        raise ValueError(f"images must be (M, 8, 8) with M at least 1, got {tuple(images.shape)}")
    if not np.isfinite(require_numbers("images", images, "ink from 0 to 1")).all():
        raise ValueError("images must be finite, ink from 0 to 1; got NaN or infinity")


def _require_labels(labels: Tensor, wanted: int) -> list[int]:
    labels = require_numbers("labels", labels, "one digit per image")
    if labels.shape != (wanted,) or not np.isin(labels, range(10)).all():
        raise ValueError(
            f"labels must be one digit per image, from 0 to 9; got {labels.size} for {wanted}: "
            f"{reprlib.repr(labels.tolist())}"
        )
    return labels.astype(int).tolist()


class _Answer(NamedTuple):
    """What a model says about all images, and where its [CLS] looks."""

    probabilities: Tensor  # (M, 10)
    maps: Tensor  # (M, H, 4, 4), weights of the patches
    cls_weights: Tensor  # (M, H), what [CLS] gives to itself


def _ask(count: int, model: Callable[[Tensor], tuple[Tensor, Tensor]], images: Tensor) -> _Answer:
    with torch.no_grad():
        scores, weights = model(cut_into_patches(images, 2))
    if (
        scores.shape != (len(images), 10)
        or weights.shape[:2] != (len(images), count)
        or weights.shape[3:] != (17,)
    ):
        raise ValueError(
            f"models[{count}] must return scores ({len(images)}, 10) and weights "
            f"({len(images)}, {count}, L_q, 17); got {tuple(scores.shape)} and "
            f"{tuple(weights.shape)}"
        )
    if not (scores.isfinite().all() and ((weights >= 0) & (weights <= 1 + 1e-6)).all()):
        raise ValueError(f"models[{count}] must return finite scores, and weights from 0 to 1")
    return _Answer(torch.softmax(scores, -1), cls_maps(weights), weights[:, :, 0, 0])


@dataclass(frozen=True)
class _Digits:
    """Images, and what a model of each head count says about them."""

    images: Tensor  # (M, 8, 8)
    labels: list[int]
    answers: dict[int, _Answer]  # by head count

    def compute(self, num_heads: int, image: int) -> dict:
        probabilities, maps, cls_weights = (x[image] for x in self.answers[num_heads])
        prediction = int(probabilities.argmax())
        return {
            "num_heads": num_heads,
            "image": image,
            "label": self.labels[image],
            "prediction": prediction,
            "right": prediction == self.labels[image],
            "probabilities": probabilities.tolist(),
            "weights": maps.tolist(),
            "cls_weights": cls_weights.tolist(),
            "pixels": self.images[image].tolist(),
        }

    def view(self, state: dict) -> str:
        verdict = "✓ right" if state["right"] else f"✗ wrong, it is {_named(state['label'])}"
        rows = [[str(d), weight_bar(p)] for d, p in enumerate(state["probabilities"])]
        return side_by_side(
            html_table(
                f"the model says {state['prediction']}<br/>{verdict}",
                ["digit", "probability"],
                rows,
            ),
            *(
                _digit_table(state["pixels"], weights, f"head {head}, [CLS] itself {own:.2f}")
                for head, (weights, own) in enumerate(
                    zip(state["weights"], state["cls_weights"], strict=True)
                )
            ),
            height=PROBABILITIES + DIGIT * (max(self.answers) > BESIDE),
        )

    def draw(self, state: dict) -> CourseFigure:
        return plot_over_digit(state["pixels"], state["weights"], alt=self.describe(state))

    def describe(self, state: dict) -> str:
        # No weights here, because training differs a little from machine to machine.
        verdict = "right" if state["right"] else f"wrong, it is {_named(state['label'])}"
        heads = count_of(state["num_heads"], "head")
        return f"{heads} on image {state['image']}: the model says {state['prediction']}, {verdict}"

    def still(self, state: dict) -> CourseFigure:
        """The image in the smallest head counts."""
        counts = head_counts_of_still(self.answers, state["num_heads"])
        states = [self.compute(count, state["image"]) for count in counts]
        maps, names = maps_side_by_side(states)
        alt = "; ".join(map(self.describe, states))
        return plot_over_digit(state["pixels"], maps, titles=names, alt=alt)


def _named(digit: int) -> str:
    return f"an {digit}" if digit == 8 else f"a {digit}"


def _digit_table(pixels: list, weights: list, caption: str) -> str:
    """Draw a digit pixel by pixel, with the weight of each patch as a number in its middle."""
    size = len(pixels) // len(weights)
    lines = []
    for row, line in enumerate(pixels):
        cells = []
        for column, ink in enumerate(line):
            grey = round(PAPER - (PAPER - INK) * min(max(ink, 0), 1))
            edges = " ac-top" * (row % size == 0) + " ac-left" * (column % size == 0)
            number = ""
            if row % size == column % size == 0:
                weight = weights[row // size][column // size]
                colour = f"ac-w{shade_of(weight)}" if weight >= LOW else "ac-low"
                number = (
                    f'<span class="{colour}" style="left:{50 * size}%;top:{50 * size}%">'
                    f"{two_decimals(weight)}</span>"
                )
            cells.append(
                f'<td class="{edges.strip()}" style="background:rgb({grey},{grey},{grey})">'
                f"{number}</td>"
            )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<table class="ac ac-digit"><caption>{caption}</caption>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )
