"""What an exercise is made of."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from course_utils.exercises.search import Answer, DoesNotFit, Mistake, Step
from course_utils.exercises.signature import as_function, bind
from course_utils.exercises.trial import SIZES, Trial

Observations = Sequence[tuple[Mapping[str, object], Answer]]
SIZES_IN_WORDS = "; ".join("N={} L={} D={} H={}".format(*size) for size in SIZES)


def in_order(code: Callable, **arguments: object) -> object:
    """Call the learner's function with the arguments in their order; None is not passed."""
    return code(*(x for x in arguments.values() if x is not None))


def as_it_is(learner: Callable, trial: Trial) -> tuple[Callable, Trial]:
    """A function is called as it is; only a class must be built first."""
    return learner, trial


def function_by_names(exercise: "Exercise", learner: Callable) -> tuple["Exercise", Callable]:
    """Hand a function what it asks for by name, a module what its forward asks for."""
    code = as_function(learner)
    roles = tuple(next(iter(exercise.trials())).arguments)
    return exercise, bind(code, roles).in_order_of(roles, code)


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """An exercise: what the learner's code is given, what is right, and what can go wrong.

    Attributes:
        name: what messages call it.
        steps: those that give the right answer. They start from ``Trial.given``.
        mistakes: those that are known at these steps.
        results: the steps whose values come back, in order, and what messages call each.
        weights: which of them are attention weights, whose rows must sum to 1; "" if none is.
        fit: makes of this exercise and the learner's code the exercise that is judged by, with what
            the code does not take left out, and what is called or built.
        trials: makes the inputs, easy ones first. The last one tells most mistakes apart: the
            search begins with it.
        truth: torch's own answer to ``Trial.given``, passed by name, or one that is computed in
            another way than the steps; None where torch has nothing like the learner's layer.
        covered: what the inputs were, for the line that says all is right.
        call: calls the learner's code with copies of ``Trial.arguments``, passed by name, and
            makes a tensor or a tuple of tensors of what comes back.
        note: what the line that all is right ends with, for example what was left out.
        build: makes of the learner's code and a trial what is called, and the trial for it.
        learn: what a learner's results tell the steps, from the values of all steps and the result
            on each input without a mask.
        watched: names of steps whose numbers any code must compute, whatever way it takes.
        asks_for_masks: whether a row of a mask that is blocked as a whole must come out as zeros;
            otherwise it is only noted.
        gradients: whether a gradient must reach the arguments; without, NumPy will do.
        boolean: whether the results are boolean.
    """

    name: str
    steps: tuple[Step, ...]
    mistakes: tuple[Mistake, ...]
    results: Mapping[str, str]
    weights: str = ""
    trials: Callable[[], Iterable[Trial]]
    truth: Callable[..., Answer | None]
    covered: str = SIZES_IN_WORDS
    call: Callable[..., object] = in_order
    fit: Callable[["Exercise", Callable], tuple["Exercise", Callable]] = function_by_names
    build: Callable[[Callable, Trial], tuple[Callable, Trial]] = as_it_is
    learn: Callable[[Observations], dict[str, object]] | None = None
    watched: tuple[str, ...] = ()
    asks_for_masks: bool = False
    note: str = ""
    gradients: bool = True
    boolean: bool = False

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps, after the one that says which of their values come back."""
        return RETURNED, *self.steps

    @property
    def all_mistakes(self) -> tuple[Mistake, ...]:
        """The mistakes, and those that any return line can make."""
        return *RETURN_LINE_MISTAKES, *self.mistakes

    def start(self, trial: Trial) -> dict[str, object]:
        """Return what all steps start from: ``Trial.given``, ``results`` and ``float64``."""
        return {**trial.given, "results": tuple(self.results), "float64": trial.float64}


def _of_several(results: tuple[str, ...]) -> tuple[str, ...]:
    if len(results) < 2:
        raise DoesNotFit("a single result has no order")
    return results


RETURNED = Step("returned", "tuple of names of steps", lambda s: s.results)
RETURN_LINE_MISTAKES = (
    Mistake(
        id="returned-in-wrong-order",
        step="returned",
        variants=(lambda s: _of_several(s.results)[::-1],),
        title="the two results are returned in the other order",
        why="Whoever calls this unpacks them in the order that was asked for.",
        look="the return line",
    ),
    Mistake(
        id="only-first-returned",
        step="returned",
        variants=(lambda s: _of_several(s.results)[:1],),
        title="only the first of the results is returned",
        why="Whoever calls this unpacks all of them.",
        look="the return line",
    ),
)
