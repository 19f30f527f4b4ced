# exercise = "multi_head_attention"
# verdict = "right"
#
# One projection for all three, stacked [Q; K; V] like torch's in_proj_weight.
# https://github.com/lucidrains/vit-pytorch/issues/65: such a layer.

from torch import nn


class Layer(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        n, length, embed_dim = x.shape
        qkv = self.qkv(x).reshape(n, length, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attn = (q @ k.transpose(-2, -1)) * self.head_dim**-0.5
        attn = attn.softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(n, length, embed_dim)), attn


answer = Layer
