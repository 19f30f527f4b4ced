# exercise = "scaled_dot_product_attention"
# verdict = "wrong"
# says = "cannot be watched"
#
# Lists of numbers: nothing can be watched, and the message says so.

import math

import torch


def answer(query, key, value):
    if query.ndim > 2:
        both = [answer(*each) for each in zip(query, key, value, strict=True)]
        return torch.stack([o for o, _ in both]), torch.stack([w for _, w in both])
    queries, keys, values = query.tolist(), key.tolist(), value.tolist()
    output, weights = [], []
    for q in queries:
        shares = [
            math.exp(sum(a * b for a, b in zip(q, k, strict=True)) / 2.6) ** 1.3 for k in keys
        ]
        total = 1e-3 + sum(shares)
        row = [share / total for share in shares]
        weights.append(row)
        output.append(
            [sum(w * v[j] for w, v in zip(row, values, strict=True)) for j in range(len(values[0]))]
        )
    return torch.tensor(output), torch.tensor(weights)
