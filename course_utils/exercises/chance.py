"""What is random in a learner's code, taken out so that all else can be compared.

Every random number is replaced by its mean: dropout passes on what it is given, a coin that falls
on 1 with probability 0.9 gives 0.9, and a uniform number is 0.5. Dropout that somebody wrote by
hand then leaves the numbers as they are, or multiplies all of them by one factor.
"""

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
_RANDOM = {
    *(*_DROPOUTS, *_UNIFORM, *_NORMAL, F.scaled_dot_product_attention, torch.bernoulli),
    *(Tensor.bernoulli, Tensor.bernoulli_, Tensor.uniform_, Tensor.normal_),
}


class Means(TorchFunctionMode):
    """Replace each random number by its mean.

    Attributes:
        drawn: whether anything random was asked for.
        by_hand: whether that was more than torch's own dropout.
        noise: whether a normal distribution was asked for, with which nobody drops anything.
        dropped: what went into torch's own dropout while it was on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.drawn = self.by_hand = self.noise = False
        self.dropped: list[Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func not in _RANDOM:  # a thousand calls per check, so nothing is done for them
            return func(*args, **kwargs)
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
        self.drawn = self.by_hand = True
        self.noise |= func in _NORMAL or func is Tensor.normal_
        return self._mean(func, args, kwargs)

    def _mean(self, func: Callable, args: tuple, kwargs: dict) -> Tensor:
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
        return args[0].fill_(kwargs.get("mean", args[1] if len(args) > 1 else 0.0))  # normal_


def one_factor(answer: Tensor, right: Tensor) -> bool:
    """Whether a tensor is another one times a factor of at least 1, up to a bias of the last axis.

    Dropout that was written by hand divides what it keeps by the probability that it is kept. An
    output projection then adds its bias, which has no such factor.
    """
    if answer.shape != right.shape or answer.ndim < 2:
        return False
    rows, wanted = answer.flatten(0, -2), right.flatten(0, -2)
    spread, wanted_spread = rows - rows[:1], wanted - wanted[:1]
    size = float(wanted_spread.square().sum())
    if not size:
        return torch.allclose(answer, right, rtol=1e-4, atol=1e-5)
    factor = float((spread * wanted_spread).sum()) / size
    return factor >= 1 - 1e-4 and torch.allclose(
        spread, factor * wanted_spread, rtol=1e-4, atol=1e-5
    )
