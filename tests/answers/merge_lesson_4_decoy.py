# exercise = "merge_heads"
# verdict = "wrong"
# mistakes = ["merge-transposes-features"]
#
# Lesson 4's own decoy line, "CDA".


def answer(x):
    N, H, L, d_h = x.shape
    x = x.transpose(1, 3)
    return x.reshape(N, L, H * d_h)
