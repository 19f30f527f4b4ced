# exercise = "split_heads"
# verdict = "right"
#
# A module for the split.

from torch import nn


class Split(nn.Module):
    def forward(self, x, num_heads):
        return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


answer = Split()
