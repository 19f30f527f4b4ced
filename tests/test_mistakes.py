"""Every known mistake in a layer and its parts, alone and with others, is found.

The code it is found in, ``solutions.attention``, knows nothing of the steps and the search.
"""

import functools
import itertools
import random

import pytest
import torch
from solutions.attention import ATTENTION, LAYER, MERGE, SPLIT

from course_utils.exercises import CheckFailed
from course_utils.exercises.repeat import DROPOUT
from course_utils.exercises.search import same

STEP = {m.id: m.step for m in (*LAYER.exercise.all_mistakes, DROPOUT)}


# Named alone, but not in every company: a fixed divisor is read off weights that nothing else has
# changed, and float32 rounds scores that are lowered by 10,000 to a thousandth, up or down.
ALONE = ("fixed-divisor", "blocked-row-open")


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


def calls(solution):
    """Return calls of the learner's code, on inputs that no check uses."""
    torch.default_generator.manual_seed(5)  # torch.manual_seed is far slower
    if solution is LAYER:
        for n, l_q, l_k, d, h in ((2, 4, 4, 8, 2), (4, 5, 5, 12, 3), (3, 4, 5, 6, 2)):
            x, y, z = torch.randn(n, l_q, d), torch.randn(n, l_k, d), torch.randn(n, l_k, d)
            for passed in ((x,), (x, y), (x, y, z)):
                for m in (None, mask(l_q, l_k), mask(n, h, l_q, l_k)):
                    yield lambda learner, h=h, d=d, p=passed, m=m: fill(learner(d, h))(*p, mask=m)
    elif solution is ATTENTION:
        for batch, l_q, l_k in (((), 4, 4), ((2, 2), 4, 4), ((4, 3), 5, 5), ((3, 2), 4, 5)):
            q, k, v = (torch.randn(*batch, length, 6) for length in (l_q, l_k, l_k))
            for m in (None, mask(l_q, l_k), mask(*batch, l_q, l_k)):
                yield lambda learner, q=q, k=k, v=v, m=m: learner(q, k, v, m)
    else:
        x = torch.randn(2, 2, 3, 4)
        yield lambda learner: learner(x) if solution is MERGE else learner(x.flatten(0, 1), 2)


@functools.cache
def behaviour(solution, bugs):
    """Return everything that the learner's code returns, or None for an error, in float64."""
    answers = []
    for call in calls(solution):
        torch.default_generator.manual_seed(0)
        try:
            answer = call(solution.make(*bugs))
        except RuntimeError:
            answers.append(None)
        else:
            answer = answer if isinstance(answer, tuple) else (answer,)
            answers.append([x.detach().double().clamp(min=-1e8) for x in answer])
    return answers


def alike(solution, bugs, others):
    """Whether two sets of mistakes cannot be told apart, dropout (in both) aside."""
    bugs, others = set(bugs), set(others)
    if DROPOUT.id in bugs & others:
        bugs, others = bugs - {DROPOUT.id}, others - {DROPOUT.id}
    pairs = zip(*(behaviour(solution, frozenset(ids)) for ids in (bugs, others)), strict=True)
    for a, b in pairs:
        if (a is None) != (b is None) or (a and len(a) != len(b)):
            return False
        if a and not all(map(same, a, b)):
            return False
    return True


def known(solution):
    """Return the ids of the mistakes that can be made in this exercise."""
    if solution in (SPLIT, MERGE):
        return [mistake.id for mistake in solution.exercise.mistakes]
    return [mistake.id for mistake in (*solution.exercise.all_mistakes, DROPOUT)]


def combinations(solution, size):
    ids = [bug for bug in known(solution) if bug not in ALONE]
    for bugs in itertools.combinations(ids, size):
        if len({STEP[bug] for bug in bugs}) == size:
            yield bugs


def assert_named(solution, bugs):
    with pytest.raises(CheckFailed) as caught:
        solution.check(solution.make(*bugs))
    message, explanations = str(caught.value), caught.value.explanations
    assert set(caught.value.mistakes) == {mistake for ids in explanations for mistake in ids}
    assert all(mistake in message for mistake in caught.value.mistakes)
    if not explanations:  # with nothing but errors there is no number to explain
        assert "your code raised RuntimeError" in message, (bugs, message)
        assert not any(behaviour(solution, frozenset(bugs))), bugs
    # If the message names others, they are fewer or as many, and nobody could tell.
    most = len(bugs) if set(bugs) in map(set, explanations) else len(bugs) - 1
    for ids in explanations:
        assert len(ids) <= most, (bugs, explanations)
        assert set(ids) == set(bugs) or alike(solution, bugs, ids), (bugs, explanations)


@pytest.mark.parametrize("solution", [SPLIT, MERGE, ATTENTION, LAYER])
def test_every_mistake_alone_is_named_and_nothing_else(solution):
    silent = []
    for bug in known(solution):
        try:
            solution.check(solution.make(bug))
        except CheckFailed as failure:
            found = failure
        else:
            pytest.fail(f"{bug}: the solution does not make this mistake; add a switch")
        if found.mistakes:
            assert found.explanations == ((bug,),)
        else:
            silent.append(bug)
    # With only one of the two ends wrong, no shape fits and torch raises an error everywhere.
    expected = ["heads-stay-behind-tokens", "merge-joins-tokens"] if solution is LAYER else []
    assert silent == expected


def some_or_all(every):
    """All pairs take a core minutes, so without CI only every ninth, 81st … is tried."""
    return pytest.mark.parametrize("step", [every, pytest.param(1, marks=pytest.mark.slow)])


class TestPairs:
    @some_or_all(9)
    @pytest.mark.parametrize("solution", [SPLIT, MERGE, ATTENTION])
    def test_of_a_function(self, solution, step):
        for bugs in [*combinations(solution, 2)][::step]:
            assert_named(solution, bugs)

    @some_or_all(81)
    @pytest.mark.parametrize("first", known(LAYER)[::2])
    def test_of_a_layer(self, first, step):
        check_layer_pairs(first, step)


class TestMorePairs:  # a class of its own, so that a second worker takes it
    @some_or_all(81)
    @pytest.mark.parametrize("first", known(LAYER)[1::2])
    def test_of_a_layer(self, first, step):
        check_layer_pairs(first, step)


def check_layer_pairs(first, step):
    inner = set(known(ATTENTION))  # pairs of these are tested in the function, see above
    pairs = [bugs for bugs in combinations(LAYER, 2) if not inner.issuperset(bugs)]
    for bugs in pairs[::step]:
        if bugs[0] == first:
            assert_named(LAYER, bugs)


@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("solution", [ATTENTION, LAYER])
def test_a_sample_of_triples_is_named(solution, count):
    for bugs in random.Random(7).sample(list(combinations(solution, 3)), count):
        assert_named(solution, bugs)
