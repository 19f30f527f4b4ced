"""What an attention layer is: head counts, scale, mask, layout, as far as its values show."""

from typing import Any

import torch
from torch import Tensor

from course_utils.diagnosis.roles import Site, Source
from course_utils.diagnosis.watch import Call

BLOCKED = -1e4  # scores below this, relative to the best of the row, count as blocked


def read_facts(
    site: Site, calls: list[Call], sources: dict[str, Source | None]
) -> tuple[dict[str, Any], Tensor, Tensor]:
    """The facts, the key of each group's place (N, H), and the weights (N, H, L_q, L_k).

    A fact that the values do not show is None.
    """
    query = sources["query"]
    order, batch_size = find_order(site, query)
    heads = len(order) // batch_size
    shape = (batch_size, heads)
    weights, scores = (x[order].unflatten(0, shape) for x in (site.weights, site.scores))
    key = site.key[order].unflatten(0, shape)
    owners = [
        next(j for j in range(h + 1) if torch.equal(key[:, j], key[:, h])) for h in range(heads)
    ]
    head_dim = site.query.shape[-1]
    fitted = _scale(site, order, batch_size)
    scale = None
    if fitted is not None and all(_pair(sources)):  # a factor may hide in query or key
        factors = [1.0 if s.factor is None else s.factor for s in _pair(sources)]
        scale = fitted * factors[0] * factors[1]
    blocked = (scores < scores.amax(-1, keepdim=True) + BLOCKED) | (scores == float("-inf"))
    future = _future(*weights.shape[-2:])
    causal = bool(blocked[..., future].all()) and bool(future.any())
    cross = None
    if all(_pair(sources)):
        inputs = [projected(calls[s.call]) for s in _pair(sources)]
        cross = inputs[0].shape != inputs[1].shape or not torch.equal(*inputs)
    facts = {
        "num_heads": heads,
        "num_key_value_heads": len(set(owners)),
        "head_dim": head_dim,
        "scale": scale,
        "causal": causal,
        "rotary": query.rotary if query else None,
        "layout": _layout(sources, order),
        "cross": cross,
        "masked": bool((blocked & ~future if causal else blocked).any()),
        "dropout": site.dropout,
    }
    return facts, torch.tensor(owners), weights


def _pair(sources: dict[str, Source | None]) -> tuple[Source | None, Source | None]:
    return sources["query"], sources["key"]


def _future(queries: int, keys: int) -> Tensor:
    """True above the diagonal that ends in the last corner: the last query sees all keys."""
    return torch.ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)


def find_order(site: Site, query: Source | None) -> tuple[Tensor, int]:
    """Groups in the order sequence, head; and how many sequences there are."""
    groups = torch.arange(len(site.query))
    if query is not None:
        ranks = query.sequence * (query.columns.max() + 1) + query.columns.min(1).values
        return ranks.argsort(stable=True), len(query.sequence.unique())
    if len(site.leading) == 2:
        return groups, site.leading[0]
    return groups, 1


def projected(call: Call) -> Tensor:
    """Return what a projection was applied to."""
    return call.get(1, "mat1") if call.name == "addmm" else call.get(0, "input")


def _scale(site: Site, order: Tensor, batch_size: int) -> float | None:
    """The number that the product of query and key was multiplied by; a bias may be added.

    Without a bias every score says it. With one that is the same for all sequences of the batch,
    the differences between sequences do.
    """
    product = (site.query.double() @ site.key.double().mT)[order]
    scores = site.scores.double()[order]
    seen = (scores > scores.amax(-1, keepdim=True) + BLOCKED) & scores.isfinite()
    if not seen.any():
        return None
    plain = _fit(product[seen], scores[seen])
    if plain is not None or batch_size == 1:
        return plain
    shape = (batch_size, -1, *product.shape[1:])
    product, scores, seen = (x.reshape(shape) for x in (product, scores, seen))
    common = seen.all(0)
    product, scores = (x[1:] - x[:1] for x in (product, scores))
    return _fit(product[:, common], scores[:, common])


def _fit(product: Tensor, scores: Tensor) -> float | None:
    if not product.numel() or not product.any():
        return None
    scale = ((product * scores).sum() / (product * product).sum()).item()
    off = (scores - scale * product).abs().max()
    return scale if off <= 1e-4 * scores.abs().max() else None


def _layout(sources: dict[str, Source | None], order: Tensor) -> str | None:
    """Say whether three projections were used, or one whose columns are [Q; K; V] or by head."""
    if not all(sources.values()):
        return None
    calls = {s.call for s in sources.values()}
    if len(calls) > 1:
        return "separate"
    q, k, v = (sources[name].columns for name in ("query", "key", "value"))
    if q.max() < k.min() and k.max() < v.min():
        return "stacked"
    return "interleaved"
