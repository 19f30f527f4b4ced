"""Every right answer of every quiz, computed with torch."""

import copy
import itertools
import math
import re

import pytest
import torch
from torch import nn

from course_utils.attention import MultiHeadAttention, merge_heads, split_heads
from course_utils.questions.bank import load

PREDICTIONS, QUIZZES = load()["predictions"], load()["quizzes"]
ASKED = {  # (quiz, number) -> question
    (name, k): question
    for name, entry in QUIZZES.items()
    for k, question in enumerate(entry["questions"], start=1)
}


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
            "the other tokens look at “cat” a lot, which is no mistake": (
                is_looked_at > looks
            ).item(),
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
    # Ours and torch's layer add in one order on some processors; so the heads change places here.
    ours = MultiHeadAttention(64, 4).eval()
    swapped = copy.deepcopy(ours)
    order = torch.arange(64).view(4, 16).flip(0).flatten()
    for name in ("q_proj", "k_proj", "v_proj"):
        own, other = getattr(ours, name), getattr(swapped, name)
        other.weight.copy_(own.weight[order])
        other.bias.copy_(own.bias[order])
    swapped.out_proj.weight.copy_(ours.out_proj.weight[:, order])
    pairs = [(ours(x)[0], swapped(x)[0]) for x in torch.randn(50, 2, 5, 64)]
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
def turned_with(feature):
    """The other feature that changes when one feature of eight is moved before it is turned."""
    x = torch.zeros(1, 1, 1, 8)
    x[..., feature] = 1.0
    angles = torch.tensor([1.0, 0.9, 0.8, 0.7])
    a, b = x.chunk(2, dim=-1)
    turned = torch.cat(
        [a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1
    )
    first, second = turned.flatten().nonzero().flatten().tolist()
    return f"feature {second if first == feature else first}"


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
    ("lesson-10", 1): lambda q: f"head {torch.arange(4).repeat_interleave(2)[5]}",
    ("lesson-10", 2): lambda q: str(torch.ones(3, 4 + 3).tril(4)[0].count_nonzero().item()),
    ("lesson-10", 3): lambda q: turned_with(1),
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
