"""Checks of the exercises: right, not attempted yet, or wrong and which mistake it was.

A check runs a learner's code on random inputs of several sizes and compares each number with what
torch itself gives. Where they differ, ``course_utils.mistakes`` looks for the mistakes that give
exactly the learner's numbers. If none do, the check says what can be seen and claims no more.
The random numbers are its own: the global random state stays as it was.
"""

import ast
import dis
import inspect
import linecache
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from course_utils import mistakes
from course_utils.mistakes import Answer, Mistake, explain, same

SIZES = ((2, 3, 8, 2), (3, 5, 14, 2), (1, 4, 12, 3))  # N, L, D, H
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
SAID = (  # of what the steps of an exercise start from, what a message about an input names
    *("batch_size", "seq_len", "embed_dim", "num_heads", "head", "size", "is_causal", "is_scaled"),
)


class CheckFailed(AssertionError):  # noqa: N818 - it says what happened
    """The learner's code is not right yet; the message says why.

    Attributes:
        mistakes: ids of all mistakes that the message names; empty when none explains the result.
        explanations: the same ids, one tuple for each way to explain the result.
    """

    def __init__(self, message: str, explanations: Sequence[tuple[str, ...]] = ()) -> None:
        super().__init__(message)
        self.explanations = tuple(explanations)
        self.mistakes = tuple(dict.fromkeys(name for names in explanations for name in names))

    def _render_traceback_(self) -> list[str]:
        """Have IPython show the message alone: the lines of this package help no learner."""
        return str(self).splitlines()


def check_scaled_dot_product_attention(fn: Callable | None, *, needs_mask: bool = False) -> bool:
    """Check ``fn(query, key, value, mask=None) -> (output, weights)``.

    It is given one head, query (L_q, d), key (L_k, d) and value (L_k, d_v), and many, with (N, H)
    in front. A mask is boolean, True = may attend: (L_q, L_k) or (N, 1, L_q, L_k). A function
    without a fourth argument is checked without masks.

    Args:
        fn: the learner's function.
        needs_mask: whether a function without a fourth argument is wrong.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
    """
    takes_mask = _takes(fn, "mask", 3)
    masks = "with and without a mask" if takes_mask else "without a mask"
    covered = f"one head and many, L_q ≠ L_k, {masks}"

    def trials(fn: Callable) -> Iterator[Trial]:
        if needs_mask and not takes_mask:
            raise CheckFailed(
                "your function takes no mask; this exercise is about masks. "
                "Give it a fourth argument, mask=None."
            )
        yield from _attention_trials(fn)

    return check("scaled_dot_product_attention", fn, trials, mistakes.ATTENTION, covered)


def check_split_heads(fn: Callable | None) -> bool:
    """Check ``fn(x, num_heads)``: (N, L, D) to (N, H, L, d_h).

    Not attempted is: None in place of a function, a body of nothing but a docstring and ``...``,
    ``return ...``, or ``raise NotImplementedError``. A function that returns None is wrong.

    Returns:
        True if it is right, False if it is not attempted yet, after one printed line.

    Raises:
        CheckFailed: it is wrong.
    """
    return check("split_heads", fn, _split_trials, mistakes.SPLIT_HEADS)


def check_merge_heads(fn: Callable | None) -> bool:
    """Check ``fn(x)``: (N, H, L, d_h) to (N, L, D), the inverse of ``split_heads``.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
    """
    return check("merge_heads", fn, _merge_trials, mistakes.MERGE_HEADS)


