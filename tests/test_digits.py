"""The images, their patches, and pictures of both."""

import sys

import numpy as np
import pytest
import torch
from helpers import normal
from matplotlib.patches import Rectangle

from course_utils.data.digits import cls_maps, cut_into_patches, join_patches, load_digits
from course_utils.heatmaps import plot_digits, plot_over_digit, plot_runs


@pytest.fixture(scope="module")
def digits():
    return load_digits()


class TestLoad:
    def test_every_image_is_in_one_part(self, digits):
        from sklearn import datasets

        everything = torch.cat([digits.train_images, digits.test_images])
        assert everything.shape == (1797, 8, 8)
        assert everything.dtype == torch.float32
        wanted = sorted(datasets.load_digits().images.reshape(1797, 64).tolist())
        assert sorted((everything * 16).flatten(1).tolist()) == wanted
        assert everything.min() == 0
        assert everything.max() == 1

    def test_the_split_is_the_same_every_time(self, digits):
        for x, again in zip(digits, load_digits(), strict=True):
            assert torch.equal(x, again)
        assert digits.test_labels[:8].tolist() == [7, 6, 3, 7, 7, 3, 2, 8]

    def test_each_digit_has_its_share(self, digits):
        shares = [labels.bincount() / len(labels) for labels in digits[1::2]]
        assert torch.allclose(*shares, atol=0.005)

    def test_without_scikit_learn_one_sentence_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn", None)
        with pytest.raises(ImportError, match="install it with: pip install scikit-learn"):
            load_digits()

    def test_labels_belong_to_their_images(self, digits):
        means = torch.stack(
            [digits.train_images[digits.train_labels == d].mean(0) for d in range(10)]
        )
        nearest = torch.cdist(digits.test_images.flatten(1), means.flatten(1)).argmin(1)
        assert (nearest == digits.test_labels).float().mean() > 0.85


class TestPatches:
    @pytest.mark.parametrize(
        ("height", "width", "size"), [(8, 8, 2), (6, 9, 3), (4, 4, 4), (3, 5, 1)]
    )
    def test_each_patch_is_a_square_of_the_image(self, height, width, size):
        images = normal(3, height, width)
        patches = cut_into_patches(images, size)
        columns = width // size
        assert patches.shape == (3, height * width // size**2, size**2)
        for i in range(patches.shape[1]):
            row, column = i // columns * size, i % columns * size
            square = images[:, row : row + size, column : column + size]
            assert torch.equal(patches[:, i], square.flatten(1))

    @pytest.mark.parametrize(("side", "size"), [(8, 2), (9, 3), (8, 8), (5, 1)])
    def test_joining_undoes_cutting(self, side, size):
        images = normal(2, side, side)
        assert torch.equal(join_patches(cut_into_patches(images, size)), images)

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda: cut_into_patches(normal(8, 8), 2), r"images must be .*got \(8, 8\)"),
            (lambda: cut_into_patches([[1]], 2), "images must be .*got list"),
            (lambda: cut_into_patches(normal(2, 8, 8), 3), "size=3 .* 8 by 8; try 1, 2, 4, 8"),
            (lambda: cut_into_patches(normal(2, 6, 9), 2), "size=2 .* 6 by 9; try 1, 3"),
            (lambda: cut_into_patches(normal(2, 8, 8), 0), "size must be"),
            (lambda: join_patches(normal(2, 16)), r"patches must be .*got \(2, 16\)"),
            (lambda: join_patches(normal(2, 15, 4)), "patches must be as many .*got 15"),
            (lambda: join_patches(normal(2, 16, 3)), "patches must have as many .*got 3"),
        ],
    )
    def test_what_cannot_be_cut_or_joined(self, call, said):
        with pytest.raises(ValueError, match=said):
            call()


class TestClsMaps:
    @pytest.mark.parametrize("queries", [1, 17])
    def test_is_the_row_of_the_first_token(self, queries):
        weights = torch.softmax(normal(3, 2, queries, 17), -1)
        maps = cls_maps(weights)
        assert maps.shape == (3, 2, 4, 4)
        assert torch.equal(maps[1, 0, 2, 3], weights[1, 0, 0, 1 + 4 * 2 + 3])
        assert torch.allclose(maps.sum((2, 3)), 1 - weights[:, :, 0, 0])

    @pytest.mark.parametrize("shape", [(3, 2, 17), (3, 2, 16, 16), (3, 2, 1, 1)])
    def test_other_shapes(self, shape):
        with pytest.raises(ValueError, match="weights must"):
            cls_maps(normal(*shape))


