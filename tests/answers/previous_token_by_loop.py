# exercise = "previous_token"
# verdict = "right"

import torch


def answer(weights):
    length = weights.shape[-1]
    each = [weights[:, :, q, q - 1] for q in range(1, length)]
    return torch.stack(each, dim=-1).mean(dim=-1).mean(dim=0)
