"""Mistakes that learners make with attention, and the search that finds them in a result.

``REFERENCE`` computes attention in named steps. A ``Mistake`` replaces one step, so mistakes at
different steps combine without further code. ``explain`` looks for the fewest that together give
what a learner's code returned. Symbols and shapes are those of ``course_utils.attention``; ids such
as M12 name rows of the course's catalogue of mistakes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

Answer = tuple[Tensor, ...]
Step = Callable[[SimpleNamespace], object]


@dataclass(frozen=True)
class Mistake:
    """One known mistake: what it computes, and what to say about it.

    Attributes:
        id: stable name, as in ``CheckFailed.mistakes``.
        rows: rows of the catalogue, for example ("M12", "M13").
        step: the step of ``REFERENCE`` that goes wrong.
        variant: what is computed there instead; None for ``DROPOUT``.
        title: what was done, in one line.
        why: why it is wrong.
        look: where in one's own code to look; never the finished code.
    """

    id: str
    rows: tuple[str, ...]
    step: str
    variant: Step | None
    title: str
    why: str
    look: str


# --- The reference: each step reads the steps before it, by name, from s -------------------------


def _through(projections: str) -> Step:
    """Choose the projections that query, key and value go through."""
    return lambda s: [s.projections[name] for name in projections]


def _heads(per_head: Callable[[SimpleNamespace, Tensor, tuple], Tensor]) -> Step:
    return lambda s: [per_head(s, x, layer) for x, layer in zip(s.tokens, s.layers, strict=True)]


def _masked(before: Callable[[Tensor, Tensor], Tensor], *, zero: bool) -> Step:
    """Change the scores before the softmax, and say which weights to keep after it (None: all)."""

    def step(s: SimpleNamespace) -> tuple[Tensor, Tensor | None]:
        if s.attend is None:
            return s.scaled, None
        return before(s.scaled, s.attend), s.attend if zero else None

    return step


def _block(scores: Tensor, attend: Tensor) -> Tensor:
    return scores.masked_fill(~attend, torch.finfo(scores.dtype).min)


def _weights(s: SimpleNamespace) -> Tensor:
    scores, keep = s.masked
    weights = torch.softmax(scores, s.axis)
    return weights if keep is None else weights * keep


REFERENCE: dict[str, Step] = {
    "order": lambda s: s.returns,  # the steps whose results are returned
    "tokens": lambda s: (s.query, s.key, s.value),
    "layers": _through("qkv"),
    "cut": lambda s: lambda x: x.unflatten(-1, (s.num_heads, -1)),  # (N, L, H, d_h)
    "arrange": lambda s: lambda x: x.transpose(1, 2),  # (N, H, L, d_h)
    "split": lambda s: s.arrange(s.cut(s.x)),
    "heads": _heads(lambda s, x, layer: s.arrange(s.cut(F.linear(x, *layer)))),
    "scores": lambda s: s.heads[0] @ s.heads[1].mT,  # (N, H, L_q, L_k)
    "scaled": lambda s: s.scores / math.sqrt(s.heads[0].shape[-1]),
    "attend": lambda s: s.mask,
    "masked": _masked(_block, zero=True),
    "axis": lambda s: -1,
    "weights": _weights,
    "returned_weights": lambda s: s.weights,
    "values": lambda s: s.heads[2],
    "mixed": lambda s: s.weights @ s.values,  # (N, H, L_q, d_h)
    "back": lambda s: s.mixed.transpose(1, 2),  # (N, L_q, H, d_h)
    "merged": lambda s: s.back.flatten(2),  # (N, L_q, D)
    "output": lambda s: F.linear(s.merged, *s.projections["o"]),
}

# The exercises, by the steps they consist of.
SPLIT_HEADS = ("order", "cut", "arrange", "split")
MERGE_HEADS = ("order", "back", "merged")
ATTENTION = (
    *("order", "scores", "scaled", "attend", "masked", "axis"),
    *("weights", "returned_weights", "values", "mixed"),
)
MULTI_HEAD = tuple(step for step in REFERENCE if step != "split")

# The smaller exercises have steps of their own.
REFERENCE |= {
    "factor": lambda s: _number(1 / math.sqrt(s.embed_dim / s.num_heads)),
    "dots": lambda s: torch.einsum("qd,qld->ql", s.query, s.key),
    "softened": lambda s: s.dots / math.sqrt(s.query.shape[-1]) if s.is_scaled else s.dots,
    "share_axis": lambda s: -1,
    "at_scores": lambda s: _softmax_gradient(s.softened, s.upstream, s.share_axis),
    "norms": lambda s: s.at_scores.norm(dim=-1),
    "own": lambda s: s.head * _head_dim(s) + torch.arange(_head_dim(s)),
    "own_weight": lambda s: s.weight[s.own],
    "own_bias": lambda s: s.bias[s.own],
    "thirds": lambda s: lambda x: x.chunk(3),
    "out_weight": lambda s: s.theirs["out_proj.weight"],
    "copied_weights": lambda s: torch.cat([*s.thirds(s.theirs["in_proj_weight"]), s.out_weight]),
    "in_biases": lambda s: s.thirds(s.theirs["in_proj_bias"]),
    "out_bias": lambda s: s.theirs["out_proj.bias"],
    "copied_biases": lambda s: torch.cat([*s.in_biases, s.out_bias]),
    "seen": lambda s: s.normed,
    "maps": lambda s: s.maps_of(s.seen),
    "returned_maps": lambda s: s.maps,
    "past": lambda s: _grid(s).tril() if s.is_causal else _grid(s),  # (L, L)
    "real": lambda s: torch.arange(s.seq_len) < s.lengths[:, None],  # (N, L)
    "kept": lambda s: s.real[:, None, None, :],  # (N, 1, 1, L): keys
    "joined": lambda s: s.past & s.kept,  # (N, 1, L, L)
    "sided": lambda s: s.joined,
    "filled": lambda s: lambda attend: attend.double(),
    "built": lambda s: s.filled(s.sided),
    "ends": lambda s: torch.arange(s.memory.shape[1]) < s.lengths[:, None],  # (N, L_k)
    "shut": lambda s: ~s.ends,
    "roles": lambda s: (s.x, s.memory, s.memory),
    "crossed": lambda s: s.attend_through(*s.roles, s.shut),
    "crossed_output": lambda s: s.crossed[0],
    "crossed_weights": lambda s: s.crossed[1],
    # (N, grid row, grid column, pixel row, pixel column)
    "squares": lambda s: (
        s.images.unflatten(2, (-1, s.size)).unflatten(1, (-1, s.size)).transpose(2, 3)
    ),
    "grid_order": lambda s: s.squares,
    "pixel_order": lambda s: s.grid_order,
    "cut_patches": lambda s: s.pixel_order.flatten(3).flatten(1, 2),  # (N, patch, pixel)
    "with_cls": lambda s: torch.cat([_for_each(s, s.cls), s.tokens], dim=1),  # (N, 1 + patches, D)
    "placed": lambda s: s.with_cls + s.positions,
    "cls_row": lambda s: s.maps[:, :, 0],  # (N, H, key)
    "patch_keys": lambda s: s.cls_row[..., 1:],
    "shares": lambda s: s.patch_keys,
    "each_head": lambda s: s.shares,
    "laid_out": lambda s: s.each_head.unflatten(-1, (math.isqrt(s.maps.shape[-1]), -1)),
    "counted": lambda s: s.is_token.double(),  # (N, L)
    "pooled": lambda s: _weighted_sum(s.x, s.counted) / s.counted.sum(1, keepdim=True),
    "unit": lambda s: F.normalize(s.pooled, dim=-1),
    "cleared": lambda s: _cleared(s.weight, 1, s.own),
    "kept_bias": lambda s: s.bias,
    "offset": lambda s: -1,
    "picked": lambda s: s.attention.diagonal(s.offset, dim1=-2, dim2=-1),  # (N, H, L - 1)
    "over_queries": lambda s: s.picked.mean(-1),
    "head_scores": lambda s: s.over_queries.mean(0),
}
ATTENTION_SCALE = ("order", "factor")
GRADIENT_NORMS = ("order", "dots", "softened", "share_axis", "at_scores", "norms")
HEAD_PROJECTION = ("order", "own", "own_weight", "own_bias")
COPY_WEIGHTS = (
    *("order", "thirds", "out_weight", "copied_weights", "in_biases", "out_bias", "copied_biases"),
)
PER_HEAD_WEIGHTS = ("order", "seen", "maps", "returned_maps")
ATTENTION_MASK = ("order", "past", "real", "kept", "joined", "sided", "filled", "built")
CROSS_ATTENTION = (
    *("order", "ends", "shut", "roles", "crossed", "crossed_output", "crossed_weights"),
)

# Lesson 7: heads in another order, and what a layer costs.
REFERENCE |= {
    "block_order": lambda s: s.heads_order,
    "places": lambda s: _places_of(s.block_order, s.embed_dim),
    "moved": lambda s: "qkv",
    "in_weights": lambda s: [_moved(s, name, s.layer[f"{name}_proj.weight"]) for name in "qkv"],
    "out_columns": lambda s: s.layer["out_proj.weight"][:, s.places],
    "moved_weights": lambda s: torch.cat([*s.in_weights, s.out_columns]),
    "moved_in_biases": lambda s: [_moved(s, name, s.layer[f"{name}_proj.bias"]) for name in "qkv"],
    "moved_out_bias": lambda s: s.layer["out_proj.bias"],
    "moved_biases": lambda s: torch.cat([*s.moved_in_biases, s.moved_out_bias]),
    "matrices": lambda s: 4,
    "matrix": lambda s: s.embed_dim**2 + s.embed_dim,
    "parameters": lambda s: _number(s.matrices * s.matrix),
    "projecting": lambda s: s.matrices * s.batch_size * s.seq_len * s.embed_dim**2,
    "attending": lambda s: 2 * s.batch_size * s.seq_len**2 * s.embed_dim,
    "multiply_adds": lambda s: _number(s.projecting + s.attending),
    "stored": lambda s: _number(s.batch_size * s.num_heads * s.seq_len**2),
}
PERMUTE_HEADS = (
    *("order", "block_order", "places", "moved", "in_weights", "out_columns", "moved_weights"),
    *("moved_in_biases", "moved_out_bias", "moved_biases"),
)
LAYER_COST = (
    *("order", "matrices", "matrix", "parameters", "projecting", "attending", "multiply_adds"),
    "stored",
)
CUT_INTO_PATCHES = ("order", "squares", "grid_order", "pixel_order", "cut_patches")
ADD_PLACES = ("order", "with_cls", "placed")
CLS_MAPS = ("order", "cls_row", "patch_keys", "shares", "each_head", "laid_out")
MEAN_POOL = ("order", "counted", "pooled", "unit")
REMOVE_HEAD = ("order", "own", "cleared", "kept_bias")
PREVIOUS_TOKEN = ("order", "offset", "picked", "over_queries", "head_scores")


def _number(x: float) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def _head_dim(s: SimpleNamespace) -> int:
    return len(s.weight) // s.num_heads


def _grid(s: SimpleNamespace) -> Tensor:
    return torch.ones(s.seq_len, s.seq_len, dtype=torch.bool)


def _weighted_sum(x: Tensor, weights: Tensor) -> Tensor:
    """Sum over tokens: (N, L, D) and (N, L) to (N, D)."""
    return (x * weights[..., None]).sum(1)


def _others(s: SimpleNamespace) -> Tensor:
    """The features that are not the head's own."""
    return torch.tensor([i for i in range(len(s.weight)) if i not in s.own % len(s.weight)])


