# exercise = "split_heads"
# verdict = "right"
#
# num_heads by keyword only.

import torch


def answer(x, *, num_heads):
    n, length, width = x.shape
    return torch.einsum("nlhd->nhld", x.reshape(n, length, num_heads, width // num_heads))
