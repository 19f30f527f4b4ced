"""Changes the reference solution of every exercise, one place at a time, and asks the checks.

A mutant that gives the solution's own numbers on many inputs that no check uses is set aside as
equivalent, with the number of values compared as the proof. Of the others every one must be
refused; of those that return numbers, nearly all must be named or located.
"""

import ast
import contextlib
import copy
import io
import json
import math
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils import exercises
from course_utils.attention import MultiHeadAttention, merge_heads, split_heads

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PRELUDE = {
    "math": math,
    "torch": torch,
    "nn": nn,
    "F": F,
    "split_heads": split_heads,
    "merge_heads": merge_heads,
}
INPUTS = 60  # per exercise, to prove that a mutant is equivalent


class Block(nn.Module):
    """The block of lesson 5: attention over the normalised input."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.attention = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)


# --- The solutions, and inputs of their own ------------------------------------------------------


@dataclass(frozen=True)
class Solution:
    """An exercise as a learner sees it.

    Attributes:
        exercise: name of its check, without ``check_``.
        source: the code of one right function or class.
        name: what the code defines.
        check: the check, on whatever the code defines.
        runs: inputs of random sizes; each calls what is defined and returns all that it makes.
    """

    exercise: str
    source: str
    name: str
    check: Callable[[object], bool]
    runs: Callable[[random.Random], Callable[[object], object]]


def solutions() -> list[Solution]:
    """Return the solution of every exercise, from the notebooks' cells tagged ``solution``."""
    found = {}
    for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            if "solution" in cell["metadata"].get("tags", []):
                for node in ast.parse("".join(cell["source"])).body:
                    if isinstance(node, ast.FunctionDef | ast.ClassDef):
                        found[path.stem[:2], node.name] = ast.unparse(node)
    lines = ("N, H, L, d_h = x.shape", "x = x.transpose(1, 2)", "return x.reshape(N, L, H * d_h)")
    found["04", "merge"] = "def merge(x):\n" + "".join(f"    {line}\n" for line in lines)
    return [
        Solution(
            exercise,
            found[place],
            place[1],
            check or getattr(exercises, f"check_{exercise}"),
            runs,
        )
        for exercise, place, check, runs in (
            ("one_row", ("01", "solved_row"), None, one_row),
            ("scaled_dot_product_attention", ("01", "solved_attention"), None, attention),
            ("attention_scale", ("02", "solved_scale"), None, scale),
            ("gradient_norms", ("02", "solved_gradient_norms"), None, gradient_norms),
            ("split_heads", ("03", "solved_split_heads"), None, split),
            ("head_projection", ("03", "solved_head_projection"), None, head_projection),
            ("merge_heads", ("04", "merge"), None, merge),
            ("multi_head_attention", ("04", "SolvedMultiHeadAttention"), None, layer),
            ("copy_weights", ("04", "solved_copy_weights"), None, copy_weights),
            ("per_head_weights", ("05", "solved_per_head_weights"), per_head_weights_check, maps),
            ("attention_mask", ("06", "solved_attention_mask"), None, mask),
            ("scaled_dot_product_attention", ("06", "solved_attention"), masked_check, masked),
            ("cross_attention", ("06", "solved_cross_attention"), None, cross),
            ("permute_heads", ("07", "solved_permute_heads"), None, permute),
            ("layer_cost", ("07", "solved_layer_cost"), None, cost),
            ("previous_token", ("08", "solved_previous_token"), None, previous),
            ("remove_head", ("08", "solved_remove_head"), None, remove),
            ("mean_pool", ("08", "solved_mean_pool"), None, pool),
            ("cut_into_patches", ("09", "solved_cut_into_patches"), None, patches),
            ("add_places", ("09", "solved_add_places"), None, places),
            ("cls_maps", ("09", "solved_cls_maps"), None, cls_maps),
        )
    ]


def masked_check(fn):
    return exercises.check_scaled_dot_product_attention(fn, needs_mask=True)


def per_head_weights_check(fn):
    return exercises.check_per_head_weights(fn, Block)


def one_row(rng):
    length, d, d_v = (rng.randint(1, 9) for _ in range(3))
    query, key, value = torch.randn(d), torch.randn(length, d), torch.randn(length, d_v)
    return lambda fn: fn(query, key, value)


def attention(rng):
    batch = [rng.randint(1, 4) for _ in range(rng.randint(0, 2))]
    l_q, l_k, d, d_v = (rng.randint(1, 9) for _ in range(4))
    q, k = torch.randn(*batch, l_q, d), torch.randn(*batch, l_k, d)
    v = torch.randn(*batch, l_k, d_v)
    return lambda fn: fn(q, k, v)