def _softmax_gradient(scores: Tensor, upstream: Tensor, axis: int) -> Tensor:
    weights = torch.softmax(scores, dim=axis)
    return weights * (upstream - (weights * upstream).sum(axis, keepdim=True))


def _for_each(s: SimpleNamespace, token: Tensor) -> Tensor:
    """One token as (N, 1, D), the same for each sample."""
    return token.expand(len(s.tokens), 1, -1)


def _cleared(x: Tensor, axis: int, own: Tensor) -> Tensor:
    return x.index_fill(axis, own % x.shape[axis], 0.0)


def _by_head(s: SimpleNamespace, x: Tensor) -> list[Tensor]:
    """Read (3D, ...) as q, k, v of head 0, then of head 1, and so on."""
    by_head = x.unflatten(0, (s.num_heads, 3, -1))
    return [by_head[:, part].flatten(0, 1) for part in range(3)]


def _places_of(heads: Tensor, embed_dim: int) -> Tensor:
    """The features of these heads, one head after the other."""
    return torch.arange(embed_dim).unflatten(0, (len(heads), -1))[heads].flatten()


def _moved(s: SimpleNamespace, name: str, x: Tensor) -> Tensor:
    return x[s.places] if name in s.moved else x


def _overwritten(s: SimpleNamespace) -> Tensor:
    """Move block after block without a copy, so that some are gone before they are read."""
    blocks = torch.arange(s.embed_dim).unflatten(0, (len(s.block_order), -1))
    for new, old in enumerate(s.block_order):
        blocks[new] = blocks[old].clone()
    return blocks.flatten()


# --- The registry --------------------------------------------------------------------------------

