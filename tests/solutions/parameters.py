"""The parameters of whole layers: lessons 4 and 7."""

from course_utils.exercises import check_copy_weights, check_permute_heads
from course_utils.exercises.copy_weights import COPY_WEIGHTS
from course_utils.exercises.permute_heads import PERMUTE_HEADS
from solutions.solution import Solution


def copy_weights(*bugs):
    def fn(theirs, ours):
        projections = [ours.q_proj, ours.k_proj, ours.v_proj]
        weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
        if "copied-in-another-order" in bugs:
            projections.reverse()
        if "copied-by-head" in bugs:
            h, d = theirs.num_heads, theirs.embed_dim
            weights = theirs.in_proj_weight.view(h, 3, d // h, d).transpose(0, 1).reshape(3, d, d)
            biases = theirs.in_proj_bias.view(h, 3, d // h).transpose(0, 1).reshape(3, d)
        for proj, weight, bias in zip(projections, weights, biases, strict=True):
            proj.weight.copy_(weight.T if "copied-turned-round" in bugs else weight)
            if "in-biases-not-copied" not in bugs:
                proj.bias.copy_(bias)
        out = theirs.out_proj
        if "out-proj-not-copied" not in bugs:
            turned = "copied-turned-round" in bugs
            ours.out_proj.weight.copy_(out.weight.T if turned else out.weight)
        if "out-bias-not-copied" not in bugs:
            ours.out_proj.bias.copy_(out.bias)

    return fn


def permute_heads(*bugs):
    """A learner's function, with a switch for each mistake."""

    def fn(layer, order):
        d, h = layer.embed_dim, layer.num_heads
        width = d // h
        if "heads-moved-the-other-way" in bugs:
            order = [order.index(new) for new in range(h)]
        index = [old * width + i for old in order for i in range(width)]
        if "heads-moved-interleaved" in bugs:
            index = [i * h + old for i in range(width) for old in order]
        if "heads-overwritten" in bugs:
            index = list(range(d))
            for new, old in enumerate(order):
                index[new * width : (new + 1) * width] = index[old * width : (old + 1) * width]
        if "heads-not-moved" in bugs:
            index = list(range(d))
        projections = [layer.q_proj, layer.k_proj, layer.v_proj]
        if "projection-not-moved" in bugs:
            projections.pop(1)
        for proj in projections:
            columns = "in-columns-moved" in bugs
            proj.weight.copy_(proj.weight[:, index] if columns else proj.weight[index])
            if "in-biases-not-moved" not in bugs:
                proj.bias.copy_(proj.bias[index])
        out = layer.out_proj
        if "out-proj-rows-moved" in bugs:
            out.weight.copy_(out.weight[index])
        elif "out-proj-moved-the-other-way" in bugs:
            out.weight[:, index] = out.weight.clone()
        elif "out-proj-not-moved" not in bugs:
            out.weight.copy_(out.weight[:, index])
        if "out-bias-moved" in bugs:
            out.bias.copy_(out.bias[index])

    return fn


COPY = Solution(
    check=check_copy_weights,
    make=copy_weights,
    exercise=COPY_WEIGHTS,
    together=(("copied-by-head", "out-proj-not-copied", "in-biases-not-copied"),),
)

PERMUTE = Solution(
    check=check_permute_heads,
    make=permute_heads,
    exercise=PERMUTE_HEADS,
    together=(
        ("out-proj-not-moved", "in-biases-not-moved"),
        ("heads-moved-the-other-way", "out-proj-rows-moved", "out-bias-moved"),
        ("projection-not-moved", "out-proj-not-moved"),
    ),
)
