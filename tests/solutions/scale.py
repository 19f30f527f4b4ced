"""Lesson 2: the scale, and the gradients behind the softmax."""

import math

from course_utils.exercises import check_attention_scale, check_gradient_norms
from course_utils.exercises.scale import ATTENTION_SCALE, GRADIENT_NORMS
from solutions.solution import Solution


def attention_scale(bug=None):
    return {
        None: lambda d, h: (d / h) ** -0.5,
        "factor-by-embed-dim": lambda d, h: d**-0.5,
        "factor-without-root": lambda d, h: h / d,
        "factor-upside-down": lambda d, h: (d / h) ** 0.5,
        "factor-by-num-heads": lambda d, h: h**-0.5,
        "factor-is-root-of-embed-dim": lambda d, h: d**0.5,
        "factor-of-one": lambda d, h: 1,
    }[bug]


def gradient_norms(*bugs):
    def fn(query, key, upstream, scaled):
        dots = (query[:, None] * key).sum(-1).detach().requires_grad_()
        width = query.shape[1]
        if "scaled-ignored" in bugs:
            scaled = False
        if "scaled-the-wrong-way-round" in bugs:
            scaled = not scaled
        if "always-scaled" in bugs:
            scaled = True
        divisor = width if "scaled-without-root" in bugs else math.sqrt(width)
        scores = dots / divisor if scaled else dots * 1
        scores.retain_grad()
        weights = scores.softmax(0 if "shared-over-queries" in bugs else 1)
        weights.backward(upstream)
        gradient = scores.grad
        if "gradient-at-dot-products" in bugs:
            gradient = dots.grad
        if "own-score-only" in bugs:
            gradient = upstream * weights * (1 - weights)
        if "gradient-at-weights" in bugs:
            gradient = upstream
        if "norms-squared" in bugs:
            return (gradient**2).sum(1)
        if "norms-over-queries" in bugs:
            return gradient.norm(dim=0)
        return gradient.norm() if "one-norm" in bugs else gradient.norm(dim=1)

    return fn


SCALE = Solution(
    check=check_attention_scale,
    make=attention_scale,
    exercise=ATTENTION_SCALE,
    together=(),
)

NORMS = Solution(
    check=check_gradient_norms,
    make=gradient_norms,
    exercise=GRADIENT_NORMS,
    together=(("scaled-ignored", "one-norm"),),
)
