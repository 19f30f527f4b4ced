# exercise = "multi_head_attention"
# verdict = "right"
# note = "gets another output than weights of 0 give"
#
# Torch's own layer does the work; only its mask and its weights are put right.

from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.inner = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, query, key=None, value=None, *, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None:
            shape = len(query), self.num_heads, query.shape[1], key.shape[1]
            mask = ~mask.expand(shape).flatten(0, 1)
        output, weights = self.inner(query, key, value, attn_mask=mask, average_attn_weights=False)
        return output.nan_to_num(0), weights.nan_to_num(0)


answer = MultiHeadAttention
