"""A hundred generated bad inputs for each public function: a clear error, or a right result.

Each call starts from arguments that fit, and one or two of them are spoiled. What is still accepted
 is compared with torch or with a computation of its own. Any other exception is a failure.
"""

import inspect
import math
import re

import numpy as np
import pytest
import torch
from helpers import Page, normal, page
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ipywidgets import Checkbox
from torch import nn
from torch.nn import functional as F

from course_utils import exercises
from course_utils.arguments import divisors
from course_utils.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from course_utils.exercises import CheckFailed
from course_utils.gain import read_scores
from course_utils.heatmaps import (
    plot_attention,
    plot_curves,
    plot_head_split,
    plot_heads,
    plot_spread,
)
from course_utils.heatmaps.texts import visible_token
from course_utils.jupyter.progress import progress
from course_utils.questions import predict, quiz
from course_utils.questions.bank import letters_of, prediction_entry, quiz_entry
from course_utils.questions.predictions import Prediction
from course_utils.questions.quizzes import SteppedQuiz
from course_utils.questions.reading import read_number, read_shape
from course_utils.sliders import (
    Explorer,
    explore_average,
    explore_block,
    explore_blocks,
    explore_head_counts,
    explore_heads,
    explore_layer,
    explore_lines,
    explore_masks,
    explore_mixture,
    explore_query,
    explore_scale,
    explore_shared_heads,
    explore_split,
    head_count_slider,
)

hundred = settings(
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)

# --- What may come in the place of an argument --------------------------------------------------

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2)
DTYPES += (torch.bool, torch.uint8, torch.int64, torch.complex64)
SHAPES = [(), (0,), (4,), (4, 6), (6, 4), (2, 4, 6), (1, 4, 6), (3, 6, 4), (0, 4, 6), (2, 4, 0)]
SHAPES += [(2, 3, 4, 2), (2, 1, 4, 4), (2, 3, 4, 2, 1)]
TENSORS = [
    *(normal(*shape).to(dtype) for shape in SHAPES for dtype in DTYPES),
    *(factor * normal(*shape) for shape in SHAPES for factor in (0, 1e30, -math.inf, math.nan)),
    *(normal(*shape).requires_grad_() for shape in SHAPES),
    *(normal(*shape).to_sparse() for shape in SHAPES),
    *(normal(*shape).mT for shape in SHAPES[3:]),
    *(normal(1, *shape).expand(2, *shape) for shape in SHAPES),
]
ARRAYS = [normal(*shape).numpy() for shape in SHAPES] + [np.array(["a", "b"]), np.array(None)]
SIMPLE = [None, True, False, -1, 0, 1, 2, 3, 4, 5, 10**6, 2**40, 10**15, 10**400, -(10**30)]
SIMPLE += [0.5, 2.0, -0.0, 1e308, 5e-324, math.inf, math.nan, 1j, b"1", ..., NotImplemented]
SIMPLE += ["", "3", "a b", "<b>", "\ud800", int, len, object(), torch.float32, range(3)]
HOLDERS = [[], [None], [1, 2, 4], [0.5] * 4, ["a"] * 4, ["a", 1, "b", None], [[]], [[1], [1, 2]]]
HOLDERS += [(), (1,), {}, {"a": 1}, {"a": {1: [0.5]}}, {1: 2}, set("abcd"), frozenset(), {1: {}}]
junk = (
    st.sampled_from(SIMPLE)
    | st.sampled_from(HOLDERS)
    | st.sampled_from(TENSORS)
    | st.sampled_from(ARRAYS)
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.builds(iter, st.just("abcd"))
)


@st.composite
def nearly(draw, right):
    """Almost the right argument: a size, a type, a number or something inside it is another."""
    if isinstance(right, torch.Tensor) and right.is_floating_point():
        spoil = draw(st.sampled_from(SPOILED_TENSORS))
        return spoil(right)
    if isinstance(right, bool | int | float):
        changes = (right + 1, -right, right / 2, str(right), np.int64(right), torch.tensor(right))
        return draw(st.sampled_from((*changes, [right])))
    if isinstance(right, dict | list | tuple) and right:
        items = right if isinstance(right, dict) else dict(enumerate(right))
        key = draw(st.sampled_from(list(items)))
        items = {**items, key: draw(nearly(items[key]) | junk)}
        if draw(st.integers(0, 4)) == 0:
            del items[key]
        return items if isinstance(right, dict) else list(items.values())
    return draw(junk)


