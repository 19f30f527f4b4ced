"""The four projections of a learner's layer, whatever they are called and however they are stored.

They may be ``nn.Linear`` or other modules with a weight and a bias, parameters of the learner's
own, or one fused projection for query, key and value, stacked [Q; K; V] as in torch.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ROLES = ("q", "k", "v", "o")
FUSED = {"qkv", "cattn", "inproj", "querykeyvalue", "inprojection", "kqv"}
_WORDS = {
    "q": {"q", "query", "queries", "qs"},
    "k": {"k", "key", "keys", "ks"},
    "v": {"v", "value", "values", "vs", "val"},
    "o": {"o", "out", "output", "outs", "concat", "merge", "unify", "unifyheads", "final"},
}
# What stands beside the word that tells the role: W_q, linear_q, to_out, fc_out, query_layer.
_FILLING = {
    *("w", "proj", "projection", "linear", "lin", "layer", "fc", "to", "c", "weight", "weights"),
    *("matrix", "mat", "in", "transform", "heads", "head", "net", "dense"),
}


@dataclass(frozen=True)
class Found:
    """One projection of a layer.

    Attributes:
        name: as the learner calls it.
        weight: the parameter itself.
        bias: likewise, or None.
        in_out: whether the weight is (in, out), so that x @ weight is meant; None if nobody can
            tell without running the layer.
    """

    name: str
    weight: Tensor
    bias: Tensor | None
    in_out: bool | None = False

    def parameters(self) -> list[tuple[str, Tensor]]:
        """Weight and bias, with the names that messages use."""
        pair = (("weight", self.weight), ("bias", self.bias))
        own = self.in_out is None  # a parameter, not a module that holds one
        return [
            (self.name if own and part == "weight" else f"{self.name}.{part}", x)
            for part, x in pair
            if x is not None
        ]


def find(layer: nn.Module) -> dict[str, Found]:
    """Return the projections by role: "q", "k", "v" and "o", or "qkv" and "o"; fewer if not found.

    Names decide: ``q_proj``, ``W_q``, ``to_q``, ``queries``; ``o_proj``, ``fc_out``, ``proj``.
    """
    found: dict[str, Found] = {}
    candidates = list(_candidates(layer))
    for projection in candidates:
        role = role_of(projection.name)
        if role and role not in found:
            found[role] = projection
    if "o" not in found:  # called by what it is and no more: proj, c_proj, fc, dense
        used = {p.name for p in found.values()}
        rest = [p for p in candidates if p.name not in used and _is_filling(p.name)]
        if len(rest) == 1:
            found["o"] = rest[0]
    if {"q", "k", "v"} & set(found):
        found.pop("qkv", None)
    return found


def role_of(name: str) -> str | None:
    """Return which projection has this name: one of ``ROLES``, "qkv" or None."""
    if "".join(_parts(name)).removeprefix("w").removeprefix("to") in FUSED:
        return "qkv"
    if "".join(part for part in _parts(name) if part not in _FILLING) in FUSED:
        return "qkv"
    core = [part for part in _parts(name) if part not in _FILLING]
    if len(core) != 1:
        return None
    word = core[0]
    if len(word) == 2 and word.startswith("w"):  # wq, Wo
        word = word[1]
    return next((role for role, words in _WORDS.items() if word in words), None)


def as_linear(projections: Mapping[str, Found]) -> dict[str, tuple[Tensor | None, ...]]:
    """Return (weight, bias) by role, each weight (out, in) as in ``nn.Linear``, in float64."""
    linear: dict[str, tuple[Tensor | None, ...]] = dict.fromkeys(ROLES, (None, None))
    for role, projection in projections.items():
        weight = projection.weight.detach().double()
        weight = weight.T if projection.in_out else weight
        bias = None if projection.bias is None else projection.bias.detach().double()
        if role == "qkv":
            biases = (None,) * 3 if bias is None else bias.chunk(3)
            linear |= dict(zip("qkv", zip(weight.chunk(3), biases, strict=True), strict=True))
        else:
            linear[role] = (weight, bias)
    return linear


def _candidates(layer: nn.Module) -> Iterator[Found]:
    for name, child in layer._modules.items():  # named_children leaves out what comes twice
        if isinstance(child, nn.Sequential):  # to_out of some code bases: a projection and dropout
            inner = [m for m in child if getattr(m, "weight", None) is not None]
            child = inner[0] if len(inner) == 1 else child
        weight, bias = getattr(child, "weight", None), getattr(child, "bias", None)
        if isinstance(weight, Tensor) and weight.ndim == 2:
            in_out = False if isinstance(child, nn.Linear) else _in_out(child, weight)
            yield Found(name, weight, bias if isinstance(bias, Tensor) else None, in_out)
    own = {name: x for name, x in layer._parameters.items() if x is not None}
    for name, x in own.items():
        if x.ndim == 2:
            bias = next((own[n] for n in _bias_names(name) if n in own and own[n].ndim == 1), None)
            yield Found(name, x, bias, None)


def _bias_names(name: str) -> list[str]:
    tail = name[1:].lstrip("_")
    return [f"{name}_bias", f"bias_{tail}", f"b_{tail}", f"b{tail}", name.replace("weight", "bias")]


@torch.no_grad()
def _in_out(module: nn.Module, weight: Tensor) -> bool:
    """Whether a module computes x @ weight, not x @ weight.T."""
    x = torch.eye(weight.shape[0], dtype=weight.dtype)
    try:
        made = module(x[None])[0] - module(torch.zeros_like(x)[None])[0]
    except Exception:  # (out, in) with another number of inputs
        return False
    return made.shape == weight.shape and torch.allclose(made, weight, atol=1e-5)


def _is_filling(name: str) -> bool:
    parts = _parts(name)
    return bool(parts) and all(part in _FILLING for part in parts)


def _parts(name: str) -> list[str]:
    """Cut a name at underscores and where capitals begin: W_q, toQ, query_proj."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return [part.lower() for part in re.split(r"[_\d]+", spaced) if part]
