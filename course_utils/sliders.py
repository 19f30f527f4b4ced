"""Live explorers: sliders whose picture follows the hand.

Each function makes an ``Explorer`` (see ``course_utils.explorer``): controls over a live view.
"""

import copy
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from html import escape

import ipywidgets as widgets
import torch
from torch import Tensor, nn

from course_utils.arguments import (
    count_of,
    divisors,
    names_or_numbers,
    require_dropout,
    require_embed_dim,
    require_finite,
    require_num_heads,
    require_numbers,
    require_seed,
    require_text,
    require_weights,
    require_whole,
)
from course_utils.attention import MultiHeadAttention, scaled_dot_product_attention
from course_utils.explorer import (
    MAX_STILL_MAPS,
    Explorer,
    facts_table,
    head_counts_of_still,
    heat_tables,
    html_table,
    make_slider,
    make_switch,
    maps_side_by_side,
    side_by_side,
    token_html,
    two_decimals,
    vector_text,
    weight_bar,
)
from course_utils.heatmaps import (
    CourseFigure,
    describe_head_split,
    describe_weights,
    display_token,
    plot_attention,
    plot_head_split,
    plot_heads,
    plot_spread,
    visible_token,
)

MAX_NUMBERS_A_QUERY = 16_384  # of explore_scale, which asks a thousand queries


def head_count_slider(embed_dim: int, *, value: int | None = None) -> widgets.SelectionSlider:
    """A slider over the head counts that divide ``embed_dim``.

    Args:
        embed_dim: D.
        value: where it stands at first; left out, 1.

    Raises:
        ValueError: embed_dim is not a whole number of at least 1, or value does not divide it.
    """
    return make_slider(
        "heads H", divisors(embed_dim), 1 if value is None else require_num_heads(embed_dim, value)
    )