SPOILED_TENSORS = (
    lambda x: x[:-1],
    lambda x: x[..., :-1],
    lambda x: x[..., :0],
    lambda x: x[:0],
    lambda x: x[None],
    lambda x: x[0],
    lambda x: x.mT,
    lambda x: x.float(),
    lambda x: x.half(),
    lambda x: x.long(),
    lambda x: x.tolist(),
    lambda x: x.numpy(),
    lambda x: -x,
    lambda x: x * 1e200,
    lambda x: x * math.nan,
    lambda x: torch.where(x == x.max(), math.inf, x),
    lambda x: torch.cat([x, x]),
)


def spoiled(data, right: dict) -> dict:
    """The arguments, with one or two of them replaced."""
    names = data.draw(st.lists(st.sampled_from(list(right)), min_size=1, max_size=2, unique=True))
    return {
        **right,
        **{name: data.draw(nearly(right[name]) | junk, label=name) for name in names},
    }


def looked_at(explorer: Explorer) -> None:
    """Every control may be moved to its other end: a view, a line and a picture are there."""
    assert "error" not in explorer.state
    for control in explorer.controls.values():
        control.value = (
            not control.value
            if isinstance(control, Checkbox)
            else control.options[-1]
            if not isinstance(control.options[-1], tuple)
            else control.options[-1][1]
        )
        page(explorer)  # which refuses any tag that is not ours
        one_line(repr(explorer))


def one_line(text: str) -> None:
    text.encode()
    assert text.replace("\u200d", "").isprintable(), text  # which holds emoji together


def described(figure) -> None:
    one_line(figure.alt)


# --- A right call of each function, and what its result must be ---------------------------------


def plain(x) -> np.ndarray:
    return np.asarray(x.detach().to(torch.float64) if isinstance(x, torch.Tensor) else x, float)


def attends(result, query, key, value, mask, dropout_p):
    output, weights = result
    if not dropout_p and all(x.isfinite().all() for x in (query, key, value)):
        mask = torch.ones(weights.shape, dtype=bool) if mask is None else mask.expand(weights.shape)
        q, k, v = (x.double() for x in (query, key, value))
        theirs = F.scaled_dot_product_attention(q, k, v, mask)
        theirs = theirs.masked_fill(~mask.any(-1, keepdim=True), 0)
        if theirs.isfinite().all() and output.isfinite().all():
            near = {"rtol": 1e-2, "atol": 1e-2 * float(v.abs().max() if v.numel() else 0)}
            assert torch.allclose(output.double(), theirs, **near)
        assert not weights.isnan().any() or not theirs.isfinite().all() or q.abs().max() > 1e3


def splits(result, x, num_heads):
    theirs = torch.stack(x.chunk(num_heads, dim=-1), dim=1)
    assert torch.equal(result, theirs) or theirs.isnan().any()


def merges(result, x):
    n, h, length, d = x.shape
    assert result.shape == (n, length, h * d)
    for head in range(h):
        own = result[..., head * d : (head + 1) * d]
        assert torch.equal(own, x[:, head]) or own.isnan().any()


def makes_layer(result, embed_dim, num_heads, dropout):
    theirs = nn.MultiheadAttention(embed_dim, int(num_heads), batch_first=True)
    assert sum(p.numel() for p in result.parameters()) == sum(
        p.numel() for p in theirs.parameters()
    )
    assert result.dropout == dropout


THEIRS = nn.MultiheadAttention(6, 3, batch_first=True, dtype=torch.float64).eval()
LAYER = MultiHeadAttention.from_torch(THEIRS)


def layer_attends(result, query, key, value, mask):
    output, weights = result
    key = query if key is None else key
    value = key if value is None else value
    blocked = (
        torch.zeros(weights.shape, dtype=bool) if mask is None else ~mask.expand(weights.shape)
    )
    if query.numel() and key.numel() and all((x.abs() < 1e9).all() for x in (query, key, value)):
        theirs, theirs_w = THEIRS(
            query, key, value, attn_mask=blocked.flatten(0, 1), average_attn_weights=False
        )
        seen = ~blocked.all(-1)  # (N, H, L_q): else torch answers NaN
        assert torch.allclose(weights[seen], theirs_w[seen], atol=1e-6, equal_nan=True)
        seen = seen.all(1)
        assert torch.allclose(output[seen], theirs[seen], atol=1e-6, rtol=1e-6, equal_nan=True)


