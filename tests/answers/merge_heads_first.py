# exercise = "merge_heads"
# verdict = "wrong"
# mistakes = ["merge-heads-before-batch"]
#
# https://github.com/gazelle93/Transformer-Various-Positional-Encoding/issues/1


def answer(x):
    return x.permute(1, 2, 0, 3).flatten(2)
