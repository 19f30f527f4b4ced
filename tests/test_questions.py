"""Predictions and quizzes: that every answer is true, and that giving one works."""

import csv
import html
import itertools
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import nn

from course_utils import questions
from course_utils.attention import MultiHeadAttention, merge_heads, split_heads
from course_utils.questions import NOT_SURE, Prediction, Quiz, predict, quiz

PREDICTIONS = questions._load("predictions")
QUIZZES = questions._load("quizzes")
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
TESTS = ("pre-test", "post-test")
ASKED = {  # (quiz, number) -> question
    (name, k): question
    for name, entry in QUIZZES.items()
    for k, question in enumerate(entry["questions"], start=1)
}
WIDGET = "application/vnd.jupyter.widget-view+json"

CHOICE = {
    "kind": "choice",
    "question": "Which?",
    "choices": ["one", "two", "three"],
    "right": "two",
    "why": "So it is.",
    "wrong": {"one": "Too few.", "three": "Too many."},
}
SHAPE = {
    "kind": "shape",
    "question": "Which shape?",
    "right": [2, 3, 5, 5],
    "why": "So it is.",
    "hint": "Count again.",
    "wrong": {"2, 5, 5": "Where are the heads?"},
}
NUMBER = {
    "kind": "number",
    "question": "How many?",
    "right": 1600,
    "why": "So it is.",
    "hint": "Count again.",
    "wrong": {"40": "That is the root."},
}


def ask(entry: dict, **changes) -> Prediction:
    return Prediction("test", entry | changes)


def said(widget) -> str:
    """The feedback line as a reader sees it."""
    return html.unescape(re.sub("<[^>]+>", "", widget._feedback.value))


# --- the files ----------------------------------------------------------------------------------


def plain(text: object) -> bool:
    """A text to show: not empty, no HTML (it would be shown as it is), backticks in pairs."""
    return (
        isinstance(text, str)
        and bool(text.strip())
        and not re.search(r"</?[a-z]+>|&[a-z]+;", text)
        and text.count("`") % 2 == 0
    )


def problems_of_choices(entry: dict) -> list[str]:
    choices = entry.get("choices", [])
    found = []
    if len(choices) < 2 or len(set(choices)) < len(choices):
        found.append("needs two or more choices, no two alike")
    if not all(plain(choice) and "`" not in choice for choice in choices):
        found.append("a choice is no plain text")
    if NOT_SURE in choices:
        found.append(f"{NOT_SURE!r} is added by itself")
    if entry["right"] not in choices:
        found.append("right is none of the choices")
    return found


def problems_of_prediction(entry: dict) -> list[str]:
    """Say what is wrong with an entry of predictions.toml."""
    kinds = {
        "choice": ({"choices", "wrong"}, set()),
        "shape": ({"hint"}, {"wrong"}),
        "number": ({"hint"}, {"wrong", "tolerance"}),
    }
    if entry.get("kind") not in kinds:
        return [f"kind must be one of {', '.join(kinds)}"]
    needs, may = kinds[entry["kind"]]
    needs = needs | {"kind", "question", "right", "why"}
    if not needs <= entry.keys() <= needs | may:
        return [f"needs {sorted(needs)} and may have {sorted(may)}, has {sorted(entry)}"]
    wrong = entry.get("wrong", {})
    texts = {key: entry[key] for key in ("question", "why", "hint") if key in entry} | wrong
    found = [f"{key} is no plain text" for key, text in texts.items() if not plain(text)]
    right = entry["right"]
    if entry["kind"] == "choice":
        found += problems_of_choices(entry)
        if wrong.keys() != set(entry["choices"]) - {right}:
            found.append("needs a sentence for each choice but the right one, and no others")
        return found
    whole = [isinstance(size, int) for size in right] if isinstance(right, list) else [False]
    if entry["kind"] == "shape" and not all(whole):
        found.append("right must be a list of whole numbers")
    if entry["kind"] == "number":
        if not isinstance(right, int | float) or isinstance(right, bool):
            found.append("right must be a number")
        elif right != int(right) and not entry.get("tolerance", 0) > 0:
            found.append("needs a tolerance, since right is not whole")
    if found:
        return found
    asked = ask(entry)
    for key in wrong:
        if not asked._read(key):
            found.append(f"wrong answer {key!r} is no {entry['kind']}")
        elif asked._same(asked._read(key), right):
            found.append(f"wrong answer {key!r} is right")
    for one, other in itertools.combinations(wrong, 2):
        if asked._same(asked._read(one), other):
            found.append(f"wrong answers {one!r} and {other!r} are the same")
    return found


def problems_of_quiz(entry: dict) -> list[str]:
    """Say what is wrong with an entry of quizzes.toml."""
    if not {"title", "feedback", "questions"} <= entry.keys():
        return ["needs title, feedback and questions"]
    found = []
    if unknown := entry.keys() - {"title", "feedback", "not_sure", "intro", "after", "questions"}:
        found.append(f"has {sorted(unknown)}")
    if not isinstance(entry["feedback"], bool) or not isinstance(entry.get("not_sure", True), bool):
        found.append("feedback and not_sure are true or false")
    texts = [entry["title"], entry.get("intro", "-"), entry.get("after", "-")]
    for question in entry["questions"]:
        needs = {"row", "question", "choices", "right"} | ({"why"} if entry["feedback"] else set())
        if question.keys() != needs:
            found.append(f"a question needs {sorted(needs)}, has {sorted(question)}")
            continue
        texts += [question["question"], question.get("why", "-")]
        found += problems_of_choices(question)
        if not re.fullmatch(r"M\d\d", question["row"]):
            found.append(f"no row: {question['row']}")
    return found + [f"no plain text: {text}" for text in texts if not plain(text)]


@pytest.mark.parametrize("name", PREDICTIONS)
def test_every_prediction_is_well_formed(name):
    assert problems_of_prediction(PREDICTIONS[name]) == []


@pytest.mark.parametrize("name", QUIZZES)
def test_every_quiz_is_well_formed(name):
    assert problems_of_quiz(QUIZZES[name]) == []


