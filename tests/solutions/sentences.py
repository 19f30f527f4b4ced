"""A sentence as one vector: lesson 8."""

from course_utils.exercises import check_mean_pool
from course_utils.exercises.sentences import MEAN_POOL
from solutions.solution import Solution


def mean_pool(*bugs):
    def fn(x, mask):
        if "pads-averaged-in" in bugs:
            mask = mask | True
        if "pads-alone-averaged" in bugs:
            mask = ~mask
        if "tokens-normalised-first" in bugs:
            x = x / x.norm(dim=-1, keepdim=True)
        summed = (x * mask.unsqueeze(-1)).sum(dim=1)
        count = mask.sum(dim=1, keepdim=True)
        if "divided-by-length" in bugs:
            count = x.shape[1]
        if "divided-by-all-tokens" in bugs:
            count = mask.sum()
        mean = summed if "pooled-as-a-sum" in bugs else summed / count
        if "cls-taken" in bugs:
            mean = x[:, 0]
        unit = mean / mean.norm(dim=-1, keepdim=True)
        if "unit-over-batch" in bugs:
            unit = mean / mean.norm(dim=0)
        if "unit-of-all-sentences" in bugs:
            unit = mean / mean.norm()
        if "divided-by-square" in bugs:
            unit = mean / (mean**2).sum(-1, keepdim=True)
        return mean, mean if "not-normalised" in bugs else unit

    return fn


POOL = Solution(
    check=check_mean_pool,
    make=mean_pool,
    exercise=MEAN_POOL,
    together=(
        ("pads-averaged-in", "not-normalised"),
        ("divided-by-length", "unit-over-batch"),
    ),
)
