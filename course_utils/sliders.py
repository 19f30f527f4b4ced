"""Live explorers: sliders whose picture follows the hand.

An ``Explorer`` is a column of controls over a live view. The view is an HTML table, since that is
the quickest thing to redraw and its numbers stay text; ``figure()`` draws the same thing still.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from html import escape

import ipywidgets as widgets
import torch
from torch import Tensor, nn

from course_utils.attention import (
    MultiHeadAttention,
    check_dropout,
    check_num_heads,
    check_whole,
    divisors,
    scaled_dot_product_attention,
)
from course_utils.heatmaps import (
    HEAD_TINTS,
    CourseFigure,
    check_names,
    describe_head_split,
    describe_weights,
    display_token,
    plot_attention,
    plot_head_split,
    plot_heads,
    ramp,
    visible_token,
)

MAX_HOVER_CELLS = 1100  # above that, a hover title on every cell would slow each move down


class Explorer(widgets.VBox):
    """Controls over a live view that also works as a dict, a figure and a sentence.

    Args:
        controls: name to ipywidget; each value goes to ``compute`` under that name.
        compute: control values to a plain dict with everything that is shown. A ``ValueError``
            it raises is shown in the view instead of a picture.
        view: such a dict to HTML.
        draw: such a dict to a figure.
        describe: such a dict to one line of text.

    Attributes:
        controls: the widgets by name; ``explorer.controls["num_heads"].value = 4`` moves one.
        state: what is shown now, as a plain dict of numbers, strings and lists; when the
            controls ask for something impossible, their values and an ``error``.
    """

    def __init__(
        self,
        controls: Mapping[str, widgets.Widget],
        *,
        compute: Callable[..., dict],
        view: Callable[[dict], str],
        draw: Callable[[dict], CourseFigure],
        describe: Callable[[dict], str],
    ) -> None:
        self.controls = dict(controls)
        self._compute, self._view, self._draw, self._describe = compute, view, draw, describe
        self._live = widgets.HTML()
        bar = widgets.HBox(
            list(self.controls.values()), layout=widgets.Layout(flex_flow="row wrap")
        )
        super().__init__([bar, widgets.HTML(_style()), self._live])
        for control in self.controls.values():
            control.observe(self._refresh, "value")
        self._refresh()

    def _refresh(self, _change=None) -> None:
        values = {name: control.value for name, control in self.controls.items()}
        try:
            self.state = self._compute(**values)
        except ValueError as error:
            self.state = {**values, "error": str(error)}
            self._live.value = f'<p class="ac-error" role="alert">⚠ {escape(str(error))}</p>'
        else:
            self._live.value = self._view(self.state)

    def figure(self) -> CourseFigure:
        """The view as a closed matplotlib figure.

        Raises:
            ValueError: the message in the view, while the controls ask for something impossible.
        """
        if "error" in self.state:
            raise ValueError(self.state["error"])
        return self._draw(self.state)

    def __repr__(self) -> str:
        shown = self.state.get("error") or self._describe(self.state)
        return f"Explorer: {shown}"

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        # The picture is what GitHub, a printed page and an untrusted notebook show.
        data = {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}
        if "error" in self.state:
            return data, {}
        figure_data, metadata = self.figure()._repr_mimebundle_()
        return {**data, "image/png": figure_data["image/png"]}, metadata


def head_count_slider(embed_dim: int, *, value: int | None = None) -> widgets.SelectionSlider:
    """A slider over the head counts that divide ``embed_dim``.

    Args:
        embed_dim: D.
        value: where it stands at first; left out, 1.

    Raises:
        ValueError: embed_dim is not a whole number of at least 1, or value does not divide it.
    """
    return _slider(
        "heads H", divisors(embed_dim), 1 if value is None else check_num_heads(embed_dim, value)
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
        _check_finite(name, x)
    value = value.detach().clone()  # as it is now, like the weights
    key_tokens = _names(tokens, len(key))
    tokens = _names(tokens, len(query))
    scores = query @ key.T  # (query, key), before the scale
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
            name = _token(token)
            looks.append([name, _number(score), _number(score / scale), _bar(weight)])
            mixes.append([name, _vector(vector), _vector([weight * v for v in vector])])
        return _side_by_side(
            _table(
                f"{_token(tokens[state['query']])} looks around",
                ["key", "q·k", f"÷ {scale:.3g}", "weight"],
                looks,
                ["sum", "", "", _number(sum(state["weights"]))],
            ),
            _table(
                "and mixes the values",
                ["key", "value", "weight × value"],
                mixes,
                ["sum", "", _vector(state["output"])],
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
        return f"query {name} takes {shares}; output {_vector(state['output'])}"

    names = [(f"{i}: {display_token(token)}", i) for i, token in enumerate(tokens)]
    return Explorer(
        {"query": _slider("query", names, 0)},
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
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
    if not isinstance(head_dims, Iterable) or not (head_dims := list(head_dims)):
        raise ValueError(f"head_dims must be a list of sizes, got {head_dims!r}")
    head_dims = [check_whole(f"head_dims[{i}]", size) for i, size in enumerate(head_dims)]
    if check_whole("num_tokens", num_tokens) < 2:
        raise ValueError(f"num_tokens must be at least 2, got {num_tokens}")
    generator = torch.Generator().manual_seed(_check_seed(seed))

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
            [name, _number(entropy), f"{norm:.3f}"]
            for name, entropy, norm in zip(
                names, state["entropy"], state["gradient_norm"], strict=True
            )
        ]
        means = [
            "mean of 1,000 others",
            _number(state["mean_entropy"]),
            f"{state['mean_gradient_norm']:.3f}",
        ]
        return _side_by_side(
            _table(
                "scores, q·k / √d_k" if state["scaled"] else "scores, q·k", ["", *key_names], scores
            ),
            *_maps(state["weights"], names, key_names, ["weights"]),
            _table(
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

    return Explorer(
        {
            "head_dim": _slider("d_k", head_dims, head_dims[0]),
            "scaled": _switch("divide by √d_k", False),
        },
        compute=compute,
        view=view,
        draw=draw,
        describe=describe,
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
    batch_size = check_whole("batch_size", batch_size)
    seq_len = check_whole("seq_len", seq_len)
    embed_dim = check_whole("embed_dim", embed_dim)
    slider = head_count_slider(embed_dim, value=num_heads)
    switch = _switch("allow any number", False)

    def offer(change) -> None:
        wanted, value = range(1, embed_dim + 1), slider.value
        if not change["new"]:
            wanted = divisors(embed_dim)
            value = max(h for h in wanted if h <= value)
        slider.options = list(wanted)  # moves the slider to the first of them
        slider.value = value

    def compute(num_heads: int, any_number: bool) -> dict:
        num_heads = check_num_heads(embed_dim, num_heads)
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
        return _split_strip(state["features"], caption) + _table(
            "every shape on the way", ["step", "axes", "shape"], shapes
        )

    explorer = Explorer(
        {"num_heads": slider, "any_number": switch},
        compute=compute,
        view=view,
        draw=lambda state: plot_head_split(embed_dim, state["num_heads"]),
        describe=lambda state: describe_head_split(embed_dim, state["num_heads"]),
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
    # A subclass may compute something else, and the picture would not show it.
    if type(layer) not in (MultiHeadAttention, nn.MultiheadAttention):
        raise ValueError(
            "layer must be a MultiHeadAttention itself, ours or torch's, "
            f"got {type(layer).__name__}"
        )
    if dropout is not None:
        dropout = check_dropout("dropout", dropout)
    seed = _check_seed(seed)
    with torch.no_grad(), torch.random.fork_rng():  # a new layer draws random numbers
        # Copies: what happens to the layer and to x later must not change half of the stops.
        if isinstance(layer, MultiHeadAttention):
            layer = copy.deepcopy(layer)
        else:
            layer = MultiHeadAttention.from_torch(layer)
        try:
            _, weights = layer.eval()(x)
        except ValueError as error:
            raise ValueError(f"x does not fit the layer: {error}") from None
        _check_finite("x", x)
        _check_finite("layer's weights", weights)
        x = x.clone()
    batch_size, seq_len, embed_dim = x.shape
    tokens = _names(tokens, seq_len)
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
            torch.manual_seed(seed)
            output, weights = recut(num_heads).train(training)(x)  # (N, H, L, L)
        _check_finite(f"weights of {num_heads} heads", weights)  # scores may overflow
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
        if state["averaged"]:
            return [f"mean of {state['num_heads']} heads"]
        return [f"head {head}" for head in range(state["num_heads"])]

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
        return _side_by_side(_facts(facts), *_maps(state["weights"], tokens, tokens, titles(state)))

    def describe(state: dict) -> str:
        first = torch.tensor(state["weights"][0]).numpy()
        mode = ", train mode" if state["training"] else ""
        return (
            f"{state['num_heads']} heads of {state['head_dim']}{mode}, output "
            f"{state['output_shape']}, weights {state['weights_shape']}, {parameters:,} "
            f"parameters, {state['stored_weights']:,} stored weights; {titles(state)[0]}: "
            f"{describe_weights(first, tokens, tokens)}"
        )

    controls: dict[str, widgets.Widget] = {
        "num_heads": head_count_slider(embed_dim, value=layer.num_heads)
    }
    if batch_size > 1:
        controls["sample"] = _slider("sample", range(batch_size), 0)
    if dropout is not None:
        controls["averaged"] = _switch("average over heads", False)
        controls["training"] = _switch(f"train mode, dropout {dropout:g}", False)
    return Explorer(
        controls,
        compute=compute,
        view=view,
        draw=lambda state: plot_heads(state["weights"], query_tokens=tokens, titles=titles(state)),
        describe=describe,
    )


# --- arguments ----------------------------------------------------------------------------------


def _names(tokens: Sequence[str] | None, length: int) -> list[str]:
    if tokens is None:
        return [str(i) for i in range(length)]
    return check_names("tokens", tokens, length, "one a token")


def _check_seed(seed: int) -> int:
    if not isinstance(seed, int):
        raise ValueError(f"seed must be an int, got {seed!r}")
    return seed


def _check_finite(name: str, x: Tensor) -> None:
    if x.numel() == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(x.shape)}")
    bad = x[~x.isfinite()]
    if len(bad):
        raise ValueError(f"{name} must be finite numbers, got {bad[0].item()}")


# --- controls and HTML --------------------------------------------------------------------------


def _slider(name: str, options: Sequence, value) -> widgets.SelectionSlider:
    has_names = isinstance(options[0], tuple)
    slider = widgets.SelectionSlider(
        options=list(options),
        value=value,
        description=name,
        style={"description_width": "initial"},
        layout=widgets.Layout(width="24em" if has_names else "18em"),
    )
    slider.add_class("ac-names" if has_names else "ac-numbers")
    return slider


def _switch(name: str, value: bool) -> widgets.Checkbox:
    return widgets.Checkbox(
        value=value,
        description=name,
        indent=False,
        layout=widgets.Layout(width="auto", margin="2px 16px 2px 2px"),
    )


@cache
def _style() -> str:
    colours = "".join(
        f".ac-w{i}{{background:{back};color:{text}}}" for i, (back, text) in enumerate(ramp(101))
    )
    tints = "".join(
        f".ac-h{i}{{background:{tint};color:#000}}" for i, tint in enumerate(HEAD_TINTS)
    )
    return f"""<style>