@pytest.mark.parametrize(
    ("entry", "changes", "problem"),
    [
        (CHOICE, {"kind": "chioce"}, "kind must be"),
        (CHOICE, {"hints": "Look again."}, "has"),
        (CHOICE, {"right": "four"}, "right is none of the choices"),
        (CHOICE, {"choices": ["one", "two", "two", "three"]}, "no two alike"),
        (CHOICE, {"choices": ["`one`", "two", "three"]}, "a choice is no plain text"),
        (CHOICE, {"wrong": {"one": "Too few."}}, "needs a sentence for each"),
        (CHOICE, {"wrong": CHOICE["wrong"] | {"four": "No."}}, "needs a sentence for each"),
        (CHOICE, {"wrong": {"one": "", "three": "Too many."}}, "one is no plain text"),
        (CHOICE, {"why": "It is <b>so</b>."}, "why is no plain text"),
        (CHOICE, {"question": "What is `x?"}, "question is no plain text"),
        (SHAPE, {"right": "2, 3"}, "list of whole numbers"),
        (SHAPE, {"right": [2, 3.5]}, "list of whole numbers"),
        (SHAPE, {"wrong": {"two": "No."}}, "'two' is no shape"),
        (SHAPE, {"wrong": {"(2, 3, 5, 5)": "No."}}, "is right"),
        (SHAPE, {"wrong": {"(2, 3)": "No.", "2 3": "No!"}}, "are the same"),
        (NUMBER, {"right": "many"}, "right must be a number"),
        (NUMBER, {"right": 0.25}, "needs a tolerance"),
        (NUMBER, {"tolerance": 10, "wrong": {"1605": "Close."}}, "is right"),
    ],
)
def test_a_malformed_prediction_is_found(entry, changes, problem):
    assert problems_of_prediction(entry) == []
    assert problem in "; ".join(problems_of_prediction(entry | changes))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"titel": "x"}, "titel"),
        ({"feedback": "yes"}, "true or false"),
        ({"intro": ""}, "no plain text"),
        ({"questions": [{"row": "M01", "question": "?"}]}, "a question needs"),
    ],
)
def test_a_malformed_quiz_is_found(changes, problem):
    assert problem in "; ".join(problems_of_quiz(QUIZZES["lesson-01"] | changes))


def test_the_quizzes_are_all_there():
    notebooks = Path(questions.__file__).parents[1] / "notebooks"
    lessons = [f"lesson-{path.name[:2]}" for path in notebooks.glob("*.ipynb")]
    assert {name: len(entry["questions"]) for name, entry in QUIZZES.items()} == (
        dict.fromkeys(lessons, 3) | dict.fromkeys(TESTS, 12)
    )
    for name, entry in QUIZZES.items():
        assert entry["feedback"] is (name != "pre-test"), name  # it must not give answers away
        assert entry.get("not_sure", False) is (name in TESTS), name


def test_the_two_tests_are_parallel():
    pre, post = (QUIZZES[name]["questions"] for name in TESTS)
    assert [question["row"] for question in pre] == [question["row"] for question in post]
    surprises = {"M02", "M03", "M05", "M06", "M08", "M29", "M30", "M31"}
    assert surprises <= {question["row"] for question in pre}
    for before, after in zip(pre, post, strict=True):
        assert before["question"] != after["question"]  # other numbers, or other words
        assert len(before["choices"]) == len(after["choices"])


def test_neither_place_nor_length_gives_the_right_answer_away():
    for name in TESTS:
        asked = QUIZZES[name]["questions"]
        places = Counter(question["choices"].index(question["right"]) for question in asked)
        assert min(places[place] for place in range(3)) >= 2, name
        assert max(places.values()) <= 5, name
        longest = [max(question["choices"], key=len) == question["right"] for question in asked]
        assert sum(longest) <= 4, name
    both = [[q["choices"].index(q["right"]) for q in QUIZZES[name]["questions"]] for name in TESTS]
    assert sum(a == b for a, b in zip(*both, strict=True)) <= 4  # nobody learns the places


# --- every answer, computed ---------------------------------------------------------------------


def only_true(facts: dict[str, bool]) -> str:
    """The one choice that is true."""
    (choice,) = (choice for choice, is_true in facts.items() if is_true)
    return choice


def closest(value: float, choices: list[str]) -> str:
    return min(choices, key=lambda choice: abs(float(choice.replace(",", "")) - value))


def torch_layer(embed_dim: int, num_heads: int, **options) -> nn.MultiheadAttention:
    """Torch's layer with random biases; torch starts them at 0, which would hide mistakes."""
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(embed_dim, num_heads, **options)
    with torch.no_grad():
        layer.in_proj_bias.normal_()
        layer.out_proj.bias.normal_()
    return layer


def run(layer, x, *, view_only=False, reshape_only=False, scale=None, axis=-1):
    """A layer of ours, step by step, with a switch for each mistake that is asked about."""
    batch_size, seq_len, embed_dim = x.shape

    def split(t):
        if view_only:
            return t.reshape(batch_size, layer.num_heads, seq_len, layer.head_dim)
        return split_heads(t, layer.num_heads)

    q, k, v = (split(proj(x)) for proj in (layer.q_proj, layer.k_proj, layer.v_proj))
    scores = q @ k.transpose(-2, -1) / (scale or math.sqrt(layer.head_dim))
    weights = torch.softmax(scores, dim=axis)
    mixed = weights @ v
    merged = mixed.reshape(batch_size, seq_len, embed_dim) if reshape_only else merge_heads(mixed)
    return layer.out_proj(merged), weights


def same_output(choice: str, **mistake) -> bool:
    """Whether a layer with that mistake agrees with torch's, at the sizes that a choice names."""
    size = {name: int(number) for name, number in re.findall(r"(\w) = (\d+)", choice)}
    theirs = torch_layer(size["D"], size["H"], batch_first=True).eval()
    x = torch.randn(size["N"], size["L"], size["D"])
    ours, _ = run(MultiHeadAttention.from_torch(theirs), x, **mistake)
    return torch.allclose(ours, theirs(x, x, x)[0], atol=1e-5)


def sizes_that_hide(question: dict, **mistake) -> str:
    facts = {c: same_output(c, **mistake) for c in question["choices"] if "=" in c}
    return only_true(facts | {"with none of these": not any(facts.values())})


def heads_that_notice(embed_dim: int, num_heads: int, feature: int) -> list[int]:
    """The heads whose query moves when one feature of the token changes."""
    layer = MultiHeadAttention.from_torch(torch_layer(embed_dim, num_heads))
    x = torch.randn(1, 1, embed_dim)
    changed = x.clone()
    changed[..., feature] += 1.0
    moved = split_heads(layer.q_proj(changed) - layer.q_proj(x), num_heads)
    return [head for head in range(num_heads) if moved[0, head].abs().min() > 1e-6]


