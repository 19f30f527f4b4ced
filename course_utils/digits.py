"""Handwritten digits as tokens: the images, their patches, pictures of both, and an explorer.

The images are the 1,797 digits of 8 by 8 pixels that come with scikit-learn. Cut into patches of
2 by 2 pixels, a digit is a sequence of 16 tokens with 4 features each.

Source: Alpaydin and Kaynak, 1998, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository; Dosovitskiy et al., 2021, "An Image is Worth 16x16 Words", for the patches.
"""

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from course_utils.arguments import (
    count_of,
    divisors,
    require_names,
    require_numbers,
    require_weights,
    require_whole,
)
from course_utils.explorer import (
    Explorer,
    head_counts_of_still,
    html_table,
    make_slider,
    maps_side_by_side,
    shade_of,
    side_by_side,
    two_decimals,
    weight_bar,
)
from course_utils.heatmaps import CourseFigure, ramp

TEST_SIZE = 360  # of the 1,797 images, about a fifth
_PAPER, _INK = 255, 30  # grey levels of no ink and of full ink
_LOW = 0.05  # smaller weights get no colour, so that the eye goes to the others
_PLAIN = ("#ffffffbf", "#000000")  # background, a little transparent, and text of such a number


class Digits(NamedTuple):
    """Images (M, 8, 8) of ink from 0 to 1, and their labels (M,) from 0 to 9."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load_digits() -> Digits:
    """Load scikit-learn's digits, split into 1,437 to learn from and 360 to test with.

    The split is the same every time, and each digit has its share in both parts. The images come
    with scikit-learn; nothing is fetched.

    Returns:
        Images as float32 (M, 8, 8), 0 = paper and 1 = ink, and labels as int64 (M,).

    Raises:
        ImportError: scikit-learn is not installed.
    """
    try:
        from sklearn import datasets, model_selection
    except ImportError:
        raise ImportError(
            "the digits come with scikit-learn; install it with: pip install scikit-learn"
        ) from None
    digits = datasets.load_digits()
    train, test = model_selection.train_test_split(
        np.arange(len(digits.target)),
        test_size=TEST_SIZE,
        stratify=digits.target,
        random_state=0,
    )
    images = torch.tensor(digits.images / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    return Digits(images[train], labels[train], images[test], labels[test])


def cut_into_patches(images: Tensor, size: int) -> Tensor:
    """Cut images into squares, and lay the pixels of each square in a row.

    Args:
        images: (N, height, width).
        size: pixels along one side of a square; it divides height and width.

    Returns:
        (N, patches, size²). Patches run row by row over the image, and the pixels of a patch row by
        row over the patch.

    Raises:
        ValueError: images of another rank, or a size that does not divide both sides.
    """
    _check_rank("images", images, "(N, height, width)", 3)
    size = _check_size("size", size, images.shape)
    batch_size, height, width = images.shape
    # (N, grid row, pixel row, grid column, pixel column) -> (N, grid row, grid column, …)
    squares = images.reshape(batch_size, height // size, size, width // size, size)
    return squares.transpose(2, 3).flatten(3).flatten(1, 2)  # (N, patches, size²)


def join_patches(patches: Tensor) -> Tensor:
    """Put patches together to square images again; the inverse of ``cut_into_patches``.

    Args:
        patches: (N, grid², size²).

    Returns:
        (N, grid·size, grid·size).

    Raises:
        ValueError: patches of another rank, or numbers of patches or pixels that make no square.
    """
    _check_rank("patches", patches, "(N, patches, pixels)", 3)
    batch_size, count, pixels = patches.shape
    grid = _side("patches must be as many as make a square", count)
    size = _side("patches must have as many pixels as make a square", pixels)
    squares = patches.reshape(batch_size, grid, grid, size, size)
    return squares.transpose(2, 3).reshape(batch_size, grid * size, grid * size)


def cls_maps(weights: Tensor) -> Tensor:
    """The weights that the first token, [CLS], gives to the patches, as a grid for each head.

    Args:
        weights: (N, H, L_q, 1 + grid²), whose first query and first key are [CLS].

    Returns:
        (N, H, grid, grid). What [CLS] gives to itself is left out, so a map sums to 1 less that.

    Raises:
        ValueError: weights of another rank, or patches that make no square.
    """
    _check_rank("weights", weights, "(N, H, L_q, 1 + patches)", 4)
    grid = _side(
        "weights must have one key for [CLS] and a square of patches", weights.shape[3] - 1
    )
    return weights[:, :, 0, 1:].unflatten(-1, (grid, grid))


# --- still pictures ------------------------------------------------------------------------------


def plot_digits(
    images, *, titles: Sequence[str] | None = None, patch_size: int | None = None
) -> CourseFigure:
    """Draw images in a row, and where they are cut.

    Args:
        images: (M, height, width), ink from 0 to 1, at most eight.
        titles: one a picture; left out, none.
        patch_size: where given, lines along the cuts and the number of each patch.

    Returns:
        A closed figure with M axes.

    Raises:
        ValueError: images of another rank or too many, titles of another number, or a patch_size
            that does not divide both sides.
    """
    images = _check_images(images)
    titles = _check_titles(titles, len(images))
    if patch_size is not None:
        patch_size = _check_size("patch_size", patch_size, images.shape)
    figure, panels = _panels(len(images))
    for axes, image, title in zip(panels, images, titles, strict=True):
        _draw_digit(axes, image, title)
        if patch_size:
            columns = image.shape[1] // patch_size
            for row, column in np.ndindex(image.shape[0] // patch_size, columns):
                corner = (column * patch_size - 0.5, row * patch_size - 0.5)
                _outline(axes, corner, patch_size, "#0072b2", 1.2)
                _pill(axes, corner, patch_size, str(row * columns + column), *_PLAIN)
    cut = f", cut into patches of {patch_size} by {patch_size} pixels" if patch_size else ""
    named = f": {', '.join(filter(None, titles))}" if any(titles) else ""
    figure.alt = f"{len(images)} of the digits{cut}{named}"
    return figure


def plot_over_digit(
    images, maps, *, titles: Sequence[str] | None = None, alt: str | None = None
) -> CourseFigure:
    """Lay maps of weights over digits: a number on each patch, a frame on the most watched one.

    Args:
        images: (8, 8), one for all maps, or (M, 8, 8); ink from 0 to 1.
        maps: (M, grid, grid) weights of the patches, from 0 to 1; at most eight.
        titles: one a map; left out, "head 0", "head 1" and so on.
        alt: the picture in words, where its exact numbers should not stand in them.

    Returns:
        A closed figure with M axes, at most four a row.

    Raises:
        ValueError: images or maps that do not fit together, or titles of another number.
    """
    maps = require_weights(maps, "(M, grid, grid)")
    images = _check_images(images if np.ndim(images) == 3 else [images] * len(maps))
    if len(images) != len(maps):
        raise ValueError(
            f"images must be one, or one a map; got {len(images)} for {len(maps)} maps"
        )
    height, grid = images.shape[1], maps.shape[1]
    if images.shape[2] != height or maps.shape[2] != grid or height % grid:
        raise ValueError(
            f"maps must be a square grid that divides the image; got {maps.shape[1:]} for an image "
            f"of {images.shape[1:]}"
        )
    if maps.max() > 1 + 1e-6:
        raise ValueError(f"maps must be weights from 0 to 1, got {maps.max():.2f}")
    if titles is None:
        titles = [f"head {head}" for head in range(len(maps))]
    titles = _check_titles(titles, len(maps))
    size = height // grid
    figure, panels = _panels(len(maps))
    described = []
    for axes, image, weights, title in zip(panels, images, maps, titles, strict=True):
        _draw_digit(axes, image, title)
        for (row, column), weight in np.ndenumerate(weights):
            back, text = ramp(101)[shade_of(weight)] if weight >= _LOW else _PLAIN
            corner = (column * size - 0.5, row * size - 0.5)
            _pill(axes, corner, size, two_decimals(weight), back, text)
        row, column = np.unravel_index(weights.argmax(), weights.shape)
        _outline(axes, (column * size - 0.5, row * size - 0.5), size, "#d55e00", 3)
        described.append(
            f"{title}: most on row {row}, column {column}, {two_decimals(weights.max())}"
        )
    figure.alt = alt or f"weights laid over a digit; {'; '.join(described)}"
    return figure


def plot_runs(
    groups: Mapping[str, Sequence[float]], *, x_label: str, alt: str | None = None
) -> CourseFigure:
    """Draw shares from 0 to 1 of several groups, one line a group and one mark a run.

    Args:
        groups: name to its numbers, one a run.
        x_label: what the numbers are.
        alt: the picture in words, where its exact numbers should not stand in them.

    Returns:
        A closed figure with one axes.

    Raises:
        ValueError: no group, or numbers that do not lie between 0 and 1.
    """
    if not groups:
        raise ValueError("groups must hold at least one name with its numbers")
    figure = CourseFigure(figsize=(7, 0.9 + 0.34 * len(groups)))
    axes = figure.subplots()
    for line, (name, values) in enumerate(groups.items()):
        values = require_numbers(f"groups[{name!r}]", values, "one a run")
        if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
            came = reprlib.repr(values.tolist())
            raise ValueError(f"groups[{name!r}] must be numbers from 0 to 1, got {came}")
        axes.plot([min(values), max(values)], [line, line], color="#555555", linewidth=1)
        axes.plot(values, [line] * len(values), "o", color="#0072b2", mfc="none", mew=1.5)
        axes.annotate(
            two_decimals(sum(values) / len(values)),
            (1.0, line),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set(xlim=(-0.02, 1.02), ylim=(len(groups) - 0.4, -0.6), xlabel=x_label)
    axes.set_title("mean", loc="right", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    figure.alt = alt or "; ".join(
        f"{name}: {two_decimals(min(values))} to {two_decimals(max(values))}"
        for name, values in groups.items()
    )
    return figure


# --- the explorer --------------------------------------------------------------------------------


def explore_digits(
    models: Mapping[int, Callable[[Tensor], tuple[Tensor, Tensor]]],
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
        labels: (M,), what they are.
        num_heads: where the slider stands at first; left out, at the first model.

    Returns:
        An explorer with the controls ``num_heads`` and ``image`` (a position); its state holds
        ``weights`` (nested lists, (H, 4, 4)), ``cls_weights`` (what [CLS] gives to itself, one a
        head), ``pixels`` (8, 8), ``label``, ``prediction``, ``probabilities`` (ten) and ``right``.

    Raises:
        ValueError: no model, images and labels that do not fit, a num_heads without model, or a
            model that returns other shapes.
    """
    if not isinstance(models, Mapping) or not models:
        raise ValueError("models must be a dict from head count to model, with at least one")
    models = {require_whole("a key of models", count): model for count, model in models.items()}
    _check_rank("images", images, "(M, 8, 8)", 3)
    if len(images) == 0 or images.shape[1:] != (8, 8):
        raise ValueError(f"images must be (M, 8, 8) with M at least 1, got {tuple(images.shape)}")
    if not np.isfinite(require_numbers("images", images, "ink from 0 to 1")).all():
        raise ValueError("images must be finite, ink from 0 to 1; got NaN or infinity")
    labels = require_numbers("labels", labels, "one digit an image")
    if labels.shape != images.shape[:1] or not np.isin(labels, range(10)).all():
        raise ValueError(
            f"labels must be one digit an image, from 0 to 9; got {labels.size} for {len(images)}: "
            f"{reprlib.repr(labels.tolist())}"
        )
    labels = labels.astype(int).tolist()
    first = next(iter(models)) if num_heads is None else require_whole("num_heads", num_heads)
    if first not in models:
        raise ValueError(f"num_heads={first} has no model; there are {', '.join(map(str, models))}")
    images = images.clone()
    shown = {}
    with torch.no_grad():
        for count, model in models.items():
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
                raise ValueError(
                    f"models[{count}] must return finite scores, and weights from 0 to 1"
                )
            shown[count] = torch.softmax(scores, -1), cls_maps(weights), weights[:, :, 0, 0]

    def compute(num_heads: int, image: int) -> dict:
        probabilities, maps, own = (x[image] for x in shown[num_heads])
        prediction = int(probabilities.argmax())
        return {
            "num_heads": num_heads,
            "image": image,
            "label": labels[image],
            "prediction": prediction,
            "right": prediction == labels[image],
            "probabilities": probabilities.tolist(),
            "weights": maps.tolist(),
            "cls_weights": own.tolist(),
            "pixels": images[image].tolist(),
        }

    def view(state: dict) -> str:
        verdict = "✓ right" if state["right"] else f"✗ wrong, it is {_named(state['label'])}"
        rows = [[str(d), weight_bar(p)] for d, p in enumerate(state["probabilities"])]
        return side_by_side(
            html_table(
                f"the model says {state['prediction']}<br>{verdict}", ["digit", "probability"], rows
            ),
            *(
                _digit_table(state["pixels"], weights, f"head {head}, [CLS] itself {own:.2f}")
                for head, (weights, own) in enumerate(
                    zip(state["weights"], state["cls_weights"], strict=True)
                )
            ),
        )

    def describe(state: dict) -> str:
        # No weights here: what was trained differs a little from machine to machine.
        verdict = "right" if state["right"] else f"wrong, it is {_named(state['label'])}"
        heads = count_of(state["num_heads"], "head")
        return f"{heads} on image {state['image']}: the model says {state['prediction']}, {verdict}"

    def draw(state: dict) -> CourseFigure:
        return plot_over_digit(state["pixels"], state["weights"], alt=describe(state))

    def still(state: dict) -> CourseFigure:
        """The image in the smallest head counts."""
        counts = head_counts_of_still(models, state["num_heads"])
        states = [compute(count, state["image"]) for count in counts]
        maps, names = maps_side_by_side(states)
        alt = "; ".join(map(describe, states))
        return plot_over_digit(state["pixels"], maps, titles=names, alt=alt)

    names = [(f"{i}: {_named(label)}", i) for i, label in enumerate(labels)]
    return Explorer(
        {
            "num_heads": make_slider("heads H", list(models), first),
            "image": make_slider("image", names, 0),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )


# --- arguments and parts -------------------------------------------------------------------------


def _check_rank(name: str, x: Tensor, axes: str, ndim: int) -> None:
    if not isinstance(x, Tensor) or x.ndim != ndim:
        came = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"{name} must be a tensor {axes}, got {came}")


