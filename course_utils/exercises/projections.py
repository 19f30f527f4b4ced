"""The four projections of a learner's layer, whatever they are called and however they are stored.

They may be ``nn.Linear`` or any other module that is linear, parameters of the learner's own, one
for each head, or one fused projection for query, key and value, stacked [Q; K; V] as in torch.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin

ROLES = ("q", "k", "v", "o")
_IN_ORDER = ("q", "k", "v", "qkv", "kv", "o")
FUSED = {"qkv", "cattn", "inproj", "querykeyvalue", "inprojection", "kqv"}
_PAIR = {"kv", "keyvalue"}
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

Linear = tuple[Tensor, Tensor | None]  # weight (out, in) and bias


@dataclass(frozen=True)
class Found:
    """One projection of a layer, or the part of it that belongs to one head.

    Attributes:
        path: where the layer holds it, name by name.
        parameters: what is stored, by the names that messages use.
        read: gives its weight, (out, in) as in ``nn.Linear``, and its bias.
        in_out: whether what is read is (in, out) after all; None if nobody can tell without running
            the layer.
    """

    path: tuple[str, ...]
    parameters: Mapping[str, Tensor]
    read: Callable[[], Linear]
    in_out: bool | None = False

    @property
    def role(self) -> str | None:
        """The role that its name tells, the innermost name first."""
        return next(filter(None, map(role_of, reversed(self.path))), None)

    @property
    def family(self) -> tuple[str, ...]:
        """Its path without numbers: the same for all heads."""
        return tuple("#" if name.isdigit() else name for name in self.path)

    def linear(self) -> Linear:
        """Weight (out, in) and bias, in float64."""
        weight, bias = self.read()
        weight = weight.detach().double()
        bias = None if bias is None else bias.detach().double()
        return (weight.T if self.in_out else weight), bias


def find(layer: nn.Module, embed_dim: int) -> dict[str, list[Found]]:
    """Return the projections by role: "q", "k", "v" or "qkv" or "q" and "kv", and "o".

    Names decide: ``q_proj``, ``W_q``, ``to_q``, ``queries``; ``o_proj``, ``fc_out``, ``proj``. Four
    in a list without names are taken for q, k, v and o, in this order. A role has one projection,
    or one for each head; what is not found has none.
    """
    found: dict[str, list[Found]] = {}
    parts = list(_parts_of(layer, embed_dim))
    for part in parts:
        own = found.setdefault(part.role, [])
        if not own or ("#" in part.family and own[0].family == part.family):
            own.append(part)
    nameless = [part for part in parts if part.role is None]
    found.pop(None, None)
    if not {"q", "k", "v", "qkv"} & set(found):
        for family in {part.family: None for part in nameless}:
            listed = [part for part in nameless if part.family == family]
            if len(listed) in (3, 4):
                found |= {role: [part] for role, part in zip(ROLES, listed, strict=False)}
                nameless = [part for part in nameless if part not in listed]
    if "o" not in found:  # called by what it is and no more: proj, c_proj, fc, dense
        plain = [part for part in nameless if _is_filling(part.path)]
        for rest in (plain, nameless):
            if len(rest) == 1:
                found.setdefault("o", rest)
    if {"q", "k", "v"} & set(found):
        found.pop("qkv", None)
    return {role: found[role] for role in _IN_ORDER if role in found}


def role_of(name: str) -> str | None:
    """Return which projection has this name: one of ``ROLES``, "qkv", "kv" or None."""
    words = _words_in(name)
    whole = "".join(word for word in words if word != "weight")
    if whole.removeprefix("w").removeprefix("to") in FUSED:
        return "qkv"
    core = [word for word in words if word not in _FILLING]
    if "".join(core) in FUSED:
        return "qkv"
    if "".join(core) in _PAIR:
        return "kv"
    if len(core) != 1:
        return None
    word = core[0].removeprefix("to")  # tokeys
    if len(word) == 2 and word.startswith("w"):  # wq, Wo
        word = word[1]
    return next((role for role, words in _WORDS.items() if word in words), None)


def as_linear(
    projections: Mapping[str, Sequence[Found]],
) -> dict[str, tuple[Tensor | None, Tensor | None]]:
    """Return (weight, bias) by role, each weight (out, in) as in ``nn.Linear``, in float64."""
    linear: dict[str, tuple[Tensor | None, Tensor | None]] = dict.fromkeys(ROLES, (None, None))
    for role, heads in projections.items():
        pairs = [part.linear() for part in heads]
        if role == "o":
            biases = [bias for _, bias in pairs if bias is not None]
            linear[role] = torch.cat([w for w, _ in pairs], 1), sum(biases) if biases else None
            continue
        cut = [(w.chunk(len(role)), _chunks(bias, len(role))) for w, bias in pairs]
        for i, one in enumerate(role):
            weight = torch.cat([weights[i] for weights, _ in cut])
            biases = [own[i] for _, own in cut]
            linear[one] = weight, None if None in biases else torch.cat(biases)
    return linear


def _chunks(bias: Tensor | None, count: int) -> Sequence[Tensor | None]:
    return [None] * count if bias is None else bias.chunk(count)


def _parts_of(module: nn.Module, embed_dim: int, path: tuple[str, ...] = ()) -> Iterator[Found]:
    """All that may be a projection, with the parameters before the modules, each in order."""
    own = {name: x for name, x in module._parameters.items() if x is not None}
    for name, x in own.items():
        if x.ndim in (2, 3):
            bias = next((n for n in _bias_names(name) if n in own and own[n].ndim < x.ndim), None)
            names = [name] if bias is None else [name, bias]
            held = {".".join((*path, n)): own[n] for n in names}
            yield _parameter((*path, name), held, embed_dim)
    for name, child in module._modules.items():  # named_children leaves out what comes twice
        here = (*path, name)
        if child is None:
            continue
        if isinstance(child, LazyModuleMixin) and child.has_uninitialized_params():
            x = torch.zeros(1, 1, embed_dim, dtype=child.weight.dtype)
            child(x.mT if isinstance(child, nn.Conv1d) else x)
        if _is_one(child):
            held = {".".join((*here, n)): x for n, x in child.named_parameters()}
            yield Found(here, held, partial(_read, child, embed_dim))
        else:
            yield from _parts_of(child, embed_dim, here)


def _is_one(module: nn.Module) -> bool:
    """Whether a module is one projection, with a single matrix."""
    if any(name != "parametrizations" for name in module._modules):
        return False
    if isinstance(module, nn.Linear | nn.Conv1d):
        return True
    matrices = [x for x in module.parameters() if x.ndim > 1 and x.numel() > max(x.shape)]
    return len(matrices) == 1 and type(module).forward is not nn.Module.forward


def _read(module: nn.Module, embed_dim: int) -> Linear:
    """The numbers of a module: what stands in it, or what it does to each feature alone."""
    if type(module) is nn.Linear and "weight" in module._parameters:
        return module.weight, module.bias
    has_bias = any(x.ndim == 1 for x in module.parameters())
    weight = getattr(module, "weight", None)
    widths = [embed_dim, *(weight.shape[1:2] if isinstance(weight, Tensor) else ())]
    for width in widths:
        x = torch.eye(width, dtype=next(module.parameters()).dtype)[None]
        try:
            with torch.no_grad():
                nothing = module(torch.zeros_like(x))[0]
                made = module(x)[0] - nothing
        except Exception:  # another width
            continue
        if isinstance(module, nn.Conv1d):  # (N, D, L)
            return made, nothing[:, 0] if has_bias else None
        return made.T, nothing[0] if has_bias else None
    return weight, getattr(module, "bias", None)


def _parameter(path: tuple[str, ...], held: Mapping[str, Tensor], embed_dim: int) -> Found:
    """A parameter of the learner's own: a matrix, or one matrix for each head."""
    x, *biases = held.values()
    bias = biases[0] if biases else None
    if x.ndim == 2:
        square = x.shape[0] == x.shape[1]
        in_out = None if square else x.shape[0] == embed_dim
        return Found(path, held, lambda: (x, bias), in_out)
    features = list(x.shape).index(embed_dim) if embed_dim in x.shape else 0
    rest = [axis for axis in range(3) if axis != features]
    is_out = Found(path, held, lambda: (x, bias)).role == "o"

    def read() -> Linear:
        own = None if bias is None else bias.flatten()
        by_head = x.permute(*rest, features).flatten(0, 1)  # (H · d_h, D)
        return (by_head.T if is_out else by_head), own

    return Found(path, held, read)


def _bias_names(name: str) -> list[str]:
    tail = name[1:].lstrip("_")
    return [f"{name}_bias", f"bias_{tail}", f"b_{tail}", f"b{tail}", name.replace("weight", "bias")]


def _is_filling(path: tuple[str, ...]) -> bool:
    words = [word for name in path for word in _words_in(name)]
    return bool(words) and all(word in _FILLING for word in words)


def _words_in(name: str) -> list[str]:
    """Cut a name at underscores and where capitals begin: W_q, toQ, query_proj."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return [word.lower() for word in re.split(r"[_\d]+", spaced) if word]