def divides(result, embed_dim):
    assert result == [h for h in range(1, min(int(embed_dim), 10**6) + 1) if embed_dim % h == 0]


def shows(figure, weights, **_):
    weights = plain(weights)
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    maps = weights if weights.ndim == 3 else weights[None]
    assert all(map(np.array_equal, images[: len(maps)], maps))
    described(figure)


def curves_show(figure, x, curves, **_):
    (axes,) = figure.axes
    for line, values in zip(axes.lines, curves.values(), strict=True):
        assert np.array_equal(line.get_ydata(), plain(values))
    assert [t.get_text() for t in axes.get_legend().get_texts()] == list(curves)
    described(figure)


def spread_shows(figure, x, scores, **_):
    described(figure)


def slider_offers(slider, embed_dim, value):
    assert list(slider.options) == divisors(embed_dim)
    assert slider.value == (1 if value is None else value)


def query_shows(explorer, query, key, value, tokens, chosen):
    assert explorer.state["query"] == chosen
    looked_at(explorer)
    explorer.controls["query"].value = 0
    theirs = torch.softmax(query[0].double() @ key.T.double() / math.sqrt(query.shape[-1]), -1)
    near = 1e-2 if query.dtype in DTYPES[2:4] else 1e-5
    assert torch.allclose(torch.tensor(explorer.state["weights"]).double(), theirs, atol=near)


def mixture_shows(explorer, query, key, value, tokens, chosen):
    theirs = torch.softmax(query[chosen].double() @ key.T.double() / math.sqrt(query.shape[-1]), -1)
    near = 1e-2 if query.dtype in DTYPES[2:4] else 1e-5
    assert torch.allclose(torch.tensor(explorer.state["weights"]).double(), theirs, atol=near)
    looked_at(explorer)


def average_shows(explorer, weights, tokens):
    assert explorer.state["maps"] == pytest.approx(torch.as_tensor(weights).double().numpy())


def lines_show(explorer, weights, query_tokens, key_tokens, query, blocked, head_names):
    own = torch.as_tensor(weights).double()[:, query]
    assert torch.allclose(torch.tensor(explorer.state["weights"]).double(), own, atol=1e-6)
    looked_at(explorer)


def blocks_show(explorer, tokens, embed_dim, num_heads):
    looked_at(explorer)
    blocks = [block for card in explorer.state["cards"] for row in card for block in row]
    assert sorted(blocks) == list(range(len(tokens) * embed_dim))


def block_shows(explorer, embed_dim, num_heads, seq_len):
    assert explorer.state["sizes"][0] == [seq_len, embed_dim]
    looked_at(explorer)


def layer_shows(explorer, embed_dim, seq_len, num_heads):
    assert explorer.state["shapes"]["weights"] == [num_heads, seq_len, seq_len]
    looked_at(explorer)


def scale_shows(explorer, head_dims, num_tokens, seed):
    looked_at(explorer)
    sums = torch.tensor(explorer.state["weights"]).sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums))


def shared_heads_show(explorer, query, key, num_kv_heads, tokens):
    weights = torch.tensor(explorer.state["weights"])
    assert weights.shape == (len(query), query.shape[1], query.shape[1])
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-5)
    looked_at(explorer)


def split_shows(explorer, embed_dim, batch_size, seq_len, num_heads):
    looked_at(explorer)
    taken = [feature for head in explorer.state["features"] for feature in head]
    assert taken == list(range(embed_dim)) or "error" in explorer.state


def heads_show(explorer, layer, x, tokens, dropout, seed):
    explorer.controls["num_heads"].value = 3
    _, theirs = layer(x)
    assert torch.allclose(torch.tensor(explorer.state["weights"]).double(), theirs[0], atol=1e-6)
    looked_at(explorer)


def masks_show(explorer, layer, x, tokens):
    looked_at(explorer)


def counts_show(explorer, accuracies, maps, embed_dim, keys):
    looked_at(explorer)


FRUITS = ["fig", "plum", "pear", "lime"]
SCORES = {"a": {1: [0.5, 1.0], 2: [0.25, 0.75]}}
MAPS = {"a": {1: torch.full((2, 1, 4), 0.25), 2: torch.full((2, 2, 4), 0.25)}}
LINES = {"x_label": "steps", "y_label": "share", "title": "how much"}
MASK = torch.tensor([[True, False, False, False]] * 4)
Q, K, V = normal(4, 6), normal(4, 6, seed=1), normal(4, 3, seed=2)
FOUR = [[0.25] * 4] * 4

