"""The attention that the course builds up to, in plain torch.

Everything the five core lessons write by hand stands here once more, checked and documented:
``scaled_dot_product_attention``, ``split_heads``, ``merge_heads`` and ``MultiHeadAttention``.

Words and symbols: N batch size, L sequence length (L_q queries, L_k keys), D ``embed_dim``,
H ``num_heads``, d_h = D / H ``head_dim``. Weights are (N, H, L_q, L_k): rows are queries,
columns are keys, and each row sums to 1.

Source: Vaswani et al., 2017, "Attention Is All You Need".
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.arguments import (
    require_axes,
    require_dropout,
    require_embed_dim,
    require_features,
    require_mask,
    require_num_heads,
    require_shapes,
    require_tensor,
    require_torch_layer,
)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    dropout_p: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Mix the values, each query in its own proportions: softmax(Q Kᵀ / √d) V.

    Args:
        query: (..., L_q, d). One head is (L_q, d); many are (N, H, L_q, d_h).
        key: (..., L_k, d).
        value: (..., L_k, d_v).
        mask: boolean, True = may attend, as in ``F.scaled_dot_product_attention``.
            Either (L_q, L_k), or as many axes as the scores; an axis of size 1 is repeated.
        dropout_p: probability of zeroing a weight, whatever the mode, as in torch; the weights
            that stay are divided by 1 - dropout_p.

    Returns:
        output (..., L_q, d_v) and weights (..., L_q, L_k). Without dropout, rows of weights sum
        to 1; a query that may attend to nothing gets weights 0 and output 0.

    Raises:
        ValueError: shapes that do not fit together, a mask of another shape or dtype, or a
            dropout_p outside [0, 1).
    """
    require_shapes(query, key, value)
    dropout_p = require_dropout("dropout_p", dropout_p)
    # The query is scaled, not the scores: the same result, and half precision overflows later.
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-2, -1)  # (..., query, key)
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        require_mask(mask, scores)
        # The lowest finite number, not -inf: a row of nothing but -inf would be NaN, and its
        # gradients too. With a finite number that row is even, and the second fill makes it 0.
        lowest = torch.finfo(scores.dtype).min
        weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
        weights = weights.masked_fill(~mask, 0.0)
    weights = F.dropout(weights, dropout_p)
    return weights @ value, weights


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Give each head its own d_h = D / H features of every token.

    Args:
        x: (N, L, D), usually the output of a D×D projection.
        num_heads: H, a divisor of D.

    Returns:
        (N, H, L, d_h). Head h holds features h·d_h to (h+1)·d_h. A view: no number is copied.

    Raises:
        ValueError: x is not (N, L, D), or H does not divide D.
    """
    require_tensor("x", x, "(N, L, D)", ndim=3)
    batch_size, seq_len, embed_dim = x.shape
    num_heads = require_num_heads(embed_dim, num_heads)
    head_dim = embed_dim // num_heads
    # (batch, token, head, head_dim) -> (batch, head, token, head_dim)
    return x.view(batch_size, seq_len, num_heads, head_dim).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again; the inverse of ``split_heads``.

    Args:
        x: (N, H, L, d_h).

    Returns:
        (N, L, D) with D = H · d_h.

    Raises:
        ValueError: x is not (N, H, L, d_h).
    """
    require_tensor("x", x, "(N, H, L, d_h)", ndim=4)
    # (batch, head, token, head_dim) -> (batch, token, head, head_dim) -> (batch, token, D)
    return x.transpose(1, 2).flatten(2)


class MultiHeadAttention(nn.Module):
    """Several heads over one input, each with D / H features, joined by an output projection.

    Four layers, each D to D: ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``. The number of
    parameters does not depend on the number of heads.

    Args:
        embed_dim: D, the width of a token, in and out.
        num_heads: H, a divisor of D.
        dropout: probability of zeroing a weight while training; the others are divided by
            1 - dropout, so rows then no longer sum to 1.
        bias: whether the four layers have one.

    Raises:
        ValueError: an embed_dim, num_heads or dropout that cannot be.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, *, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.embed_dim = require_embed_dim(embed_dim)
        self.num_heads = require_num_heads(embed_dim, num_heads)
        self.head_dim = self.embed_dim // self.num_heads
        self.dropout = require_dropout("dropout", dropout)
        self.q_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias)
        self.k_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias)
        self.v_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend from ``query`` to ``key``, and mix ``value``.

        Args:
            query: (N, L_q, D).
            key: (N, L_k, D); left out, the query itself (self-attention).
            value: (N, L_k, D); left out, the key.
            mask: boolean, True = may attend: (L_q, L_k), or four axes that broadcast to
                (N, H, L_q, L_k), for example (N, 1, 1, L_k) for padded keys.

        Returns:
            output (N, L_q, D) and weights (N, H, L_q, L_k), never averaged over heads.

        Raises:
            ValueError: an argument whose shape or dtype does not fit.
        """
        key = query if key is None else key
        value = key if value is None else value
        for name, x, proj in (
            ("query", query, self.q_proj),
            ("key", key, self.k_proj),
            ("value", value, self.v_proj),
        ):
            require_features(name, x, proj)
        require_axes(query, key, value)

        q = split_heads(self.q_proj(query), self.num_heads)  # (N, H, L_q, d_h)
        k = split_heads(self.k_proj(key), self.num_heads)  # (N, H, L_k, d_h)
        v = split_heads(self.v_proj(value), self.num_heads)  # (N, H, L_k, d_h)
        output, weights = scaled_dot_product_attention(
            q, k, v, mask, dropout_p=self.dropout if self.training else 0.0
        )
        return self.out_proj(merge_heads(output)), weights

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy the weights of a torch layer into a new layer of ours.

        ``in_proj_weight`` is [Q; K; V] stacked, (3D, D). A module with ``kdim`` or ``vdim`` keeps
        three separate weights instead; both layouts are copied. Our layer is batch-first and
        returns per-head weights, whatever ``batch_first`` says. Mode, dtype and device are kept.

        Raises:
            ValueError: not an ``nn.MultiheadAttention``, or one with ``bias_k``/``bias_v`` or
                ``add_zero_attn``, which add keys that this layer does not have.
        """
        require_torch_layer(module)
        if module.in_proj_weight is not None:
            projections = module.in_proj_weight.chunk(3)  # three (D, D)
        else:
            projections = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        has_bias = module.in_proj_bias is not None
        biases = module.in_proj_bias.chunk(3) if has_bias else (None, None, None)

        layer = cls(module.embed_dim, module.num_heads, dropout=module.dropout, bias=has_bias)
        layer.k_proj = nn.Linear(module.kdim, module.embed_dim, bias=has_bias)
        layer.v_proj = nn.Linear(module.vdim, module.embed_dim, bias=has_bias)
        layer.to(module.out_proj.weight)
        with torch.no_grad():
            for proj, weight, bias in zip(
                (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj),
                (*projections, module.out_proj.weight),
                (*biases, module.out_proj.bias),
                strict=True,
            ):
                proj.weight.copy_(weight)
                if bias is not None:
                    proj.bias.copy_(bias)
        return layer.train(module.training)
