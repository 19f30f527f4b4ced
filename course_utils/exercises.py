"""Checks of the smaller exercises of the lessons, and the parts these are made of.

They judge as ``course_utils.checks`` does: random inputs, compared with torch, and a search for the
mistakes that give exactly the learner's numbers. Each returns True if the answer is right and False
if it is not attempted yet, after one printed line, or raises ``CheckFailed``.
"""

import contextlib
import copy
import linecache
import math
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn

from course_utils import mistakes
from course_utils.attention import MultiHeadAttention
from course_utils.checks import SIZES, CheckFailed, Trial, check, judge_layer, random_numbers

PLANTED = {  # the bug hunt of lesson 5
    1: "split-without-transpose",
    2: "scale-by-embed-dim",
    3: "merge-without-transpose",
    4: "softmax-over-heads",
    5: "query-key-swapped",
}


def check_one_row(fn: Callable | None) -> bool:
    """Check ``fn(query, key, value) -> (output, weights)`` for a single query.

    query is (d,), key (L, d) and value (L, d_v); output is (d_v,) and weights (L,).

    Raises:
        CheckFailed: it is wrong.
    """

    def truth(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.softmax(key @ query / math.sqrt(len(query)), dim=0)
        return weights @ value, weights

    def trials(fn: Callable) -> Iterator[Trial]:
        for length, d, d_v in ((3, 4, 4), (5, 7, 2)):
            inputs = {
                "query": random_numbers(d, seed=1),
                "key": random_numbers(length, d, seed=2),
                "value": random_numbers(length, d_v, seed=3),
            }
            given = {
                "returns": ("mixed", "returned_weights"),
                "heads": [x.double() for x in inputs.values()],
                "mask": None,
            }

            def call(**x: Tensor) -> object:
                result = fn(*x.values())
                if isinstance(result, tuple):  # the lesson's own loop makes lists of numbers
                    result = tuple(torch.tensor(r) if isinstance(r, list) else r for r in result)
                return result

            yield Trial(inputs, call, truth, given, gradients=False)

    return check("one_row", fn, trials, mistakes.ATTENTION, "3 keys and 5 keys")


def check_attention_scale(fn: Callable | None) -> bool:
    """Check ``fn(embed_dim, num_heads)``: the factor that a layer's scores are multiplied by.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for _, _, d, h in SIZES:
            sizes = {"embed_dim": d, "num_heads": h}

            def call(d: int = d, h: int = h) -> object:
                factor = fn(d, h)
                with contextlib.suppress(TypeError, ValueError):  # any kind of number will do
                    return torch.tensor(float(factor))
                return factor

            def truth(d: int = d, h: int = h) -> tuple[Tensor]:
                return (torch.tensor(1 / math.sqrt(d / h), dtype=torch.float64),)

            given = {"returns": ("factor",), **sizes}
            yield Trial({}, call, truth, given, names=("the factor",))

    return check("attention_scale", fn, trials, mistakes.ATTENTION_SCALE)


def check_gradient_norms(fn: Callable | None) -> bool:
    """Check ``fn(query, key, upstream, scaled)``: how large a gradient reaches the scores.

    query is (Q, d), key (Q, L, d), upstream (Q, L), and the result (Q,): for each query the norm of
    the gradient at the scores that go into softmax, if upstream is the gradient at the weights.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for queries, length, d, scaled in ((3, 3, 8, False), (4, 5, 7, False), (4, 5, 7, True)):
            inputs = {
                "query": random_numbers(queries, d, seed=1),
                "key": random_numbers(queries, length, d, seed=2),
                "upstream": random_numbers(queries, length, seed=3),
            }

            def call(scaled: bool = scaled, **x: Tensor) -> object:
                return fn(*x.values(), scaled)

            def truth(
                query: Tensor, key: Tensor, upstream: Tensor, scaled: bool = scaled
            ) -> tuple[Tensor]:
                scores = torch.einsum("qd,qld->ql", query, key)
                scores = scores / (math.sqrt(query.shape[-1]) if scaled else 1)
                scores.requires_grad_()
                weights = torch.softmax(scores, dim=-1)
                return (torch.autograd.grad(weights, scores, upstream)[0].norm(dim=-1),)

            given = {name: x.double() for name, x in inputs.items()}
            given |= {"returns": ("norms",), "is_scaled": scaled}
            yield Trial(inputs, call, truth, given, names=("the result",), gradients=False)

    return check(
        "gradient_norms", fn, trials, mistakes.GRADIENT_NORMS, "with and without the scale"
    )


def check_head_projection(fn: Callable | None) -> bool:
    """Check ``fn(proj, num_heads, head)``: weight (d_h, D) and bias (d_h,) of one head's own layer.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, h, head in ((8, 2, 0), (14, 2, 1), (12, 3, 1)):
            proj = nn.Linear(d, d)

            def call(proj: nn.Linear = proj, h: int = h, head: int = head) -> object:
                return fn(copy.deepcopy(proj), h, head)

            def truth(proj: nn.Linear = proj, h: int = h, head: int = head) -> tuple:
                return proj.weight.double().chunk(h)[head], proj.bias.double().chunk(h)[head]

            given = {"weight": proj.weight.double(), "bias": proj.bias.double(), "num_heads": h}
            given |= {"returns": ("own_weight", "own_bias"), "head": head}
            yield Trial({}, call, truth, given, names=("weight", "bias"))

    return check("head_projection", fn, trials, mistakes.HEAD_PROJECTION, "two heads and three")


def check_copy_weights(fn: Callable | None) -> bool:
    """Check ``fn(theirs, ours)``: it copies an ``nn.MultiheadAttention`` into a layer of ours.

    Both layers get random weights and biases; then all eight tensors of ours are compared.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for _, _, d, h in SIZES:
            theirs = nn.MultiheadAttention(d, h, batch_first=True)
            for x in theirs.parameters():
                nn.init.normal_(x)
            fresh = MultiHeadAttention(d, h)

            def call(theirs: nn.Module = theirs, fresh: nn.Module = fresh) -> object:
                source, ours = copy.deepcopy(theirs), copy.deepcopy(fresh)
                with torch.no_grad():  # as in the lesson: copying is no step of training
                    fn(source, ours)
                    for x in source.parameters():
                        x.zero_()  # a copy does not notice
                return _all_weights(ours)

            def truth(theirs: nn.Module = theirs) -> tuple[Tensor, Tensor]:
                return _all_weights(MultiHeadAttention.from_torch(theirs).double())

            numbers = {name: x.detach().double() for name, x in theirs.named_parameters()}
            old = tuple(x.double() for x in _all_weights(fresh))
            given = {"theirs": numbers, "old": old, "num_heads": h, "embed_dim": d}
            given["returns"] = ("copied_weights", "copied_biases")
            names = ("the four weights", "the four biases")
            yield Trial({}, call, truth, given, names=names)

    return check("copy_weights", fn, trials, mistakes.COPY_WEIGHTS, "all eight tensors")


def check_per_head_weights(fn: Callable | None, block: Callable[[int, int], nn.Module]) -> bool:
    """Check ``fn(block, x)``: the weights of each head, (N, H, L, L), inside a block.

    Args:
        fn: the learner's function.
        block: makes a block from embed_dim and num_heads. Its ``attention``, an
            ``nn.MultiheadAttention``, attends within what its ``norm`` makes of x (N, L, D).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, d, h in SIZES:
            made = block(d, h).eval()
            for x in made.parameters():
                nn.init.normal_(x, std=1 / math.sqrt(d))
            exact = copy.deepcopy(made).double()

            def maps(seen: Tensor, exact: nn.Module = exact) -> Tensor:
                return exact.attention(seen, seen, seen, average_attn_weights=False)[1]

            def truth(x: Tensor, exact: nn.Module = exact, maps: Callable = maps) -> tuple[Tensor]:
                return (maps(exact.norm(x)),)

            inputs = {"x": random_numbers(n, length, d)}
            given = {"returns": ("returned_maps",), "x": inputs["x"].double(), "num_heads": h}
            given |= {"normed": exact.norm(given["x"]), "maps_of": maps}

            def call(x: Tensor, made: nn.Module = made) -> object:
                return fn(made, x)

            yield Trial(inputs, call, truth, given, names=("the result",), gradients=False)

    return check("per_head_weights", fn, trials, mistakes.PER_HEAD_WEIGHTS)


def check_mean_pool(fn: Callable | None) -> bool:
    """Check ``fn(x, mask) -> (mean, unit)``: a sentence's tokens become one vector.

    x is (N, L, D) and mask (N, L), boolean, True = a token. mean is (N, D), over the tokens without
    the padding, and unit (N, D) the same brought to length 1.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for lengths, d in (((3,), 4), ((4, 2), 4), ((2, 5, 4), 7)):
            inputs = {
                "x": random_numbers(len(lengths), max(lengths), d, seed=1),
                "is_token": torch.arange(max(lengths)) < torch.tensor(lengths)[:, None],
            }

            def truth(x: Tensor, is_token: Tensor) -> tuple[Tensor, Tensor]:
                mean = torch.stack([row[own].mean(0) for row, own in zip(x, is_token, strict=True)])
                return mean, mean / mean.norm(dim=-1, keepdim=True)

            given = {"x": inputs["x"].double(), "is_token": inputs["is_token"]}
            given["returns"] = ("pooled", "unit")
            names = ("mean", "unit vector")
            yield Trial(inputs, lambda x, is_token: fn(x, is_token), truth, given, names=names)

    return check("mean_pool", fn, trials, mistakes.MEAN_POOL, "with padding and without")


def check_remove_head(fn: Callable | None) -> bool:
    """Check ``fn(weight, bias, num_heads, head) -> (weight, bias)``: out_proj without one head.

    weight is (D, D) and bias (D,), as in ``out_proj``; what comes back are new tensors, with which
    the layer gives what it gave, less what this head added.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, h, head in ((8, 2, 0), (14, 2, 1), (12, 3, 1)):
            inputs = {"weight": random_numbers(d, d, seed=1), "bias": random_numbers(d, seed=2)}

            def call(weight: Tensor, bias: Tensor, h: int = h, head: int = head) -> object:
                return fn(weight, bias, h, head)

            def truth(weight: Tensor, bias: Tensor, h: int = h, head: int = head) -> tuple:
                blocks = list(weight.chunk(h, dim=1))
                blocks[head] = torch.zeros_like(blocks[head])
                return torch.cat(blocks, dim=1), bias

            given = {name: x.double() for name, x in inputs.items()}
            given |= {"returns": ("cleared", "kept_bias"), "num_heads": h, "head": head}
            names = ("weight", "bias")
            yield Trial(inputs, call, truth, given, names=names, gradients=False)

    return check("remove_head", fn, trials, mistakes.REMOVE_HEAD, "two heads and three")


def check_previous_token(fn: Callable | None) -> bool:
    """Check ``fn(weights)``: (N, H, L, L) to (H,), each head's mean weight on the token before.

    The mean is over the samples and over the queries but the first, which has no token before it.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, _, h in SIZES:
            weights = torch.softmax(random_numbers(n, h, length, length), dim=-1)

            def truth(weights: Tensor) -> tuple[Tensor]:
                length = weights.shape[-1]
                before = [weights[:, :, query, query - 1] for query in range(1, length)]
                return (torch.stack(before).mean((0, 1)),)

            given = {"returns": ("head_scores",), "attention": weights.double(), "num_heads": h}
            yield Trial(
                {"weights": weights},
                lambda weights: fn(weights),
                truth,
                given,
                names=("the result",),
                gradients=False,
            )

    return check("previous_token", fn, trials, mistakes.PREVIOUS_TOKEN)


def check_repair(number: int, layer: Callable[[int, int], nn.Module]) -> bool:
    """Check one layer of the bug hunt, ``layer(embed_dim, num_heads)``, as a whole.

    As long as it has just the bug that was planted in it, this is no failure, so that a notebook
    runs on.

    Args:
        number: 1 to 5, which of the layers.
        layer: the class; see ``check_multi_head_attention``.

    Raises:
        CheckFailed: it is wrong in another way.
        ValueError: there is no such number.
    """
    if number not in PLANTED:
        raise ValueError(f"number must be one of {', '.join(map(str, PLANTED))}, got {number!r}")
    try:
        judge_layer(layer)
    except CheckFailed as problem:
        if (PLANTED[number],) in problem.explanations:
            print(f"○ layer {number}: the old bug is still in there")
            return False
        raise CheckFailed(f"✗ layer {number}: {problem}", problem.explanations) from None
    print(f"✓ layer {number}: repaired")
    return True


def from_lines(signature: str, lines: Mapping[str, str], order: str) -> Callable:
    """Make a function from given lines, put in order by their letters.

    Args:
        signature: for example "merge_heads(x)".
        lines: letter to line of code.
        order: letters, for example "CAB"; empty, the function is one not attempted yet.

    Raises:
        CheckFailed: a letter that names no line, comes twice, or stands behind the return.
    """
    letters = [letter for letter in str(order).upper() if letter not in " ,"]
    if not set(letters) <= set(lines) or len(set(letters)) < len(letters):
        raise CheckFailed(
            f"✗ order must be made of the letters {', '.join(lines)}, each at most once; "
            f"got {order!r}"
        )
    body = [lines[letter] for letter in letters] or ["raise NotImplementedError"]
    if any(line.startswith("return") for line in body[:-1]):
        raise CheckFailed("✗ order: what stands behind the return is never run; leave it out")
    source = [f"def {signature}:\n", *(f"    {line}\n" for line in body)]
    name = f"<order {''.join(letters)}>"
    linecache.cache[name] = (len("".join(source)), None, source, name)  # for error messages
    namespace = {"torch": torch}
    exec(compile("".join(source), name, "exec"), namespace)
    return namespace[signature.partition("(")[0]]


def _all_weights(layer: MultiHeadAttention) -> tuple[Tensor, Tensor]:
    """All weights of the four projections, one under the other, (4D, D), and all biases, (4D,)."""
    projections = (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj)
    return (
        torch.cat([proj.weight.detach() for proj in projections]),
        torch.cat([proj.bias.detach() for proj in projections]),
    )
