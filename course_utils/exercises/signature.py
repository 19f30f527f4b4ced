"""Which argument of a learner's function is which, by names, kinds and defaults.

A tensor is passed only where its purpose is known. What has a default and an unknown name is left
alone; what has neither is asked about.
"""

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

# What people call the arguments that the exercises hand over.
NAMES = {
    "query": {
        *("query", "queries", "q", "xq", "q_in", "x", "xs", "x_1", "x1", "inp", "inputs", "input"),
        *("hidden_states", "hidden", "tokens", "tgt", "target", "embeddings", "embedded", "emb"),
    },
    "key": {
        *("key", "keys", "k", "xk", "kv", "context", "ctx", "memory", "mem", "y", "x_2", "x2"),
        *("key_value_states", "encoder_hidden_states", "encoder_output", "encoder_outputs"),
        *("key_value", "keys_values", "cond", "source", "src", "other"),
    },
    "value": {"value", "values", "v", "xv", "val", "vals"},
    "mask": {
        *("mask", "masks", "attn_mask", "attention_mask", "m", "msk", "bool_mask"),
        *("causal_mask", "src_mask", "tgt_mask", "may_attend", "attend"),
    },
    "x": {"x", "t", "inp", "input", "inputs", "tensor", "tokens", "z", "y", "out", "hidden_states"},
    "embed_dim": {
        *("embed_dim", "d_model", "dim", "d_embed", "embed_size", "emb_dim", "emb_size", "n_embd"),
        *("hidden_size", "hidden_dim", "model_dim", "width", "d", "d_in", "input_dim"),
    },
    "num_heads": {"num_heads", "n_heads", "heads", "n_head", "nhead", "nheads", "h", "num_head"},
}
# Arguments that have a purpose of their own, so that nobody need ask whether they are the mask.
OTHERS = {
    *("cache", "kv_cache", "past", "past_kv", "past_key_value", "past_key_values", "layer_past"),
    *("scale", "dropout", "dropout_p", "p", "temperature", "key_padding_mask", "head_mask"),
    *(
        "position_ids",
        "positions",
        "position_embeddings",
        "freqs",
        "freqs_cis",
        "rope",
        "generator",
    ),
    *("training", "eps", "dim", "device", "dtype", "d_k", "num_heads", "n_heads", "seed"),
}
# Switches that decide whether the weights of each head come back, and how they must stand.
SWITCHES = {
    **dict.fromkeys(
        (
            *("return_weights", "need_weights", "output_attentions", "return_attention"),
            *("return_attn", "return_attention_weights", "return_attn_weights", "with_weights"),
        ),
        True,
    ),
    "average_attn_weights": False,
}
_PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Undecided(Exception):  # noqa: N818 - a question, not an error
    """Nobody can know which argument is which; the message asks."""


@dataclass(frozen=True)
class Binding:
    """How a learner's function takes what an exercise hands over.

    Attributes:
        signature: the function's own; None if it does not say.
        parameters: role to the name of the parameter that takes it, as far as known.
        in_order: roles that go into ``*args``, behind the named ones.
        unknown: optional parameters without a known purpose, any of which may be the mask.
    """

    signature: inspect.Signature | None
    parameters: dict[str, str]
    in_order: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def takes(self, role: str) -> bool:
        """Whether the function has an argument for this role."""
        return role in self.parameters or role in self.in_order

    def must_be_given(self, role: str) -> bool:
        """Whether the function cannot be called without this role."""
        if self.signature is None or role not in self.parameters:
            return False
        parameter = self.signature.parameters.get(self.parameters[role])
        return parameter is not None and parameter.default is parameter.empty

    def call(self, fn: Callable, /, **given: object) -> object:
        """Call the function with values by role; a role that it does not take is left out."""
        extra = [given[role] for role in self.in_order if role in given]
        if self.signature is None:
            return fn(*extra)
        named = {name: given.get(role) for role, name in self.parameters.items()}
        kinds = self.signature.parameters
        # What is not given keeps its default; a mask without a default is None.
        named = {
            name: x
            for name, x in named.items()
            if x is not None or (name in kinds and kinds[name].default is inspect.Parameter.empty)
        }
        rest = {name: x for name, x in named.items() if name not in kinds}  # into **kwargs
        for name, wanted in SWITCHES.items():
            if name in kinds and isinstance(kinds[name].default, bool):
                named[name] = wanted
        for name, p in kinds.items():  # one that has no name for callers cannot be skipped
            if p.kind is p.POSITIONAL_ONLY and p.default is not p.empty:
                named.setdefault(name, p.default)
        bound = inspect.BoundArguments(self.signature, {n: named[n] for n in kinds if n in named})
        return fn(*bound.args, *extra, **bound.kwargs, **rest)

    def in_order_of(self, roles: tuple[str, ...], fn: Callable) -> Callable:
        """Return what takes the values of these roles in their order, and calls the function."""

        def call(*values: object) -> object:
            return self.call(fn, **dict(zip(roles, values, strict=False)))

        call.__wrapped__ = fn  # whose lines messages may tell of
        return call


