# exercise = "attention_mask"
# verdict = "wrong"
# mistakes = ["causal-without-itself"]

import torch


def answer(lengths, seq_len, causal):
    places = torch.arange(seq_len)
    mask = (places < lengths[:, None])[:, None, None].expand(-1, 1, seq_len, -1)
    return mask & (places[None] < places[:, None]) if causal else mask