CALLS = {
    scaled_dot_product_attention: (
        {"query": Q, "key": K, "value": V, "mask": MASK, "dropout_p": 0.0},
        attends,
    ),
    split_heads: ({"x": normal(2, 4, 6), "num_heads": 3}, splits),
    merge_heads: ({"x": normal(2, 3, 4, 2)}, merges),
    MultiHeadAttention: ({"embed_dim": 6, "num_heads": 3, "dropout": 0.0}, makes_layer),
    LAYER.forward: (
        {"query": normal(2, 4, 6), "key": None, "value": None, "mask": MASK},
        layer_attends,
    ),
    MultiHeadAttention.from_torch: ({"module": THEIRS}, None),
    divisors: ({"embed_dim": 12}, divides),
    plot_attention: (
        {
            "weights": FOUR,
            "query_tokens": FRUITS,
            "key_tokens": FRUITS,
            "title": "a",
            "blocked": (~MASK).tolist(),
        },
        shows,
    ),
    plot_heads: (
        {
            "weights": [FOUR, FOUR],
            "query_tokens": FRUITS,
            "key_tokens": FRUITS,
            "titles": ["a", "b"],
            "blocked": None,
        },
        shows,
    ),
    plot_head_split: ({"embed_dim": 12, "num_heads": 3}, lambda figure, **_: described(figure)),
    plot_curves: ({"x": [1, 2, 4], "curves": {"a": [1, 2, 3]}, **LINES}, curves_show),
    plot_spread: (
        {"x": [1, 2], "scores": {"a": [[0.5, 1], [0.25]]}, **LINES, "marked": 2},
        spread_shows,
    ),
    head_count_slider: ({"embed_dim": 12, "value": 3}, slider_offers),
    explore_query: (
        {"query": Q, "key": K, "value": V, "tokens": FRUITS, "chosen": 1},
        query_shows,
    ),
    explore_mixture: (
        {"query": Q, "key": K, "value": V[:, :2], "tokens": FRUITS, "chosen": 1},
        mixture_shows,
    ),
    explore_lines: (
        {
            "weights": [FOUR, FOUR],
            "query_tokens": FRUITS,
            "key_tokens": FRUITS,
            "query": 1,
            "blocked": (~MASK).tolist(),
            "head_names": FRUITS[:2],
        },
        lines_show,
    ),
    explore_average: ({"weights": [[FOUR, FOUR]], "tokens": FRUITS}, average_shows),
    explore_blocks: ({"tokens": FRUITS[:3], "embed_dim": 6, "num_heads": 2}, blocks_show),
    explore_block: ({"embed_dim": 6, "num_heads": 2, "seq_len": 3}, block_shows),
    explore_layer: ({"embed_dim": 6, "seq_len": 3, "num_heads": 2}, layer_shows),
    explore_scale: ({"head_dims": (1, 4), "num_tokens": 3, "seed": 0}, scale_shows),
    explore_shared_heads: (
        {
            "query": normal(4, 4, 3),
            "key": normal(4, 4, 3, seed=1),
            "num_kv_heads": 2,
            "tokens": FRUITS,
        },
        shared_heads_show,
    ),
    explore_split: (
        {"embed_dim": 12, "batch_size": 2, "seq_len": 3, "num_heads": 4},
        split_shows,
    ),
    explore_heads: (
        {"layer": LAYER, "x": normal(1, 4, 6), "tokens": FRUITS, "dropout": 0.1, "seed": 0},
        heads_show,
    ),
    explore_masks: ({"layer": LAYER, "x": normal(1, 4, 6), "tokens": FRUITS}, masks_show),
    explore_head_counts: (
        {"accuracies": SCORES, "maps": MAPS, "embed_dim": 4, "keys": {"a": FRUITS}},
        counts_show,
    ),
    predict: ({"question_id": "l1-score"}, None),
    quiz: ({"quiz_id": "lesson-01"}, None),
    letters_of: ({"quiz_id": "lesson-01"}, None),
    progress: ({"steps": [1, 2], "name": "training"}, None),
}


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
@hundred
@given(data=st.data())
def test_a_clear_error_or_a_right_result(function, data):
    right, holds = CALLS[function]
    arguments = spoiled(data, right)
    try:
        result = function(**arguments)
    except ValueError as error:
        clear(str(error), right)
    else:
        if holds:
            holds(result, **arguments)