def masked(rng):
    n, h, l_q, l_k, d, d_v = (rng.randint(1, 6) for _ in range(6))
    q, k, v = torch.randn(n, h, l_q, d), torch.randn(n, h, l_k, d), torch.randn(n, h, l_k, d_v)
    shape = rng.choice([(l_q, l_k), (n, 1, l_q, l_k), (n, h, l_q, l_k), (n, 1, 1, l_k)])
    allowed = rng.choice([None, torch.rand(shape) > 0.5])
    return lambda fn: fn(q, k, v, allowed)


def widths(rng):
    h, head_dim = rng.randint(1, 5), rng.randint(1, 5)
    return h * head_dim, h


def scale(rng):
    d, h = widths(rng)
    return lambda fn: fn(d, h)


def gradient_norms(rng):
    queries, length, d = (rng.randint(1, 7) for _ in range(3))
    q, k, u = torch.randn(queries, d), torch.randn(queries, length, d), torch.randn(queries, length)
    scaled = rng.random() > 0.5
    return lambda fn: fn(q, k, u, scaled)


def split(rng):
    (d, h), n, length = widths(rng), rng.randint(1, 5), rng.randint(1, 5)
    x = torch.randn(n, length, d)
    return lambda fn: fn(x, h)


def merge(rng):
    x = torch.randn(*(rng.randint(1, 5) for _ in range(4)))
    return lambda fn: fn(x)


def head_projection(rng):
    d, h = widths(rng)
    proj, head = nn.Linear(d, d), rng.randrange(h)
    return lambda fn: fn(proj, h, head)


def layer(rng):
    (d, h), n, length = widths(rng), rng.randint(1, 5), rng.randint(1, 5)
    x = torch.randn(n, length, d)

    def run(cls):
        module = cls(d, h)
        for name, p in module.named_parameters():  # in whatever order they were made
            seeded = torch.Generator().manual_seed(sum(map(ord, name)))
            p.data.normal_(generator=seeded)
        return module(x)

    return run


def parameters(module):
    return [x.detach() for _, x in sorted(module.named_parameters())]


def copy_weights(rng):
    d, h = widths(rng)
    theirs, ours = nn.MultiheadAttention(d, h, batch_first=True), MultiHeadAttention(d, h)
    for x in theirs.parameters():
        nn.init.normal_(x)

    def run(fn):
        target = copy.deepcopy(ours)
        with torch.no_grad():
            fn(copy.deepcopy(theirs), target)
        return parameters(target)

    return run


def maps(rng):
    (d, h), n, length = widths(rng), rng.randint(1, 5), rng.randint(1, 5)
    block, x = Block(d, h).eval(), torch.randn(n, length, d)
    for p in block.parameters():
        nn.init.normal_(p)
    return lambda fn: fn(block, x)


def mask(rng):
    seq_len = rng.randint(1, 7)
    lengths = torch.tensor([rng.randint(0, seq_len) for _ in range(rng.randint(1, 5))])
    causal = rng.random() > 0.5

    def run(fn):
        made = fn(lengths, seq_len, causal)
        return made if made.dtype == torch.bool else None

    return run


def cross(rng):
    (d, h), n, l_q, l_k = widths(rng), *(rng.randint(1, 6) for _ in range(3))
    module = nn.MultiheadAttention(d, h, batch_first=True).eval()
    x, memory = torch.randn(n, l_q, d), torch.randn(n, l_k, d)
    lengths = torch.tensor([rng.randint(1, l_k) for _ in range(n)])
    return lambda fn: fn(module, x, memory, lengths)


def permute(rng):
    d, h = widths(rng)
    ours, order = MultiHeadAttention(d, h), rng.sample(range(h), h)

    def run(fn):
        target = copy.deepcopy(ours)
        with torch.no_grad():
            fn(target, list(order))
        return parameters(target)

    return run


def cost(rng):
    (d, h), n, length = widths(rng), rng.randint(1, 5), rng.randint(1, 9)
    return lambda fn: fn(n, length, d, h)


def previous(rng):
    n, h, length = rng.randint(1, 5), rng.randint(1, 5), rng.randint(2, 7)
    weights = torch.randn(n, h, length, length).softmax(-1)
    return lambda fn: fn(weights)


def remove(rng):
    d, h = widths(rng)
    weight, bias, head = torch.randn(d, d), torch.randn(d), rng.randrange(h)
    return lambda fn: fn(weight, bias, h, head)