def explore_query(
    query: Tensor, key: Tensor, value: Tensor, *, tokens: Sequence[str] | None = None
) -> Explorer:
    """Choose a query token and see its row turn into a mixture of values.

    Args:
        query: (L, d), one head of one sample.
        key: (L, d).
        value: (L, d_v).
        tokens: L names; left out, the positions.

    Returns:
        An explorer with the control ``query`` (a position); its state holds ``scores``,
        ``weights`` (both one number a key), ``values`` (L, d_v) and ``output`` (d_v numbers).

    Raises:
        ValueError: shapes that do not fit together, numbers that are not finite, or another
            number of tokens.
    """
    _, weights = scaled_dot_product_attention(query, key, value)
    if weights.ndim != 2:
        raise ValueError(f"query must be (L, d), one head; got shape {tuple(query.shape)}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        require_finite(name, x)
    value = value.detach().clone()  # as it is now, like the weights
    key_tokens = names_or_numbers(tokens, len(key))
    tokens = names_or_numbers(tokens, len(query))
    scores = query @ key.T  # (query, key), before the scale
    require_finite("query times key", scores)  # they may overflow
    scale = math.sqrt(query.shape[-1])

    def compute(query: int) -> dict:
        return {
            "query": query,
            "scores": scores[query].tolist(),
            "weights": weights[query].tolist(),
            "values": value.tolist(),
            "output": (weights[query] @ value).tolist(),
        }

    def view(state: dict) -> str:
        looks, mixes = [], []
        for token, score, weight, vector in zip(
            key_tokens, state["scores"], state["weights"], state["values"], strict=True
        ):
            name = token_html(token)
            looks.append(
                [name, two_decimals(score), two_decimals(score / scale), weight_bar(weight)]
            )
            mixes.append([name, vector_text(vector), vector_text([weight * v for v in vector])])
        return side_by_side(
            html_table(
                f"{token_html(tokens[state['query']])} looks around",
                ["key", "q·k", f"÷ {scale:.3g}", "weight"],
                looks,
                ["sum", "", "", two_decimals(sum(state["weights"]))],
            ),
            html_table(
                "and mixes the values",
                ["key", "value", "weight × value"],
                mixes,
                ["sum", "", vector_text(state["output"])],
            ),
        )

    def draw(state: dict) -> CourseFigure:
        name = display_token(tokens[state["query"]])
        return plot_attention(
            [state["weights"]],
            query_tokens=[tokens[state["query"]]],
            key_tokens=key_tokens,
            title=f"where {name} looks",
        )

    def describe(state: dict) -> str:
        shares = ", ".join(
            f"{display_token(t)} {w:.2f}" for t, w in zip(key_tokens, state["weights"], strict=True)
        )
        name = display_token(tokens[state["query"]])
        return f"query {name} takes {shares}; output {vector_text(state['output'])}"

    def still(_state: dict) -> CourseFigure:
        return plot_attention(
            weights, query_tokens=tokens, key_tokens=key_tokens, title="where each query looks"
        )

    names = [(f"{i}: {display_token(token)}", i) for i, token in enumerate(tokens)]
    return Explorer(
        {"query": make_slider("query", names, 0)},
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )


def explore_scale(
    *,
    head_dims: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    num_tokens: int = 6,
    seed: int = 0,
) -> Explorer:
    """Change d_k, switch the scale on and off, and see softmax sharpen or stay soft.

    Args:
        head_dims: the d_k the slider offers.
        num_tokens: queries and keys in the map; all features have mean 0 and variance 1.
        seed: for these numbers; the global random state is left alone.

    Returns:
        An explorer with the controls ``head_dim`` and ``scaled``; its state holds ``scores`` as
        they enter softmax and ``weights`` (nested lists, (1, L, L)), and one number a query of
        ``entropy``, in bits, and ``gradient_norm``: the Frobenius norm of the softmax's
        Jacobian, that is, how much of a gradient at the weights can reach the scores.
        ``mean_entropy`` and ``mean_gradient_norm`` are means over 1,000 other queries.

    Raises:
        ValueError: head_dims that are no sizes, num_tokens below 2, or a seed that is no int.
    """
    try:
        head_dims = list(head_dims)
        if not head_dims:
            raise TypeError
    except TypeError:
        came = reprlib.repr(head_dims)
        raise ValueError(f"head_dims must be a list of sizes, got {came}") from None
    head_dims = [require_whole(f"head_dims[{i}]", size) for i, size in enumerate(head_dims)]
    if not 2 <= require_whole("num_tokens", num_tokens) <= 64:
        raise ValueError(f"num_tokens must be at least 2 and at most 64, got {num_tokens}")
    if (numbers := num_tokens * max(head_dims)) > MAX_NUMBERS_A_QUERY:
        raise ValueError(
            f"num_tokens times the largest of head_dims must be at most {MAX_NUMBERS_A_QUERY:,}, "
            f"or the tensors fill the memory; got {reprlib.repr(numbers)}"
        )
    generator = torch.Generator().manual_seed(require_seed(seed))

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, max(head_dims), generator=generator, dtype=torch.float64)

    query, key = random(num_tokens), random(num_tokens)  # (token, feature)
    many_queries, many_keys = random(1000, 1), random(1000, num_tokens)
    names = [f"query {i}" for i in range(num_tokens)]
    key_names = [f"key {i}" for i in range(num_tokens)]

    def measure(query: Tensor, key: Tensor, scale: float) -> tuple[Tensor, ...]:
        scores = query @ key.mT * scale
        weights = torch.softmax(scores, dim=-1)
        entropy = -torch.xlogy(weights, weights).sum(-1) / math.log(2)
        jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
        return scores, weights, entropy, jacobian.flatten(-2).norm(dim=-1)

    @cache
    def measure_at(head_dim: int, scaled: bool) -> tuple[Tensor, ...]:
        # The first head_dim features of the same tokens, so that a step adds to what was there.
        scale = 1 / math.sqrt(head_dim) if scaled else 1.0
        scores, weights, entropy, norm = measure(query[:, :head_dim], key[:, :head_dim], scale)
        _, _, mean_entropy, mean_norm = measure(
            many_queries[..., :head_dim], many_keys[..., :head_dim], scale
        )
        return scores, weights, entropy, norm, mean_entropy.mean(), mean_norm.mean()

    def compute(head_dim: int, scaled: bool) -> dict:
        scores, weights, entropy, norm, mean_entropy, mean_norm = measure_at(head_dim, scaled)
        return {
            "head_dim": head_dim,
            "scaled": scaled,
            "scores": scores[None].tolist(),
            "weights": weights[None].tolist(),
            "entropy": entropy.tolist(),
            "gradient_norm": norm.tolist(),
            "mean_entropy": mean_entropy.item(),
            "mean_gradient_norm": mean_norm.item(),
        }

    def view(state: dict) -> str:
        scores = [
            [name, *(f"{score:z.1f}" for score in row)]
            for name, row in zip(names, state["scores"][0], strict=True)
        ]
        softness = [
            [name, two_decimals(entropy), f"{norm:.3f}"]
            for name, entropy, norm in zip(
                names, state["entropy"], state["gradient_norm"], strict=True
            )
        ]
        means = [
            "mean of 1,000 others",
            two_decimals(state["mean_entropy"]),
            f"{state['mean_gradient_norm']:.3f}",
        ]
        return side_by_side(
            html_table(
                "scores, q·k / √d_k" if state["scaled"] else "scores, q·k", ["", *key_names], scores
            ),
            *heat_tables(state["weights"], names, key_names, ["weights"]),
            html_table(
                "how soft",
                ["", f"entropy, of {math.log2(num_tokens):.2f} bits", "gradient norm"],
                softness,
                means,
            ),
        )

    def title(state: dict) -> str:
        return f"d_k = {state['head_dim']}, {'scaled' if state['scaled'] else 'not scaled'}"

    def draw(state: dict) -> CourseFigure:
        return plot_attention(
            state["weights"][0], query_tokens=names, key_tokens=key_names, title=title(state)
        )

    def describe(state: dict) -> str:
        return (
            f"{title(state)}: mean entropy {state['mean_entropy']:.2f} bits, "
            f"mean gradient norm {state['mean_gradient_norm']:.2f}"
        )

    def still(_state: dict) -> CourseFigure:
        """Up to four d_k from the smallest to the largest: not scaled above, scaled below."""
        places = torch.linspace(0, len(head_dims) - 1, min(len(head_dims), MAX_STILL_MAPS // 2))
        states = [
            compute(head_dims[place], scaled)
            for scaled in (False, True)
            for place in places.round().int().tolist()
        ]
        figure = plot_heads(
            [state["weights"][0] for state in states],
            query_tokens=names,
            key_tokens=key_names,
            titles=list(map(title, states)),
        )
        figure.alt = "; ".join(map(describe, states))
        return figure

    return Explorer(
        {
            "head_dim": make_slider("d_k", head_dims, head_dims[0]),
            "scaled": make_switch("divide by √d_k", False),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )


def explore_split(
    embed_dim: int, *, batch_size: int = 2, seq_len: int = 3, num_heads: int | None = None
) -> Explorer:
    """Change the head count and see who gets which features, and every shape on the way.

    Args:
        embed_dim: D.
        batch_size: N, for the shapes.
        seq_len: L, for the shapes.
        num_heads: where the slider stands at first; left out, 1.

    Returns:
        An explorer with the controls ``num_heads`` and ``any_number`` (a switch that lets head
        counts in that do not divide D, to show what the error says); its state holds
        ``head_dim``, ``features`` (one list of feature numbers a head) and ``shapes``.

    Raises:
        ValueError: a size that is not a whole number of at least 1, or num_heads does not divide
            embed_dim.
    """
    batch_size = require_whole("batch_size", batch_size)
    seq_len = require_whole("seq_len", seq_len)
    embed_dim = require_embed_dim(embed_dim)
    slider = head_count_slider(embed_dim, value=num_heads)
    switch = make_switch("allow any number", False)

    def offer(change) -> None:
        wanted, value = range(1, embed_dim + 1), slider.value
        if not change["new"]:
            wanted = divisors(embed_dim)
            value = max(h for h in wanted if h <= value)
        slider.options = list(wanted)  # moves the slider to the first of them
        slider.value = value

    def compute(num_heads: int, any_number: bool) -> dict:
        num_heads = require_num_heads(embed_dim, num_heads)
        head_dim = embed_dim // num_heads
        n, length = batch_size, seq_len
        return {
            "num_heads": num_heads,
            "any_number": any_number,
            "head_dim": head_dim,
            "features": [list(range(h * head_dim, (h + 1) * head_dim)) for h in range(num_heads)],
            "shapes": {
                "x": (n, length, embed_dim),
                "q = q_proj(x)": (n, length, embed_dim),
                "q.view(N, L, H, d_h)": (n, length, num_heads, head_dim),
                "….transpose(1, 2)": (n, num_heads, length, head_dim),
            },
        }

    def view(state: dict) -> str:
        names = ["x", "q = q_proj(x)", "q.view(N, L, H, d_h)", "….transpose(1, 2)"]
        axes = ["(N, L, D)", "(N, L, D)", "(N, L, H, d_h)", "(N, H, L, d_h)"]
        shapes = [
            [f"<code>{escape(name)}</code>", axis, f"<code>{state['shapes'][name]}</code>"]
            for name, axis in zip(names, axes, strict=True)
        ]
        caption = f"D = {embed_dim}, H = {state['num_heads']}, d_h = {state['head_dim']}"
        return _split_strip(state["features"], caption) + html_table(
            "every shape on the way", ["step", "axes", "shape"], shapes
        )

    explorer = Explorer(
        {"num_heads": slider, "any_number": switch},
        compute=compute,
        view=view,
        draw=lambda state: plot_head_split(embed_dim, state["num_heads"]),
        describe=lambda state: describe_head_split(embed_dim, state["num_heads"]),
        still=lambda state: plot_head_split(
            embed_dim, sorted({*divisors(embed_dim)[:3], state["num_heads"]})
        ),
    )
    switch.observe(offer, "value")
    return explorer


def explore_heads(
    layer: MultiHeadAttention | nn.MultiheadAttention,
    x: Tensor,
    *,
    tokens: Sequence[str] | None = None,
    dropout: float | None = None,
    seed: int = 0,
) -> Explorer:
    """Cut one layer's weights into more or fewer heads and see each head's map.

    The four projections stay the same at every stop of the slider; only the cut changes.

    Args:
        layer: ours or torch's; its head count is where the slider starts.
        x: (N, L, D), the input; with N > 1 a second slider chooses the sample.
        tokens: L names; left out, the positions.
        dropout: adds two switches: averaged over heads, and train mode with this probability.
        seed: for the dropout; the global random state is left alone.

    Returns:
        An explorer with the controls ``num_heads``, and as asked ``sample``, ``averaged`` and
        ``training``; its state holds ``weights`` (nested lists, (H, L, L), or (1, L, L) when
        averaged), ``weights_shape`` as the call returns it, ``output_shape``, ``parameters``,
        ``stored_weights`` (N·H·L²) and ``row_sums`` (smallest and largest).

    Raises:
        ValueError: a layer, input, token list or dropout that does not fit.
    """
    if dropout is not None:
        dropout = require_dropout("dropout", dropout)
    seed = require_seed(seed)
    layer, _, x = _own_copy(layer, x)
    batch_size, seq_len, embed_dim = x.shape
    tokens = names_or_numbers(tokens, seq_len)
    parameters = sum(p.numel() for p in layer.parameters())

    @lru_cache
    def recut(num_heads: int) -> MultiHeadAttention:
        cut = MultiHeadAttention(
            embed_dim, num_heads, dropout=dropout or 0.0, bias=layer.q_proj.bias is not None
        ).to(layer.out_proj.weight)
        cut.load_state_dict(layer.state_dict())
        return cut

    def compute(
        num_heads: int, sample: int = 0, averaged: bool = False, training: bool = False
    ) -> dict:
        with torch.no_grad(), torch.random.fork_rng():
            cut = recut(num_heads).train(training)  # a new one draws random numbers: seed after it
            if training:  # seeding takes longer than a whole small layer
                torch.manual_seed(seed)
            output, weights = cut(x)  # (N, H, L, L)
        require_finite(f"weights of {count_of(num_heads, 'head')}", weights)  # scores may overflow
        if averaged:
            weights = weights.mean(dim=1)  # (N, L, L): the head axis is gone
        row_sums = weights.sum(-1)
        return {
            "num_heads": num_heads,
            "head_dim": embed_dim // num_heads,
            "sample": sample,
            "averaged": averaged,
            "training": training,
            "weights": (weights[sample, None] if averaged else weights[sample]).tolist(),
            "weights_shape": tuple(weights.shape),
            "output_shape": tuple(output.shape),
            "parameters": parameters,
            "stored_weights": batch_size * num_heads * seq_len**2,
            "row_sums": (row_sums.min().item(), row_sums.max().item()),
        }

    def titles(state: dict) -> list[str]:
        return _titles(state["num_heads"], state["averaged"])

    def view(state: dict) -> str:
        low, high = state["row_sums"]
        facts = [
            ["width of a head, d_h", f"{embed_dim} / {state['num_heads']} = {state['head_dim']}"],
            ["output", f"<code>{state['output_shape']}</code>"],
            ["weights", f"<code>{state['weights_shape']}</code>"],
            ["parameters", f"{parameters:,}"],
            [
                "stored weights, N·H·L²",
                f"{batch_size} · {state['num_heads']} · {seq_len}² = {state['stored_weights']:,}",
            ],
            ["rows sum to", f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}"],
        ]
        return side_by_side(
            facts_table("the whole layer", facts),
            *heat_tables(state["weights"], tokens, tokens, titles(state)),
        )

    def describe(state: dict) -> str:
        first = torch.tensor(state["weights"][0]).numpy()
        mode = ", train mode" if state["training"] else ""
        return (
            f"{count_of(state['num_heads'], 'head')} of {state['head_dim']}{mode}, output "
            f"{state['output_shape']}, weights {state['weights_shape']}, {parameters:,} "
            f"parameters, {state['stored_weights']:,} stored weights; {titles(state)[0]}: "
            f"{describe_weights(first, tokens, tokens)}"
        )

    def still(state: dict) -> CourseFigure:
        """The smallest head counts beside each other."""
        counts = head_counts_of_still(divisors(embed_dim), state["num_heads"])
        maps, names = maps_side_by_side(compute(h, state["sample"]) for h in counts)
        return plot_heads(maps, query_tokens=tokens, titles=names)

    controls: dict[str, widgets.Widget] = {
        "num_heads": head_count_slider(embed_dim, value=layer.num_heads)
    }
    if batch_size > 1:
        controls["sample"] = make_slider("sample", range(batch_size), 0)
    if dropout is not None:
        controls["averaged"] = make_switch("average over heads", False)
        controls["training"] = make_switch(f"train mode, dropout {dropout:g}", False)
    return Explorer(
        controls,
        compute=compute,
        view=view,
        draw=lambda state: plot_heads(state["weights"], query_tokens=tokens, titles=titles(state)),
        describe=describe,
        still=still,
    )


MASKS = ("none", "causal", "padding", "causal + padding")


def explore_masks(
    layer: MultiHeadAttention | nn.MultiheadAttention,
    x: Tensor,
    *,
    tokens: Sequence[str] | None = None,
) -> Explorer:
    """Lay a mask over one sentence, the right way round or not, and see who sees whom.

    The tokens from ``length`` on become padding: vectors of zeros, called "pad". The layer is run
    in eval mode, and reads a mask as True = may attend.

    Args:
        layer: ours or torch's.
        x: (1, L, D), one sentence.
        tokens: L names; left out, the positions.

    Returns:
        An explorer with the controls ``mask``, ``length`` (L - 2 at first), ``inverted`` (the
        mask is handed over as True = blocked) and ``averaged``; its state holds ``weights``
        (nested lists, (H, L, L), or (1, L, L) when averaged), ``row_sums`` ((H, L) or (1, L)),
        ``blocked`` ((L, L), as the layer reads the mask), ``sees`` (how many keys each query may
        attend to), ``blind`` (queries that may attend to nothing), and ``to_padding`` and
        ``to_later``: the share of their weight that real tokens give to padding and to later real
        tokens, on average over tokens and heads.

    Raises:
        ValueError: a layer, input or token list that does not fit.
    """
    layer, weights, x = _own_copy(layer, x)
    if len(x) != 1:
        raise ValueError(f"x must be one sentence, (1, L, D); got shape {tuple(x.shape)}")
    _, num_heads, seq_len, _ = weights.shape
    names = names_or_numbers(tokens, seq_len)
    place = torch.arange(seq_len)
    earlier = place[:, None] >= place  # (query, key): the token itself, and those before

    def compute(mask: str, length: int, inverted: bool, averaged: bool) -> dict:
        real = place < length  # (token,)
        attend = torch.ones(seq_len, seq_len, dtype=torch.bool)
        if "causal" in mask:
            attend &= earlier
        if "padding" in mask:
            attend &= real
        if inverted and mask != "none":
            attend = ~attend
        padded = x.clone()
        padded[:, length:] = 0
        with torch.no_grad():
            _, weights = layer(padded, mask=attend)  # (1, H, L, L)
        require_finite("weights", weights)  # scores may overflow
        mean = weights[0].mean(dim=0)[:length]  # (real query, key)
        weights = weights.mean(dim=1) if averaged else weights[0]
        sees = attend.sum(-1)
        return {
            "mask": mask,
            "length": length,
            "inverted": inverted,
            "averaged": averaged,
            "weights": weights.tolist(),
            "row_sums": weights.sum(-1).tolist(),
            "blocked": (~attend).tolist(),
            "sees": sees.tolist(),
            "blind": place[sees == 0].tolist(),
            "to_padding": mean[:, length:].sum().item() / max(length, 1),
            "to_later": mean[:, :length].triu(1).sum().item() / max(length, 1),
        }

    def shown_tokens(state: dict) -> list[str]:
        return names[: state["length"]] + ["pad"] * (seq_len - state["length"])

    def titles(state: dict) -> list[str]:
        return _titles(num_heads, state["averaged"])

    def blind_rows(state: dict, name: Callable[[str], str]) -> str:
        if len(state["blind"]) == seq_len:
            return "all rows"
        tokens = shown_tokens(state)
        return ", ".join(f"{name(tokens[i])} (row {i})" for i in state["blind"])

    def view(state: dict) -> str:
        tokens = shown_tokens(state)
        facts = [
            [
                "the mask was built as",
                "True = blocked" if state["inverted"] else "True = may attend",
            ],
            ["the layer reads it as", "True = may attend"],
            ["blocked cells, ×", f"{sum(map(sum, state['blocked']))} of {seq_len**2}"],
            ["share of real tokens' weight on padding", two_decimals(state["to_padding"])],
            ["share on later tokens", two_decimals(state["to_later"])],
        ]
        sums = [
            [
                token_html(token),
                f"{sees} of {seq_len}" if sees else "⚠ nothing",
                *map(two_decimals, row_sums),
            ]
            for token, sees, row_sums in zip(
                tokens, state["sees"], zip(*state["row_sums"], strict=True), strict=True
            )
        ]
        blind = ""
        if state["blind"]:
            blind = (
                f'<p class="ac-note">⚠ May attend to nothing: {blind_rows(state, token_html)}. '
                "Weights 0 here, as this course defines it; NaN from nn.MultiheadAttention with "
                "need_weights=True.</p>"
            )
        return (
            side_by_side(
                *heat_tables(
                    state["weights"], tokens, tokens, titles(state), blocked=state["blocked"]
                ),
                html_table("rows sum to", ["query", "may see", *titles(state)], sums),
                facts_table("what the mask does", facts),
            )
            + blind
        )

    def draw(state: dict) -> CourseFigure:
        tokens = shown_tokens(state)
        return plot_heads(
            state["weights"], query_tokens=tokens, titles=titles(state), blocked=state["blocked"]
        )

    def describe(state: dict) -> str:
        way = ", built as True = blocked" if state["inverted"] else ""
        heads = ("mean of " if state["averaged"] else "") + count_of(num_heads, "head")
        return (
            f"mask: {state['mask']}{way}, {state['length']} of {seq_len} tokens real, "
            f"{heads}; {sum(map(sum, state['blocked']))} of {seq_len**2} cells "
            f"blocked; on padding {state['to_padding']:.2f}, on later tokens "
            f"{state['to_later']:.2f}; may attend to nothing: "
            f"{blind_rows(state, display_token) or 'no row'}"
        )

    def still(state: dict) -> CourseFigure:
        """All masks on the first heads."""
        states = [compute(mask, state["length"], state["inverted"], False) for mask in MASKS]
        heads = range(min(num_heads, MAX_STILL_MAPS // len(MASKS)))
        maps = [(state, head) for state in states for head in heads]
        figure = plot_heads(
            [state["weights"][head] for state, head in maps],
            query_tokens=shown_tokens(state),
            titles=[f"{state['mask']}, head {head}" for state, head in maps],
            blocked=[state["blocked"] for state, _ in maps],
        )
        figure.alt = ". ".join(map(describe, states))
        return figure

    return Explorer(
        {
            "mask": make_slider("mask", [(name, name) for name in MASKS], MASKS[0]),
            "length": make_slider("real tokens", range(seq_len + 1), max(seq_len - 2, 1)),
            "inverted": make_switch("built as True = blocked", False),
            "averaged": make_switch("average over heads", False),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
        still=still,
    )


def explore_head_counts(
    accuracies: Mapping[str, Mapping[int, Sequence[float]]],
    maps: Mapping[str, Mapping[int, Tensor]],
    *,
    embed_dim: int,
    keys: Mapping[str, Sequence[str]] | None = None,
) -> Explorer:
    """Choose a head count and see what layers that were trained with it can do.

    Args:
        accuracies: task to head count to one accuracy from 0 to 1 for each seed.
        maps: task to head count to what one query gives each key, (S, H, L): every seed's heads.
        embed_dim: D; every head count must divide it.
        keys: task to L names; left out, the positions.

    Returns:
        An explorer with the controls ``num_heads`` (the head counts that were trained) and
        ``seed``; its state holds ``head_dim``, ``rank_bound`` (of a head's QKᵀ), ``stored_weights``
        (of one sample and query, H·L, by task), ``accuracies`` (task to one number a seed) and
        ``maps`` (task to (H, L), of the seed chosen).

    Raises:
        ValueError: no task, tasks that differ between the arguments or in their head counts, a
            head count that does not divide embed_dim, or accuracies and maps of another shape.
    """
    embed_dim = require_whole("embed_dim", embed_dim)
    for name, given in (("accuracies", accuracies), ("maps", maps)):
        if (
            not isinstance(given, Mapping)
            or not given
            or not all(isinstance(by_count, Mapping) and by_count for by_count in given.values())
        ):
            raise ValueError(
                f"{name} must hold at least one task, and for it one head count or more"
            )
        counts = list(next(iter(accuracies.values())))
        if list(given) != list(accuracies):
            raise ValueError(f"{name} must have the tasks {list(accuracies)}, got {list(given)}")
        for task, by_count in given.items():
            require_text(f"each task in {name}", task)
            if list(by_count) != counts:
                raise ValueError(
                    f"{name}[{task!r}] must have the head counts {counts}, got {list(by_count)}"
                )
    if keys is not None and not isinstance(keys, Mapping):
        raise ValueError(f"keys must be a dict, task to names, got {reprlib.repr(keys)}")
    for num_heads in counts:
        require_num_heads(embed_dim, num_heads)
    accuracies = {
        task: {
            h: require_numbers(f"accuracies[{task!r}][{h}]", by_count[h], "one a seed")
            for h in counts
        }
        for task, by_count in accuracies.items()
    }
    maps = {
        task: {h: require_weights(by_count[h], "(S, H, L)", f"maps[{task!r}][{h}]") for h in counts}
        for task, by_count in maps.items()
    }
    seeds = max(1, next(iter(accuracies.values()))[counts[0]].size)
    names = {}
    for task in accuracies:
        length = maps[task][counts[0]].shape[-1]
        names[task] = names_or_numbers((keys or {}).get(task), length, f"keys[{task!r}]")
        for h in counts:
            own = accuracies[task][h]
            if own.shape != (seeds,) or not ((own >= 0) & (own <= 1)).all():
                raise ValueError(
                    f"accuracies[{task!r}][{h}] must be {seeds} numbers from 0 to 1, one a seed; "
                    f"got {reprlib.repr(own.tolist())}"
                )
            if maps[task][h].shape != (seeds, h, length):
                raise ValueError(
                    f"maps[{task!r}][{h}] must be (S, H, L) = {(seeds, h, length)}, "
                    f"got shape {maps[task][h].shape}"
                )
    accuracies, maps = (
        {task: {h: by_count[h].tolist() for h in counts} for task, by_count in given.items()}
        for given in (accuracies, maps)
    )

    shown = {task: visible_token(task) for task in accuracies}

    def compute(num_heads: int, seed: int) -> dict:
        return {
            "num_heads": num_heads,
            "seed": seed,
            "head_dim": embed_dim // num_heads,
            "rank_bound": embed_dim // num_heads,
            "stored_weights": {task: num_heads * len(names[task]) for task in maps},
            "accuracies": {task: accuracies[task][num_heads] for task in accuracies},
            "maps": {task: maps[task][num_heads][seed] for task in maps},
        }

    def view(state: dict) -> str:
        heads = [f"head {head}" for head in range(state["num_heads"])]
        facts = [
            [
                "width of a head, d_h",
                f"{embed_dim} / {state['num_heads']} = {state['head_dim']}",
            ],
            ["rank of a head's QKᵀ", f"at most {state['rank_bound']}"],
            *(
                [
                    f"stored weights, {escape(shown[task])}",
                    f"{state['num_heads']} · {len(names[task])} = {n}",
                ]
                for task, n in state["stored_weights"].items()
            ),
        ]
        table = [
            [
                escape(shown[task]),
                *map(two_decimals, (*all_seeds, sum(all_seeds) / seeds)),
                f"{min(all_seeds):.2f} to {max(all_seeds):.2f}",
            ]
            for task, all_seeds in state["accuracies"].items()
        ]
        head = ["", *(f"seed {seed}" for seed in range(seeds)), "mean", "spread"]
        return side_by_side(
            facts_table("the layer", facts), html_table("accuracy", head, table)
        ) + side_by_side(
            *(
                part
                for task, rows in state["maps"].items()
                for part in heat_tables(
                    [rows],
                    heads,
                    names[task],
                    [f"{shown[task]}, seed {state['seed']}: where each head looks"],
                    corner="head ↓ key →",
                )
            )
        )

    def draw(state: dict) -> CourseFigure:
        return plot_spread(
            counts,
            {task: [by_count[h] for h in counts] for task, by_count in accuracies.items()},
            x_label="heads H",
            y_label="accuracy",
            title=f"{seeds} seeds each, D = {embed_dim}",
            marked=state["num_heads"],
        )

    def describe(state: dict) -> str:
        return (
            f"H = {state['num_heads']}, d_h = {state['head_dim']}, rank of QKᵀ at most "
            f"{state['rank_bound']}; accuracies and maps for {', '.join(shown.values())}, "
            f"{count_of(seeds, 'seed')} each"
        )

    return Explorer(
        {
            "num_heads": make_slider("heads H", counts, counts[0]),
            "seed": make_slider("seed", range(seeds), 0),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
    )


# --- arguments ----------------------------------------------------------------------------------


def _own_copy(
    layer: MultiHeadAttention | nn.MultiheadAttention, x: Tensor
) -> tuple[MultiHeadAttention, Tensor, Tensor]:
    """Copy a layer, in eval mode, and its input; return its weights for it as well.

    What happens to the two later must not change half of the stops of an explorer.

    Raises:
        ValueError: a layer of another class, or x does not fit it.
    """
    # A subclass may compute something else, and the picture would not show it.
    if type(layer) not in (MultiHeadAttention, nn.MultiheadAttention):
        raise ValueError(
            "layer must be a MultiHeadAttention itself, ours or torch's, "
            f"got {type(layer).__name__}"
        )
    with torch.no_grad(), torch.random.fork_rng():  # a new layer draws random numbers
        if isinstance(layer, MultiHeadAttention):
            layer = copy.deepcopy(layer)
        else:
            layer = MultiHeadAttention.from_torch(layer)
        try:
            _, weights = layer.eval()(x)
        except ValueError as error:
            raise ValueError(f"x does not fit the layer: {error}") from None
        require_finite("x", x)
        require_finite("layer's weights", weights)
        return layer, weights, x.clone()


def _titles(num_heads: int, averaged: bool) -> list[str]:
    """The captions of the maps of a layer."""
    if averaged:
        return [f"mean of {count_of(num_heads, 'head')}"]
    return [f"head {head}" for head in range(num_heads)]


def _split_strip(features: list[list[int]], caption: str) -> str:
    """One token's features in a row, under the heads that take them."""
    heads = "".join(
        f'<th scope="colgroup" colspan="{len(own)}">{head}</th>'
        for head, own in enumerate(features)
    )
    cells = "".join(
        f'<td class="ac-h{head % 2}">{feature}</td>'
        for head, own in enumerate(features)
        for feature in own
    )
    return (
        f'<table class="ac ac-map ac-strip"><caption>one token: {caption}</caption>'
        f'<thead><tr><th scope="row">head</th>{heads}</tr></thead>'
        f'<tbody><tr><th scope="row">feature</th>{cells}</tr></tbody></table>'
    )
