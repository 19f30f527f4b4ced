"""Every known mistake, alone and with others, is found in code that knows nothing of the registry.

``attention``, ``split``, ``merge`` and ``Layer`` below are written as a learner would write them,
with a switch for each mistake, and share no line with ``course_utils``.
"""

import functools
import itertools
import math
import os
import random
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from course_utils import attention as ours
from course_utils import exercises
from course_utils.exercises import CheckFailed, core
from course_utils.exercises.registry import (
    ATTENTION,
    DROPOUT,
    MERGE_HEADS,
    MISTAKES,
    MULTI_HEAD,
    REFERENCE,
    SPLIT_HEADS,
)
from course_utils.exercises.search import explain, same
from course_utils.exercises.trial import random_numbers

STEP = {mistake.id: mistake.step for mistake in (*MISTAKES, DROPOUT)}


# --- Learners ------------------------------------------------------------------------------------


def split(x, num_heads, bugs=()):
    batch_size, seq_len, embed_dim = x.shape
    head_dim = embed_dim // num_heads
    if "split-interleaved" in bugs:
        heads = [x[:, :, h::num_heads] for h in range(num_heads)]
    else:
        heads = [x[:, :, h * head_dim : (h + 1) * head_dim] for h in range(num_heads)]
    if "split-without-transpose" in bugs:
        return torch.cat(heads, dim=2).view(batch_size, num_heads, seq_len, head_dim)
    if "heads-stay-behind-tokens" in bugs:
        return torch.stack(heads, dim=2)
    return torch.stack(heads, dim=0 if "split-heads-before-batch" in bugs else 1)


def merge(x, bugs=()):
    if "merge-heads-before-batch" in bugs:
        heads = list(x)  # each (N, L, d_h)
    elif "merge-without-transpose" in bugs:
        n, h, length, d = x.shape
        heads = x.reshape(n, length, h, d).unbind(2)
    elif "merge-joins-tokens" in bugs:
        heads = x.unbind(2)
    else:
        heads = x.unbind(1)
    if "merge-interleaved" in bugs:
        return torch.stack(heads, dim=-1).flatten(2)
    if "heads-averaged" in bugs:
        return sum(heads) / len(heads)
    return sum(heads) if "heads-summed" in bugs else torch.cat(heads, dim=-1)


def attention(query, key, value, mask=None, bugs=(), num_heads=1):
    left, right = (key, query) if "query-key-swapped" in bugs else (query, key)
    scores = torch.einsum("...id,...jd->...ij", left, right)
    d = query.shape[-1]
    if "scale-by-embed-dim" in bugs:
        scores = scores / math.sqrt(d * num_heads)
    elif "scale-without-root" in bugs:
        scores = scores / d
    elif "scale-multiplied" in bugs:
        scores = scores * d**0.5
    elif "no-scale" not in bugs:
        scores = scores * d**-0.5

    if mask is not None and "mask-inverted" in bugs:
        mask = ~mask
    if "mask-ignored" in bugs:
        mask = None
    masked = scores
    if mask is not None:
        if "mask-added" in bugs:
            masked = scores + mask.float()
        elif "mask-multiplied" in bugs:
            masked = scores * mask.int()
        elif "blocked-row-even" in bugs:
            masked = scores.masked_fill(mask == 0, -1e9)
        elif "mask-after-softmax" not in bugs:
            masked = torch.where(mask, scores, -torch.inf)

    dim = -1
    if "softmax-over-queries" in bugs:
        dim = -2
    if "softmax-over-heads" in bugs:
        dim = 1
    if "softmax-over-batch" in bugs:
        dim = 0
    weights = masked.softmax(dim)
    if mask is not None:
        if "mask-after-softmax" in bugs:
            weights = weights.masked_fill(~mask, 0)
        elif not {"mask-added", "mask-multiplied", "blocked-row-even", "blocked-row-nan"} & set(
            bugs
        ):
            weights = weights.nan_to_num(0)
    if DROPOUT.id in bugs:
        weights = nn.functional.dropout(weights, 0.2)

    output = torch.einsum("...ij,...jd->...id", weights, key if "keys-as-values" in bugs else value)
    if "weights-averaged" in bugs:
        weights = weights.mean(dim=1)
    if "scores-returned" in bugs:
        weights = scores
    if "masked-scores-returned" in bugs:
        weights = masked
    if "unmasked-weights-returned" in bugs:
        weights = torch.exp(scores) / torch.exp(scores).sum(dim, keepdim=True)
    return returned(output, weights, bugs)


