"""What a layer costs: lesson 7."""

from course_utils.exercises import check_layer_cost
from course_utils.exercises.cost import LAYER_COST
from solutions.solution import Solution


def layer_cost(*bugs):
    def fn(n, length, d, h):
        matrices = 3 if "counts-three-matrices" in bugs else 4
        matrix = d * d + d
        if "counts-no-biases" in bugs:
            matrix = d * d
        if "counts-parameters-a-head" in bugs:
            matrix *= h
        if "counts-one-head" in bugs:
            matrix //= h
        parameters = matrices * matrix - (matrices - 1) * d * ("counts-one-bias" in bugs)
        if "parameters-without-out-proj" in bugs:
            parameters = parameters * 3 // 4
        projecting = matrices * n * length * d * d
        if "work-without-out-proj" in bugs:
            projecting = 3 * n * length * d * d
        if "counts-projecting-a-head" in bugs:
            projecting *= h
        if "counts-no-projecting" in bugs:
            projecting = 0
        attending = {
            "counts-no-attending": 0,
            "counts-one-product": n * length * length * d,
            "counts-full-width-heads": 2 * n * h * length**2 * d,
            "counts-attending-of-one-head": 2 * n * length**2 * (d // h),
            "counts-attending-without-square": 2 * n * length * d,
        }
        pairs = next((attending[bug] for bug in bugs if bug in attending), 2 * n * length**2 * d)
        adds = projecting + pairs
        if "counts-two-a-multiply-add" in bugs:
            adds *= 2
        if "counts-work-of-one-sample" in bugs:
            adds /= n
        stored = {
            "stored-without-heads": n * length**2,
            "stored-without-square": n * h * length,
            "stored-of-one-sample": h * length**2,
            "stored-times-width": n * length**2 * d,
        }
        maps = next((stored[bug] for bug in bugs if bug in stored), n * h * length**2)
        return parameters, adds, maps

    return fn


COST = Solution(
    check=check_layer_cost,
    make=layer_cost,
    exercise=LAYER_COST,
    together=(
        ("counts-no-biases", "counts-two-a-multiply-add", "stored-without-heads"),
        ("counts-three-matrices", "counts-one-product"),
    ),
)
