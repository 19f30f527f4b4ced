# exercise = "cross_attention"
# verdict = "right"
#
# https://github.com/pytorch/pytorch/issues/63271 is about such a mask.

import torch


def answer(layer, x, memory, lengths):
    n, l_q, l_k = len(x), x.shape[1], memory.shape[1]
    blocked = torch.arange(l_k)[None, None] >= lengths[:, None, None]
    blocked = blocked.expand(n, l_q, l_k).repeat_interleave(layer.num_heads, dim=0)
    return layer(x, memory, memory, attn_mask=blocked, average_attn_weights=False)