def returned(output, weights, bugs):
    if "only-first-returned" in bugs:
        return output
    return (weights, output) if "returned-in-wrong-order" in bugs else (output, weights)


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads, bugs=()):
        super().__init__()
        self.num_heads, self.bugs = num_heads, bugs
        head_dim = embed_dim // num_heads
        width = head_dim if "shared-small-projection" in bugs else embed_dim
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        if "no-output-projection" not in bugs:
            narrow = "heads-averaged" in bugs or "heads-summed" in bugs
            self.out_proj = nn.Linear(head_dim if narrow else embed_dim, embed_dim)

    def project(self, x, layer):
        if "inputs-not-projected" in self.bugs:
            return split(x, self.num_heads, self.bugs)
        if "shared-small-projection" in self.bugs:
            return layer(split(x, self.num_heads, self.bugs))
        return split(layer(x), self.num_heads, self.bugs)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        if "key-and-value-ignored" in self.bugs:
            key = value = query
        if "value-ignored" in self.bugs:
            value = key
        layers = [self.q_proj, self.k_proj, self.v_proj]
        if "projections-swapped" in self.bugs:
            layers = [self.k_proj, self.q_proj, self.v_proj]
        if "key-through-q-proj" in self.bugs:
            layers[1] = self.q_proj
        if "value-through-k-proj" in self.bugs:
            layers[2] = self.k_proj
        if "one-projection" in self.bugs:
            layers = [self.q_proj] * 3
        q, k, v = map(self.project, (query, key, value), layers)
        inner = [bug for bug in self.bugs if STEP[bug] != "order"]
        output, weights = attention(q, k, v, mask, inner, self.num_heads)
        output = merge(output, self.bugs)
        if "no-output-projection" not in self.bugs:
            output = self.out_proj(output)
            if "bias-once-per-head" in self.bugs:
                for _ in range(self.num_heads - 1):
                    output = output + self.out_proj.bias
        return returned(output, weights, self.bugs)


# --- Judging a check: what it names must be what was done, or something that does the same -------


def mask(*shape):
    """Return random positions, but in each head one open and one blocked row."""
    mask = torch.rand(shape) > 0.5
    mask[..., -1, :], mask[..., 1, :], mask[..., 0, :2] = True, False, torch.tensor([False, True])
    return mask


def fill(layer):
    """Give equal names equal numbers, whatever other parameters the layer has."""
    for name, parameter in layer.named_parameters():
        seeded = torch.Generator().manual_seed(sum(map(ord, name)))
        parameter.data.normal_(std=0.4, generator=seeded)
    return layer.eval()


def calls(make):
    """Return calls of the learner's code, on inputs that no check uses."""
    torch.default_generator.manual_seed(5)  # torch.manual_seed is far slower
    if make is layer_with:
        for n, l_q, l_k, d, h in ((2, 4, 4, 8, 2), (4, 5, 5, 12, 3), (3, 4, 5, 6, 2)):
            x, y, z = torch.randn(n, l_q, d), torch.randn(n, l_k, d), torch.randn(n, l_k, d)
            for passed in ((x,), (x, y), (x, y, z)):
                for m in (None, mask(l_q, l_k), mask(n, h, l_q, l_k)):
                    yield lambda learner, h=h, d=d, p=passed, m=m: fill(learner(d, h))(*p, mask=m)
    elif make is attention_with:
        for batch, l_q, l_k in (((), 4, 4), ((2, 2), 4, 4), ((4, 3), 5, 5), ((3, 2), 4, 5)):
            q, k, v = (torch.randn(*batch, length, 6) for length in (l_q, l_k, l_k))
            for m in (None, mask(l_q, l_k), mask(*batch, l_q, l_k)):
                yield lambda learner, q=q, k=k, v=v, m=m: learner(q, k, v, m)
    else:
        x = torch.randn(2, 2, 3, 4)
        yield lambda learner: learner(x) if make is merge_with else learner(x.flatten(0, 1), 2)