FIGURES = [function for function in CALLS if function.__name__.startswith("plot_")]


@pytest.mark.slow  # drawing takes most of the time
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", FIGURES, ids=lambda function: function.__name__)
@hundred
@given(data=st.data())
def test_a_figure_of_whatever_is_accepted_can_be_drawn(function, data):
    right, _ = CALLS[function]
    arguments = spoiled(data, right)
    try:
        figure = function(**arguments)
    except ValueError:
        return
    figure.draw_without_rendering()


def clear(message: str, arguments: dict) -> None:
    """A message names an argument, says what is wanted, and what came; it can be shown anywhere."""
    names = "|".join((*arguments, "embed_dim"))  # the name of a size that x has
    assert re.search(rf"\b({names})\b|there is no", message), message
    assert re.search("must|cannot|does not fit|there is no|differ", message), message
    assert len(message) < 600, message


def begins_with(error: Exception, start: str) -> None:
    assert str(error).startswith(start), error
    str(error).encode()


# --- Answers to questions -----------------------------------------------------------------------

typed = (
    st.text(max_size=80)
    | st.text("0123456789.,/%()[]x× -e_'−≈", max_size=80)
    | st.sampled_from(("9" * 5000, "50" + "%" * 5000, "1/" * 5000, "(" * 5000, "\ud800", "<b>"))
)


@hundred
@given(value=typed | st.floats() | st.lists(st.integers(), max_size=5) | junk)
@pytest.mark.parametrize("question", ["sample-choice", "sample-shape", "l3-explore"])
def test_whatever_is_answered(question, value):
    asked = Prediction(question, prediction_entry(question))  # not kept for the next example
    try:
        asked.answer(value)
    except ValueError as error:
        clear(str(error), {"value": value})
    said = asked.feedback.value
    assert set(Page(said).tags) <= {"div", "p", "code"}
    assert len(said) < 1000
    if asked.state["right"] and question != "l3-explore":
        digits = {"sample-choice": "1", "sample-shape": "2355"}[question]
        assert re.sub(r"\D", "", str(value)) == digits


PRE_TEST = SteppedQuiz("pre-test", quiz_entry("pre-test"))


@hundred
@given(letters=st.text("abcd? ", max_size=30) | junk)
def test_whatever_is_handed_in(letters):
    try:
        PRE_TEST.answer(letters)
    except ValueError as error:
        clear(str(error), {"letters": letters, "letter": letters})
    else:
        assert PRE_TEST.state["answers"] == " ".join(letters.split())


@hundred
@given(text=typed)
def test_what_is_read_is_what_was_typed(text):
    for sizes in read_shape(text[:60]):
        assert all(isinstance(size, int) and size >= 0 for size in sizes)
        assert "".join(map(str, sizes)) == "".join(
            str(int(d)) for d in re.findall(r"\d+", text[:60])
        )
    assert all(isinstance(number, float | int) for number in read_number(text[:60]))


# --- Checks of exercises ------------------------------------------------------------------------

CHECKS = {
    name: check
    for name, check in inspect.getmembers(exercises, inspect.isfunction)
    if name.startswith("check_")
}


class Block(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.attention = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)


tensors = st.sampled_from(TENSORS)
returned = junk | tensors | st.tuples(tensors, tensors)


@pytest.mark.parametrize("name", CHECKS)
@hundred
@given(data=st.data())
def test_a_check_fails_whatever_the_answer_is(name, data):
    """An answer of junk never passes, and never breaks the check."""
    check = CHECKS[name]
    arguments = {"block": Block, "number": data.draw(st.sampled_from((1, 3, 6)) | junk)}
    arguments |= {"needs_mask": data.draw(st.booleans()), "mask": None}
    takes = inspect.signature(check).parameters
    (answer,) = (name for name in takes if name not in arguments)
    result = data.draw(returned)
    arguments[answer] = data.draw(st.sampled_from((lambda *_, **__: result, result)))
    if answer in ("cls", "layer") and data.draw(st.booleans()):
        arguments[answer] = type(
            "Layer", (MultiHeadAttention,), {"forward": lambda *_, **__: result}
        )
    try:
        passed = check(**{name: arguments[name] for name in takes})
    except (CheckFailed, ValueError) as problem:
        begins_with(problem, "✗ " if isinstance(problem, CheckFailed) else "number must be")
    else:
        assert passed is False, result  # not attempted: None, or ``...``