def check_multi_head_attention(cls: Callable | None) -> bool:
    """Check the layer ``cls(embed_dim, num_heads)``, an ``nn.Module``.

    It must have ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, each like ``nn.Linear``, and
    ``forward(query, key=None, value=None, *, mask=None) -> (output, weights)`` with query
    (N, L_q, D), key and value (N, L_k, D), output (N, L_q, D) and weights (N, H, L_q, L_k).
    Dropout in train mode is left to the learner: it is off while the check compares. Where
    forward takes no key, or no mask, the check does without.

    Returns:
        True if it is right, False if it is not attempted yet; see ``check_split_heads``.

    Raises:
        CheckFailed: it is wrong.
    """
    forward = getattr(cls, "forward", None)
    kinds = "self- and cross-attention" if _takes(forward, "key", 2) else "self-attention"
    masks = "with and without a mask" if _takes(forward, "mask") else "without a mask"
    covered = f"{kinds}, {masks}, in train and eval mode"
    return check("multi_head_attention", cls, _multi_head_trials, mistakes.MULTI_HEAD, covered)


# --- Trials: what the learner's code is given, and what torch makes of it ------------------------


@dataclass(frozen=True)
class Trial:
    """One input for a learner's code, and all that is needed to judge what comes back."""

    inputs: dict[str, Tensor]
    call: Callable[..., object]  # the learner's code, on the inputs by name
    truth: Callable[..., Answer | None]  # torch's own answer to the same, in float64
    given: dict[str, object]  # what the steps of the exercise start from
    float64: bool = False
    training: bool = False
    parameters: dict[str, Tensor] = field(default_factory=dict)
    names: tuple[str, ...] = ("output", "weights")  # what to call the things returned
    gradients: bool = True  # whether they must reach the inputs
    called: dict[str, str] = field(default_factory=dict)  # what the exercise calls an input

    @property
    def label(self) -> str:
        """The input in words, for messages."""
        parts = [
            f"{self.called.get(name, name)} "
            f"{tuple(x.shape) if x.is_floating_point() or x.ndim > 1 else x.tolist()}"
            for name, x in self.inputs.items()
        ]
        for name in SAID:
            if name in self.given:
                parts.append(f"{name.removeprefix('is_')} {self.given[name]}")
        return ", ".join(parts + ["train mode"] * self.training)

    def expected(self) -> Answer | None:
        """What torch makes of the input, in float64; None if the learner's layer fits no torch."""
        return self.truth(**{name: _double(x) for name, x in self.inputs.items()})


Trials = Callable[[Callable], Iterator[Trial]]
_Result = tuple[Trial, Answer | None]  # None: the learner's code raised an error


def _takes(fn: Callable, name: str, place: int | None = None) -> bool:
    """Whether a function takes an argument, by name or in this place; yes, if it does not say."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return True
    if any(p.name == name or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return True
    others = [p for p in parameters if p.name != "mask" and p.kind is not p.KEYWORD_ONLY]
    return place is not None and len(others) > place


def random_numbers(*shape: int, seed: int = 0) -> Tensor:
    """Normal random numbers, the same each time, without touching the global random state."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _double(x: Tensor) -> Tensor:
    return x.detach().to(torch.float64, copy=True) if x.is_floating_point() else x


def _mask(*shape: int) -> Tensor:
    """Return a mask with an open row, a blocked one, a partly blocked one, and others."""
    mask = random_numbers(*shape) > 0
    mask[..., 0, :], mask[..., 1, :] = True, False
    mask[..., 2, 0], mask[..., 2, 1] = True, False
    return mask


def _split_trials(fn: Callable) -> Iterator[Trial]:
    for n, length, d, h in SIZES:
        x = random_numbers(n, length, d)
        yield Trial(
            {"x": x},
            lambda x, h=h: fn(x, h),
            lambda x, h=h: (torch.stack(x.chunk(h, dim=-1), dim=1),),
            {"returns": ("split",), "x": x.double(), "num_heads": h},
            names=("result",),
        )


