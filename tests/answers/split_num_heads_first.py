# exercise = "split_heads"
# verdict = "right"
#
# The arguments in another order, told apart by their names.

import torch


def answer(num_heads, x):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)
