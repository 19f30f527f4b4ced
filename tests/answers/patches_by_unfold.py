# exercise = "cut_into_patches"
# verdict = "right"


def answer(images, size):
    patches = images.unfold(1, size, size).unfold(2, size, size)
    return patches.flatten(1, 2).flatten(2)