# A table: id, rows of the catalogue, step, variant; title; why it is wrong; where to look.
# fmt: off
MISTAKES: tuple[Mistake, ...] = (
    Mistake("returned-in-wrong-order", (), "order", lambda s: s.returns[::-1],
        "the two results are returned in the other order",
        "Whoever calls this unpacks them in the order that was asked for.",
        "the return line"),
    Mistake("only-first-returned", (), "order", lambda s: s.returns[:1],
        "only the first of the results is returned",
        "Whoever calls this unpacks all of them.",
        "the return line"),
    Mistake("key-and-value-ignored", (), "tokens", lambda s: (s.query, s.query, s.query),
        "key and value are ignored: everything comes from query",
        "In cross-attention they are other tokens; here the query attends to its own.",
        "what becomes of key and value when they are given"),
    Mistake("value-ignored", (), "tokens", lambda s: (s.query, s.key, s.key),
        "value is ignored: the values come from key",
        "What is looked through (key) and what is fetched (value) may be different tokens.",
        "which argument goes through v_proj"),
    Mistake("projections-swapped", (), "layers", _through("kqv"),
        "query goes through k_proj, and key through q_proj",
        "In self-attention this turns the scores over: columns become queries.",
        "which argument goes through q_proj, and which through k_proj"),
    Mistake("key-through-q-proj", (), "layers", _through("qqv"),
        "key goes through q_proj; k_proj is not used",
        "What a token looks for (query) and what it is found by (key) are learned apart.",
        "the line that makes the keys: was it copied from the one above?"),
    Mistake("value-through-k-proj", (), "layers", _through("qkk"),
        "value goes through k_proj; v_proj is not used",
        "What a token is found by (key) and what it hands over (value) are learned apart.",
        "the line that makes the values: was it copied from the one above?"),
    Mistake("one-projection", (), "layers", _through("qqq"),
        "query, key and value all go through q_proj",
        "What a token looks for, is found by and hands over are learned apart.",
        "which layer each of the three goes through"),
    Mistake("shared-small-projection", ("M06",), "heads",
        _heads(lambda s, x, layer: s.arrange(F.linear(s.cut(x), *layer))),
        "the raw token is cut up first, and all pieces share one small layer",
        "A head must see the whole token, through numbers of its own; here it does neither.",
        "what comes first, projection or cut, and the shape of q_proj.weight"),
    Mistake("inputs-not-projected", (), "heads", _heads(lambda s, x, layer: s.arrange(s.cut(x))),
        "the heads get the tokens as they are, not projected",
        "Without q_proj, k_proj and v_proj a head has nothing to learn.",
        "what becomes of the results of q_proj, k_proj and v_proj"),
    Mistake("split-interleaved", ("M10",), "cut",
        lambda s: lambda x: x.unflatten(-1, (-1, s.num_heads)).mT,
        "the heads are interleaved: head h takes every H-th feature",
        "Head h holds neighbours, features h·d_h to (h+1)·d_h; saved weights rely on that.",
        "the order of num_heads and head_dim where the features are cut"),
    # The numbers stay where they are in memory, and L and H change places in the shape alone.
    Mistake("split-without-transpose", ("M02",), "arrange",
        lambda s: lambda x: x.reshape(x.shape[0], x.shape[2], x.shape[1], x.shape[3]),
        "view goes straight to (N, H, L, d_h), without a transpose",
        "view moves no number, so pieces of one token are taken for several tokens.",
        "which axis holds the tokens before the view, and which after it"),
    Mistake("heads-stay-behind-tokens", ("M37",), "arrange", lambda s: lambda x: x,
        "the heads stay behind the tokens: (N, L, H, d_h)",
        "Attention works on the last two axes: now heads would attend to heads.",
        "the order of the axes after the cut"),
    Mistake("split-heads-before-batch", (), "arrange", lambda s: lambda x: x.permute(2, 0, 1, 3),
        "the heads come before the batch: (H, N, L, d_h)",
        "The batch is the first axis everywhere; if N = H, no shape warns of this.",
        "the axis along which the heads are stacked"),
    Mistake("query-key-swapped", ("M17",), "scores", lambda s: s.heads[1] @ s.heads[0].mT,
        "query and key are swapped in the product",
        "Rows are queries and columns are keys; here it is the other way round.",
        "which of the two factors is transposed"),
    Mistake("no-scale", ("M16",), "scaled", lambda s: s.scores,
        "the scores are not scaled",
        "They grow with d_h; then the softmax saturates and its gradients shrink towards 0.",
        "what happens to the scores between product and softmax"),
    Mistake("scale-by-embed-dim", ("M14",), "scaled",
        lambda s: s.scores / math.sqrt(s.heads[0].shape[-1] * s.num_heads),
        "the scores are divided by √D instead of √d_h",
        "One score is a sum over the d_h features of a head; √D makes the weights too flat.",
        "how many features go into one score"),
    Mistake("scale-without-root", (), "scaled", lambda s: s.scores / s.heads[0].shape[-1],
        "the scores are divided by d_h, without the root (or by √d_h twice)",
        "A sum of d_h terms spreads like √d_h; dividing by more makes the weights too flat.",
        "each place where something is scaled"),
    Mistake("scale-multiplied", (), "scaled", lambda s: s.scores * math.sqrt(s.heads[0].shape[-1]),
        "the scores are multiplied by √d_h instead of divided",
        "Scores that grow with d_h grow even more; the softmax saturates.",
        "* and /, or the sign of an exponent"),
    Mistake("mask-inverted", ("M18",), "attend", lambda s: None if s.mask is None else ~s.mask,
        "the mask is inverted",
        "Here True means may attend; in nn.MultiheadAttention True means blocked.",
        "which positions are filled: where the mask is True, or where it is False?"),
    Mistake("mask-ignored", (), "attend", lambda s: None,
        "the mask is ignored",
        "Queries then attend to keys that they must not see.",
        "whether what the mask changed is used further down"),
    Mistake("mask-added", ("M19",), "masked",
        _masked(lambda scores, attend: scores + attend, zero=False),
        "the mask is added to the scores as 0 and 1",
        "A score that is 1 lower still gets a weight; a blocked key must get 0.",
        "which score makes the softmax give 0"),
    Mistake("mask-multiplied", ("M20",), "masked",
        _masked(lambda scores, attend: scores * attend, zero=False),
        "the scores are multiplied by the mask: blocked scores are 0",
        "A score of 0 still gets a weight, as exp(0) = 1; a blocked key must get 0.",
        "which score makes the softmax give 0"),
    Mistake("mask-after-softmax", ("M21",), "masked",
        _masked(lambda scores, attend: scores, zero=True),
        "the mask comes after the softmax",
        "Blocked keys have had their share by then, so rows no longer sum to 1.",
        "the order of mask and softmax"),
    Mistake("blocked-row-nan", ("M22",), "masked",
        _masked(lambda scores, attend: scores.masked_fill(~attend, -math.inf), zero=False),
        "a query that may attend to nothing gets NaN",
        "A row of -inf alone makes 0/0. Such a query gets weights 0 and output 0.",
        "what the softmax makes of a row that is blocked as a whole"),
    Mistake("blocked-row-even", ("M23",), "masked", _masked(_block, zero=False),
        "a query that may attend to nothing attends to everything, evenly",
        "In a row of -1e9 alone all scores are equal. Such a query gets weights 0 and output 0.",
        "what the softmax makes of a row that is blocked as a whole"),
    Mistake("softmax-over-queries", ("M12",), "axis", lambda s: -2,
        "the softmax runs over the query axis",
        "Each query shares out 1 among the keys: rows sum to 1, not columns.",
        "the dim of the softmax"),
    Mistake("softmax-over-heads", ("M12", "M13"), "axis", lambda s: 1,
        "the softmax runs over axis 1, the heads",
        "Heads then compete for a key. With no dim given, four axes get this one.",
        "the dim of the softmax"),
    Mistake("softmax-over-batch", ("M12", "M13"), "axis", lambda s: 0,
        "the softmax runs over axis 0, the batch",
        "Samples then compete, and must not. With no dim given, three axes get this one.",
        "the dim of the softmax"),
    Mistake("weights-averaged", ("M29",), "returned_weights", lambda s: s.weights.mean(1),
        "the returned weights are averaged over the heads",
        "An average hides what single heads do; weights are (N, H, L_q, L_k).",
        "the shape of the weights that are returned"),
    Mistake("scores-returned", (), "returned_weights", lambda s: s.scaled,
        "scores are returned in place of weights",
        "Scores can be any numbers; weights are what the softmax makes of them.",
        "whether the second thing returned is from before the softmax"),
    Mistake("masked-scores-returned", (), "returned_weights", lambda s: s.masked[0],
        "masked scores are returned in place of weights",
        "Scores can be any numbers; weights are what the softmax makes of them.",
        "whether the second thing returned is from before the softmax"),
    Mistake("unmasked-weights-returned", (), "returned_weights",
        lambda s: torch.softmax(s.scaled, s.axis),
        "the returned weights are from before the mask",
        "The values were mixed with other weights than those returned.",
        "whether the mask has been applied to the second thing returned"),
    Mistake("keys-as-values", (), "values", lambda s: s.heads[1],
        "the keys are mixed instead of the values",
        "Keys decide how much of each token to take; what is taken are the values.",
        "what the weights are multiplied with"),
    Mistake("merge-without-transpose", ("M03",), "back",
        lambda s: s.mixed.reshape(*(s.mixed.shape[axis] for axis in (0, 2, 1, 3))),
        "the heads are merged without transposing back",
        "reshape moves no number, so one row gets the features of several tokens.",
        "the order of the axes just before the reshape"),
    Mistake("merge-joins-tokens", ("M37",), "back", lambda s: s.mixed,
        "the last two axes are joined as they are",
        "Of (N, H, L, d_h), those are tokens and features; to join are heads and features.",
        "the order of the axes just before they are joined"),
    Mistake("merge-heads-before-batch", (), "back", lambda s: s.mixed.permute(1, 2, 0, 3),
        "the first axis is taken for the heads, and the second for the batch",
        "The heads are axis 1; if N = H, no shape warns of this.",
        "the axis along which the heads are taken apart"),
    Mistake("merge-interleaved", ("M10",), "merged", lambda s: s.back.mT.flatten(2),
        "the heads are interleaved: one feature of each head in turn",
        "Merging undoes splitting: all features of head 0, then all of head 1.",
        "the order of the head axis and the feature axis just before they are joined"),
    Mistake("heads-averaged", ("M09",), "merged", lambda s: s.back.mean(2),
        "the heads are averaged instead of put side by side",
        "An average has d_h features instead of D, and forgets which head gave what.",
        "how H vectors of d_h features become one of D"),
    Mistake("heads-summed", ("M09",), "merged", lambda s: s.back.sum(2),
        "the heads are added up instead of put side by side",
        "A sum has d_h features instead of D, and forgets which head gave what.",
        "how H vectors of d_h features become one of D"),
    Mistake("no-output-projection", (), "output", lambda s: s.merged,
        "the output projection is missing",
        "Until out_proj mixes them, the features of different heads only lie side by side.",
        "what happens between merging the heads and returning"),
    Mistake("bias-once-per-head", ("M09",), "output",
        lambda s: REFERENCE["output"](s) + (s.num_heads - 1) * s.projections["o"][1],
        "the bias of out_proj is added once for each head",
        "The sum over heads takes one block of out_proj.weight each, and the bias once.",
        "how often out_proj, or its bias, is used for one token"),
    # The smaller exercises.
    Mistake("factor-by-embed-dim", ("M14",), "factor",
        lambda s: _number(1 / math.sqrt(s.embed_dim)),
        "the factor is 1/√D instead of 1/√d_h",
        "One dot product runs over the d_h features of a head, not over all D.",
        "how many features go into one score"),
    Mistake("factor-without-root", (), "factor", lambda s: _number(s.num_heads / s.embed_dim),
        "the factor is 1/d_h, without the root",
        "A sum of d_h terms spreads like √d_h; dividing by more makes the weights too flat.",
        "whether the variance or the size of a dot product grows like d_h"),
    Mistake("factor-upside-down", (), "factor",
        lambda s: _number(math.sqrt(s.embed_dim / s.num_heads)),
        "the factor is √d_h: the scores would grow",
        "Scores are multiplied by this factor, and should shrink.",
        "whether multiplying by your number makes the scores larger or smaller"),
    Mistake("factor-is-root-of-embed-dim", ("M14",), "factor",
        lambda s: _number(math.sqrt(s.embed_dim)),
        "the factor is √D: of the whole width, and upside down",
        "Scores are multiplied by this factor; and they run over the d_h features of a head.",
        "how many features go into one score, and whether your number makes it larger or smaller"),
    Mistake("factor-by-num-heads", (), "factor", lambda s: _number(1 / math.sqrt(s.num_heads)),
        "the factor is 1/√H",
        "What grows a score is the width of a head, not how many heads there are.",
        "how many features go into one score"),
    Mistake("factor-of-one", ("M16",), "factor", lambda s: _number(1.0),
        "the factor is 1: no scale at all",
        "Unscaled scores grow with d_h; the softmax saturates.",
        "the table of variances in this lesson"),
    Mistake("scaled-ignored", ("M16",), "softened", lambda s: s.dots,
        "the scores are never scaled",
        "With scaled=True they should be divided by √d first.",
        "what becomes of the argument scaled"),
    Mistake("scaled-the-wrong-way-round", (), "softened",
        lambda s: s.dots if s.is_scaled else s.dots / math.sqrt(s.query.shape[-1]),
        "the scores are scaled with scaled=False, and not with scaled=True",
        "The two sides of the experiment have changed places.",
        "the condition that asks for scaled"),
    Mistake("always-scaled", (), "softened", lambda s: s.dots / math.sqrt(s.query.shape[-1]),
        "the scores are scaled even with scaled=False",
        "The experiment compares the two; both sides are now the same.",
        "what becomes of the argument scaled"),
    Mistake("scaled-without-root", (), "softened",
        lambda s: s.dots / s.query.shape[-1] if s.is_scaled else s.dots,
        "the scores are divided by d, without the root",
        "A sum of d terms spreads like √d; dividing by more makes the softmax too soft.",
        "the line that scales"),
    Mistake("shared-over-queries", ("M12",), "share_axis", lambda s: 0,
        "the softmax runs over the queries",
        "Each query shares out 1 among its keys, and those are the last axis.",
        "the dim of the softmax"),
    Mistake("gradient-at-dot-products", (), "at_scores",
        lambda s: REFERENCE["at_scores"](s) / (math.sqrt(s.query.shape[-1]) if s.is_scaled else 1),
        "the gradient is taken before the scale, at the bare dot products",
        "Asked is what reaches the scores that go into softmax.",
        "which tensor has requires_grad: the one before the division, or the one after it?"),
    Mistake("own-score-only", (), "at_scores",
        lambda s: s.upstream * (w := torch.softmax(s.softened, s.share_axis)) * (1 - w),
        "only w(1 - w) is counted: what each weight says to its own score",
        "A score moves all the weights of its row, as they share one whole.",
        "whether torch computes the gradient, or a formula for one weight"),
    Mistake("gradient-at-weights", (), "at_scores", lambda s: s.upstream,
        "the gradient is the one at the weights, where it starts",
        "Softmax lies between: at the scores, little of it may be left.",
        "whose gradient you measure"),
    Mistake("norms-squared", (), "norms", lambda s: s.at_scores.square().sum(-1),
        "the norms are squared",
        "The size of a vector is the root of the sum of its squares.",
        "how the norm is taken"),
    Mistake("norms-over-queries", (), "norms", lambda s: s.at_scores.norm(dim=0),
        "the norm runs over the queries",
        "Asked is one number for each query, so the keys are summed over.",
        "the dim of the norm"),
    Mistake("one-norm", (), "norms", lambda s: s.at_scores.norm(),
        "there is one norm for all queries together",
        "Asked is one number for each query.",
        "whether the norm is told its axis"),
    Mistake("block-of-columns", ("M07",), "own_weight", lambda s: s.weight[:, s.own],
        "the block is made of columns",
        "torch stores (out, in): columns are inputs, and a head reads all of the input.",
        "which axis of the weight is cut"),
    Mistake("block-of-columns-turned", ("M07",), "own_weight", lambda s: s.weight[:, s.own].T,
        "the block is made of columns, turned round",
        "torch stores (out, in): columns are inputs, and a head reads all of the input.",
        "which axis of the weight is cut"),
    Mistake("block-reads-a-slice", ("M06",), "own_weight", lambda s: s.weight[s.own][:, s.own],
        "the block is cut on both sides, (d_h, d_h)",
        "A head is not a slice of the token: it reads all D features.",
        "whether anything is cut from the inputs"),
    Mistake("block-interleaved", ("M10",), "own",
        lambda s: s.head + s.num_heads * torch.arange(_head_dim(s)),
        "the head takes every H-th row or column",
        "Head h holds neighbours, features h·d_h to (h+1)·d_h.",
        "the step of your slice"),
    Mistake("always-head-0", (), "own", lambda s: torch.arange(_head_dim(s)),
        "it is always the block of head 0",
        "Each head has a block of its own.",
        "what becomes of the argument head"),
    Mistake("counts-heads-from-1", (), "own",
        lambda s: (s.head - 1) * _head_dim(s) + torch.arange(_head_dim(s)),
        "heads are counted from 1",
        "head counts from 0, as everywhere in this course.",
        "where the block of head 0 begins"),
    Mistake("counts-heads-from-1", (), "own",  # the same with a slice: the block of head 0 is empty
        lambda s: torch.arange(max(s.head - 1, 0) * _head_dim(s), s.head * _head_dim(s)),
        "heads are counted from 1",
        "head counts from 0, as everywhere in this course.",
        "where the block of head 0 begins"),
    Mistake("whole-bias", (), "own_bias", lambda s: s.bias,
        "the bias is the whole one, (D,)",
        "A head's own layer makes d_h features, and needs a bias for each of those.",
        "the bias that is returned"),
    *(
        Mistake("copied-in-another-order", ("M34",), "thirds",
            lambda s, places=places: lambda x: [x.chunk(3)[i] for i in places],
            f"q_proj, k_proj and v_proj get {', '.join('QKV'[i] for i in places)}",
            "They are stacked as [Q; K; V].",
            "which third goes into which projection")
        for places in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    ),
    Mistake("copied-by-head", ("M10", "M34"), "thirds", lambda s: lambda x: _by_head(s, x),
        "the rows of in_proj are read as q, k, v of head 0, then of head 1, and so on",
        "Some code bases store them like this; torch stacks all of Q, all of K, all of V.",
        "how in_proj_weight is cut"),
    Mistake("out-proj-not-copied", (), "out_weight",
        lambda s: s.old[0][-s.embed_dim :],
        "the weight of out_proj is not copied",
        "Without it the heads are mixed in another way.",
        "whether all four layers are filled"),
    Mistake("copied-turned-round", (), "copied_weights",
        lambda s: torch.cat([w.T for w in REFERENCE["copied_weights"](s).split(s.embed_dim)]),
        "the weights are transposed",
        "Both layers store (out, in): nothing needs turning.",
        "each .T"),
    Mistake("in-biases-not-copied", (), "in_biases",
        lambda s: s.old[1][: 3 * s.embed_dim].chunk(3),
        "the biases of q_proj, k_proj and v_proj are not copied",
        "torch starts them at 0, so that a fresh layer hides this; a trained one does not.",
        "in_proj_bias"),
    Mistake("out-bias-not-copied", (), "out_bias", lambda s: s.old[1][-s.embed_dim :],
        "the bias of out_proj is not copied",
        "torch starts it at 0, so that a fresh layer hides this; a trained one does not.",
        "out_proj.bias"),
    Mistake("input-not-normalised", (), "seen", lambda s: s.x,
        "the attention is given x itself",
        "Inside the block it sees what norm makes of x.",
        "the first line of the block's forward"),
    Mistake("maps-averaged", ("M29", "M46"), "returned_maps", lambda s: s.maps.mean(1),
        "the weights are still averaged over the heads",
        "An average hides what single heads do; asked is (N, H, L, L).",
        "what the layer is asked for"),
    Mistake("average-repeated", ("M29", "M46"), "returned_maps",
        lambda s: s.maps.mean(1, keepdim=True).expand_as(s.maps),
        "each head is given a copy of the average",
        "From the average alone nobody can tell the heads apart again.",
        "what the layer is asked for"),
    Mistake("causal-without-itself", (), "past",
        lambda s: _grid(s).tril(-1) if s.is_causal else _grid(s),
        "a token may not attend to itself",
        "The causal mask blocks later tokens; the diagonal stays open, or row 0 sees nothing.",
        "whether your triangle holds the diagonal"),
    Mistake("causal-sees-the-next", (), "past",
        lambda s: _grid(s).tril(1) if s.is_causal else _grid(s),
        "a token may attend to the one after it",
        "That is the token which a language model is asked to guess.",
        "the offset of your triangle, or a comparison of positions"),
    Mistake("causal-turned-round", (), "past",
        lambda s: _grid(s).triu() if s.is_causal else _grid(s),
        "tokens see what comes after them instead of what came before",
        "Rows are queries and columns keys: what came before lies to the left of the diagonal.",
        "which triangle you keep"),
    Mistake("causal-turned-round", (), "past",  # the same without the token itself
        lambda s: _grid(s).triu(1) if s.is_causal else _grid(s),
        "tokens see what comes after them instead of what came before",
        "Rows are queries and columns keys: what came before lies to the left of the diagonal.",
        "which triangle you keep"),
    Mistake("causal-ignored", (), "past", _grid,
        "later tokens are never blocked",
        "With causal=True a token may see itself and what came before.",
        "what becomes of the argument causal"),
    Mistake("causal-always", (), "past", lambda s: _grid(s).tril(),
        "later tokens are blocked even with causal=False",
        "Then every real token may be seen from everywhere.",
        "what becomes of the argument causal"),
    Mistake("padding-off-by-one", (), "real",
        lambda s: torch.arange(s.seq_len) <= s.lengths[:, None],
        "the first padded key may be seen",
        "Positions count from 0: a sentence of 3 tokens holds 0, 1 and 2.",
        "the comparison with the lengths"),
    Mistake("padding-at-the-start", (), "real",
        lambda s: torch.arange(s.seq_len) >= s.seq_len - s.lengths[:, None],
        "the tokens at the start are taken for padding",
        "Here the padding stands at the end.",
        "which side of the comparison is real"),
    Mistake("padding-ignored", (), "real",
        lambda s: torch.ones(len(s.lengths), s.seq_len, dtype=torch.bool),
        "padding may be seen",
        "Real tokens then give part of their weight to padding.",
        "what becomes of the lengths"),
    Mistake("padding-turned-round", ("M18",), "real",
        lambda s: torch.arange(s.seq_len) >= s.lengths[:, None],
        "padding may be seen, and real keys are blocked",
        "True means may attend, in both parts of the mask; here the padding has it turned round.",
        "the comparison with the lengths"),
    Mistake("queries-blocked-instead-of-keys", ("M24",), "kept",
        lambda s: s.real[:, None, :, None],
        "padded queries are blocked, and padded keys are not",
        "What nobody may look at are keys: columns. Padded rows are left out of the loss.",
        "on which axis the padding ends up"),
    Mistake("queries-blocked-too", ("M24",), "kept",
        lambda s: s.real[:, None, :, None] & s.real[:, None, None, :],
        "padded queries are blocked as well as padded keys",
        "Such a row sees nothing, and may be NaN. Block keys; leave padded rows to the loss.",
        "on which axes the padding ends up"),
    Mistake("masks-joined-by-or", (), "joined", lambda s: s.past | s.kept,
        "a key may be seen if one of the two masks allows it",
        "It must be allowed by both: not later, and no padding.",
        "how the two masks are joined"),
    Mistake("masks-joined-by-or", (), "joined",  # the same, where there is something to join
        lambda s: s.past | s.kept if s.is_causal else s.past & s.kept,
        "a key may be seen if one of the two masks allows it",
        "It must be allowed by both: not later, and no padding.",
        "how the two masks are joined"),
    Mistake("built-for-the-other-convention", ("M18",), "sided", lambda s: ~s.joined,
        "the mask is inverted: True = blocked",
        "This course and F.scaled_dot_product_attention take True for: may attend.",
        "what True means in the mask that you return"),
    Mistake("built-without-head-axis", ("M25",), "sided", lambda s: s.joined[:, 0],
        "the head axis is missing: (N, L, L)",
        "Against (N, H, L, L) that is read as (1, N, L, L): samples are taken for heads.",
        "the number of axes of what you return"),
    # A mask that is not boolean gets 2 added to its numbers, so that it can be told apart.
    *(
        Mistake("built-of-zeros-and-ones", ("M19",), "filled",
            lambda s, always=always: lambda attend: attend.double() + 2 * (always or s.is_causal),
            "the mask holds the numbers 0 and 1",
            "A mask of numbers is added to the scores: a key that gets 0 added is not blocked.",
            "the dtype of what you return")
        for always in (True, False)  # in the whole mask, or in its causal part alone
    ),
    Mistake("built-to-be-added", ("M19",), "filled",
        lambda s: lambda attend: torch.where(attend, 2.0, -math.inf).double(),
        "the mask holds 0 and -inf, or a very low number, to be added to the scores",
        "That works in torch, but asked is a boolean mask.",
        "the dtype of what you return"),
    Mistake("cross-padding-off-by-one", (), "ends",
        lambda s: torch.arange(s.memory.shape[1]) <= s.lengths[:, None],
        "the first padded key may be seen",
        "Positions count from 0: a sentence of 3 tokens holds 0, 1 and 2.",
        "the comparison with the lengths"),
    Mistake("cross-mask-inverted", ("M18",), "shut", lambda s: s.ends,
        "real keys are blocked, and padding may be seen",
        "In nn.MultiheadAttention True means blocked.",
        "what True means in the mask that you hand over"),
    Mistake("cross-mask-repeated", ("M25",), "shut",
        lambda s: (~s.ends).repeat(s.num_heads, 1)[:, None].expand(-1, s.x.shape[1], -1),
        "the mask of one sample goes to the heads of another",
        "A mask (N·H, L_q, L_k) holds all heads of sample 0 first, then all of sample 1.",
        "how the mask is repeated for the heads: whole batches, or each sample in its place"),
    Mistake("cross-padding-ignored", (), "shut", lambda s: None,
        "padding may be seen",
        "Real tokens then give part of their weight to padding.",
        "what becomes of the lengths"),
    *(
        Mistake("cross-mask-of-numbers", ("M19",), "shut",
            lambda s, ones=ones: (s.ends if ones == "real" else ~s.ends).double(),
            "the mask holds the numbers 0 and 1",
            "Numbers are added to the scores: a key that is 1 lower still gets a share.",
            "the dtype of the mask that you hand over")
        for ones in ("real", "padding")
    ),
    Mistake("cross-turned-round", ("M36",), "roles", lambda s: (s.memory, s.x, s.x),
        "memory looks at x",
        "The queries come from x: one row for each of its tokens. Keys and values are memory.",
        "the order in which the two go into the layer"),
    Mistake("cross-looks-at-itself", ("M36",), "roles", lambda s: (s.x, s.x, s.x),
        "x looks at itself: this is self-attention",
        "The queries come from x; what they look through, and fetch, is memory.",
        "where keys and values come from"),
    Mistake("cross-memory-at-itself", ("M36",), "roles", lambda s: (s.memory,) * 3,
        "memory looks at itself, and x is not used",
        "The queries come from x: one row for each of its tokens.",
        "the first thing that goes into the layer"),
    Mistake("cross-weights-averaged", ("M29", "M46"), "crossed_weights",
        lambda s: s.crossed[1].mean(1),
        "the weights are averaged over the heads",
        "An average hides what single heads do; asked is (N, H, L_q, L_k).",
        "what the layer is asked for"),
    Mistake("heads-moved-the-other-way", (), "block_order", lambda s: s.heads_order.argsort(),
        "head h goes to place order[h], where it should come from there",
        "The new head h is the old head order[h]: order says where to read, not where to write.",
        "on which side of the equals sign order stands"),
    Mistake("heads-overwritten", (), "places", _overwritten,
        "heads are overwritten before they are read",
        "When one block is copied over another, what was there is gone for the heads to come.",
        "whether you read from the layer that you are writing to"),
    Mistake("heads-not-moved", (), "places", lambda s: torch.arange(s.embed_dim),
        "the layer is as it came",
        "To index makes a new tensor; the layer keeps its own until something is written into it.",
        "whether your new tensors are written back into the layer"),
    Mistake("heads-moved-interleaved", ("M10",), "places",
        lambda s: torch.arange(s.embed_dim).unflatten(0, (-1, len(s.block_order)))[
            :, s.block_order].flatten(),
        "features move as if head h held every H-th of them",
        "Head h holds neighbours, features h·d_h to (h+1)·d_h: whole blocks must move.",
        "the order of num_heads and head_dim where the features are cut"),
    *(
        Mistake("projection-not-moved", ("M47",), "moved", lambda s, kept=kept: kept,
            f"{left} stays as it was",
            "A head is its query, its key and its value; if one stays behind, new heads are made.",
            "whether all three projections are treated alike")
        for kept, left in (("kv", "q_proj"), ("qv", "k_proj"), ("qk", "v_proj"))
    ),
    Mistake("in-columns-moved", (), "in_weights",
        lambda s: [s.layer[f"{name}_proj.weight"][:, s.places] for name in "qkv"],
        "the columns of q_proj, k_proj and v_proj move",
        "torch stores (out, in): a head's own features are outputs of these layers, so rows.",
        "which axis of the three weights you index"),
    Mistake("out-proj-not-moved", ("M47",), "out_columns", lambda s: s.layer["out_proj.weight"],
        "out_proj stays as it was",
        "It still reads the features of each head where that head used to be.",
        "who reads the features that the heads have made"),
    Mistake("out-proj-rows-moved", ("M47",), "out_columns",
        lambda s: s.layer["out_proj.weight"][s.places],
        "the rows of out_proj move",
        "Its rows are the outputs of the whole layer. Heads are its inputs, so columns.",
        "which axis of out_proj.weight you index"),
    Mistake("out-proj-moved-the-other-way", (), "out_columns",
        lambda s: s.layer["out_proj.weight"][:, s.places.argsort()],
        "the columns of out_proj move the other way",
        "New head h is old head order[h] here too: out_proj must follow in the same direction.",
        "the index of out_proj, beside those of the other three"),
    Mistake("in-biases-not-moved", (), "moved_in_biases",
        lambda s: [s.layer[f"{name}_proj.bias"] for name in "qkv"],
        "the biases of q_proj, k_proj and v_proj stay as they were",
        "A head's features have biases of their own, which must go where the rows go.",
        "each projection's bias"),
    Mistake("out-bias-moved", (), "moved_out_bias", lambda s: s.layer["out_proj.bias"][s.places],
        "the bias of out_proj moves too",
        "It belongs to the output of the whole layer, which must stay as it is.",
        "what out_proj.bias is added to"),
    Mistake("counts-three-matrices", (), "matrices", lambda s: 3,
        "there are three matrices, without the output projection",
        "Query, key, value and output: W_O has as many numbers, and as much work, as the others.",
        "how many projections the layer has"),
    Mistake("parameters-without-out-proj", (), "parameters", lambda s: _number(3 * s.matrix),
        "the parameters of the output projection are missing",
        "Query, key, value and output: W_O has as many numbers as each of the others.",
        "how many projections the layer has"),
    Mistake("work-without-out-proj", (), "projecting",
        lambda s: 3 * s.batch_size * s.seq_len * s.embed_dim**2,
        "the multiply-adds of the output projection are missing",
        "Query, key, value and output: W_O is as much work as each of the others.",
        "how many projections the layer has"),
    Mistake("counts-one-bias", (), "parameters",
        lambda s: _number(s.matrices * s.embed_dim**2 + s.embed_dim),
        "one bias is counted for all projections together",
        "Each of the four layers adds D numbers to its D·D weights.",
        "what a Linear layer holds beside its weight"),
    Mistake("counts-no-biases", (), "matrix", lambda s: s.embed_dim**2,
        "the biases are not counted",
        "Each of the four layers adds D numbers to its D·D weights.",
        "what a Linear layer holds beside its weight"),
    Mistake("counts-parameters-a-head", ("M08",), "matrix",
        lambda s: s.num_heads * (s.embed_dim**2 + s.embed_dim),
        "the parameters are multiplied by H",
        "The heads share out one D × D matrix; there are not H of them.",
        "each H in your count of parameters"),
    Mistake("counts-one-head", (), "matrix",
        lambda s: s.embed_dim * (s.embed_dim // s.num_heads) + s.embed_dim // s.num_heads,
        "the parameters are those of a single head",
        "A head has D·d_h in each projection, and there are H of them: together D·D.",
        "each d_h in your count of parameters"),
    Mistake("counts-projecting-a-head", ("M08",), "projecting",
        lambda s: s.num_heads * REFERENCE["projecting"](s),
        "the multiply-adds of the projections are multiplied by H",
        "The token is projected once, and then cut.",
        "each H in your count of multiply-adds"),
    Mistake("counts-no-projecting", (), "projecting", lambda s: 0,
        "the multiply-adds of the projections are missing",
        "Each token goes through four D × D matrices.",
        "what happens to a token before and after the heads"),
    Mistake("counts-no-attending", (), "attending", lambda s: 0,
        "the multiply-adds of the two products in the heads are missing",
        "q @ k and weights @ v are matrix products as well.",
        "each @ of the layer"),
    Mistake("counts-one-product", (), "attending",
        lambda s: s.batch_size * s.seq_len**2 * s.embed_dim,
        "only one of the two products in the heads is counted",
        "There is q @ k, and there is weights @ v, each with as many multiply-adds.",
        "each @ of the layer"),
    Mistake("counts-full-width-heads", ("M08",), "attending",
        lambda s: s.num_heads * REFERENCE["attending"](s),
        "each head is counted as if it were D wide",
        "A head has d_h = D / H features, so H of them come to D again.",
        "how many features one dot product runs over"),
    Mistake("counts-attending-of-one-head", (), "attending",
        lambda s: REFERENCE["attending"](s) // s.num_heads,
        "the products in the heads are counted for a single head",
        "There are H of them, each d_h wide: together D.",
        "how many heads there are"),
    Mistake("counts-attending-without-square", (), "attending",
        lambda s: 2 * s.batch_size * s.seq_len * s.embed_dim,
        "the products in the heads are counted with L, not L²",
        "Each of L queries meets each of L keys.",
        "how many scores one head makes for one sample"),
    Mistake("counts-two-a-multiply-add", (), "multiply_adds",
        lambda s: _number(2 * (s.projecting + s.attending)),
        "the multiply-adds are doubled",
        "One multiplication with its addition is one multiply-add; torch's counter says two.",
        "whether you count operations or pairs of them"),
    Mistake("counts-work-of-one-sample", (), "multiply_adds",
        lambda s: _number((s.projecting + s.attending) // s.batch_size),
        "the multiply-adds are those of one sample",
        "A batch holds N of them.",
        "where N stands"),
    Mistake("stored-without-heads", ("M08",), "stored",
        lambda s: _number(s.batch_size * s.seq_len**2),
        "the stored weights are counted without H",
        "Every head has a map of its own. This is the one number that grows with H.",
        "the shape of the weights"),
    Mistake("stored-without-square", (), "stored",
        lambda s: _number(s.batch_size * s.num_heads * s.seq_len),
        "the stored weights are counted with L, not L²",
        "A map has a row for each query and a column for each key.",
        "the shape of the weights"),
    Mistake("stored-of-one-sample", (), "stored", lambda s: _number(s.num_heads * s.seq_len**2),
        "the stored weights are those of one sample",
        "A batch holds N of them, each with maps of its own.",
        "the shape of the weights"),
    Mistake("stored-times-width", (), "stored",
        lambda s: _number(s.batch_size * s.seq_len**2 * s.embed_dim),
        "the stored weights are counted with D in place of H",
        "A weight is one number for a query and a key; the features are summed over.",
        "the shape of the weights"),
    # The exercises on images.
    Mistake("patches-are-runs-of-pixels", (), "squares",
        lambda s: s.images.reshape(REFERENCE["squares"](s).shape),
        "the image is only reshaped, so a patch is a run of pixels from one or two rows",
        "reshape moves no number: neighbours in memory stay together, and those are rows.",
        "which axis moves between the two reshapes"),
    Mistake("patches-from-afar", (), "squares",
        lambda s: s.images.unflatten(2, (s.size, -1)).unflatten(1, (s.size, -1))
        .permute(0, 2, 4, 1, 3),
        "a patch takes pixels from all over the image, at equal steps",
        "A side of the image is (grid, size): the pixels of one patch are neighbours.",
        "the order of grid and size where a side of the image is cut"),
    Mistake("size-and-count-swapped", (), "squares",
        lambda s: s.images.unflatten(2, (s.size, -1)).unflatten(1, (s.size, -1))
        .transpose(2, 3).reshape(REFERENCE["squares"](s).shape),
        "size and number of patches have changed places",
        "A side of the image is cut into patches first, and each of those holds size pixels.",
        "the order of the two numbers where a side of the image is cut"),
    *(
        Mistake("other-axes-swapped", (), "squares",
            lambda s, pair=pair: s.images.unflatten(2, (-1, s.size)).unflatten(1, (-1, s.size))
            .transpose(*pair).reshape(REFERENCE["squares"](s).shape),
            "two of the five axes change places, but not the two that should",
            "Grid row and grid column must come side by side, and so must the two of the pixels.",
            "the names of the five axes, before and after the swap")
        for pair in ((1, 2), (1, 3), (1, 4), (2, 4), (3, 4))
    ),
    Mistake("patches-column-by-column", (), "grid_order", lambda s: s.squares.transpose(1, 2),
        "the patches run down the columns of the image",
        "Patch 1 is the right neighbour of patch 0; positions count in that order.",
        "the order of grid row and grid column"),
    Mistake("pixels-column-by-column", (), "pixel_order", lambda s: s.grid_order.mT,
        "within a patch the pixels run down the columns",
        "All pixels run row by row, as in the image.",
        "the order of pixel row and pixel column"),
    Mistake("patches-and-pixels-swapped", (), "cut_patches",
        lambda s: REFERENCE["cut_patches"](s).mT,
        "the result is (N, pixel, patch)",
        "Tokens come before features: a patch is a token, and its pixels are the features.",
        "the last two axes"),
    Mistake("patches-of-all-images-in-one-row", (), "cut_patches",
        lambda s: REFERENCE["cut_patches"](s).flatten(0, 1),
        "the patches of all images lie in one long row",
        "Each sample keeps its own tokens: the batch is the first axis.",
        "the first axis of the last reshape"),
    Mistake("cls-at-the-end", (), "with_cls",
        lambda s: torch.cat([s.tokens, _for_each(s, s.cls)], dim=1),
        "[CLS] stands behind the patches",
        "It is read as token 0, and takes position 0.",
        "the order of the two in cat"),
    Mistake("cls-forgotten", (), "placed",
        lambda s: s.tokens + s.positions[1:],
        "there is no [CLS] token in the result",
        "Somebody must ask for the whole image; the result has one token more than patches.",
        "the number of tokens that come out"),
    *(
        Mistake("cls-without-position", (), "placed",
            lambda s, own=own: torch.cat(
                [s.with_cls[:, :1], s.with_cls[:, 1:] + s.positions[own]], dim=1),
            "[CLS] gets no position",
            "There is one position for each token, and [CLS] is token 0.",
            "whether positions are added before [CLS] is there, or after")
        for own in (slice(1, None), slice(None, -1))
    ),
    Mistake("positions-shifted", (), "placed",
        lambda s: s.with_cls + s.positions.roll(1, 0),
        "[CLS] gets the last position, and patch 0 that of [CLS]",
        "Position i belongs to token i, and [CLS] is token 0.",
        "which rows of positions go to the patches"),
    Mistake("positions-left-out", ("M39",), "placed", lambda s: s.with_cls,
        "no position is added",
        "Attention alone cannot tell a patch at the top from the same patch at the bottom.",
        "what becomes of the argument positions"),
    Mistake("positions-along-the-batch", (), "placed", lambda s: s.with_cls + s.positions[:, None],
        "the positions run along the batch: image i gets position i",
        "Position belongs to the token; the batch axis is the one to repeat it over.",
        "where positions gets its new axis"),
    Mistake("positions-beside", (), "placed",
        lambda s: torch.cat([s.with_cls, s.positions.expand_as(s.with_cls)], dim=-1),
        "the positions stand beside the features, which makes 2·D of them",
        "They are added: the width of a token stays D.",
        "whether positions meet the tokens in cat or in a sum"),
    Mistake("column-of-cls", ("M17",), "cls_row", lambda s: s.maps[..., 0],
        "this is the column of [CLS]: how much each token looks at it",
        "Rows are queries. Asked is where [CLS] itself looks.",
        "which of the last two axes is indexed"),
    Mistake("rows-averaged", (), "cls_row", lambda s: s.maps.mean(2),
        "the queries are averaged",
        "Only the row of [CLS] reaches the answer; the others drown it here.",
        "what becomes of the query axis"),
    Mistake("rows-averaged", (), "cls_row", lambda s: s.maps[:, :, 1:].mean(2),  # of the patches
        "the queries are averaged",
        "Only the row of [CLS] reaches the answer; the others drown it here.",
        "what becomes of the query axis"),
    Mistake("row-of-a-patch", (), "cls_row", lambda s: s.maps[:, :, 1],
        "this is the row of the first patch",
        "[CLS] is token 0. If you leave it out among the keys, keep it among the queries.",
        "the index of the query, and what was cut away before"),
    Mistake("last-row", (), "cls_row", lambda s: s.maps[:, :, -1],
        "this is the row of the last patch",
        "[CLS] is token 0.",
        "the index of the query"),
    Mistake("cls-left-in", (), "patch_keys", lambda s: s.cls_row[..., :-1],
        "the weight of [CLS] for itself is taken for patch 0, and the last patch is lost",
        "Key 0 is [CLS]; the patches are keys 1 and up.",
        "which key is left out"),
    Mistake("maps-made-to-sum-to-one", (), "shares",
        lambda s: s.patch_keys / s.patch_keys.sum(-1, keepdim=True),
        "the maps are divided by their sum",
        "Then nobody sees how much [CLS] kept for itself; asked are the weights as they are.",
        "the division"),
    Mistake("maps-divided-by-their-largest", (), "shares",
        lambda s: s.patch_keys / s.patch_keys.amax(-1, keepdim=True),
        "the maps are divided by their largest weight",
        "Then a soft head looks as sharp as any; asked are the weights as they are.",
        "the division"),
    Mistake("cls-maps-averaged", ("M46",), "each_head", lambda s: s.shares.mean(1),
        "the maps are averaged over the heads",
        "An average hides what single heads do; asked is (N, H, grid, grid).",
        "what becomes of the head axis"),
    Mistake("maps-turned", (), "laid_out", lambda s: REFERENCE["laid_out"](s).mT,
        "rows and columns of the map have changed places",
        "Patches run row by row over the image, so the map is filled row by row.",
        "what happens after the row of weights becomes a grid"),
    Mistake("pads-averaged-in", (), "counted", lambda s: torch.ones_like(s.is_token).double(),
        "the padding is averaged in",
        "Padding is there to make rows equally long. It says nothing about the sentence.",
        "what becomes of the argument mask"),
    Mistake("pads-alone-averaged", (), "counted", lambda s: (~s.is_token).double(),
        "the mask is turned round: padding is kept, and tokens are left out",
        "Here True means a token.",
        "what is multiplied with the mask, or filled where it is True"),
    Mistake("divided-by-length", (), "pooled",
        lambda s: _weighted_sum(s.x, s.counted) / s.x.shape[1],
        "the sum is divided by L, padding included",
        "A mean divides by as many as were added; the unit vector hides this slip.",
        "the number that the sum is divided by"),
    Mistake("divided-by-all-tokens", (), "pooled",
        lambda s: _weighted_sum(s.x, s.counted) / s.counted.sum(),
        "every sum is divided by the number of tokens in the whole batch",
        "Each sentence has its own length.",
        "the axis that the mask is summed over"),
    Mistake("pooled-as-a-sum", (), "pooled", lambda s: _weighted_sum(s.x, s.counted),
        "the tokens are added up, and never divided",
        "A sum grows with the length of the sentence; the unit vector hides this slip.",
        "how a sum becomes a mean"),
    Mistake("cls-taken", (), "pooled", lambda s: s.x[:, 0],
        "the first token, [CLS], is taken for the whole sentence",
        "Other models are used like that; this one was trained with the mean of all tokens.",
        "which tokens go into the result"),
    Mistake("tokens-normalised-first", (), "pooled",
        lambda s: _weighted_sum(F.normalize(s.x, dim=-1), s.counted)
        / s.counted.sum(1, keepdim=True),
        "each token is brought to length 1 before the mean",
        "Long vectors then count no more than short ones; the mean comes first.",
        "the order of mean and normalising"),
    Mistake("unit-over-batch", (), "unit", lambda s: F.normalize(s.pooled, dim=0),
        "the length is taken over the sentences (axis 0)",
        "Each sentence has a length of its own: the root of its summed squares over D features.",
        "the dim of the norm"),
    Mistake("unit-of-all-sentences", (), "unit", lambda s: s.pooled / s.pooled.norm(),
        "there is one length for all sentences together",
        "Each sentence has a length of its own.",
        "whether the norm is told its axis"),
    Mistake("not-normalised", (), "unit", lambda s: s.pooled,
        "the second result is not brought to length 1",
        "Only for vectors of length 1 is the dot product the cosine.",
        "the second thing returned"),
    Mistake("divided-by-square", (), "unit",
        lambda s: s.pooled / s.pooled.square().sum(-1, keepdim=True),
        "the mean is divided by its squared length",
        "The length is the root of the summed squares.",
        "how the norm is taken"),
    Mistake("rows-cleared", (), "cleared", lambda s: _cleared(s.weight, 0, s.own),
        "rows of W_O are cleared instead of columns",
        "torch stores (out, in), and heads come in; to a row, all heads add.",
        "which axis of the weight is cut"),
    Mistake("rows-and-columns-cleared", (), "cleared",
        lambda s: _cleared(_cleared(s.weight, 0, s.own), 1, s.own),
        "rows and columns are both cleared",
        "The rows take something from every head; only the columns belong to this one.",
        "how often the weight is cut"),
    Mistake("square-cleared", (), "cleared",
        lambda s: s.weight - _cleared(_cleared(s.weight, 0, _others(s)), 1, _others(s)),
        "only a square of the block is cleared, (d_h, d_h)",
        "A head writes to all D features of the output, so its block has D rows.",
        "whether anything is cut from the outputs"),
    Mistake("others-cleared", (), "cleared",
        lambda s: s.weight - REFERENCE["cleared"](s),
        "this head alone is kept, and all others are removed",
        "Asked is the layer without this head.",
        "what is kept, and what is cleared"),
    Mistake("block-as-wide-as-head-count", (), "own",
        lambda s: s.head * s.num_heads + torch.arange(s.num_heads),
        "the block is H wide instead of d_h",
        "H says how many blocks there are; each is d_h = D / H wide.",
        "the width of the slice"),
    Mistake("block-of-one-feature", (), "own", lambda s: torch.tensor([s.head]),
        "a single row or column is taken, the one whose number is that of the head",
        "A head owns d_h = D / H features. Its number says which block, not which feature.",
        "the width of the slice"),
    *(
        Mistake("block-open-at-one-end", (), "own",
            lambda s, first=first: torch.arange(len(s.weight))[
                s.head * _head_dim(s) :] if first else torch.arange((s.head + 1) * _head_dim(s)),
            "the block goes on to the end, or begins at 0",
            "A head has d_h features; those before and behind belong to other heads.",
            "both ends of the slice")
        for first in (True, False)
    ),
    Mistake("others-scaled-up", (), "cleared",
        lambda s: REFERENCE["cleared"](s) * s.num_heads / (s.num_heads - 1),
        "the other heads are multiplied by H / (H - 1)",
        "Heads are added, not averaged: without one, the others add what they added before.",
        "each factor on the columns that stay"),
    Mistake("block-of-fixed-width", (), "cleared",
        lambda s: _cleared(
            s.weight, 1, torch.arange(len(s.weight))[s.head * 32 : (s.head + 1) * 32]),
        "the block is always 32 wide, as in the model of lesson 8",
        "A head is d_h = D / H wide, and other layers have another D and H.",
        "where the width of the slice comes from: the arguments, or the notebook"),
    Mistake("bias-cleared", ("M09",), "kept_bias", lambda s: torch.zeros_like(s.bias),
        "the bias is cleared as well",
        "The bias is added once for all heads together; it is not this head's.",
        "what becomes of the bias"),
    Mistake("block-of-bias-cleared", ("M09",), "kept_bias",
        lambda s: _cleared(s.bias, 0, s.own),
        "a block of the bias is cleared as well",
        "The bias belongs to the output, to which every head adds; none of it is this head's.",
        "what becomes of the bias"),
    Mistake("next-token-scored", ("M17",), "offset", lambda s: 1,
        "the weight on the next token is taken, not on the one before",
        "Rows are queries: a query's previous token stands one column to the left.",
        "the sign of the offset, or the order of the two indices"),
    Mistake("own-token-scored", (), "offset", lambda s: 0,
        "the weight of each token on itself is taken",
        "That is the main diagonal; the token before stands one column to the left.",
        "the offset of the diagonal"),
    Mistake("first-column-scored", (), "picked", lambda s: s.attention[..., 1:, 0],
        "the weight on the first token is taken",
        "The token before is another one for each query.",
        "whether the column moves with the row"),
    Mistake("first-query-wraps", (), "picked",
        lambda s: s.attention.roll(1, -1).diagonal(dim1=-2, dim2=-1),
        "the first query is given its weight on the last token",
        "In Python, index -1 is the last one. The first query has no token before it.",
        "where your loop over the queries begins"),
    *(
        Mistake("diagonal-of-wrong-axes", (), "picked",
            lambda s, averaged=averaged: averaged(s.attention.diagonal(s.offset)),
            "the diagonal runs over batch and head",
            "diagonal takes axes 0 and 1 if you name none; queries and keys are the last two.",
            "the axes that diagonal is told")
        for averaged in (
            lambda x: x,
            # Of the axes put around these means, those of the later steps leave nothing.
            *(lambda x, axes=axes: x.mean(axes)[None, ..., None] for axes in ((0, 1), 0, 1)),
        )
    ),
    Mistake("first-query-counted", (), "over_queries",
        lambda s: s.picked.sum(-1) / s.attention.shape[-1],
        "the sum is divided by L, though only L - 1 queries have a token before them",
        "The first token has none, so there is nothing to count for it.",
        "the number that the sum is divided by"),
    Mistake("queries-added-up", (), "over_queries", lambda s: s.picked.sum(-1),
        "the weights are added up over the queries, not averaged",
        "A sum grows with the length of the sentence.",
        "how the queries become one number"),
    Mistake("largest-query-taken", (), "over_queries", lambda s: s.picked.amax(-1),
        "the largest weight is taken, not the mean",
        "One query that looks back does not make a head that does.",
        "how the queries become one number"),
    Mistake("samples-kept-apart", (), "head_scores", lambda s: s.over_queries,
        "the samples are kept apart: (N, H)",
        "Asked is one number for each head, the mean over the batch.",
        "the axes that are averaged"),
    Mistake("samples-added-up", (), "head_scores", lambda s: s.over_queries.sum(0),
        "the samples are added up, not averaged",
        "A sum grows with the size of the batch.",
        "how the samples become one number"),
    Mistake("heads-averaged-away", ("M46",), "head_scores", lambda s: s.over_queries.mean(1),
        "the heads are averaged and the samples kept: (N,)",
        "An average hides what single heads do; asked is one number for each head.",
        "the axes that are averaged"),
    Mistake("all-averaged", ("M46",), "head_scores", lambda s: s.over_queries.mean(),
        "everything is averaged to one number",
        "An average hides what single heads do; asked is one number for each head.",
        "whether the mean is told its axes"),
)
# fmt: on

# Its numbers are random, so it is no step: a check runs the code with dropout and without.
DROPOUT = Mistake(
    "dropout-in-eval",
    ("M31", "M33"),
    "",
    None,
    "dropout is at work outside training",
    "Once training is over, the same input must always give the same result.",
    "what dropout is told about self.training",
)