class TestPictures:
    def texts(self, axes):
        return [text.get_text() for text in axes.texts]

    @pytest.mark.parametrize("size", [3, 16, -2, 2.5, "2", True, 0])
    def test_a_cut_that_does_not_fit_is_refused(self, digits, size):
        with pytest.raises(ValueError, match="patch_size"):
            plot_digits(digits.test_images[:1], patch_size=size)

    def test_digits_and_their_cuts(self, digits):
        figure = plot_digits(digits.test_images[:3], titles=["a", "b", "c"], patch_size=2)
        assert [axes.get_title() for axes in figure.axes] == ["a", "b", "c"]
        for axes, image in zip(figure.axes, digits.test_images, strict=False):
            assert self.texts(axes) == [str(i) for i in range(16)]
            shown = np.asarray(axes.images[0].get_array())
            assert np.corrcoef(shown.ravel(), image.numpy().ravel())[0, 1] < -0.999  # ink is dark
        assert "cut into patches of 2 by 2" in figure.alt
        assert figure.alt.endswith("a, b, c")

    def test_a_map_is_numbers_and_a_frame_over_the_digit(self, digits):
        maps = torch.softmax(normal(5, 16), -1).view(5, 4, 4)
        maps[2, 1, 3] += 0.2
        figure = plot_over_digit(digits.test_images[0], maps)
        assert [axes.get_title() for axes in figure.axes] == [f"head {h}" for h in range(5)]
        for axes, weights in zip(figure.axes, maps, strict=True):
            assert self.texts(axes) == [f"{w:.2f}" for w in weights.flatten().tolist()]
            (frame,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
            row, column = divmod(int(weights.argmax()), 4)
            assert frame.get_xy() == (2 * column - 0.5, 2 * row - 0.5)
            assert axes.images[0].get_array().shape == (8, 8)
        assert "head 0: most on row" in figure.alt

    def test_each_map_may_have_its_own_digit(self, digits):
        figure = plot_over_digit(digits.test_images[:2], torch.zeros(2, 4, 4), titles=["x", "y"])
        first, second = (axes.images[0].get_array() for axes in figure.axes)
        assert not np.array_equal(first, second)

    def test_a_picture_may_be_given_its_words(self, digits):
        figure = plot_over_digit(digits.test_images[0], torch.zeros(1, 4, 4), alt="so it is")
        assert figure.alt == plot_runs({"a": [0.5]}, x_label="x", alt="so it is").alt == "so it is"

    def test_the_digit_stays_visible_under_the_numbers(self, digits):
        figure = plot_over_digit(digits.test_images[0], torch.full((1, 4, 4), 1 / 16))
        figure.png()  # lays the texts out
        (axes,) = figure.axes
        boxes = [text.get_bbox_patch().get_window_extent() for text in axes.texts]
        covered = sum(box.width * box.height for box in boxes)
        assert covered < 0.3 * axes.bbox.width * axes.bbox.height

    def test_spread_shows_every_run(self):
        figure = plot_runs({"one": [0.2, 0.9], "two": [0.5]}, x_label="share")
        (axes,) = figure.axes
        marks = [line for line in axes.lines if line.get_marker() == "o"]
        assert [list(line.get_xdata()) for line in marks] == [[0.2, 0.9], [0.5]]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two"]
        assert self.texts(axes) == ["0.55", "0.50"]
        assert figure.alt == "one: 0.20 to 0.90; two: 0.50 to 0.50"

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda: plot_digits(torch.zeros(8, 8)), r"images must be .*got \(8, 8\)"),
            (lambda: plot_digits(torch.zeros(9, 8, 8)), "images must be one to eight"),
            (lambda: plot_digits(torch.zeros(2, 8, 8), titles=["a"]), "titles must be 2"),
            (lambda: plot_over_digit(torch.zeros(8, 8), torch.zeros(4, 4)), "weights must be"),
            (lambda: plot_over_digit(torch.zeros(8, 8), -torch.ones(1, 4, 4)), "at least 0"),
            (lambda: plot_over_digit(torch.zeros(8, 8), 2 * torch.ones(1, 4, 4)), "from 0 to 1"),
            (lambda: plot_over_digit(torch.zeros(8, 8), torch.zeros(1, 3, 3)), "square grid"),
            (lambda: plot_over_digit(torch.zeros(2, 8, 8), torch.zeros(3, 4, 4)), "got 2 for 3"),
            (lambda: plot_runs({}, x_label="x"), "groups must"),
            (lambda: plot_runs({"a": []}, x_label="x"), "groups"),
            (lambda: plot_runs({"a": [1.2]}, x_label="x"), "groups"),
            (lambda: plot_runs({"a": ["x"]}, x_label="x"), r"groups\['a'\] must be numbers"),
            (lambda: plot_digits([[["x"]]]), "images must be numbers"),
        ],
    )
    def test_what_cannot_be_drawn(self, call, said):
        with pytest.raises(ValueError, match=said):
            call()
