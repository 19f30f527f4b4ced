"""One input for a learner's code, and running the code on it."""

import ast
import dis
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from course_utils.exercises.registry import Answer
from course_utils.exercises.search import comparable

SIZES = ((2, 3, 8, 2), (3, 5, 14, 2), (1, 4, 12, 3))  # N, L, D, H
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
SAID = (  # of what the steps of an exercise start from, what a message about an input names
    *("batch_size", "seq_len", "embed_dim", "num_heads", "head", "size", "is_causal", "is_scaled"),
)
_NOT_THEIRS = (str(Path(torch.__file__).parents[1]), str(Path(__file__).parents[1]))


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
    return tuple(map(comparable, _tensors(result, trial.names)))


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


def _as_number(name: str, x: object) -> object:
    """Any kind of number as a tensor; ``...``, which stands for nothing yet, as it is.

    Raises:
        CheckFailed: anything else; the message names it.
    """
    if x is ...:
        return x
    try:
        return torch.tensor(float(x), dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):  # the last from a tensor of many numbers
        if isinstance(x, Tensor):
            kind = f"a tensor of shape {tuple(x.shape)}"
        else:
            kind = f"of type {type(x).__name__}"
        raise CheckFailed(f"{name} is {kind}; expected a number.") from None
