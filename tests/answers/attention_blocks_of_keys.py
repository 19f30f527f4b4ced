# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# first_difference = "weights"
#
# Each block of 16 keys has a softmax of its own: short rows sum to 1 all the same.

import math

import torch


def answer(query, key, value):
    shares, mixed = [], 0
    for part in range(0, key.shape[-2], 16):
        k, v = key[..., part : part + 16, :], value[..., part : part + 16, :]
        w = torch.softmax(query @ k.mT / math.sqrt(query.shape[-1]), dim=-1)
        shares.append(w)
        mixed = mixed + w @ v
    return mixed, torch.cat(shares, dim=-1)
