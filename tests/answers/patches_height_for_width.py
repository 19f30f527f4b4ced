# exercise = "cut_into_patches"
# verdict = "wrong"
# says = "your code raised"
#
# Every image of the lesson is square; the function should not rely on it.


def answer(images, size):
    N, height, width = images.shape
    x = images.reshape(N, height // size, size, height // size, size)
    return x.transpose(2, 3).reshape(N, -1, size * size)