def parameter_ratio(embed_dim: int, before: int, after: int) -> float:
    def count(num_heads: int) -> int:
        return sum(p.numel() for p in nn.MultiheadAttention(embed_dim, num_heads).parameters())

    return count(after) / count(before)


def what_it_is(x: torch.Tensor, num_heads: int, index: int, names: list[str]) -> str:
    """What ``weights[index]`` is by default: one head, a mean over samples, of heads, or a sum."""
    layer = torch_layer(x.shape[-1], num_heads, batch_first=True).eval()
    shown = layer(x, x, x)[1]
    each = layer(x, x, x, average_attn_weights=False)[1]  # (N, H, L, L)
    one_head, over_samples, mean, total = names
    head = 0 if "head 0" in one_head else -1
    own = each[index]
    return only_true(
        {
            one_head: torch.allclose(shown[index], own[head], atol=1e-3),
            over_samples: torch.allclose(shown[index], each[:, index].mean(0), atol=1e-3),
            mean: torch.allclose(shown[index], own.mean(0)),
            total: torch.allclose(shown[index], own.sum(0), atol=1e-3),
        }
    )


def default_weights(num_heads: int, shape: tuple[int, ...]) -> str:
    x = torch.randn(shape)
    return str(tuple(nn.MultiheadAttention(shape[-1], num_heads).eval()(x, x, x)[1].shape))


def weights_of_one_key(embed_dim: int, num_heads: int, dropout: float) -> str:
    layer = torch_layer(embed_dim, num_heads, dropout=dropout, batch_first=True)
    x = torch.randn(200, 1, embed_dim)
    weights = layer(x, x, x, average_attn_weights=False)[1]
    values = [f"{value:g}" for value in weights.unique().tolist()]
    return " and ".join(values) if len(values) > 1 else f"{values[0]} only"


def what_sums_to_one(shape: tuple[int, ...], dim: int) -> str:
    weights = torch.softmax(torch.randn(shape), dim=dim)

    def ones(*axes: int) -> bool:
        return torch.allclose(weights.sum(axes), torch.tensor(1.0))

    return only_true(
        {
            "those of one query, over all keys": ones(3),
            "those of one key, over all queries": ones(2),
            "those of one query and one key, over all heads": ones(1),
            "those of one head: its whole map": ones(2, 3),
        }
    )


def scale_of_torch(embed_dim: int, num_heads: int, choices: list[str]) -> str:
    layer = torch_layer(embed_dim, num_heads, batch_first=True).eval()
    ours = MultiHeadAttention.from_torch(layer)
    x = torch.randn(2, 5, embed_dim)
    weights = layer(x, x, x, average_attn_weights=False)[1]
    return only_true(
        {c: torch.allclose(run(ours, x, scale=int(c))[1], weights, atol=1e-5) for c in choices}
    )


