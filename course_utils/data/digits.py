"""Handwritten digits as tokens: the images and their patches.

The images are the 1,797 digits of 8 by 8 pixels that come with scikit-learn. Cut into patches of
2 by 2 pixels, a digit is a sequence of 16 tokens with 4 features each.

Source: Alpaydin and Kaynak, 1998, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository; Dosovitskiy et al., 2021, "An Image is Worth 16x16 Words", for the patches.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_utils.arguments import require_patch_size, require_rank

TEST_SIZE = 360  # of the 1,797 images, about a fifth


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
    require_rank("images", images, "(N, height, width)", 3)
    size = require_patch_size("size", size, images.shape)
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
    require_rank("patches", patches, "(N, patches, pixels)", 3)
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
    require_rank("weights", weights, "(N, H, L_q, 1 + patches)", 4)
    grid = _side(
        "weights must have one key for [CLS] and a square of patches", weights.shape[3] - 1
    )
    return weights[:, :, 0, 1:].unflatten(-1, (grid, grid))


# --- still pictures ------------------------------------------------------------------------------


# --- the explorer --------------------------------------------------------------------------------


# --- arguments and parts -------------------------------------------------------------------------


def _side(rule: str, count: int) -> int:
    side = math.isqrt(max(count, 0))
    if side < 1 or side * side != count:
        raise ValueError(f"{rule}, such as 4, 9 or 16; got {count}")
    return side
