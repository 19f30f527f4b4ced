# exercise = "scaled_dot_product_attention"
# verdict = "right"
# needs_mask = true
#
# The arguments of torch's own function, in another order.

import torch


def answer(query, key, value, is_causal=False, attn_mask=None, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.mT * factor
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    if attn_mask is not None:
        weights = weights * attn_mask
    return weights @ value, weights
