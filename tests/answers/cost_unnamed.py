# exercise = "layer_cost"
# verdict = "wrong"
# first_difference = "multiply_adds"
#
# Plain numbers: the result that differs is named.


def answer(batch_size, seq_len, embed_dim, num_heads):
    parameters = 4 * embed_dim * (embed_dim + 1)
    work = 4 * batch_size * seq_len * embed_dim**2 + 2 * batch_size * seq_len**2 * embed_dim
    return parameters, work + 7, batch_size * num_heads * seq_len**2
