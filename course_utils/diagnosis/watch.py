"""Watch a layer run: every call that attention can be made of, with copies of its tensors."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum"}
LINEAR = {"linear", "addmm"}
NAMED = PRODUCTS | LINEAR | {"softmax", "scaled_dot_product_attention", "dropout"}
# What only looks at the same numbers in another way is not worth a copy.
VIEWS = {
    *("__get__", "__getitem__", "view", "reshape", "transpose", "permute", "expand", "unsqueeze"),
    *("squeeze", "flatten", "unflatten", "contiguous", "detach", "clone", "to", "cat", "float"),
}


@dataclass(frozen=True)
class Call:
    """One call of a torch function: its name, what went in and what came out."""

    name: str
    args: tuple
    kwargs: dict[str, Any]
    output: Tensor

    def get(self, place: int, name: str, default: object = None) -> Any:
        """Return the argument of this name, wherever it was given."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[place] if place < len(self.args) else default


class Watch(TorchFunctionMode):
    """Notes the calls that are made while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Run the function and note it."""
        kwargs = kwargs or {}
        if func is F.multi_head_attention_forward:
            # It hands itself to the mode before it does anything; to see what is inside, it must
            # believe that there is no mode.
            with mock.patch.object(F, "has_torch_function", return_value=False), self:
                return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in NAMED:  # copied before the call: an argument may be changed in place
            args_then, kwargs_then = tree_map_only(Tensor, _copy, (args, kwargs))
        output = func(*args, **kwargs)
        if isinstance(output, Tensor) and output.is_floating_point():
            if name in NAMED:
                self.calls.append(Call(name, tuple(args_then), kwargs_then, _copy(output)))
            elif name not in VIEWS and output.ndim == 4:
                self.calls.append(Call(name, (), {}, _copy(output)))
        return output


def watch(layer: Callable, args: tuple, kwargs: dict) -> tuple[list[Call], object]:
    """Call a copy of the layer with copies of its arguments; return what it did, and its output.

    The random state is as before, even after an error.
    """
    memo = {}
    tree_map_only(Tensor, lambda x: memo.update({id(x): _copy(x)}), (args, kwargs))
    # One memo, so that arguments that were one tensor are still one tensor.
    args, kwargs = copy.deepcopy((args, kwargs), memo)
    if isinstance(layer, nn.Module):
        layer = copy.deepcopy(layer)
    fastpath = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.random.fork_rng(devices=[]), torch.no_grad(), Watch() as seen:
            output = layer(*args, **kwargs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fastpath)
    return seen.calls, output


def _copy(x: Tensor) -> Tensor:
    return x.detach().clone()