def bind(
    fn: Callable,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
    *,
    told: dict[str, str] | None = None,
) -> Binding:
    """Decide which parameter takes which role.

    Names decide first. Parameters of unknown names that must be given take the needed roles that
    are left, in order; then come optional roles, by name only.

    Args:
        fn: the learner's function.
        needed: roles that are handed over in every call. What has no entry in ``NAMES`` is known
            by its own name alone.
        optional: roles that are handed over where the function takes them.
        told: role to parameter, where the learner was asked.

    Raises:
        Undecided: a parameter must be given and is none of these.
        ValueError: a told name is no parameter.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return Binding(None, {}, (*needed, *optional))
    kinds = signature.parameters
    free = [p for p in kinds.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    roles = _told(told or {}, [p.name for p in free])
    for role in (*needed, *optional):
        for p in free:
            known = NAMES.get(role, {role})
            if role not in roles and p.name.lower() in known and p.name not in roles.values():
                roles[role] = p.name
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in kinds.values())
    takes_words = any(p.kind is p.VAR_KEYWORD for p in kinds.values())

    open_places = [p for p in free if p.name not in roles.values()]
    for role in needed:
        if role in roles:
            continue
        # What must be given comes first; a default such as None leaves a place open as well.
        place = next((p for p in open_places if p.default is p.empty), None) or next(
            (p for p in open_places if p.kind in _PLACES and p.default is None), None
        )
        if place is not None:
            roles[role] = place.name
            open_places.remove(place)
    if takes_words:  # by the exercise's own names
        by_name = () if takes_more else needed
        by_name += ("mask",) if "mask" in optional else ()
        roles |= {role: role for role in by_name if role not in roles}
    in_order = tuple(r for r in (*needed, *optional) if r not in roles) if takes_more else ()

    if not all(role in roles or role in in_order for role in needed):
        return Binding(None, {}, needed)  # Python itself says how many arguments are too many
    lacking = [p.name for p in open_places if p.default is p.empty]
    if lacking:
        raise Undecided(
            f"your code needs the argument {' and '.join(lacking)}, but the check passes only "
            f"{', '.join((*needed, *optional))}. Give it a default, or one of these names."
        )
    unknown = tuple(
        p.name
        for p in open_places
        if p.default is None and p.name.lower() not in OTHERS and "mask" in optional
    )
    return Binding(signature, roles, in_order, () if {"mask"} & {*roles, *in_order} else unknown)


def left_out(binding: Binding) -> str:
    """Note that something was not passed which may be the mask."""
    if not binding.unknown:
        return ""
    name = binding.unknown[0]
    return f"; but {name} was left out: if it is the mask, check again with mask={name!r}"


def as_function(learner: object) -> object:
    """Return what is to be called where a function is asked for.

    A module is called itself, a module's class without arguments; what was compiled is taken back,
    because the same lines run at once without the compiler.

    Raises:
        Undecided: the class cannot be made without arguments.
    """
    if isinstance(learner, type) and issubclass(learner, nn.Module):
        needed = [
            p.name
            for p in inspect.signature(learner).parameters.values()
            if p.default is p.empty and p.kind in (*_PLACES, p.KEYWORD_ONLY)
        ]
        if needed:
            raise Undecided(
                f"the class {learner.__name__} needs {' and '.join(needed)}; pass an instance, "
                f"for example {learner.__name__}({', '.join(f'{n}=…' for n in needed)})."
            )
        learner = learner()
    learner = uncompiled(learner)
    if isinstance(learner, nn.Module):  # in eval mode, as a function has no mode to be in
        return copy.deepcopy(learner).eval()
    return learner


def uncompiled(learner: object) -> object:
    """Take ``torch.compile`` back, from a function or a module."""
    for behind in ("_orig_mod", "_torchdynamo_orig_callable"):
        if hasattr(learner, behind):
            return getattr(learner, behind)
    return learner


def _told(told: dict[str, str], names: list[str]) -> dict[str, str]:
    for role, name in told.items():
        if name not in names:
            raise ValueError(
                f"{role}={name!r} is no argument of your code; it has {', '.join(names)}"
            )
    return dict(told)