def pool(rng):
    lengths = torch.tensor([rng.randint(1, 6) for _ in range(rng.randint(1, 5))])
    x = torch.randn(len(lengths), int(lengths.max()), rng.randint(1, 6))
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return lambda fn: fn(x, real)


def patches(rng):
    n, rows, columns, size = (rng.randint(1, 4) for _ in range(4))
    images = torch.randn(n, rows * size, columns * size)
    return lambda fn: fn(images, size)


def places(rng):
    n, p, d = (rng.randint(1, 6) for _ in range(3))
    tokens, cls, positions = torch.randn(n, p, d), torch.randn(d), torch.randn(1 + p, d)
    return lambda fn: fn(tokens, cls, positions)


def cls_maps(rng):
    n, h, grid = (rng.randint(1, 4) for _ in range(3))
    weights = torch.randn(n, h, 1 + grid * grid, 1 + grid * grid).softmax(-1)
    return lambda fn: fn(weights)


# --- The mutants ---------------------------------------------------------------------------------

MODULES = {"torch", "math", "F", "nn"}
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
FAMILIES = (
    ("q_proj", "k_proj", "v_proj", "out_proj"),
    ("weight", "bias"),
    ("in_proj_weight", "in_proj_bias"),
    ("mean", "sum", "amax"),
    ("tril", "triu"),
    ("transpose", "swapaxes", "view", "reshape"),
    ("softmax", "sigmoid"),
    ("sqrt", "exp"),
    ("num_heads", "embed_dim"),
)


def mutants(source: str) -> Iterator[str]:
    """Yield every version of a function or class with one place changed, each once."""
    original = ast.parse(source)
    seen = {ast.unparse(original)}
    count = sum(1 for _ in ast.walk(original))
    for place in range(count):
        for number in range(10_000):
            tree = copy.deepcopy(original)
            node = next(n for i, n in enumerate(ast.walk(tree)) if i == place)
            changes = list(_changes(node, tree))
            if number >= len(changes):
                break
            changes[number]()
            with contextlib.suppress(SyntaxError, ValueError, AttributeError):
                text = ast.unparse(ast.fix_missing_locations(tree))
                ast.parse(text)
                if text not in seen:
                    seen.add(text)
                    yield text


def _become(node: ast.AST, other: ast.AST) -> Callable[[], None]:
    """Turn a node into another one, in place."""

    def change() -> None:
        node.__class__ = other.__class__
        node.__dict__ = other.__dict__

    return change


def _set(node: ast.AST, field: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, field, value)


def _without(items: list, place: int) -> Callable[[], None]:
    return lambda: items.pop(place)


def _swapped(items: list, place: int) -> Callable[[], None]:
    def change() -> None:
        items[place], items[place + 1] = items[place + 1], items[place]

    return change


def _changes(node: ast.AST, tree: ast.AST) -> Iterator[Callable[[], None]]:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(n))):
            for other in (-n - 1, -n + 1, n):
                yield _become(node, ast.Constant(other))
        case ast.UnaryOp(op=ast.Invert() | ast.Not()):
            yield _become(node, node.operand)
        case ast.Constant(value=bool(b)):
            yield _become(node, ast.Constant(not b))
        case ast.Constant(value=int(n)):
            for other in {n + 1, n - 1, -n, 0, 1, 2} - {n}:
                yield _become(node, ast.Constant(other))
        case ast.Constant(value=float(n)):
            yield _become(node, ast.Constant(n + 1.0))
        case ast.BinOp(op=ast.BitAnd()):
            for op in (ast.BitOr(), ast.BitXor()):
                yield _set(node, "op", op)
            yield _become(node, node.left)
            yield _become(node, node.right)
        case ast.BinOp():
            for op in OPERATORS:
                if not isinstance(node.op, op):
                    yield _set(node, "op", op())
            yield _become(node, ast.BinOp(node.right, node.op, node.left))
            yield _become(node, node.left)
            yield _become(node, node.right)
        case ast.Compare(ops=[op]):
            for other in COMPARISONS:
                if not isinstance(op, other):
                    yield _set(node, "ops", [other()])
        case ast.Call():
            yield from _changed_call(node)
        case ast.Attribute():
            for family in FAMILIES:
                if node.attr in family:
                    for other in family:
                        if other != node.attr:
                            yield _set(node, "attr", other)
        case ast.Name(ctx=ast.Load()):
            for other in sorted(_local_names(tree) - {node.id}):
                if node.id in _local_names(tree):
                    yield _set(node, "id", other)
        case ast.Slice():
            for end in ("lower", "upper"):
                if getattr(node, end) is not None:
                    yield _set(node, end, None)
        case ast.Tuple() | ast.List():
            for place in range(len(node.elts) - 1):
                yield _swapped(node.elts, place)
            if isinstance(node.ctx, ast.Load):
                for place in range(len(node.elts)):
                    yield _without(node.elts, place)
        case ast.If():
            yield _set(node, "test", ast.Constant(True))
            yield _set(node, "test", ast.Constant(False))
            yield _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
    for block in ("body", "orelse"):
        lines = getattr(node, block, None)
        if isinstance(lines, list) and not isinstance(node, ast.Module | ast.ClassDef):
            for place in range(len(lines)):
                if len(lines) > 1:
                    yield _without(lines, place)
                if place + 1 < len(lines):
                    yield _swapped(lines, place)