@functools.cache
def behaviour(make, bugs):
    """Return everything that the learner's code returns, or None for an error, in float64."""
    answers = []
    for call in calls(make):
        torch.default_generator.manual_seed(0)
        try:
            answer = call(make(bugs))
        except RuntimeError:
            answers.append(None)
        else:
            answer = answer if isinstance(answer, tuple) else (answer,)
            answers.append([x.detach().double().clamp(min=-1e8) for x in answer])
    return answers


def alike(make, bugs, others):
    """Whether two sets of mistakes cannot be told apart, dropout (in both) aside."""
    bugs, others = set(bugs), set(others)
    if DROPOUT.id in bugs & others:
        bugs, others = bugs - {DROPOUT.id}, others - {DROPOUT.id}
    pairs = zip(*(behaviour(make, frozenset(ids)) for ids in (bugs, others)), strict=True)
    for a, b in pairs:
        if (a is None) != (b is None) or (a and len(a) != len(b)):
            return False
        if a and not all(map(same, a, b)):
            return False
    return True


def split_with(bugs):
    return lambda x, num_heads: split(x, num_heads, bugs)


def merge_with(bugs):
    return lambda x: merge(x, bugs)


def attention_with(bugs):
    return lambda query, key, value, mask=None: attention(query, key, value, mask, bugs)


def layer_with(bugs):
    return lambda embed_dim, num_heads: Layer(embed_dim, num_heads, bugs)


CHECKS = {
    split_with: (exercises.check_split_heads, SPLIT_HEADS[1:]),
    merge_with: (exercises.check_merge_heads, MERGE_HEADS[1:]),
    attention_with: (exercises.check_scaled_dot_product_attention, (*ATTENTION, "")),
    layer_with: (exercises.check_multi_head_attention, (*MULTI_HEAD, "")),
}


def known(make):
    """Return the ids of the mistakes that can be made in this exercise."""
    ids = [mistake for mistake, step in STEP.items() if step in CHECKS[make][1]]
    if make is attention_with:
        ids.remove("scale-by-embed-dim")  # one head is all that this function sees
    return ids


def combinations(make, size):
    for bugs in itertools.combinations(known(make), size):
        if len({STEP[bug] for bug in bugs}) == size:
            yield bugs


def assert_named(make, bugs):
    with pytest.raises(CheckFailed) as caught:
        CHECKS[make][0](make(bugs))
    message, explanations = str(caught.value), caught.value.explanations
    assert set(caught.value.mistakes) == {mistake for ids in explanations for mistake in ids}
    assert all(mistake in message for mistake in caught.value.mistakes)
    if not explanations:  # with nothing but errors there is no number to explain
        assert "your code raised RuntimeError" in message, (bugs, message)
        assert not any(behaviour(make, frozenset(bugs))), bugs
    # If the message names others, they are fewer or as many, and nobody could tell.
    most = len(bugs) if set(bugs) in map(set, explanations) else len(bugs) - 1
    for ids in explanations:
        assert len(ids) <= most, (bugs, explanations)
        assert set(ids) == set(bugs) or alike(make, bugs, ids), (bugs, explanations)


@pytest.mark.parametrize("make", CHECKS)
def test_without_a_mistake_the_learners_are_right(make, capsys):
    assert CHECKS[make][0](make(())) is True
    assert capsys.readouterr().out.startswith("✓ ")


@pytest.mark.parametrize("make", CHECKS)
def test_every_mistake_alone_is_named_and_nothing_else(make):
    silent = []
    for bug in known(make):
        try:
            CHECKS[make][0](make((bug,)))
        except CheckFailed as failure:
            found = failure
        else:
            pytest.fail(f"{bug}: the learner's code in this file does not make it; add a switch")
        if found.mistakes:
            assert found.explanations == ((bug,),)
        else:
            silent.append(bug)
    # With only one of the two ends wrong, no shape fits and torch raises an error everywhere.
    expected = ["heads-stay-behind-tokens", "merge-joins-tokens"] if make is layer_with else []
    assert silent == expected


class TestPairs:
    @pytest.mark.parametrize("make", [split_with, merge_with, attention_with])
    def test_of_a_function(self, make):
        for bugs in combinations(make, 2):
            assert_named(make, bugs)

    @pytest.mark.parametrize("first", known(layer_with)[::2])
    def test_of_a_layer(self, first):
        check_layer_pairs(first)