def share_of(source: int, target: int) -> str:
    """Which weight moves the output of one token when the value of another moves by 1."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 6, 3)
    v = torch.randn(6, 1)
    w = torch.softmax(q @ k.T, dim=-1)
    moved = v.clone()
    moved[source] += 1.0
    effect = (w @ moved - w @ v)[target, 0]
    one, other = f"w[{target}, {source}]", f"w[{source}, {target}]"
    low, high = sorted((source, target))
    return only_true(
        {
            one: torch.isclose(effect, w[target, source], atol=1e-5).item(),
            other: torch.isclose(effect, w[source, target], atol=1e-5).item(),
            f"either of w[{low}, {high}] and w[{high}, {low}]: they are always equal": torch.equal(
                w, w.T
            ),
        }
    )


def pairs_with_mean(mean: list[float], choices: list[str]) -> str:
    def is_true(choice: str) -> bool:
        rows = torch.tensor(
            [[float(x) for x in r.split(",")] for r in re.findall(r"\[(.+?)\]", choice)]
        )
        fits = torch.allclose(rows.mean(0), torch.tensor(mean))
        assert torch.allclose(rows.sum(-1), torch.ones(2))
        # "And no others" is false: move a little weight the other way in each of the heads.
        shift = torch.tensor([[0.1, -0.1], [-0.1, 0.1]])
        others = torch.allclose((rows + shift).mean(0), torch.tensor(mean))
        return fits and not ("no others" in choice and others)

    return only_true({choice: is_true(choice) for choice in choices})


def head_0(tensor: torch.Tensor) -> str:
    return str(tensor[0, 0].tolist())


def sums_of_a_much_watched_key() -> str:
    """A right map, softmax over the keys, in which a column sums to 2.5."""
    weights = torch.softmax(torch.tensor([[0.625, 0.125, 0.125, 0.125]] * 4).log(), dim=-1)
    assert torch.allclose(weights.sum(-1), torch.ones(4))
    assert weights[:, 0].sum().item() == pytest.approx(2.5)
    looks, is_looked_at = weights[0, 1:].sum(), weights[1:, 0].sum()
    return only_true(
        {
            "softmax ran over the wrong axis": not torch.allclose(weights.sum(-1), torch.ones(4)),
            "“cat” is much looked at, and all is well": (is_looked_at > looks).item(),
            "“cat” looks at the others more than they look at it": (looks > is_looked_at).item(),
        }
    )


def shuffled_tokens() -> str:
    torch.manual_seed(0)
    x, order = torch.randn(1, 5, 8), torch.tensor([3, 0, 4, 2, 1])
    layer = MultiHeadAttention(8, 2)
    before, after = layer(x)[0], layer(x[:, order])[0]
    moved = torch.allclose(after, before[:, order], atol=1e-6)
    stayed = torch.allclose(after, before, atol=1e-3)
    return only_true(
        {
            "its rows are shuffled in the same way": moved,
            "it stays just as it was": stayed,
            "every row gets other numbers": not moved and not stayed,
        }
    )


def size_of_dot_products(question: dict) -> str:
    torch.manual_seed(0)
    size = (torch.randn(10_000, 100) * torch.randn(10_000, 100)).sum(-1).std().item()
    return closest(size, question["choices"])


def saturated() -> str:
    scores = torch.tensor([20.0, 10.0, 0.0], dtype=torch.float64)
    moved = (torch.softmax(scores + torch.tensor([0.1, 0, 0]), 0) - torch.softmax(scores, 0))[0]
    return only_true(
        {
            "by about 0.1": moved > 0.01,
            "by about 1": moved > 0.5,
            "by less than 0.0001": 0 < moved < 0.0001,
        }
    )


def scaled_by_the_whole_width() -> str:
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 16, 7, 4)
    right, wrong = (torch.softmax(q @ k.mT / math.sqrt(width), dim=-1) for width in (4, 64))
    return only_true(
        {
            "weights that are more even": (wrong.amax(-1) < right.amax(-1)).all().item(),
            "weights that are more peaked": (wrong.amax(-1) > right.amax(-1)).all().item(),
            "rows that no longer sum to 1": not torch.allclose(wrong.sum(-1), torch.tensor(1.0)),
            "another shape": wrong.shape != right.shape,
        }
    )


def tokens_of_head_0() -> str:
    owner = torch.arange(4).repeat_interleave(4).view(1, 4, 4)  # every number names its token
    found = owner.view(1, 2, 4, 2)[0, 0].unique().tolist()
    return {
        (0, 1, 2, 3): "all four",
        (0,): "token 0 only",
        (0, 1): "tokens 0 and 1 only",
        (0, 2): "tokens 0 and 2 only",
    }[tuple(found)]


def query_weights() -> str:
    """As many as one layer of D by D has; and by heads, each from all features, it is the same."""
    (rows, columns) = nn.Linear(256, 256).weight.shape
    assert sum(nn.Linear(256, 32).weight.numel() for _ in range(8)) == rows * columns
    return f"{rows * columns:,}"


def bias_in_every_head() -> str:
    torch.manual_seed(0)
    project, heads = nn.Linear(12, 12), torch.randn(1, 4, 5, 3)
    right = project(merge_heads(heads))
    blocks = project.weight.chunk(4, dim=1)
    summed = sum(heads[:, h] @ block.T + project.bias for h, block in enumerate(blocks))
    return only_true(
        {
            "not at all": torch.allclose(summed, right, atol=1e-5),
            "it has 3·b too much": torch.allclose(summed - right, 3 * project.bias, atol=1e-5),
            "it has 4·b too much": torch.allclose(summed - right, 4 * project.bias, atol=1e-5),
            "it has b too little": torch.allclose(right - summed, project.bias, atol=1e-5),
        }
    )


def another_head_count() -> str:
    torch.manual_seed(0)
    four, eight = MultiHeadAttention(16, 4), MultiHeadAttention(16, 8)
    said_nothing = not any(eight.load_state_dict(four.state_dict()))  # raises if it will not load
    x = torch.randn(2, 5, 16)
    same = torch.allclose(four(x)[0], eight(x)[0], atol=1e-3)
    return only_true(
        {
            "nothing is said, and the output differs": said_nothing and not same,
            "nothing is said, and the output is the same": said_nothing and same,
            "torch raises an error": not said_nothing,
        }
    )


def two_orders_of_sums() -> str:
    theirs = torch_layer(64, 4, batch_first=True).eval()
    ours = MultiHeadAttention.from_torch(theirs)
    pairs = [(ours(x)[0], theirs(x, x, x)[0]) for x in torch.randn(50, 2, 5, 64)]
    equal = [torch.equal(a, b) for a, b in pairs]
    close = [torch.allclose(a, b, atol=1e-5) for a, b in pairs]
    return only_true(
        {
            "both: always the same": all(equal) and all(close),
            "both: often different": sum(equal) < 25 and sum(close) < 25,
            "equal: often different; allclose: the same": sum(equal) < 25 and all(close),
        }
    )


def heads_in_front(question: dict) -> str:
    def alike(choice: str) -> bool:
        batch_size, num_heads = map(int, re.findall(r"\d+", choice))
        x = torch.randn(batch_size, 3, 8)
        return torch.stack(x.chunk(num_heads, -1)).shape == split_heads(x, num_heads).shape

    facts = {choice: alike(choice) for choice in question["choices"] if "=" in choice}
    return only_true(facts | {"it never does": all(facts.values())})


def seen_on_zeros() -> str:
    theirs = nn.MultiheadAttention(8, 2, batch_first=True).eval()  # torch starts biases at 0
    x = torch.zeros(2, 3, 8)
    weights = theirs(x, x, x, average_attn_weights=False)[1]
    switches = {
        "softmax over the heads": {"axis": 1},
        "no scale": {"scale": 1},
        "softmax over the queries": {"axis": -2},
        "view without transpose": {"view_only": True},
    }
    ours = MultiHeadAttention.from_torch(theirs)
    return only_true(
        {name: not torch.allclose(run(ours, x, **s)[1], weights) for name, s in switches.items()}
    )


def options_for_each_head(question: dict) -> str:
    theirs, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 5, 8)

    def gives(choice: str) -> bool:
        name, value = choice.split("=")
        weights = theirs(x, x, x, **{name: value == "True"})[1]
        return weights is not None and weights.shape == (3, 2, 5, 5)

    facts = {choice: gives(choice) for choice in question["choices"] if "=" in choice}
    return only_true(facts | {"none of them: it always averages": not any(facts.values())})


def where_true_means_blocked(question: dict) -> str:
    padded = torch.tensor([[False, False, True], [False, True, True]])  # (batch, key)
    layer, x = torch_layer(8, 2, batch_first=True).eval(), torch.randn(2, 3, 8)
    weights = layer(x, x, x, key_padding_mask=padded)[1]
    one_hot, t = torch.eye(3).expand(2, 1, 3, 3), torch.randn(2, 1, 3, 4)
    function = nn.functional.scaled_dot_product_attention(t, t, one_hot, padded[:, None, None])[
        :, 0
    ]
    works = [not w.mT[padded].any() for w in (weights, function)]
    return question["choices"][{(True, False): 0, (False, True): 1, (True, True): 2}[*works]]


@torch.enable_grad()
def gradient_past_an_empty_sentence() -> str:
    padded = torch.arange(8) == 3
    layer, x = torch_layer(8, 2, batch_first=True), torch.randn(8, 5, 8)
    output, _ = layer(x, x, x, key_padding_mask=padded[:, None].expand(8, 5))
    (gradient,) = torch.autograd.grad(output[~padded].sum(), layer.in_proj_weight)
    return only_true({"0 everywhere": not gradient.any(), "NaN": bool(gradient.isnan().any())})


def mask_that_fits(question: dict) -> str:
    t, keys = torch.randn(8, 4, 12, 5), torch.randn(8, 4, 30, 5)
    real = torch.arange(30) < torch.arange(23, 31)[:, None]  # (batch, key)
    one_hot = torch.eye(30).expand(8, 4, 30, 30)

    def hides(choice: str) -> bool:
        shape = tuple(map(int, re.findall(r"\d+", choice)))
        mask = real.view(shape) if math.prod(shape) == 240 else real[:, None].expand(shape)
        try:
            weights = nn.functional.scaled_dot_product_attention(t, keys, one_hot, mask)
        except RuntimeError:
            return False
        return not weights.permute(0, 3, 1, 2)[~real].any()

    return only_true({choice: hides(choice) for choice in question["choices"]})


def rank_of_scores(embed_dim: int, num_heads: int, length: int) -> str:
    x = torch.randn(1, length, embed_dim, dtype=torch.float64)
    q, k = (split_heads(x @ torch.randn(embed_dim, embed_dim).double(), num_heads) for _ in "qk")
    return str(torch.linalg.matrix_rank((q @ k.mT)[0, 0]).item())


@torch.enable_grad()
def gradients_of_half_twins(question: dict) -> str:
    layer, x = MultiHeadAttention(8, 2), torch.randn(3, 5, 8)
    for proj in (layer.q_proj, layer.k_proj, layer.v_proj):
        for parameter in (proj.weight, proj.bias):
            parameter.data[4:] = parameter.data[:4]
    layer(x)[0].square().mean().backward()
    first, second = layer.v_proj.weight.grad.chunk(2)
    facts = {
        "no: what comes back through out_proj differs": not torch.allclose(first, second),
        "yes: they see the same tokens": torch.equal(first, second) and bool(first.any()),
        "yes: both are zero": not first.any() and not second.any(),
    }
    return only_true(facts)


def heads_in_another_order() -> str:
    layer, x, order = MultiHeadAttention(6, 3), torch.randn(2, 5, 6), [2, 0, 1]
    before, maps = layer(x)
    features = torch.arange(6).view(3, 2)[order].flatten()
    for proj in (layer.q_proj, layer.k_proj, layer.v_proj):
        proj.weight.copy_(proj.weight[features])
        proj.bias.copy_(proj.bias[features])
    layer.out_proj.weight.copy_(layer.out_proj.weight[:, features])
    after, moved = layer(x)
    same_output, same_maps = torch.allclose(before, after, atol=1e-6), torch.allclose(maps, moved)
    assert torch.allclose(moved, maps[:, order], atol=1e-6)
    facts = {
        "both stay as they are": same_output and same_maps,
        "the output stays; the maps come in another order": same_output and not same_maps,
        "both come in another order": not same_output and not same_maps,
    }
    return only_true(facts)


def jigsaw(question: dict) -> str:
    """What changes when the 16 patches that [CLS] asks, without positions, change places."""
    layer = MultiHeadAttention.from_torch(torch_layer(8, 2, batch_first=True))
    cls, patches, order = torch.randn(1, 1, 8), torch.randn(1, 16, 8), torch.randperm(16)
    output, weights = layer(cls, patches)
    moved, moved_weights = layer(cls, patches[:, order])
    assert torch.allclose(weights.sort().values, moved_weights.sort().values, atol=1e-6)
    return only_true(
        {
            question["choices"][0]: not torch.allclose(output, moved, atol=1e-5),
            question["choices"][1]: not torch.allclose(output, moved, atol=1e-5),
            question["choices"][2]: torch.allclose(weights[..., order], moved_weights, atol=1e-6)
            and not torch.allclose(weights, moved_weights, atol=1e-3),
        }
    )


def most_watched_of_a_mean(question: dict) -> str:
    mean = torch.tensor([[1.0, 0, 0], [0, 0, 1.0]]).mean(0)
    top = (mean == mean.max()).nonzero().flatten().tolist()
    return {(0, 2): question["choices"][0], (1,): question["choices"][1]}[tuple(top)]


def most_missed_patch(question: dict) -> str:
    weights = torch.tensor([0.8, 0.1, 0.1])
    values = torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 4.0]])
    return question["choices"][int((weights[:, None] * values).norm(dim=1).argmax())]


def mixed(weights: list[float], values: list[list[float]]) -> str:
    mixture = torch.tensor(weights) @ torch.tensor(values)
    return str([round(x) for x in mixture.tolist()])


def head_1_taken_out(question: dict) -> str:
    """The choice after which the layer gives what it gave, less what head 1 added."""
    heads, proj = torch.randn(2, 5, 3, 4), nn.Linear(12, 12)  # (N, L, H, d_h)
    others = heads.clone()
    others[:, :, 1] = 0
    wanted = proj(others.flatten(2))

    def fits(choice: str) -> bool:
        cut, _, bias = choice.partition(" and ")
        names = {"W": proj.weight.clone()}
        exec(f"{cut} = 0", names)
        bias = torch.zeros(12) if bias else proj.bias
        return torch.allclose(heads.flatten(2) @ names["W"].T + bias, wanted, atol=1e-6)

    return only_true({choice: fits(choice) for choice in question["choices"]})


def same_noun_in_each_pair(question: dict) -> str:
    """In every way to prefer one noun a pair, count where it is the right one."""
    counts = {
        sum(preferred == meant for preferred in preferences for meant in (0, 1))
        for preferences in itertools.product((0, 1), repeat=5)
    }
    (count,) = counts
    return f"in {count}"


# A function of the question that computes the right answer as it stands among the choices.
COMPUTED = {
    ("pre-test", 1): lambda q: head_0(torch.arange(8).view(1, 2, 4).view(1, 2, 2, 2)),
    ("pre-test", 2): lambda q: head_0(
        split_heads(torch.arange(8.0).view(1, 2, 4), 2).int().reshape(1, 2, 4)
    ),
    ("pre-test", 3): lambda q: sizes_that_hide(q, view_only=True),
    ("pre-test", 4): lambda q: {0: q["choices"][1], 3: "for all three heads"}[
        len(heads_that_notice(12, 3, -1))
    ],
    ("pre-test", 5): lambda q: {1: "it stays the same"}[parameter_ratio(64, 4, 8)],
    ("pre-test", 6): lambda q: what_it_is(torch.randn(4, 5, 8), 2, 1, q["choices"]),
    ("pre-test", 7): lambda q: default_weights(2, (2, 5, 8)),
    ("pre-test", 8): lambda q: weights_of_one_key(8, 2, 0.2),
    ("pre-test", 9): lambda q: what_sums_to_one((2, 4, 6, 6), -2),
    ("pre-test", 10): lambda q: scale_of_torch(64, 4, q["choices"]),
    ("pre-test", 11): lambda q: share_of(0, 1),
    ("pre-test", 12): lambda q: pairs_with_mean([0.4, 0.6], q["choices"]),
    ("post-test", 1): lambda q: head_0(torch.arange(12).view(1, 3, 4).view(1, 2, 3, 2)),
    ("post-test", 2): lambda q: str(
        torch.tensor([[[[10, 20], [50, 60]], [[30, 40], [70, 80]]]]).reshape(1, 2, 4)[0, 1].tolist()
    ),
    ("post-test", 3): lambda q: sizes_that_hide(q, reshape_only=True),
    ("post-test", 4): lambda q: {0: q["choices"][2], 4: "for all four heads"}[
        len(heads_that_notice(8, 4, 0))
    ],
    ("post-test", 5): lambda q: {1: "it stays the same"}[parameter_ratio(128, 2, 16)],
    ("post-test", 6): lambda q: what_it_is(
        torch.randn(3, 6, 16), 4, 2, [q["choices"][k] for k in (3, 1, 0, 2)]
    ),
    ("post-test", 7): lambda q: default_weights(4, (3, 7, 12)),
    ("post-test", 8): lambda q: weights_of_one_key(12, 3, 0.5),
    ("post-test", 9): lambda q: what_sums_to_one((3, 2, 5, 5), 1),
    ("post-test", 10): lambda q: scale_of_torch(100, 4, q["choices"]),
    ("post-test", 11): lambda q: share_of(4, 2),
    ("post-test", 12): lambda q: pairs_with_mean([0.7, 0.3], q["choices"]),
    ("lesson-01", 1): lambda q: f"all {torch.softmax(torch.full((4,), -3.0), 0).unique().item():g}",
    ("lesson-01", 2): lambda q: sums_of_a_much_watched_key(),
    ("lesson-01", 3): lambda q: shuffled_tokens(),
    ("lesson-02", 1): size_of_dot_products,
    ("lesson-02", 2): lambda q: saturated(),
    ("lesson-02", 3): lambda q: scaled_by_the_whole_width(),
    ("lesson-03", 1): lambda q: tokens_of_head_0(),
    ("lesson-03", 2): lambda q: query_weights(),
    ("lesson-03", 3): lambda q: str(
        tuple((torch.ones(2, 7, 12).view(2, 7, 3, 4) @ torch.ones(2, 7, 3, 4).mT).shape)
    ),
    ("lesson-04", 1): lambda q: bias_in_every_head(),
    ("lesson-04", 2): lambda q: another_head_count(),
    ("lesson-04", 3): lambda q: two_orders_of_sums(),
    ("lesson-05", 1): heads_in_front,
    ("lesson-05", 2): lambda q: seen_on_zeros(),
    ("lesson-05", 3): options_for_each_head,
    ("lesson-06", 1): where_true_means_blocked,
    ("lesson-06", 2): lambda q: gradient_past_an_empty_sentence(),
    ("lesson-06", 3): mask_that_fits,
    ("lesson-07", 1): lambda q: rank_of_scores(64, 16, 100),
    ("lesson-07", 2): gradients_of_half_twins,
    ("lesson-07", 3): lambda q: heads_in_another_order(),
    ("lesson-09", 1): jigsaw,
    ("lesson-09", 2): most_watched_of_a_mean,
    ("lesson-09", 3): most_missed_patch,
    ("lesson-08", 1): lambda q: mixed([0.9, 0.1], [[0.0, 0.0], [10.0, 20.0]]),
    ("lesson-08", 2): head_1_taken_out,
    ("lesson-08", 3): same_noun_in_each_pair,
}


def test_every_question_has_its_computation():
    assert COMPUTED.keys() == ASKED.keys()


@pytest.mark.parametrize("key", ASKED, ids="{0[0]}-{0[1]}".format)
@torch.no_grad()
def test_every_right_answer_is_what_torch_says(key):
    torch.manual_seed(0)
    assert COMPUTED[key](ASKED[key]) == ASKED[key]["right"]


def test_the_sample_shape_is_what_torch_says():
    x = torch.randn(2, 5, 6)
    weights = MultiHeadAttention(6, 3)(x)[1]
    assert list(weights.shape) == PREDICTIONS["sample-shape"]["right"]


# --- predictions --------------------------------------------------------------------------------


def test_a_choice_starts_open_and_is_told_right_from_wrong():
    asked = ask(CHOICE)
    assert asked.state == {"question": "test", "answer": None, "right": None, "tries": 0}
    assert asked._control.value is None
    asked.answer("three")
    assert said(asked) == "✗ Not yet. Too many. Try again."
    assert asked.state == {"question": "test", "answer": "three", "right": False, "tries": 1}
    asked.answer("two")
    assert said(asked) == "✓ Right. So it is."
    assert asked.state == {"question": "test", "answer": "two", "right": True, "tries": 2}


def test_an_answer_that_is_no_choice_is_refused():
    with pytest.raises(ValueError, match="value must be one of 'one', 'two', 'three'; got 'four'"):
        ask(CHOICE).answer("four")


SHAPES = ["2, 3, 5, 5", "(2,3,5,5)", "2 3 5 5", "[2, 3, 5, 5]", "torch.Size([2, 3, 5, 5])"]


@pytest.mark.parametrize(
    "typed", [*SHAPES, " 2 ,3, 5,5 ", "(2, 3, 5, 5,)", "2×3×5×5", [2, 3, 5, 5]]
)
def test_a_right_shape_in_many_forms(typed):
    asked = ask(SHAPE)
    asked.answer(typed)
    assert asked.state["right"] is True


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("(2, 5, 5)", "Where are the heads?"),
        ("2 5 5", "Where are the heads?"),
        ("2, 3, 5", "Count again."),
        ("2355", "Count again."),
        ("()", "Count again."),
    ],
)
def test_a_wrong_shape_gets_its_sentence(typed, reason):
    asked = ask(SHAPE)
    asked.answer(typed)
    assert said(asked) == f"✗ Not yet. {reason} Try again."


@pytest.mark.parametrize(
    "typed", ["five", "2, 3, five, 5", "(2, 3, 5, 5", "2.5, 3", "2,,3", "-2, 3"]
)
def test_what_is_no_shape_is_no_try(typed):
    asked = ask(SHAPE)
    asked.answer(typed)
    assert said(asked) == (
        f"○ “{typed}” is no shape that I can read. Write just its sizes with commas: 4, 7."
    )
    assert asked.state["tries"] == 0
    assert asked.state["right"] is None


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("64", 64),
        ("64.0", 64),
        (" 64 ", 64),
        ("64.", 64),
        ("128/2", 64),
        ("≈ 64", 64),
        ("1,600", 1600),
        ("1.600", 1600),
        ("1 600", 1600),
        ("1'600", 1600),
        ("1600", 1600),
        ("1,600", 1.6),
        ("1,234,567", 1234567),
        ("1.234,5", 1234.5),
        ("1,234.5", 1234.5),
        ("1e6", 1000000),
        ("1/3", 1 / 3),
        ("50 %", 0.5),
        ("50%", 50),
        ("1/2", 0.5),
        ("0,5", 0.5),
        (",5", 0.5),
        ("0,500", 0.5),
        ("-3", -3),
        ("−3", -3),
        (64, 64),
        (0.25, 0.25),
    ],
)
def test_a_right_number_in_many_forms(typed, right):
    asked = ask(NUMBER, right=right, wrong={})
    asked.answer(typed)
    assert asked.state["right"] is True


@pytest.mark.parametrize(
    ("typed", "right"),
    [("64", 65), ("1,600", 16), ("0,500", 500), ("1,60", 160), ("16,00", 1600), ("50", 0.5)],
)
def test_a_number_is_not_read_too_kindly(typed, right):
    asked = ask(NUMBER, right=right, wrong={})
    asked.answer(typed)
    assert asked.state["right"] is False


@pytest.mark.parametrize("typed", ["many", "1/0", "1,2,3", "1/2/3", "2 + 3", "%", "/", "--3", "1e"])
def test_what_is_no_number_is_no_try(typed):
    asked = ask(NUMBER)
    asked.answer(typed)
    assert said(asked).startswith(f"○ “{typed}” is no number that I can read.")
    assert asked.state["tries"] == 0


def test_a_number_may_be_a_little_off_if_the_question_says_so():
    asked = ask(NUMBER, right=0.88, tolerance=0.01, wrong={"0.73": "That is the other scale."})
    for typed, right in (("0.8808", True), ("0.895", False), ("0.73", False), ("0.735", False)):
        asked.answer(typed)
        assert asked.state["right"] is right, typed
    assert said(asked) == "✗ Not yet. That is the other scale. Try again."
    asked.answer("40")
    assert said(asked) == "✗ Not yet. Count again. Try again."


@pytest.mark.parametrize(("entry", "do"), [(CHOICE, "choose"), (SHAPE, "write")])
def test_checking_nothing_says_so(entry, do):
    asked = ask(entry)
    button_of(asked).click()
    assert said(asked).startswith(f"○ Nothing to check yet: {do} your answer")
    assert asked.state["tries"] == 0


def test_checking_the_same_answer_again_is_no_new_try():
    asked = ask(SHAPE)
    asked.answer("2, 5, 5")
    asked.check()
    assert asked.state["tries"] == 1


# --- from the browser ---------------------------------------------------------------------------


def button_of(widget):
    (button,) = (child for child in widget.children if type(child).__name__ == "Button")
    return button


def browser_says(control, **data) -> None:
    control._handle_msg({"content": {"data": data}, "buffers": []})


def types(control, text: str) -> None:
    """What the browser sends when a field is left, or after Enter."""
    browser_says(control, method="update", state={"value": text}, buffer_paths=[])


def enter(control) -> None:
    browser_says(control, method="custom", content={"event": "submit"})


def test_enter_submits_although_the_text_comes_after_it():
    asked = ask(SHAPE)
    enter(asked._control)
    types(asked._control, "2, 5, 5")
    assert asked.state["right"] is False
    enter(asked._control)
    types(asked._control, "2, 3, 5, 5")
    assert asked.state == {"question": "test", "answer": "2, 3, 5, 5", "right": True, "tries": 2}


def test_enter_submits_what_was_typed_before():
    asked = ask(SHAPE)
    types(asked._control, "2, 3, 5, 5")
    assert asked.state["right"] is None  # the field was left, and no more
    enter(asked._control)
    assert asked.state["right"] is True


def test_leaving_the_field_later_submits_nothing():
    asked = ask(SHAPE)
    enter(asked._control)
    types(asked._control, "2, 5, 5")
    types(asked._control, "2, 3, 5")
    assert asked.state["answer"] == "2, 5, 5"


def test_the_button_submits():
    asked = ask(SHAPE)
    types(asked._control, "2, 3, 5, 5")
    browser_says(button_of(asked), method="custom", content={"event": "click"})
    assert asked.state["right"] is True


def test_the_button_of_a_quiz_hands_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = quiz("lesson-01")
    for control in asked._controls:
        browser_says(control, method="update", state={"index": 0}, buffer_paths=[])
    browser_says(button_of(asked), method="custom", content={"event": "click"})
    assert asked.state["answers"] == "a a a"


def test_what_the_learner_types_is_shown_and_not_run():
    asked = ask(SHAPE)
    types(asked._control, "<img src=x onerror=alert(1)>&amp;`")
    asked.check()
    assert "<img" not in asked._feedback.value
    assert "“<img src=x onerror=alert(1)>&amp;`” is no shape" in said(asked)


def test_a_question_is_text_with_code():
    asked = ask(CHOICE, question="Is `a < b` & c?")
    shown = [child.value for child in asked.children if type(child).__name__ == "HTML"]
    assert "<p>Is <code>a &lt; b</code> &amp; c?</p>" in shown


def test_an_empty_line_starts_a_paragraph():
    assert questions._html("One\n`1`.\n\nTwo.\n") == "<p>One\n<code>1</code>.</p><p>Two.</p>"


def test_feedback_is_a_polite_live_region(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answered = quiz("pre-test")
    answered.answer(" ".join("?" * 12))
    for widget in (ask(CHOICE), quiz("lesson-01"), answered):
        assert re.fullmatch(r'<div role="status">.*</div>', widget._feedback.value)


# --- what is stored in a notebook ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "answer", "text"),
    [
        (lambda: ask(CHOICE), "two", "Predict: Which? Choices: one · two · three"),
        (lambda: ask(SHAPE, question="Which\nshape?\n"), "2", "Predict: Which shape? (a shape)"),
        (lambda: ask(NUMBER), "2", "Predict: How many? (a number)"),
        (lambda: quiz("lesson-01"), "a b a", "Quiz: Lesson 1, 3 questions"),
    ],
)
def test_the_stored_text_is_the_same_whether_answered_or_not(
    make, answer, text, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    widget = make()
    before = widget._repr_mimebundle_()
    widget.answer(answer)
    assert before["text/plain"] == widget._repr_mimebundle_()["text/plain"] == repr(widget) == text
    assert WIDGET in before


def test_every_stored_text_is_one_line():
    for widget in (*map(predict, PREDICTIONS), *map(quiz, QUIZZES)):
        assert re.fullmatch(r"(Predict|Quiz): .+", repr(widget)), repr(widget)
        assert "0x" not in repr(widget)


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(ValueError, match=r"no 'sampel-shape' in predictions.toml.* sample-shape"):
        predict("sampel-shape")
    with pytest.raises(
        ValueError, match=r"no 'lesson-3' in quizzes.toml; the nearest are lesson-03"
    ):
        quiz("lesson-3")


def test_nothing_is_read_before_it_is_asked_for():
    code = """
