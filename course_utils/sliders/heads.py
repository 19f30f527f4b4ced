"""Cut a layer into another number of heads and see each head's map."""

from collections.abc import Sequence
from functools import lru_cache

import ipywidgets as widgets
import torch
from torch import Tensor, nn

from course_utils.arguments import (
    count_of,
    divisors,
    names_or_numbers,
    require_dropout,
    require_finite,
    require_seed,
)
from course_utils.attention import MultiHeadAttention
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.maps import plot_heads
from course_utils.heatmaps.texts import describe_weights
from course_utils.sliders.controls import head_count_slider, make_slider, make_switch
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.layer import head_titles, own_copy
from course_utils.sliders.stills import head_counts_of_still, maps_side_by_side
from course_utils.sliders.tables import facts_table, heat_tables, maps_height, side_by_side


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
        dropout: adds two switches, one that averages over heads and one for train mode with this
            probability; left out, there are none.
        seed: for the dropout; the global random state is left alone.

    Returns:
        An explorer with the control ``num_heads``, with ``sample`` where N > 1, and with
        ``averaged`` and ``training`` where dropout is given. Its state holds ``weights`` (nested
        lists, (H, L, L), or (1, L, L) when averaged), ``weights_shape`` as the call returns it,
        ``output_shape``, ``parameters``, ``stored_weights`` (N·H·L²) and ``row_sums`` (smallest
        and largest).

    Raises:
        ValueError: a layer, input, token list or dropout that does not fit.
    """
    if dropout is not None:
        dropout = require_dropout("dropout", dropout)
    seed = require_seed(seed)
    layer, _, x = own_copy(layer, x)
    batch_size, seq_len, embed_dim = x.shape
    shown = _Heads(layer, x, names_or_numbers(tokens, seq_len), dropout or 0.0, seed)
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
        compute=shown.compute,
        view=shown.view,
        draw=shown.draw,
        describe=shown.describe,
        still=shown.still,
    )


class _Heads:
    """One layer and its input, and the maps of the heads it is cut into.

    Args:
        layer: (D, D) projections that all cuts share.
        x: (N, L, D).
        tokens: L names.
        dropout: the probability in train mode.
        seed: for the dropout.
    """

    def __init__(
        self, layer: MultiHeadAttention, x: Tensor, tokens: list[str], dropout: float, seed: int
    ) -> None:
        self.layer, self.x, self.tokens = layer, x, tokens
        self.dropout, self.seed = dropout, seed
        self.parameters = sum(p.numel() for p in layer.parameters())
        highest = max(maps_height(h, tokens, tokens) for h in divisors(x.shape[-1]))
        self.height = highest + 90  # the facts are above
        self.cut_into = lru_cache(self._cut_into)  # a move back needs no new layer

    def _cut_into(self, num_heads: int) -> MultiHeadAttention:
        cut = MultiHeadAttention(
            self.x.shape[-1],
            num_heads,
            dropout=self.dropout,
            bias=self.layer.q_proj.bias is not None,
        ).to(self.layer.out_proj.weight)
        cut.load_state_dict(self.layer.state_dict())
        return cut

    def compute(
        self, num_heads: int, sample: int = 0, averaged: bool = False, training: bool = False
    ) -> dict:
        batch_size, seq_len, embed_dim = self.x.shape
        with torch.no_grad(), torch.random.fork_rng():
            # Building a cut draws random numbers, so the seed is set after it; and only in train
            # mode, because seeding takes longer than a whole small layer.
            cut = self.cut_into(num_heads).train(training)
            if training:
                torch.manual_seed(self.seed)
            output, weights = cut(self.x)  # (N, H, L, L)
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
            "parameters": self.parameters,
            "stored_weights": batch_size * num_heads * seq_len**2,
            "row_sums": (row_sums.min().item(), row_sums.max().item()),
        }

    def titles(self, state: dict) -> list[str]:
        return head_titles(state["num_heads"], state["averaged"])

    def view(self, state: dict) -> str:
        batch_size, seq_len, embed_dim = self.x.shape
        low, high = state["row_sums"]
        facts = [
            ["width of a head, d_h", f"{embed_dim} / {state['num_heads']} = {state['head_dim']}"],
            ["output", f"<code>{state['output_shape']}</code>"],
            ["weights", f"<code>{state['weights_shape']}</code>"],
            ["parameters", f"{state['parameters']:,}"],
            [
                "stored weights, N·H·L²",
                f"{batch_size} · {state['num_heads']} · {seq_len}² = {state['stored_weights']:,}",
            ],
            ["rows sum to", f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}"],
        ]
        return side_by_side(
            facts_table("the whole layer", facts, strip=True),
            *heat_tables(state["weights"], self.tokens, self.tokens, self.titles(state)),
            height=self.height,
        )

    def draw(self, state: dict) -> CourseFigure:
        return plot_heads(state["weights"], query_tokens=self.tokens, titles=self.titles(state))

    def describe(self, state: dict) -> str:
        first = torch.tensor(state["weights"][0]).numpy()
        mode = ", train mode" if state["training"] else ""
        return (
            f"{count_of(state['num_heads'], 'head')} of {state['head_dim']}{mode}, output "
            f"{state['output_shape']}, weights {state['weights_shape']}, {state['parameters']:,} "
            f"parameters, {state['stored_weights']:,} stored weights; {self.titles(state)[0]}: "
            f"{describe_weights(first, self.tokens, self.tokens)}"
        )

    def still(self, state: dict) -> CourseFigure:
        """The smallest head counts beside each other."""
        counts = head_counts_of_still(divisors(self.x.shape[-1]), state["num_heads"])
        maps, names = maps_side_by_side(self.compute(h, state["sample"]) for h in counts)
        return plot_heads(maps, query_tokens=self.tokens, titles=names)