.ac-names .widget-readout,.ac-numbers .widget-readout{{min-width:0;max-width:none;margin-left:8px;
text-align:left;overflow:visible}}
.ac-names .widget-readout{{flex:0 0 9em}}
.ac-numbers .widget-readout{{flex:0 0 2.5em}}
.ac-view{{display:flex;flex-wrap:wrap;gap:12px 20px;align-items:flex-start}}
.ac{{border-collapse:collapse;font:12px/1.5 var(--jp-ui-font-family,sans-serif);
font-variant-numeric:tabular-nums;color:var(--jp-ui-font-color1,#000);margin:4px 0}}
.ac caption{{caption-side:top;text-align:left;font-weight:600;padding:2px 0}}
.ac th{{font-weight:400;padding:1px 6px;text-align:right;white-space:nowrap}}
.ac thead th,.ac tfoot td,.ac tfoot th{{font-weight:600}}
.ac td{{padding:1px 5px;white-space:nowrap}}
.ac-map td{{width:2.9em;padding:2px 0;text-align:center}}
.ac-map thead th{{padding:1px 3px;text-align:center}}
.ac-map thead th:first-child{{white-space:normal}}
.ac-strip td{{border:1px solid #555;padding:2px 0;min-width:12px;text-align:center}}
.ac-num{{text-align:right}}
.ac-bar{{display:inline-block;height:.8em;background:#2a788e;vertical-align:-.05em}}
.ac-error{{border-left:4px solid #b3261e;padding:6px 12px;font-weight:600;
color:var(--jp-ui-font-color1,#000)}}
{colours}{tints}</style>"""


@lru_cache(maxsize=4096)
def _cell(weight: str) -> tuple[str, str]:
    """Both ends of the cell of a weight with two decimals; a hover title may go between."""
    shade = min(round(100 * float(weight)), 100)
    return f'<td class="ac-w{shade}"', f">{weight}</td>"


def _maps(
    weights: list, rows: Sequence[str], columns: Sequence[str], titles: Sequence[str]
) -> list[str]:
    """One heatmap table a head, every number shown."""
    columns_html = "".join(f'<th scope="col">{_token(token)}</th>' for token in columns)
    head = f'<thead><tr><th scope="col">query ↓ key →</th>{columns_html}</tr></thead>'
    hover = len(weights) * len(rows) * len(columns) <= MAX_HOVER_CELLS
    names = [_token(token) for token in rows]
    queries, keys = ([_whole_token(t) for t in tokens] for tokens in (rows, columns))
    tables = []
    for title, head_weights in zip(titles, weights, strict=True):
        lines = []
        for row, name, query in zip(head_weights, names, queries, strict=True):
            cells = []
            for weight, key in zip(row, keys, strict=True):
                start, end = _cell(f"{weight:.2f}")
                full = f' title="{query} → {key}: {weight:.4f}"' if hover else ""
                cells.append(start + full + end)
            lines.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
        tables.append(
            f'<table class="ac ac-map"><caption>{escape(title)}</caption>{head}'
            f"<tbody>{''.join(lines)}</tbody></table>"
        )
    return tables


def _table(caption: str, head: Sequence[str], rows: Sequence, total: Sequence = ()) -> str:
    """A table whose first column names the rows; caption, rows and total are HTML already."""
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)

    def line(cells: Sequence[str]) -> str:
        rest = "".join(f'<td class="ac-num">{cell}</td>' for cell in cells[1:])
        return f'<tr><th scope="row">{cells[0]}</th>{rest}</tr>'

    body = "".join(map(line, rows))
    foot = f"<tfoot>{line(total)}</tfoot>" if total else ""
    return (
        f'<table class="ac"><caption>{caption}</caption><thead><tr>{columns}</tr></thead>'
        f"<tbody>{body}</tbody>{foot}</table>"
    )


def _facts(facts: Sequence[Sequence[str]]) -> str:
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{fact}</td></tr>' for name, fact in facts)
    return f'<table class="ac"><caption>the whole layer</caption><tbody>{rows}</tbody></table>'


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


def _side_by_side(*parts: str) -> str:
    return f'<div class="ac-view">{"".join(parts)}</div>'


def _token(token: str) -> str:
    """A token as HTML: escaped, and kept apart from the text around it whatever its direction."""
    return f'<bdi title="{_whole_token(token)}">{escape(display_token(token))}</bdi>'


def _whole_token(token: str) -> str:
    """A token of any length as the value of an HTML attribute."""
    return escape(visible_token(token), quote=True)


def _number(x: float) -> str:
    return f"{x:z.2f}"  # z: a rounded -0.001 is 0.00, not -0.00


def _bar(weight: float) -> str:
    return f'<span class="ac-bar" style="width:{5 * weight:.2f}em"></span> {weight:.2f}'


def _vector(x: Sequence[float]) -> str:
    return f"[{', '.join(map(_number, x))}]"