def _merge_trials(fn: Callable) -> Iterator[Trial]:
    for n, length, d, h in SIZES:
        x = random_numbers(n, h, length, d // h)
        yield Trial(
            {"x": x},
            lambda x: fn(x),
            lambda x: (torch.cat(x.unbind(1), dim=-1),),
            {"returns": ("merged",), "mixed": x.double()},
            names=("result",),
        )


def _attention_trials(fn: Callable) -> Iterator[Trial]:
    def truth(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Answer:
        one_hot = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
        return (
            F.scaled_dot_product_attention(query, key, value, mask),
            F.scaled_dot_product_attention(query, key, one_hot, mask),
        )

    # Batch and heads, L_q, L_k, d, d_v, shape of the mask. The last tells most mistakes apart.
    for batch, l_q, l_k, d, d_v, mask, dtype in (
        ((), 3, 3, 4, 4, None, torch.float32),
        ((2, 2), 3, 3, 4, 4, None, torch.float32),
        ((3, 2), 5, 5, 7, 7, None, torch.float32),
        ((3, 2), 4, 6, 7, 5, None, torch.float32),
        ((3, 2), 4, 6, 7, 5, (3, 1, 4, 6), torch.float32),
        ((2, 2), 3, 3, 4, 4, (3, 3), torch.float64),
        ((3, 2), 5, 5, 7, 7, (5, 5), torch.float32),
        ((1, 2), 4, 6, 7, 5, None, torch.float32),
        ((3, 2), 5, 5, 7, 7, (3, 2, 5, 5), torch.float32),
    ):
        if mask and not _takes(fn, "mask", 3):
            continue
        inputs = {
            "query": random_numbers(*batch, l_q, d, seed=1).to(dtype),
            "key": random_numbers(*batch, l_k, d, seed=2).to(dtype),
            "value": random_numbers(*batch, l_k, d_v, seed=3).to(dtype),
        }
        given = {
            "returns": ("mixed", "returned_weights"),
            "heads": [_double(x) for x in inputs.values()],
            "mask": _mask(*mask) if mask else None,
        }
        if mask:
            inputs["mask"] = given["mask"]
        yield Trial(inputs, lambda **x: fn(*x.values()), truth, given, dtype == torch.float64)


def _multi_head_trials(cls: Callable) -> Iterator[Trial]:
    # N, L_q, L_k, D, H, how many of query, key and value are passed, shape of the mask, mode.
    # The last tells most mistakes apart.
    for n, l_q, l_k, d, h, passed, mask, training, float64 in (
        (2, 3, 3, 8, 2, 1, None, False, False),
        (3, 5, 5, 14, 2, 1, None, True, False),
        (1, 4, 4, 12, 3, 1, None, False, False),
        (3, 4, 6, 14, 2, 3, None, False, False),
        (3, 5, 5, 14, 2, 1, (5, 5), False, False),
        (3, 4, 6, 14, 2, 2, (3, 1, 4, 6), True, False),
        (2, 3, 3, 8, 2, 3, (2, 2, 3, 3), False, True),
        (3, 5, 5, 14, 2, 3, (3, 2, 5, 5), False, False),
    ):
        forward = getattr(cls, "forward", None)
        if passed > 1 and not _takes(forward, "key", 2):
            continue
        if mask and not _takes(forward, "mask"):
            continue
        layer, parameters = _new_layer(cls, d, h, float64)
        layer.train(training)
        numbers = {name: _double(x) for name, x in parameters.items()}
        projections = {
            part[0]: (numbers.get(f"{part}.weight"), numbers.get(f"{part}.bias"))
            for part in PROJECTIONS
        }
        lengths = list({"query": l_q, "key": l_k, "value": l_k}.items())[:passed]
        inputs = {
            name: random_numbers(n, length, d, seed=seed).to(layer.q_proj.weight.dtype)
            for seed, (name, length) in enumerate(lengths)
        }
        key = inputs.get("key", inputs["query"])
        given = {
            "returns": ("output", "returned_weights"),
            "query": _double(inputs["query"]),
            "key": _double(key),
            "value": _double(inputs.get("value", key)),
            "mask": _mask(*mask) if mask else None,
            "num_heads": h,
            "projections": projections,
        }
        if mask:
            inputs["mask"] = given["mask"]

        def call(layer: nn.Module = layer, **inputs: Tensor) -> object:
            mask = {"mask": inputs.pop("mask")} if "mask" in inputs else {}
            return layer(*inputs.values(), **mask)

        truth = _torch_layer(projections, d, h)
        yield Trial(inputs, call, truth, given, float64, training, parameters)


def _new_layer(cls: Callable, d: int, h: int, float64: bool) -> tuple[nn.Module, dict[str, Tensor]]:
    """Build a layer and fill its projections, whose parameters are returned by name."""
    layer = _call(cls, d, h)
    if not isinstance(layer, nn.Module):
        raise CheckFailed(f"it makes a {type(layer).__name__}, which is no nn.Module.")
    if float64:
        layer.double()
    parameters = {
        f"{part}.{name}": x
        for part in PROJECTIONS
        for name in ("weight", "bias")
        if (x := getattr(getattr(layer, part, None), name, None)) is not None
    }
    lacking = [part for part in PROJECTIONS if f"{part}.weight" not in parameters]
    if lacking not in ([], ["out_proj"]):  # without out_proj, the search may know the mistake
        raise CheckFailed(
            f"the layer has no {' and no '.join(lacking)} with a weight; "
            f"it needs {', '.join(PROJECTIONS)}, each an nn.Linear."
        )
    if len({id(x) for x in parameters.values()}) < len(parameters):
        raise CheckFailed("two of the four projections share one weight; each needs its own.")
    for seed, x in enumerate(parameters.values(), start=10):
        # Divided by √D, scores have an ordinary size and no softmax saturates.
        x.data.copy_(random_numbers(*x.shape, seed=seed) / math.sqrt(d))
    return layer, parameters


def _torch_layer(projections: dict, d: int, h: int) -> Callable[..., Answer | None]:
    """Return torch's layer with these (weight, bias); it answers None if they do not fit it."""

    def truth(
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Answer | None:
        weights, biases = zip(*projections.values(), strict=True)
        if any(weight is None or weight.shape != (d, d) for weight in weights):
            return None
        biases = [query.new_zeros(d) if bias is None else bias for bias in biases]
        key = query if key is None else key
        value = key if value is None else value
        layer = nn.MultiheadAttention(d, h, batch_first=True, dtype=query.dtype)
        layer.in_proj_weight.data = torch.cat(weights[:3])
        layer.in_proj_bias.data = torch.cat(biases[:3])
        layer.out_proj.weight.data = weights[3]
        layer.out_proj.bias.data = biases[3]
        if mask is not None:  # there True means blocked, and samples and heads share an axis
            mask = ~mask.expand(len(query), h, query.shape[1], key.shape[1]).flatten(0, 1)
        output, _ = layer(query, key, value, attn_mask=mask, need_weights=False)
        _, attention = layer(query, key, value, attn_mask=mask, average_attn_weights=False)
        return output, attention.nan_to_num(0)  # NaN where a whole row is blocked

    return truth


# --- Running the learner's code ------------------------------------------------------------------


class _Raised(CheckFailed):
    """The learner's code raised an error of its own."""


class _NotAttempted(_Raised):
    """It stopped where the stub does; ``left`` says what is still there."""

    left = "raise NotImplementedError is still there"


class _LeftOpen(_NotAttempted):
    """It returned what stands for nothing yet."""

    left = "part of it still returns `...`"


class _DropoutOff(TorchFunctionMode):
    """Make dropout do nothing, so that all else in a learner's code can be compared."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in (F.dropout, torch.dropout):
            return args[0] if args else kwargs["input"]
        if func is F.scaled_dot_product_attention:  # dropout_p is its fifth argument
            args = (*args[:4], *(0.0 for _ in args[4:5]), *args[5:])
            kwargs |= {"dropout_p": 0.0} if "dropout_p" in kwargs else {}
        return func(*args, **kwargs)


_NOT_THEIRS = (str(Path(torch.__file__).parents[1]), str(Path(__file__).parent))


def _call(fn: Callable, *args: object, **kwargs: object) -> object:
    """Call the learner's code; an error becomes a sentence with the learner's own line."""
    try:
        return fn(*args, **kwargs)
    except CheckFailed:  # what an exercise found out while it looked at the result
        raise
    except Exception as error:
        own, deepest = None, error.__traceback__
        while deepest.tb_next:
            deepest = deepest.tb_next
            if not deepest.tb_frame.f_code.co_filename.startswith(_NOT_THEIRS):
                own = deepest
        # A stub has a raise statement of its own; torch's NotImplementedError comes from a call.
        if isinstance(error, NotImplementedError) and own is deepest:
            code = own.tb_frame.f_code.co_code
            if dis.opname[code[own.tb_lasti]] == "RAISE_VARARGS":
                raise _NotAttempted("part of it still raises NotImplementedError.") from None
        first_line = str(error).partition("\n")[0]
        message = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {first_line}")
        if own:
            source = linecache.getline(own.tb_frame.f_code.co_filename, own.tb_lineno).strip()
            message += f"\n  in your line {own.tb_lineno}: {source}"
        raise _Raised(f"your code raised {message}") from None


def _body(fn: object) -> list[ast.stmt]:
    """Return a function's statements; [] where its source is not to be had."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return []
    return tree.body if isinstance(tree, ast.FunctionDef) else []


def _is_stub(fn: object) -> bool:
    """Whether a function's body is nothing but a docstring, ``...`` or ``pass``."""
    body = _body(fn)
    return bool(body) and all(
        isinstance(line, ast.Pass)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in body
    )


def _has_lines(fn: object) -> bool:
    """Whether a function holds more than a docstring and the line that a stub raises with."""
    return not all(isinstance(line, ast.Raise | ast.Pass | ast.Expr) for line in _body(fn))


def _run(trial: Trial, *, dropout: bool = False) -> Answer:
    """Return the tensors that the learner's code makes of a trial, in float64.

    Raises:
        CheckFailed: the code raised an error, changed its input or returned something else.
    """
    inputs = {name: x.clone() for name, x in trial.inputs.items()}
    with nullcontext() if dropout else _DropoutOff():
        result = _call(trial.call, **inputs)
    for name, x in inputs.items():
        if not torch.equal(x, trial.inputs[name]):
            said = trial.called.get(name, name)
            raise CheckFailed(f"your code changes its input {said} in place; leave it as it came.")
    return tuple(map(mistakes.comparable, _tensors(result, trial.names)))


def _tensors(result: object, names: tuple[str, ...]) -> Answer:
    items = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if items and all(item is ... for item in items):
        raise _LeftOpen(f"{_LeftOpen.left}.")
    if result is None:
        raise CheckFailed(
            "your code returned None; is there a return line, or is what it returns None?"
        )
    if not 1 <= len(items) <= len(names):
        wanted = "two: " * (len(names) == 2) + ", ".join(names)
        raise CheckFailed(f"your code returned {len(items)} things; expected {wanted}.")
    for name, x in zip(names, items, strict=False):
        if not isinstance(x, Tensor):
            kind = (
                "a NumPy array" if type(x).__module__ == "numpy" else f"of type {type(x).__name__}"
            )
            raise CheckFailed(f"{name} is {kind}; expected a torch tensor.")
        if x.device.type != "cpu":
            raise CheckFailed(f"{name} is on device {x.device}; expected cpu, like the input.")
        if x.layout != torch.strided:
            raise CheckFailed(f"{name} is {x.layout}; expected an ordinary tensor, like the input.")
        if x.dtype not in (torch.float32, torch.float64):
            raise CheckFailed(f"{name} holds {x.dtype}; expected torch.float32, like the input.")
    return items


# --- Judging -------------------------------------------------------------------------------------


def check(
    name: str,
    learner: Callable | None,
    make_trials: Trials,
    steps: Sequence[str],
    covered: str = "; ".join("N={} L={} D={} H={}".format(*size) for size in SIZES),
) -> bool:
    """Judge a learner's code and print one line, or raise.

    Args:
        name: what the messages call the exercise.
        learner: the function or class, or None.
        make_trials: the learner's code to the inputs it is judged on.
        steps: of ``mistakes.REFERENCE``, those that the exercise consists of.
        covered: what the inputs were, for the line that says all is right.

    Returns:
        True if it is right, False if it is not attempted yet.

    Raises:
        CheckFailed: it is wrong.
    """
    try:
        with _undisturbed():
            count, note = _judge(learner, make_trials, steps)
    except _NotAttempted as stopped:
        left = f": {stopped.left}" if _has_lines(learner) else ""
        print(f"○ {name}: {'not finished' if left else 'not attempted'} yet{left}")
        return False
    except CheckFailed as problem:
        raise CheckFailed(f"✗ {name}: {problem}", problem.explanations) from None
    print(f"✓ {name}: right on {count} inputs ({covered}){note}")
    return True


def judge_layer(cls: Callable | None) -> None:
    """Judge a layer as ``check_multi_head_attention`` does, but print nothing.

    Raises:
        CheckFailed: it is wrong, or not attempted.
    """
    with _undisturbed():
        _judge(cls, _multi_head_trials, mistakes.MULTI_HEAD)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Leave torch's random state, gradient mode and threads as they were."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, threads mostly wait for each other
    try:
        with (
            torch.random.fork_rng(devices=[]),
            torch.inference_mode(False),
            torch.enable_grad(),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # what is wrong, the check itself says in words
            torch.default_generator.manual_seed(0)
            yield
    finally:
        torch.set_num_threads(threads)


def _judge(learner: Callable | None, make_trials: Trials, steps: Sequence[str]) -> tuple[int, str]:
    """Return the number of trials, if all are right, and a note about gradients.

    Raises:
        CheckFailed: something is wrong; the message says what.
    """
    body = getattr(learner, "forward", None) if isinstance(learner, type) else learner
    if learner is None or learner is ... or body is nn.Module.forward or _is_stub(body):
        raise _NotAttempted("nothing is written yet.")
    if not callable(learner) or isinstance(learner, nn.Module):
        kind = type(learner).__name__
        raise CheckFailed(f"pass the function or class itself, not something of type {kind}.")

    results: list[_Result] = []
    errors: list[str] = []
    for trial in make_trials(learner):
        try:
            results.append((trial, _run(trial)))
        except _Raised as error:
            if isinstance(error, _NotAttempted) and not results:
                raise
            # Code that makes float32 tensors of its own is right: the course uses no others.
            if not trial.float64:
                results.append((trial, None))
                errors.append(f"{error}\n  input: {trial.label}")
        except CheckFailed as problem:
            raise CheckFailed(f"{problem}\n  input: {trial.label}") from None

    steady = [(trial, answer) for trial, answer in results if answer and not trial.training]
    if not steady:
        raise CheckFailed(errors[0])
    trial, calm = steady[-1]
    if not _equal(_run(trial), calm):
        raise CheckFailed("the same input gives another result each time: something is random.")
    dropout = () if _equal(_run(trial, dropout=True), calm) else (mistakes.DROPOUT,)
    wrong = _first_wrong(results)
    if not wrong and not dropout:
        return len(results), _gradient_note(trial)

    found = _explain(steps, results) if wrong else [()]
    if found:
        raise _failure([], "{} your numbers", [dropout + combination for combination in found])
    seen = errors[:1] or _observations(*wrong, results)
    # A smaller claim: what is wrong even without a mask may have a name.
    plain = [(trial, answer) for trial, answer in results if "mask" not in trial.inputs]
    if _first_wrong(plain):
        found = _explain(steps, plain)
    else:
        seen.append("Without a mask, everything is right.")
    heading = "Without a mask, {} your numbers" if found else "{} part of it"
    raise _failure(seen, heading, [dropout + combination for combination in found or [()]])


def _explain(steps: Sequence[str], results: list[_Result]) -> list[tuple[Mistake, ...]]:
    found = explain(steps, [(trial.given, answer) for trial, answer in reversed(results)])
    if any("mask" in trial.inputs for trial, _ in results):
        return found
    # Without a mask, what is masked and what is not are the same: do not speak of masks.
    return [e for e in found if not any("masked" in mistake.id for mistake in e)] or found


def _first_wrong(results: list[_Result]) -> _Result | None:
    return next((r for r in results if not _equal(r[1], r[0].expected())), None)


def _equal(answer: Answer | None, expected: Answer | None) -> bool:
    if answer is None or expected is None or len(answer) != len(expected):
        return False
    return all(map(same, answer, expected))


def _failure(seen: list[str], heading: str, explanations: list[tuple[Mistake, ...]]) -> CheckFailed:
    """Put into words what was seen and which mistakes explain it; ``[()]`` explains nothing."""
    lines = list(seen)
    size, ways = len(explanations[0]), len(explanations)
    if size:
        subject = "one mistake explains" if size == 1 else f"{size} mistakes together explain"
        which = f", in one of {ways} ways" if ways > 1 else ""
        lines.append(heading.format(subject) + which + ".")
    for i, explanation in enumerate(explanations):
        if ways > 1:
            lines.append("Or:" if i else "Either:")
        for mistake in explanation:
            rows = f" ({', '.join(mistake.rows)})" if mistake.rows else ""
            lines += [
                f"• {mistake.id}{rows}: {mistake.title}.",
                f"  Why: {mistake.why}",
                f"  Look at: {mistake.look}",
            ]
    ids = [tuple(mistake.id for mistake in e) for e in explanations if e]
    return CheckFailed("\n".join(lines), ids)


def _observations(trial: Trial, answer: Answer, results: list[_Result]) -> list[str]:
    """Say what can be seen of a wrong answer, without guessing where it comes from."""
    expected = trial.expected()
    if expected is None:
        shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in trial.parameters.items())
        return [f"each of the four weights must be (D, D); with {trial.label} you have {shapes}."]
    seen = ["no known mistake gives these numbers. What can be seen:", f"  input: {trial.label}"]
    for name, got, want in zip(trial.names, answer, expected, strict=False):
        if got.shape != want.shape:
            seen.append(f"  {name} has shape {tuple(got.shape)}, expected {tuple(want.shape)}")
            continue
        right = torch.isclose(got, want, rtol=1e-4, atol=1e-5).sum()
        count = f"{right} of its {want.numel()} numbers are right"
        seen.append(f"  {name}: {count if want.ndim else 'right' if right else 'not right'}")
        if got.isnan().any():
            seen.append(f"  {name} holds NaN")
        if name == "weights" and not same(got.sum(-1), want.sum(-1)):
            axes = ("batch", "head", "query", "key")[-got.ndim :]
            ones = [a for i, a in enumerate(axes) if same(s := got.sum(i), torch.ones_like(s))]
            if "key" in ones:
                seen.append("  all rows of weights sum to 1, even where a query may see nothing")
            else:
                over = f"; over the {ones[0]} axis they do" if ones else ""
                seen.append(f"  rows of weights do not sum to 1{over}")
    # With a mask, or a switch, other lines of code are at work: only the same kind tells of sizes.
    alike = [(other, got) for other, got in results if _kind(other) == _kind(trial)]
    fine = [other for other, got in alike if _equal(got, other.expected())]
    if fine:
        count = f"  {len(fine)} of {len(alike)} inputs come out right"
        if all(_samples(other) == 1 for other in fine) and _right_alone(trial):
            seen.append(f"{count}, the one with a single sample")
        else:
            seen.append(f"{count}; is a size fixed in your code?")
    full = [(other, got) for other, got in results if other.given.get("is_padded") is False]
    if trial.given.get("is_padded") and full and not _first_wrong(full):
        seen.append("  without any padding, everything is right")
    if len(answer) < len(expected):
        came = ("one result", "two results")[len(answer) - 1]
        seen.append(f"  only {came} came back; expected {', '.join(trial.names)}")
    if any(_leaks(*result) for result in results):
        seen.append("  samples mix: a change of sample 0 alone changes the result of others")
    return seen


def _kind(trial: Trial) -> tuple:
    """What switches other lines of code on: a mask, padding, arguments that are True or False."""
    switches = ("is_causal", "is_scaled", "is_padded")
    return "mask" in trial.inputs, *(trial.given.get(name) for name in switches)


def _samples(trial: Trial) -> int | None:
    """How many samples an input holds; None if it has no axis for them."""
    x = next(iter(trial.inputs.values()), None)
    return None if x is None or x.ndim < 3 else len(x)


def _right_alone(trial: Trial) -> bool:
    """Whether the first sample of an input comes out right when it comes alone."""
    n = _samples(trial)
    if not n:
        return False
    inputs = {
        name: x[:1] if len(x) == n and (x.ndim > 2 or not x.is_floating_point()) else x
        for name, x in trial.inputs.items()
    }
    alone = replace(trial, inputs=inputs)
    try:
        return _equal(_run(alone), alone.expected())
    except (CheckFailed, RuntimeError, ValueError):  # it does not run with one sample
        return False


def _leaks(trial: Trial, answer: Answer | None) -> bool:
    """Whether the result of a sample depends on another sample."""
    if not answer or not trial.inputs or not _equal(_run(trial), answer):
        return False  # nothing to compare, or random anyway
    size = len(next(iter(trial.inputs.values())))
    if any(x.ndim < 3 or len(x) != size for x in answer):
        return False
    inputs = {name: x.clone() for name, x in trial.inputs.items()}
    for x in inputs.values():
        if x.is_floating_point() and x.ndim > 2 and len(x) == size:  # others hold no samples
            x[0] = random_numbers(*x[0].shape, seed=9)
    changed = _run(replace(trial, inputs=inputs))
    return not _equal(tuple(x[1:] for x in changed), tuple(x[1:] for x in answer))


def _gradient_note(trial: Trial) -> str:
    """Say what is wrong with gradients through a right result, if anything.

    Raises:
        CheckFailed: the code raises an error where a gradient is wanted, or an input or parameter
            gets no gradient at all.
    """
    if not trial.gradients or not trial.inputs:
        return ""
    inputs = {
        name: x.clone().requires_grad_(x.is_floating_point()) for name, x in trial.inputs.items()
    }
    leaves = {n: x for n, x in {**inputs, **trial.parameters}.items() if x.requires_grad}
    try:
        returned = _call(trial.call, **inputs)
    except _Raised as error:  # without gradients it raised none
        told, _, line = str(error).partition("\n")
        numpy = "numpy()" in told
        said = ["the numbers are right, but your code cannot take tensors that need a gradient."]
        said += [told] * (not numpy) + [line] * bool(line) + ["  Look at: NumPy on the way"] * numpy
        raise CheckFailed("\n".join(said)) from None
    result = _tensors(returned, trial.names)[0]
    gradients = [None] * len(leaves)
    if result.requires_grad:
        try:
            loss = (result * result).sum()
            gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        except RuntimeError:
            return "; but backward() fails: a tensor it needs was changed in place"
    for name, gradient in zip(leaves, gradients, strict=True):
        if gradient is None:
            raise CheckFailed(
                f"the numbers are right, but no gradient flows back to {name}.\n"
                "  Look at: detach, .data, no_grad, .item(), NumPy or torch.tensor on the way"
            )
    if any(gradient.isnan().any() for gradient in gradients):
        return "; but gradients are NaN where a whole row is blocked: keep -inf out of that row"
    return ""