import sys
from course_utils import questions
assert not {"torch", "matplotlib"} & sys.modules.keys()
assert questions._load.cache_info().currsize == 0
questions.predict("sample-choice"), questions.predict("sample-shape")
assert questions._load.cache_info()[1:] == (1, None, 1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# --- quizzes ------------------------------------------------------------------------------------


def scores(folder) -> list[dict]:
    with (folder / "scores.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def right_letters(name: str) -> str:
    asked = QUIZZES[name]["questions"]
    return " ".join("abcd"[question["choices"].index(question["right"])] for question in asked)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_open_questions_are_named_and_nothing_is_noted(folder):
    asked = quiz("pre-test")
    for k, control in enumerate(asked._controls, start=1):
        control.index = None if k in (3, 7, 12) else 0
    asked.hand_in()
    assert said(asked) == "○ Questions 3, 7 and 12 are still open."
    asked._controls[11].index = 0
    asked.hand_in()
    assert said(asked) == "○ Questions 3 and 7 are still open."
    asked._controls[6].index = 0
    asked.hand_in()
    assert said(asked) == "○ Question 3 is still open."
    assert asked.state == {"quiz": "pre-test", "answers": None, "right": None, "of": 12}
    assert not (folder / "scores.csv").exists()


def test_each_hand_in_adds_a_line(folder):
    asked = quiz("pre-test")
    asked.answer("? " * 11 + right_letters("pre-test")[-1])
    assert asked.state["right"] == 1
    asked.answer(right_letters("pre-test"))
    quiz("lesson-02").answer("a a a")
    first, second, third = scores(folder)
    assert list(first) == ["when", "quiz", "right", "of", "answers"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", first.pop("when"))
    assert first == {
        "quiz": "pre-test",
        "right": "1",
        "of": "12",
        "answers": "? " * 11 + right_letters("pre-test")[-1],
    }
    assert (second["right"], second["answers"]) == ("12", right_letters("pre-test"))
    assert (third["quiz"], third["right"], third["of"]) == ("lesson-02", "1", "3")


@pytest.mark.parametrize("name", QUIZZES)
def test_a_full_score_can_be_reached(folder, name):
    asked = quiz(name)
    asked.answer(right_letters(name))
    total = len(QUIZZES[name]["questions"])
    assert said(asked).startswith(f"{total} of {total} right. ")
    assert said(asked).endswith("Noted in scores.csv.")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.removesuffix("\r\n").encode(),
        lambda text: text.replace(",", ";").encode("utf-8-sig"),
        lambda text: text.replace(",", "\t").encode("utf-16"),
        lambda text: ("sep=;\r\n" + text.replace(",", ";")).encode(),
        lambda text: text.replace("\r\n", "\n").encode(),
    ],
    ids=["no last line end", "semicolons", "UTF-16", "sep=", "line ends"],
)
def test_a_file_that_another_program_has_saved_is_gone_on_with(folder, change):
    quiz("lesson-01").answer(right_letters("lesson-01"))
    file = folder / "scores.csv"
    before = file.read_bytes().decode()
    file.write_bytes(change(before))
    quiz("lesson-02").answer("a a a")
    assert [line["quiz"] for line in scores(folder)] == ["lesson-01", "lesson-02"]
    assert file.read_bytes().decode().startswith(before)
    assert [other.name for other in folder.iterdir()] == ["scores.csv"]


@pytest.mark.parametrize("data", [b"name;mark\n", b"\xff\xfe\x00", b"when,quiz\x00"])
def test_some_other_file_is_left_as_it_is(folder, data):
    (folder / "scores.csv").write_bytes(data)
    asked = quiz("lesson-01")
    asked.answer(right_letters("lesson-01"))
    assert said(asked).endswith(", so note it yourself.")
    assert (folder / "scores.csv").read_bytes() == data


def test_a_score_that_cannot_be_noted_is_still_shown(folder):
    (folder / "scores.csv").mkdir()  # root may write everywhere, but not into a folder
    asked = quiz("lesson-01")
    asked.answer(right_letters("lesson-01"))
    assert re.fullmatch(
        r"3 of 3 right\. +scores\.csv cannot be written here \(.+\), so note it yourself\.",
        said(asked),
    )
    assert asked.state["right"] == 3


def notes(asked: Quiz) -> list[str]:
    return [html.unescape(re.sub("<[^>]+>", "", note.value)) for note in asked._notes]


def test_feedback_after_each_question_says_why(folder):
    asked = quiz("lesson-01")
    assert notes(asked) == ["", "", ""]
    asked.answer("a b a")
    first, second, _ = QUIZZES["lesson-01"]["questions"]
    assert notes(asked)[0] == f"✗ No. Right is “{first['right']}”. {first['why']}"
    assert notes(asked)[1] == f"✓ Right. {second['why'].strip()}"


def test_the_pre_test_gives_no_answer_away(folder):
    asked = quiz("pre-test")
    asked.answer(" ".join("?" * 12))
    assert said(asked) == ("0 of 12 right. The answers come in the lessons. Noted in scores.csv.")
    assert notes(asked) == [""] * 12


def test_only_the_tests_offer_not_to_know():
    for name in QUIZZES:
        for control in quiz(name)._controls:
            assert (control.options[-1] == NOT_SURE) is (name in TESTS)


@pytest.mark.parametrize(
    ("letters", "message"),
    [
        ("a b", "letters must be 3, got 2"),
        ("a b z", "letter 3 must be one of a, b, c; got 'z'"),
        ("? b a", r"letter 1 must be one of a, b, c, d; got '\?'"),
    ],
)
def test_letters_that_do_not_fit_are_refused(folder, letters, message):
    asked = quiz("lesson-01")
    with pytest.raises(ValueError, match=message):
        asked.answer(letters)
    assert not (folder / "scores.csv").exists()