def _changed_call(node: ast.Call) -> Iterator[Callable[[], None]]:
    for place in range(len(node.args)):
        yield _without(node.args, place)
        if place + 1 < len(node.args):
            yield _swapped(node.args, place)
    for place in range(len(node.keywords)):
        yield _without(node.keywords, place)
    if isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if not (isinstance(owner, ast.Name) and owner.id in MODULES):
            yield _become(node, owner)
    if node.args:
        yield _become(node, node.args[0])


def _local_names(tree: ast.AST) -> set[str]:
    """Return arguments and variables, but no loop's own."""
    names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} - {"self"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


# --- Verdicts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant.

    Attributes:
        exercise: whose solution was changed.
        source: the mutant.
        kind: "equivalent", "accepted", "raised" (an error on every input), "told" (a sentence about
            what came back in place of numbers), "named", "located", "unwatched" or "silent".
        message: the check's.
        compared: how many numbers were found equal, where it is equivalent.
    """

    exercise: str
    source: str
    kind: str
    message: str = ""
    compared: int = 0


def define(source: str, name: str) -> object:
    namespace = dict(PRELUDE)
    exec(compile(source, "<mutant>", "exec"), namespace)
    return namespace[name]


def flat(result: object) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result.detach().double()]
    if isinstance(result, list | tuple):
        return [x for item in result for x in flat(item)]
    return [torch.tensor(float(result), dtype=torch.float64)]


def equal_numbers(solution: Solution, mutant: object, right: object) -> int:
    """How many numbers are equal on inputs of many sizes; 0 as soon as one is not."""
    rng, count = random.Random(1), 0
    for _ in range(INPUTS):
        torch.manual_seed(rng.randrange(10**6))
        run = solution.runs(rng)
        try:
            got, want = flat(run(mutant)), flat(run(right))
        except Exception:
            return 0
        if [x.shape for x in got] != [x.shape for x in want]:
            return 0
        if not all(
            torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
            for a, b in zip(got, want, strict=True)
        ):
            return 0
        count += sum(x.numel() for x in want)
    return count


def verdict(solution: Solution, source: str) -> Verdict:
    """Define a mutant and ask the check."""
    try:
        mutant = define(source, solution.name)
    except Exception as error:
        return Verdict(solution.exercise, source, "raised", str(error))
    right = define(solution.source, solution.name)
    if compared := equal_numbers(solution, mutant, right):
        return Verdict(solution.exercise, source, "equivalent", compared=compared)
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(60)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            passed = solution.check(mutant)
    except exercises.CheckFailed as failed:
        return Verdict(solution.exercise, source, _kind(failed), str(failed))
    finally:
        signal.alarm(0)
    said = printed.getvalue()
    return Verdict(solution.exercise, source, "accepted" if passed else "told", said)


def _too_long(*_: object) -> None:
    raise TimeoutError("one mutant took a minute")


def _kind(failed: exercises.CheckFailed) -> str:
    message = str(failed)
    if failed.mistakes:
        return "named"
    if getattr(failed, "first_difference", None):
        return "located"
    if "your code raised" in message and "numbers are right" not in message:
        return "raised"
    if "cannot be watched" in message:
        return "unwatched"
    if "no known mistake gives these numbers" in message:
        return "silent"
    return "told"


def sample(every: int) -> Iterator[tuple[Solution, str]]:
    """Yield one mutant of each ``every``, spread over all exercises; 1 yields all of them."""
    number = 0
    for solution in solutions():
        for source in mutants(solution.source):
            if number % every == 0:
                yield solution, source
            number += 1
