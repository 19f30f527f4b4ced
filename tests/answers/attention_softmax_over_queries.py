# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# mistakes = ["softmax-over-queries"]
#
# https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146

import math

import torch


def answer(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-2)
    return weights @ value, weights