def _side(rule: str, count: int) -> int:
    side = math.isqrt(max(count, 0))
    if side < 1 or side * side != count:
        raise ValueError(f"{rule}, such as 4, 9 or 16; got {count}")
    return side


def _check_images(images) -> np.ndarray:
    images = require_numbers("images", images, "(M, height, width)")
    if images.ndim != 3 or not 1 <= len(images) <= 8:
        raise ValueError(f"images must be one to eight, (M, height, width); got {images.shape}")
    return images


def _check_size(name: str, size: int, shape: Sequence[int]) -> int:
    size, (_, height, width) = require_whole(name, size), shape
    if height % size or width % size:
        ways_out = ", ".join(map(str, divisors(math.gcd(height, width))))
        raise ValueError(
            f"{name}={size} does not divide images of {height} by {width}; try {ways_out}"
        )
    return size


def _check_titles(titles: Sequence[str] | None, wanted: int) -> list[str]:
    return (
        [""] * wanted
        if titles is None
        else require_names("titles", titles, wanted, "one a picture")
    )


def _named(digit: int) -> str:
    return f"an {digit}" if digit == 8 else f"a {digit}"


def _panels(count: int) -> tuple[CourseFigure, list]:
    per_row = min(count, 4)
    rows = math.ceil(count / per_row)
    figure = CourseFigure(figsize=(2.25 * per_row, 2.5 * rows))
    panels = list(figure.subplots(rows, per_row, squeeze=False).flat)
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def _draw_digit(axes, image: np.ndarray, title: str) -> None:
    grey = (_PAPER - (_PAPER - _INK) * image.clip(0, 1)) / 255
    axes.imshow(grey, cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=10, parse_math=False)


def _outline(axes, corner: tuple[float, float], size: int, colour: str, width: float) -> None:
    axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=colour, linewidth=width))


def _pill(axes, corner: tuple[float, float], size: int, text: str, back: str, colour: str) -> None:
    axes.text(
        corner[0] + size / 2,
        corner[1] + size / 2,
        text,
        ha="center",
        va="center",
        fontsize=8,
        color=colour,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": back, "edgecolor": "none"},
        in_layout=False,
    )


def _digit_table(pixels: list, weights: list, caption: str) -> str:
    """A digit, pixel by pixel, with the weight of each patch as a number in its middle."""
    size = len(pixels) // len(weights)
    lines = []
    for row, line in enumerate(pixels):
        cells = []
        for column, ink in enumerate(line):
            grey = round(_PAPER - (_PAPER - _INK) * min(max(ink, 0), 1))
            edges = " ac-top" * (row % size == 0) + " ac-left" * (column % size == 0)
            number = ""
            if row % size == column % size == 0:
                weight = weights[row // size][column // size]
                colour = f"ac-w{shade_of(weight)}" if weight >= _LOW else "ac-low"
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
