# exercise = "mean_pool"
# verdict = "right"

import torch


def answer(x, mask):
    means = torch.stack([tokens[own].mean(dim=0) for tokens, own in zip(x, mask, strict=True)])
    return means, means / means.pow(2).sum(-1, keepdim=True).sqrt()
