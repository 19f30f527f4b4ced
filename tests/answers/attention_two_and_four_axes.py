# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# says = "(N, L, d)"
#
# One head and many, but no batch of single heads (N, L, d), which lesson 1 names.

import math

import torch


def answer(query, key, value):
    if query.ndim == 2:
        weights = torch.softmax(query @ key.T / math.sqrt(query.shape[1]), dim=1)
        return weights @ value, weights
    N, H, L, d = query.shape
    scores = torch.einsum("nhqd,nhkd->nhqk", query, key) / math.sqrt(d)
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("nhqk,nhkd->nhqd", weights, value), weights