@hundred
@given(order=st.text("ABCDabc, ", max_size=6) | junk)
def test_lines_in_whatever_order(order):
    lines = {"A": "y = x.transpose(1, 2)", "B": "y = y.flatten(2)", "C": "return y", "D": "y = x"}
    try:
        function = exercises.from_lines("merge(x)", lines, order)
    except CheckFailed as problem:
        begins_with(problem, "✗ order")
    else:
        x = normal(2, 3, 4, 2)
        letters = [letter for letter in str(order).upper() if letter in lines]
        if letters == ["A", "B", "C"]:
            assert torch.equal(function(x), merge_heads(x))


# --- Score files --------------------------------------------------------------------------------

HEADER = "when,quiz,right,of,answers\n"
RIGHT = {test: " ".join(letters_of(test)[1]) for test in ("pre-test", "post-test")}
score_lines = st.sampled_from(
    [HEADER, *(f"x,{test},12,12,{letters}\n" for test, letters in RIGHT.items())]
) | st.text(max_size=20).map(lambda text: f"{text}\n")


@hundred
@given(
    files=st.lists(
        st.binary(max_size=40)
        | st.lists(score_lines, max_size=5).map(
            lambda lines: "".join(lines).encode("utf-8", "replace")
        ),
        max_size=3,
    )
)
def test_whatever_stands_in_a_score_file(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    for number, content in enumerate(files):
        (folder / f"{number}.csv").write_bytes(content)
    try:
        learners, problems = read_scores(folder)
    except ValueError as error:
        begins_with(error, "folder must hold")
        assert not files
        return
    assert len(learners) == len(files)
    for learner, content in zip(learners, files, strict=True):
        text = content.decode("utf-8-sig", "replace")
        for test, letters in learner.answers.items():
            assert letters == RIGHT[test].split()
            assert f"{test},12,12,{RIGHT[test]}" in text
        if not text.startswith(HEADER):  # nothing is left out without a word
            assert any(f"{learner.name}.csv" in problem for problem in problems)


# --- Texts of every kind ------------------------------------------------------------------------

WORDS = (
    "<script>alert(1)</script>",
    "</td></table>\"'&lt;",
    "$x^",
    r"\frac{1}",
    "_first",
    "\x00\x1b[31m\u202e\x85",
    "\ud800",
    "مرحبا שלום",
    "😀👩\u200d💻",
    "",
    "   ",
    "a\nb\u2028c",
    "x" * 300,
)


@pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout not applied")
@pytest.mark.parametrize("first", range(0, len(WORDS), 4))
@pytest.mark.parametrize("kind", ["maps", "curves", "spread", "query", "heads", "masks", "counts"])
def test_whatever_a_text_holds(kind, first):
    """It is shown and never run, and neither a page nor a figure breaks."""
    a, b, c, d = (*WORDS, *WORDS)[first : first + 4]
    labels = {"x_label": a, "y_label": b, "title": c}
    makers = {
        "maps": lambda: plot_heads([FOUR, FOUR], query_tokens=[a, b, c, d], titles=[d, a]),
        "curves": lambda: plot_curves([1, 2], {d: [1, 2], a: [2, 1]}, **labels),
        "spread": lambda: plot_spread([1], {d: [[0.5]], a: [[1.0]]}, **labels),
        "query": lambda: explore_query(Q, K, V, tokens=[a, b, c, d]),
        "heads": lambda: explore_heads(LAYER, normal(1, 4, 6), tokens=[a, b, c, d]),
        "masks": lambda: explore_masks(LAYER, normal(1, 4, 6), tokens=[a, b, c, d]),
        "counts": lambda: explore_head_counts(
            {a: SCORES["a"]}, {a: MAPS["a"]}, embed_dim=4, keys={a: [a, b, c, d]}
        ),
    }
    made = makers[kind]()
    if isinstance(made, Explorer):
        looked_at(made)
        made = made.figure()
    one_line(made.alt)
    made.draw_without_rendering()
    if kind in ("curves", "spread"):
        (axes,) = made.axes
        assert len(axes.get_legend().get_texts()) == 2
        assert axes.get_legend().get_texts()[0].get_text() == visible_token(d)
