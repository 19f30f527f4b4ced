"""Calling a learner's code: what comes back, or what went wrong, in words."""

import ast
import copy
import dis
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType

import torch
from torch import Tensor, nn

from course_utils.exercises.chance import Means
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.search import Answer, comparable
from course_utils.exercises.trial import Trial

MOST_NUMBERS = 1_000_000  # in a result; no exercise asks for as many as a thousand
_NOT_THEIRS = tuple(
    str(Path(file).parent)
    for file in (inspect.__file__, Path(torch.__file__).parent, Path(__file__).parent)
)


class CheckFailed(AssertionError):  # noqa: N818 - it says what happened
    """The learner's code is not right yet; the message says why.

    Attributes:
        mistakes: ids of all mistakes that the message names; empty when none explains the result.
        explanations: the same ids, one tuple for each way to explain the result.
        first_difference: name of the first step whose numbers are not the reference's, if the
            result has no name; None if it has one, or nothing could be watched.
    """

    def __init__(
        self,
        message: str,
        explanations: Sequence[tuple[str, ...]] = (),
        first_difference: str | None = None,
    ) -> None:
        super().__init__(message)
        self.first_difference = first_difference
        self.explanations = tuple(explanations)
        self.mistakes = tuple(dict.fromkeys(name for names in explanations for name in names))

    def under(self, heading: str) -> "CheckFailed":
        """Return the same with a heading in front of the message."""
        return CheckFailed(f"{heading}: {self}", self.explanations, self.first_difference)

    def _render_traceback_(self) -> list[str]:
        """Have IPython show the message alone: the lines of this package help no learner."""
        return str(self).splitlines()


class CodeRaised(CheckFailed):
    """The learner's code raised an error of its own."""


class NotAttempted(CodeRaised):
    """It stopped where the stub does; ``left`` says what is still there."""

    left = "raise NotImplementedError is still there"


class LeftOpen(NotAttempted):
    """It returned what stands for nothing yet."""

    left = "part of it still returns `...`"


@dataclass(frozen=True)
class Run:
    """A learner's code and one input for it.

    Attributes:
        exercise: what is asked for.
        code: the learner's function, or the layer that the learner's class has made.
        trial: the input.
    """

    exercise: Exercise
    code: Callable
    trial: Trial

    def call(self, tensors: Mapping[str, Tensor]) -> object:
        """Call the code with these tensors, and with copies of the other arguments.

        Raises:
            CheckFailed: it raised an error, or the exercise has no use for what came back.
        """
        arguments = {
            name: tensors[name] if name in tensors else copy.deepcopy(x)
            for name, x in self.trial.arguments.items()
        }
        return call(self.exercise.call, self.code, **arguments)

    def tensors_of(self, result: object) -> Answer:
        """Return what came back as a tuple of tensors.

        Raises:
            CheckFailed: it is something else.
        """
        names = tuple(self.exercise.results.values())
        items = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if items and all(item is ... for item in items):
            raise LeftOpen(f"{LeftOpen.left}.")
        if result is None:
            raise CheckFailed(
                "your code returned None; is there a return line, or is what it returns None?"
            )
        if not 1 <= len(items) <= len(names):
            wanted = "two: " * (len(names) == 2) + ", ".join(names)
            raise CheckFailed(f"your code returned {len(items)} things; expected {wanted}.")
        for name, x in zip(names, items, strict=False):
            _require_ordinary(name, x, boolean=self.exercise.boolean)
        if any(x.numel() > MOST_NUMBERS for x in items):
            raise self._too_large(items)
        return items

    def _too_large(self, items: Answer) -> CheckFailed:
        """Say what shape a huge result has, without a look at its numbers."""
        expected = self.exercise.truth(**self.trial.given) or ()
        place = next(i for i, x in enumerate(items) if x.numel() > MOST_NUMBERS)
        name = tuple(self.exercise.results.values())[place]
        wanted = f"; expected {tuple(expected[place].shape)}" if place < len(expected) else ""
        return CheckFailed(f"{name} has shape {tuple(items[place].shape)}{wanted}.")

    def answer(self, within: AbstractContextManager | None = None) -> Answer:
        """Return the tensors that the code makes of the input, comparable with others.

        Args:
            within: what the code runs within; left out, ``Means``, where nothing is random.

        Raises:
            CheckFailed: the code raised an error, changed its input or returned something else.
        """
        tensors = {name: x.clone() for name, x in self.trial.tensors.items()}
        with Means() if within is None else within:
            result = self.call(tensors)
        for name, x in tensors.items():
            if not torch.equal(x, self.trial.tensors[name]):
                raise CheckFailed(
                    f"your code changes its input {name} in place; leave it as it came."
                )
        return tuple(map(comparable, self.tensors_of(result)))


