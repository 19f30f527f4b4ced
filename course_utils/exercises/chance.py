"""What is random in a learner's code, taken out so that all else can be compared.

Every random number is replaced by its mean: dropout passes on what it is given, a coin that falls
on 1 with probability 0.9 gives 0.9, and a uniform number is 0.5. Dropout that somebody wrote by
hand then leaves the numbers as they are, or multiplies all of them by one factor.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_DROPOUTS = {
    *(F.dropout, torch.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout),
    *(F.feature_alpha_dropout, torch.feature_dropout, torch.alpha_dropout, torch.dropout_),
}
_UNIFORM = {torch.rand: torch.zeros, torch.rand_like: torch.zeros_like}
_NORMAL = {torch.randn: torch.zeros, torch.randn_like: torch.zeros_like}


class Means(TorchFunctionMode):
    """Replace each random number by its mean.

    Attributes:
        drawn: whether anything random was asked for.
        by_hand: whether that was more than torch's own dropout.
        dropped: what went into torch's own dropout while it was on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.drawn = self.by_hand = False
        self.dropped: list[Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in _DROPOUTS:
            x = args[0] if args else kwargs["input"]
            training = (
                args[2] if len(args) > 2 else kwargs.get("training", kwargs.get("train", True))
            )
            if training:
                self.drawn = True
                self.dropped.append(x.detach())
            return x
        if func is F.scaled_dot_product_attention:  # dropout_p is its fifth argument
            self.drawn |= bool(args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0))
            args = (*args[:4], *(0.0 for _ in args[4:5]), *args[5:])
            kwargs |= {"dropout_p": 0.0} if "dropout_p" in kwargs else {}
            return func(*args, **kwargs)
        mean = self._mean(func, args, kwargs)
        if mean is None:
            return func(*args, **kwargs)
        self.drawn = self.by_hand = True
        return mean

    def _mean(self, func: Callable, args: tuple, kwargs: dict) -> Tensor | None:
        kwargs = {name: x for name, x in kwargs.items() if name != "generator"}
        if func in _UNIFORM:
            return _UNIFORM[func](*args, **kwargs) + 0.5
        if func in _NORMAL:
            return _NORMAL[func](*args, **kwargs)
        if func is torch.bernoulli or func is Tensor.bernoulli:
            p = kwargs.get("p", args[1] if len(args) > 1 else None)
            return args[0].clone() if p is None else torch.full_like(args[0], p)
        if func is Tensor.bernoulli_:
            p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            return args[0].copy_(torch.as_tensor(p).expand_as(args[0]))
        if func is Tensor.uniform_:
            ends = (*args[1:], 0.0, 1.0)[:2] if len(args) != 2 else (args[1], 1.0)
            low, high = kwargs.get("from", ends[0]), kwargs.get("to", ends[1])
            return args[0].fill_((low + high) / 2)
        if func is Tensor.normal_:
            return args[0].fill_(kwargs.get("mean", args[1] if len(args) > 1 else 0.0))
        return None


def factor(answer: Tensor, right: Tensor) -> float | None:
    """Return the one factor between two tensors; None if there is none.

    Where dropout that was written by hand keeps every weight, it divides each by the probability
    that it stays, so all are that much larger.
    """
    if answer.shape != right.shape or not right.abs().sum():
        return None
    ratio = float((answer * right).sum() / (right * right).sum())
    alike = torch.allclose(answer, ratio * right, rtol=1e-4, atol=1e-5)
    return ratio if alike and math.isfinite(ratio) and ratio >= 1 - 1e-4 else None
