# exercise = "attention_scale"
# verdict = "right"


def answer(embed_dim, num_heads):
    return (embed_dim // num_heads) ** -0.5