def call(code: Callable, *args: object, **kwargs: object) -> object:
    """Call the learner's code; an error becomes a sentence with the learner's own line.

    Raises:
        NotAttempted: it ran into the line that a stub raises with.
        CodeRaised: it raised another error.
        CheckFailed: what an exercise found out while it looked at what came back.
    """
    start = monotonic()
    try:
        return code(*args, **kwargs)
    except CheckFailed:
        raise
    except KeyboardInterrupt as stop:
        _, where = _own_line(stop)
        seconds = monotonic() - start
        raise CheckFailed(
            f"interrupted after {seconds:.0f} s in your code; does every loop end?{where}"
        ) from None
    except (Exception, SystemExit) as error:
        frame, where = _own_line(error)
        # A stub has a raise statement of its own; torch's NotImplementedError comes from a call.
        if isinstance(error, NotImplementedError) and frame and frame.tb_next is None:
            bytecode = frame.tb_frame.f_code.co_code
            if dis.opname[bytecode[frame.tb_lasti]] == "RAISE_VARARGS":
                raise NotAttempted("part of it still raises NotImplementedError.") from None
        first_line = str(error).partition("\n")[0]
        message = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {first_line}")
        raise CodeRaised(f"your code raised {message}{where}") from None


def _own_line(error: BaseException) -> tuple[TracebackType | None, str]:
    """Return the deepest frame of the learner's own code, and its line in words."""
    own, frame = None, error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
        if not frame.tb_frame.f_code.co_filename.startswith(_NOT_THEIRS):
            own = frame
    if own is None:
        return None, ""
    source = linecache.getline(own.tb_frame.f_code.co_filename, own.tb_lineno).strip()
    return own, f"\n  in your line {own.tb_lineno}: {source}"


def is_stub(code: object) -> bool:
    """Whether a function's body is nothing but a docstring, ``...`` or ``pass``."""
    body = _body(code)
    return bool(body) and all(
        isinstance(line, ast.Pass)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in body
    )


def numbers_in(code: object) -> set[int]:
    """Return the whole numbers that are written in a function, or in the methods of a layer."""
    code = inspect.unwrap(code)
    if isinstance(code, nn.Module):
        methods = [x for x in vars(type(code)).values() if inspect.isfunction(x)]
    else:
        methods = [code]
    pending = [m.__code__ for m in methods if hasattr(m, "__code__")]
    numbers: set[int] = set()
    while pending:
        for constant in pending.pop().co_consts:
            if inspect.iscode(constant):
                pending.append(constant)
            parts = constant if isinstance(constant, tuple) else (constant,)
            numbers |= {x for x in parts if isinstance(x, int) and not isinstance(x, bool)}
    return numbers


def has_lines(code: object) -> bool:
    """Whether a function holds more than a docstring and the line that a stub raises with."""
    return not all(isinstance(line, ast.Raise | ast.Pass | ast.Expr) for line in _body(code))


def as_number(name: str, x: object) -> object:
    """Any kind of number as a tensor; ``...``, which stands for nothing yet, as it is.

    Raises:
        CheckFailed: anything else; the message names it.
    """
    if x is ...:
        return x
    try:
        if isinstance(x, str | bytes):  # float would read it
            raise TypeError
        return torch.tensor(float(x), dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):  # the last from a tensor of many numbers
        if isinstance(x, Tensor):
            kind = f"a tensor of shape {tuple(x.shape)}"
        else:
            kind = f"of type {type(x).__name__}"
        raise CheckFailed(f"{name} is {kind}; expected a number.") from None


def _body(code: object) -> list[ast.stmt]:
    """Return a function's statements; [] where its source is not to be had."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return []
    return tree.body if isinstance(tree, ast.FunctionDef) else []


def _require_ordinary(name: str, x: object, *, boolean: bool) -> None:
    """Refuse what is no ordinary tensor of numbers.

    Raises:
        CheckFailed: the message says what it is.
    """
    if not isinstance(x, Tensor):
        kind = "a NumPy array" if type(x).__module__ == "numpy" else f"of type {type(x).__name__}"
        hint = " Is there a yield where a return is meant?" if inspect.isgenerator(x) else ""
        if inspect.iscoroutine(x):
            x.close()  # or Python warns that nobody has waited for it
            hint = " Write def without async."
        raise CheckFailed(f"{name} is {kind}; expected a torch tensor.{hint}")
    if x.device.type != "cpu":
        raise CheckFailed(f"{name} is on device {x.device}; expected cpu, like the input.")
    if x.layout != torch.strided:
        raise CheckFailed(f"{name} is {x.layout}; expected an ordinary tensor, like the input.")
    if x.dtype not in (torch.float32, torch.float64) and not (boolean and x.dtype == torch.bool):
        raise CheckFailed(f"{name} holds {x.dtype}; expected torch.float32, like the input.")