class TestMorePairs:  # a class of its own, so that a second worker takes it
    @pytest.mark.parametrize("first", known(layer_with)[1::2])
    def test_of_a_layer(self, first):
        check_layer_pairs(first)


def check_layer_pairs(first):
    inner = set(known(attention_with))  # pairs of these are tested in the function, see above
    pairs = [bugs for bugs in combinations(layer_with, 2) if not inner.issuperset(bugs)]
    if not os.environ.get("CI"):  # all of them take a core half a minute; here every ninth
        pairs = pairs[::9]
    for bugs in pairs:
        if bugs[0] == first:
            assert_named(layer_with, bugs)


@pytest.mark.parametrize("make", [attention_with, layer_with])
def test_a_sample_of_triples_is_named(make):
    for bugs in random.Random(7).sample(list(combinations(make, 3)), 12):
        assert_named(make, bugs)


# --- The search and the registry -----------------------------------------------------------------


def trials():
    yield from ((trial, SPLIT_HEADS) for trial in core._split_trials(ours.split_heads))
    yield from ((trial, MERGE_HEADS) for trial in core._merge_trials(ours.merge_heads))
    yield from ((t, ATTENTION) for t in core._attention_trials(ours.scaled_dot_product_attention))
    yield from ((t, MULTI_HEAD) for t in core._multi_head_trials(ours.MultiHeadAttention))


def test_the_reference_steps_compute_what_torch_computes():
    for trial, steps in trials():
        state = dict(trial.given)
        for step in steps:
            state[step] = REFERENCE[step](SimpleNamespace(**state))
        returned = [state[step] for step in state["returns"]]
        assert all(map(same, returned, trial.expected())), trial.label


def test_no_mistake_is_found_in_a_right_answer():
    for trial, steps in trials():
        answer = tuple(x.double() for x in trial.expected())
        found = explain(steps, [(trial.given, answer)], most=1)
        # One trial alone cannot show, say, a mistake with the mask; but nothing visible may fit.
        state = dict(trial.given)
        for (mistake,) in found:
            for step in steps:
                compute = mistake.variant if step == mistake.step else REFERENCE[step]
                state[step] = compute(SimpleNamespace(**state))
            assert all(same(state[step], x) for step, x in zip(state["order"], answer, strict=True))


def test_numbers_from_elsewhere_are_not_explained():
    given = next(iter(core._split_trials(ours.split_heads))).given
    other = random_numbers(2, 2, 3, 4, seed=1).double()  # seed 0 would be the input again
    assert explain(SPLIT_HEADS, [(given, (other,))]) == []
    assert explain(SPLIT_HEADS, [(given, None)]) == []


def test_an_error_must_be_explained_too():
    trials = list(core._merge_trials(ours.merge_heads))
    wrong = [(t.given, (merge(t.inputs["x"].double(), ("merge-interleaved",)),)) for t in trials]
    assert [[m.id for m in found] for found in explain(MERGE_HEADS, wrong)] == [
        ["merge-interleaved"]
    ]
    # The same numbers, but an error where this mistake raises none: something else is going on.
    assert explain(MERGE_HEADS, [*wrong[:2], (wrong[2][0], None)]) == []


def test_every_entry_is_complete():
    assert len({mistake.id for mistake in MISTAKES}) >= 40
    assert all(STEP[mistake.id] == mistake.step for mistake in MISTAKES), "one id, one step"
    for mistake in (*MISTAKES, DROPOUT):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", mistake.id)
        assert all(re.fullmatch(r"M\d\d", row) for row in mistake.rows)
        assert mistake.step in REFERENCE or mistake is DROPOUT
        assert mistake.why.endswith(".")
        for text in (mistake.title, mistake.why, mistake.look):
            assert 5 < len(text) <= 100
            assert "\n" not in text
        for code in ("transpose(", "permute(", "softmax(", "sqrt(", "masked_fill(", " = "):
            assert code not in mistake.look, "a place to look at, not finished code"


def test_some_test_makes_every_mistake():
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [mistake.id for mistake in MISTAKES if f'"{mistake.id}"' not in tests] == []


def test_the_rows_of_the_catalogue_about_code_are_covered():
    rows = {row for mistake in (*MISTAKES, DROPOUT) for row in mistake.rows}
    wanted = {2, 3, 6, 9, 10, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 29, 31, 33, 37}
    assert rows >= {f"M{row:02}" for row in wanted}
