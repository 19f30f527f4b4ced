# exercise = "attention_mask"
# verdict = "right"

import torch


def answer(lengths, seq_len, causal):
    mask = torch.zeros(len(lengths), 1, seq_len, seq_len, dtype=torch.bool)
    for n, length in enumerate(lengths.tolist()):
        for query in range(seq_len):
            last = min(length, query + 1) if causal else length
            mask[n, 0, query, :last] = True
    return mask
