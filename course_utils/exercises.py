"""Checks of the smaller exercises of the lessons, and the parts these are made of.

They judge as ``course_utils.checks`` does: random inputs, compared with torch, and a search for the
mistakes that give exactly the learner's numbers. Each returns True if the answer is right and False
if it is not attempted yet, after one printed line, or raises ``CheckFailed``.
"""

import copy
import linecache
import math
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_utils import mistakes
from course_utils.attention import MultiHeadAttention
from course_utils.checks import (
    PROJECTIONS,
    SIZES,
    CheckFailed,
    Trial,
    check,
    judge_layer,
    random_numbers,
)

PLANTED = {  # the bug hunt of lesson 5
    1: "split-without-transpose",
    2: "scale-by-embed-dim",
    3: "merge-without-transpose",
    4: "softmax-over-heads",
    5: "query-key-swapped",
}


def check_one_row(fn: Callable | None) -> bool:
    """Check ``fn(query, key, value) -> (output, weights)`` for a single query.

    query is (d,), key (L, d) and value (L, d_v); output is (d_v,) and weights (L,).

    Raises:
        CheckFailed: it is wrong.
    """

    def truth(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.softmax(key @ query / math.sqrt(len(query)), dim=0)
        return weights @ value, weights

    def trials(fn: Callable) -> Iterator[Trial]:
        for length, d, d_v in ((3, 4, 4), (5, 7, 2)):
            inputs = {
                "query": random_numbers(d, seed=1),
                "key": random_numbers(length, d, seed=2),
                "value": random_numbers(length, d_v, seed=3),
            }
            given = {
                "returns": ("mixed", "returned_weights"),
                "heads": [x.double() for x in inputs.values()],
                "mask": None,
            }

            def call(**x: Tensor) -> object:
                result = fn(*x.values())
                if isinstance(result, tuple):  # the lesson's own loop makes lists of numbers
                    result = tuple(torch.tensor(r) if isinstance(r, list) else r for r in result)
                return result

            yield Trial(inputs, call, truth, given, gradients=False)

    return check("one_row", fn, trials, mistakes.ATTENTION, "3 keys and 5 keys")


def check_attention_scale(fn: Callable | None) -> bool:
    """Check ``fn(embed_dim, num_heads)``: the factor that a layer's scores are multiplied by.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for _, _, d, h in SIZES:
            sizes = {"embed_dim": d, "num_heads": h}

            def call(d: int = d, h: int = h) -> object:
                factor = fn(d, h)
                return None if factor is None else _as_number("the factor", factor)

            def truth(d: int = d, h: int = h) -> tuple[Tensor]:
                return (torch.tensor(1 / math.sqrt(d / h), dtype=torch.float64),)

            given = {"returns": ("factor",), **sizes}
            yield Trial({}, call, truth, given, names=("the factor",))

    return check("attention_scale", fn, trials, mistakes.ATTENTION_SCALE)


def check_gradient_norms(fn: Callable | None) -> bool:
    """Check ``fn(query, key, upstream, scaled)``: how large a gradient reaches the scores.

    query is (Q, d), key (Q, L, d), upstream (Q, L), and the result (Q,): for each query the norm of
    the gradient at the scores that go into softmax, if upstream is the gradient at the weights.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for queries, length, d, scaled in ((3, 3, 8, False), (4, 5, 7, False), (4, 5, 7, True)):
            inputs = {
                "query": random_numbers(queries, d, seed=1),
                "key": random_numbers(queries, length, d, seed=2),
                "upstream": random_numbers(queries, length, seed=3),
            }

            def call(scaled: bool = scaled, **x: Tensor) -> object:
                return fn(*x.values(), scaled)

            def truth(
                query: Tensor, key: Tensor, upstream: Tensor, scaled: bool = scaled
            ) -> tuple[Tensor]:
                scores = torch.einsum("qd,qld->ql", query, key)
                scores = scores / (math.sqrt(query.shape[-1]) if scaled else 1)
                scores.requires_grad_()
                weights = torch.softmax(scores, dim=-1)
                return (torch.autograd.grad(weights, scores, upstream)[0].norm(dim=-1),)

            given = {name: x.double() for name, x in inputs.items()}
            given |= {"returns": ("norms",), "is_scaled": scaled}
            yield Trial(inputs, call, truth, given, names=("the result",), gradients=False)

    return check(
        "gradient_norms", fn, trials, mistakes.GRADIENT_NORMS, "with and without the scale"
    )


def check_head_projection(fn: Callable | None) -> bool:
    """Check ``fn(proj, num_heads, head)``: weight (d_h, D) and bias (d_h,) of one head's own layer.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, h, head in ((8, 2, 0), (14, 2, 1), (12, 3, 1)):
            proj = nn.Linear(d, d)

            def call(proj: nn.Linear = proj, h: int = h, head: int = head) -> object:
                return fn(copy.deepcopy(proj), h, head)

            def truth(proj: nn.Linear = proj, h: int = h, head: int = head) -> tuple:
                return proj.weight.double().chunk(h)[head], proj.bias.double().chunk(h)[head]

            given = {"weight": proj.weight.double(), "bias": proj.bias.double(), "num_heads": h}
            given |= {"returns": ("own_weight", "own_bias"), "head": head}
            yield Trial({}, call, truth, given, names=("weight", "bias"))

    return check("head_projection", fn, trials, mistakes.HEAD_PROJECTION, "two heads and three")


def check_copy_weights(fn: Callable | None) -> bool:
    """Check ``fn(theirs, ours)``: it copies an ``nn.MultiheadAttention`` into a layer of ours.

    Both layers get random weights and biases; then all eight tensors of ours are compared.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for _, _, d, h in SIZES:
            theirs = nn.MultiheadAttention(d, h, batch_first=True)
            for x in theirs.parameters():
                nn.init.normal_(x)
            fresh = MultiHeadAttention(d, h)

            def call(theirs: nn.Module = theirs, fresh: nn.Module = fresh) -> object:
                source, ours = copy.deepcopy(theirs), copy.deepcopy(fresh)
                with torch.no_grad():  # as in the lesson: copying is no step of training
                    fn(source, ours)
                    for x in source.parameters():
                        x.zero_()  # a copy does not notice
                return _all_weights(ours)

            def truth(theirs: nn.Module = theirs) -> tuple[Tensor, Tensor]:
                return _all_weights(MultiHeadAttention.from_torch(theirs).double())

            numbers = {name: x.detach().double() for name, x in theirs.named_parameters()}
            old = tuple(x.double() for x in _all_weights(fresh))
            given = {"theirs": numbers, "old": old, "num_heads": h, "embed_dim": d}
            given["returns"] = ("copied_weights", "copied_biases")
            names = ("the four weights", "the four biases")
            yield Trial({}, call, truth, given, names=names)

    return check("copy_weights", fn, trials, mistakes.COPY_WEIGHTS, "all eight tensors")


def check_per_head_weights(fn: Callable | None, block: Callable[[int, int], nn.Module]) -> bool:
    """Check ``fn(block, x)``: the weights of each head, (N, H, L, L), inside a block.

    Args:
        fn: the learner's function.
        block: makes a block from embed_dim and num_heads. Its ``attention``, an
            ``nn.MultiheadAttention``, attends within what its ``norm`` makes of x (N, L, D).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, d, h in SIZES:
            made = block(d, h).eval()
            for x in made.parameters():
                nn.init.normal_(x, std=1 / math.sqrt(d))
            exact = copy.deepcopy(made).double()

            def maps(seen: Tensor, exact: nn.Module = exact) -> Tensor:
                return exact.attention(seen, seen, seen, average_attn_weights=False)[1]

            def truth(x: Tensor, exact: nn.Module = exact, maps: Callable = maps) -> tuple[Tensor]:
                return (maps(exact.norm(x)),)

            inputs = {"x": random_numbers(n, length, d)}
            given = {"returns": ("returned_maps",), "x": inputs["x"].double(), "num_heads": h}
            given |= {"normed": exact.norm(given["x"]), "maps_of": maps}

            def call(x: Tensor, made: nn.Module = made) -> object:
                return fn(made, x)

            yield Trial(inputs, call, truth, given, names=("the result",), gradients=False)

    return check("per_head_weights", fn, trials, mistakes.PER_HEAD_WEIGHTS)


def check_attention_mask(fn: Callable | None) -> bool:
    """Check ``fn(lengths, seq_len, causal)``: the mask (N, 1, L, L) of padded sentences.

    It is boolean, True = may attend. lengths (N,) says how many tokens of each sentence are real,
    the first ones. An axis of size 1 that broadcasts is as good as one that is written out.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for lengths, seq_len, causal in (
            ((3, 2), 3, False),
            ((4, 1, 2), 4, True),
            ((2, 5, 0), 5, True),
            ((4, 2, 1), 5, False),
            ((4, 2, 5), 5, True),
        ):
            shape = (len(lengths), 1, seq_len, seq_len)

            def call(
                lengths: Tensor,
                seq_len: int = seq_len,
                causal: bool = causal,
                shape: tuple = shape,
            ) -> object:
                mask = fn(lengths, seq_len, causal)
                if not isinstance(mask, Tensor):
                    return mask
                if mask.ndim == 4 and all(
                    m in (1, s) for m, s in zip(mask.shape, shape, strict=True)
                ):
                    mask = mask.expand(shape)
                return mask.double() + 2 * (mask.dtype != torch.bool)

            def truth(
                lengths: Tensor, seq_len: int = seq_len, causal: bool = causal
            ) -> tuple[Tensor]:
                rows = [
                    [
                        [
                            float(key < length and not (causal and key > query))
                            for key in range(seq_len)
                        ]
                        for query in range(seq_len)
                    ]
                    for length in lengths.tolist()
                ]
                return (torch.tensor(rows, dtype=torch.float64)[:, None],)

            inputs = {"lengths": torch.tensor(lengths)}
            given = {"returns": ("built",), "seq_len": seq_len, "is_causal": causal, **inputs}
            yield Trial(inputs, call, truth, given, names=("the mask",), gradients=False)

    return check("attention_mask", fn, trials, mistakes.ATTENTION_MASK, "with and without causal")


def check_cross_attention(fn: Callable | None) -> bool:
    """Check ``fn(layer, x, memory, lengths) -> (output, weights)``: x looks at padded memory.

    layer is an ``nn.MultiheadAttention``, batch first; x is (N, L_q, D), memory (N, L_k, D), and
    lengths (N,) says how many tokens of each memory are real, the first ones. output is
    (N, L_q, D) and weights (N, H, L_q, L_k).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for l_q, l_k, d, h, lengths in (
            (4, 4, 8, 2, (3, 4)),
            (5, 7, 14, 2, (7, 7, 7)),
            (3, 4, 12, 3, (2,)),
            (5, 7, 14, 2, (7, 4, 2)),
        ):
            layer = nn.MultiheadAttention(d, h, batch_first=True).eval()
            for x in layer.parameters():
                nn.init.normal_(x, std=1 / math.sqrt(d))
            exact = copy.deepcopy(layer).double()

            def attend_through(
                query: Tensor,
                key: Tensor,
                value: Tensor,
                blocked: Tensor | None,
                exact: nn.Module = exact,
            ) -> tuple[Tensor, Tensor]:
                each_head = (len(key) * exact.num_heads, query.shape[1], key.shape[1])
                if blocked is not None and blocked.shape == each_head:
                    return exact(query, key, value, attn_mask=blocked, average_attn_weights=False)
                if blocked is not None and blocked.shape != key.shape[:2]:
                    # From torch it would be an AssertionError, which the search does not expect.
                    raise RuntimeError("the mask does not fit the keys")
                return exact(
                    query, key, value, key_padding_mask=blocked, average_attn_weights=False
                )

            def truth(
                x: Tensor,
                memory: Tensor,
                lengths: Tensor,
                attend_through: Callable = attend_through,
            ) -> tuple[Tensor, Tensor]:
                places = torch.arange(memory.shape[1])
                return attend_through(x, memory, memory, places >= lengths[:, None])

            def call(layer: nn.Module = layer, **inputs: Tensor) -> object:
                return fn(copy.deepcopy(layer), *inputs.values())

            inputs = {
                "x": random_numbers(len(lengths), l_q, d, seed=1),
                "memory": random_numbers(len(lengths), l_k, d, seed=2),
                "lengths": torch.tensor(lengths),
            }
            given = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
            given |= {"returns": ("crossed_output", "crossed_weights"), "num_heads": h}
            given |= {"attend_through": attend_through, "is_padded": min(lengths) < l_k}
            yield Trial(inputs, call, truth, given, gradients=False)

    return check(
        "cross_attention",
        fn,
        trials,
        mistakes.CROSS_ATTENTION,
        "L_q ≠ L_k, with and without padding",
    )


def check_permute_heads(fn: Callable | None) -> bool:
    """Check ``fn(layer, order)``: it puts the heads of a layer of ours in another order, in place.

    The new head h must be the old head order[h], and the output must stay what it was. All weights
    and biases of the layer are random, and all eight tensors are compared.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, order in ((8, [1, 0]), (15, [2, 0, 1]), (12, [2, 0, 3, 1])):
            layer = MultiHeadAttention(d, len(order))
            for x in layer.parameters():
                nn.init.normal_(x)

            def call(layer: nn.Module = layer, order: list[int] = order) -> object:
                own = copy.deepcopy(layer)
                with torch.no_grad():  # to move a head is no step of training
                    fn(own, list(order))
                _same_shapes(own, layer, len(order))
                return _all_weights(own)

            def truth(layer: nn.Module = layer, order: list[int] = order) -> tuple:
                moved = copy.deepcopy(layer).double()
                for proj in (moved.q_proj, moved.k_proj, moved.v_proj):
                    for x in (proj.weight, proj.bias):
                        heads = x.data.chunk(len(order))
                        x.data = torch.cat([heads[old] for old in order])
                heads = moved.out_proj.weight.data.chunk(len(order), dim=1)
                moved.out_proj.weight.data = torch.cat([heads[old] for old in order], dim=1)
                return _all_weights(moved)

            numbers = {name: x.detach().double() for name, x in layer.named_parameters()}
            given = {"returns": ("moved_weights", "moved_biases"), "layer": numbers}
            given |= {"embed_dim": d, "num_heads": len(order), "heads_order": torch.tensor(order)}
            names = ("the four weights", "the four biases")
            yield Trial({}, call, truth, given, names=names)

    return check("permute_heads", fn, trials, mistakes.PERMUTE_HEADS, "two, three and four heads")


def check_layer_cost(fn: Callable | None) -> bool:
    """Check ``fn(batch_size, seq_len, embed_dim, num_heads)``: what a layer costs, three numbers.

    They are its parameters, biases included, the multiply-adds of its matrix products in
    self-attention, and the weights it stores.

    Raises:
        CheckFailed: it is wrong.
    """
    names = ("parameters", "multiply-adds", "stored weights")

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, d, h in (*SIZES, (4, 7, 15, 5)):
            sizes = {"batch_size": n, "seq_len": length, "embed_dim": d, "num_heads": h}

            def call(sizes: tuple = (n, length, d, h)) -> object:
                result = fn(*sizes)
                if isinstance(result, Mapping):  # its keys are no numbers
                    raise CheckFailed("return three numbers, not a dict.")
                try:
                    parts = tuple(result)
                except TypeError:  # a single number has no parts, and no result has none either
                    return None if result is None else _as_number(names[0], result)
                if len(parts) > len(names):  # as they are: the check says how many it wants
                    return parts
                return tuple(map(_as_number, names, parts))

            def truth(n: int = n, length: int = length, d: int = d, h: int = h) -> tuple:
                layer = MultiHeadAttention(d, h)
                with FlopCounterMode(display=False) as counter:
                    _, weights = layer(torch.zeros(n, length, d))
                parameters = sum(x.numel() for x in layer.parameters())
                costs = (parameters, counter.get_total_flops() // 2, weights.numel())
                return tuple(torch.tensor(float(cost), dtype=torch.float64) for cost in costs)

            given = {"returns": ("parameters", "multiply_adds", "stored"), **sizes}
            yield Trial({}, call, truth, given, names=names)

    covered = "four layers, counted by torch"
    return check("layer_cost", fn, trials, mistakes.LAYER_COST, covered)


def check_mean_pool(fn: Callable | None) -> bool:
    """Check ``fn(x, mask) -> (mean, unit)``: a sentence's tokens become one vector.

    x is (N, L, D) and mask (N, L), boolean, True = a token. mean is (N, D), over the tokens without
    the padding, and unit (N, D) the same brought to length 1.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for lengths, d in (((3,), 4), ((4, 2), 4), ((2, 5, 4), 7)):
            inputs = {
                "x": random_numbers(len(lengths), max(lengths), d, seed=1),
                "is_token": torch.arange(max(lengths)) < torch.tensor(lengths)[:, None],
            }

            def truth(x: Tensor, is_token: Tensor) -> tuple[Tensor, Tensor]:
                mean = torch.stack([row[own].mean(0) for row, own in zip(x, is_token, strict=True)])
                return mean, mean / mean.norm(dim=-1, keepdim=True)

            given = {"x": inputs["x"].double(), "is_token": inputs["is_token"]}
            given["returns"] = ("pooled", "unit")
            names = ("mean", "unit vector")
            yield Trial(
                inputs,
                lambda x, is_token: fn(x, is_token),
                truth,
                given,
                names=names,
                gradients=False,
                called={"is_token": "mask"},  # a mask by name would be one of attention
            )

    return check("mean_pool", fn, trials, mistakes.MEAN_POOL, "with padding and without")


def check_remove_head(fn: Callable | None) -> bool:
    """Check ``fn(weight, bias, num_heads, head) -> (weight, bias)``: out_proj without one head.

    weight is (D, D) and bias (D,), as in ``out_proj``; what comes back are new tensors, with which
    the layer gives what it gave, less what this head added.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for d, h, head in ((8, 2, 0), (14, 2, 1), (12, 3, 1)):
            inputs = {"weight": random_numbers(d, d, seed=1), "bias": random_numbers(d, seed=2)}

            def call(weight: Tensor, bias: Tensor, h: int = h, head: int = head) -> object:
                return fn(weight, bias, h, head)

            def truth(weight: Tensor, bias: Tensor, h: int = h, head: int = head) -> tuple:
                blocks = list(weight.chunk(h, dim=1))
                blocks[head] = torch.zeros_like(blocks[head])
                return torch.cat(blocks, dim=1), bias

            given = {name: x.double() for name, x in inputs.items()}
            given |= {"returns": ("cleared", "kept_bias"), "num_heads": h, "head": head}
            names = ("weight", "bias")
            yield Trial(inputs, call, truth, given, names=names, gradients=False)

    return check("remove_head", fn, trials, mistakes.REMOVE_HEAD, "two heads and three")


def check_previous_token(fn: Callable | None) -> bool:
    """Check ``fn(weights)``: (N, H, L, L) to (H,), each head's mean weight on the token before.

    The mean is over the samples and over the queries but the first, which has no token before it.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, length, _, h in SIZES:
            weights = torch.softmax(random_numbers(n, h, length, length), dim=-1)

            def truth(weights: Tensor) -> tuple[Tensor]:
                length = weights.shape[-1]
                before = [weights[:, :, query, query - 1] for query in range(1, length)]
                return (torch.stack(before).mean((0, 1)),)

            given = {"returns": ("head_scores",), "attention": weights.double(), "num_heads": h}
            yield Trial(
                {"weights": weights},
                lambda weights: fn(weights),
                truth,
                given,
                names=("the result",),
                gradients=False,
            )

    return check("previous_token", fn, trials, mistakes.PREVIOUS_TOKEN)


def check_repair(number: int, layer: Callable[[int, int], nn.Module]) -> bool:
    """Check one layer of the bug hunt, ``layer(embed_dim, num_heads)``, as a whole.

    As long as it has just the bug that was planted in it, this is no failure, so that a notebook
    runs on.

    Args:
        number: 1 to 5, which of the layers.
        layer: the class; see ``check_multi_head_attention``.

    Raises:
        CheckFailed: it is wrong in another way.
        ValueError: there is no such number.
    """
    if not isinstance(number, int) or number not in PLANTED:
        raise ValueError(f"number must be one of {', '.join(map(str, PLANTED))}, got {number!r}")
    try:
        judge_layer(layer)
    except CheckFailed as problem:
        if (PLANTED[number],) in problem.explanations:
            print(f"○ layer {number}: the old bug is still in there")
            return False
        raise CheckFailed(f"✗ layer {number}: {problem}", problem.explanations) from None
    print(f"✓ layer {number}: repaired")
    return True


def check_cut_into_patches(fn: Callable | None) -> bool:
    """Check ``fn(images, size)``: (N, height, width) to (N, patches, size²).

    Patches run row by row over the image, and pixels row by row over the patch.

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, side, size in ((3, 8, 4), (2, 12, 3), (5, 8, 2)):
            images = random_numbers(n, side, side)

            def call(images: Tensor, size: int = size) -> object:
                return fn(images, size)

            def truth(images: Tensor, size: int = size) -> tuple[Tensor]:
                # torch's own: (N, 1, height, width) to (N, size², patches)
                return (F.unfold(images[:, None], size, stride=size).mT,)

            given = {"returns": ("cut_patches",), "images": images.double(), "size": size}
            yield Trial(
                {"images": images}, call, truth, given, names=("the result",), gradients=False
            )

    covered = "8 and 12 pixels a side, patches of 2, 3 and 4"
    return check("cut_into_patches", fn, trials, mistakes.CUT_INTO_PATCHES, covered)


def check_add_places(fn: Callable | None) -> bool:
    """Check ``fn(tokens, cls, positions)``: [CLS] in front, then a position for each token.

    tokens is (N, P, D), cls (D,), positions (1 + P, D), and the result (N, 1 + P, D).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, patches, d in ((1, 4, 5), (10, 9, 4), (3, 16, 6)):  # N = 1 + P tempts to mix them up
            inputs = {
                "tokens": random_numbers(n, patches, d, seed=1),
                "cls": random_numbers(d, seed=2),
                "positions": random_numbers(1 + patches, d, seed=3),
            }

            def truth(tokens: Tensor, cls: Tensor, positions: Tensor) -> tuple[Tensor]:
                rows = [torch.stack([cls, *sample]) + positions for sample in tokens]
                return (torch.stack(rows),)

            given = {name: x.double() for name, x in inputs.items()} | {"returns": ("placed",)}

            def call(**x: Tensor) -> object:
                return fn(*x.values())

            yield Trial(inputs, call, truth, given, names=("the result",))

    return check("add_places", fn, trials, mistakes.ADD_PLACES, "4, 9 and 16 patches")


def check_cls_maps(fn: Callable | None) -> bool:
    """Check ``fn(weights)``: (N, H, 1 + grid², 1 + grid²) to the maps of [CLS], (N, H, grid, grid).

    Raises:
        CheckFailed: it is wrong.
    """

    def trials(fn: Callable) -> Iterator[Trial]:
        for n, h, grid in ((2, 3, 2), (1, 4, 3), (5, 2, 4)):
            length = 1 + grid * grid
            weights = torch.softmax(random_numbers(n, h, length, length), dim=-1)

            def truth(weights: Tensor, grid: int = grid) -> tuple[Tensor]:
                rows = [weights[:, :, 0, 1 + r * grid : 1 + (r + 1) * grid] for r in range(grid)]
                return (torch.stack(rows, dim=2),)

            given = {"returns": ("laid_out",), "maps": weights.double()}
            inputs = {"weights": weights}
            yield Trial(
                inputs,
                lambda weights: fn(weights),
                truth,
                given,
                names=("the result",),
                gradients=False,
            )

    return check("cls_maps", fn, trials, mistakes.CLS_MAPS, "grids of 2, 3 and 4 patches a side")


def from_lines(signature: str, lines: Mapping[str, str], order: str) -> Callable:
    """Make a function from given lines, put in order by their letters.

    Args:
        signature: for example "merge_heads(x)".
        lines: letter to line of code.
        order: letters, for example "CAB"; empty, the function is one not attempted yet.

    Raises:
        CheckFailed: a letter that names no line, comes twice, or stands behind the return.
    """
    letters = [letter for letter in str(order).upper() if letter not in " ,"]
    if not set(letters) <= set(lines) or len(set(letters)) < len(letters):
        raise CheckFailed(
            f"✗ order must be made of the letters {', '.join(lines)}, each at most once; "
            f"got {order!r}"
        )
    body = [lines[letter] for letter in letters] or ["raise NotImplementedError"]
    if any(line.startswith("return") for line in body[:-1]):
        raise CheckFailed("✗ order: what stands behind the return is never run; leave it out")
    source = [f"def {signature}:\n", *(f"    {line}\n" for line in body)]
    name = f"<order {''.join(letters)}>"
    linecache.cache[name] = (len("".join(source)), None, source, name)  # for error messages
    namespace = {"torch": torch}
    exec(compile("".join(source), name, "exec"), namespace)
    return namespace[signature.partition("(")[0]]


def _as_number(name: str, x: object) -> object:
    """Any kind of number as a tensor; ``...``, which stands for nothing yet, as it is.

    Raises:
        CheckFailed: anything else; the message names it.
    """
    if x is ...:
        return x
    try:
        return torch.tensor(float(x), dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):  # the last from a tensor of many numbers
        if isinstance(x, Tensor):
            kind = f"a tensor of shape {tuple(x.shape)}"
        else:
            kind = f"of type {type(x).__name__}"
        raise CheckFailed(f"{name} is {kind}; expected a number.") from None


def _same_shapes(layer: nn.Module, before: nn.Module, num_heads: int) -> None:
    """Refuse a layer of which a weight or bias has changed its shape.

    Raises:
        CheckFailed: one has; where it was indexed by heads, the message says so.
    """
    for name in PROJECTIONS:
        for part in ("weight", "bias"):
            x = getattr(getattr(layer, name, None), part, None)
            old = getattr(getattr(before, name), part).shape
            if x is None or x.shape == old:
                continue
            said = f"after your code, {name}.{part} is {tuple(x.shape)}; it was {tuple(old)}."
            units = {
                (num_heads, *old[1:]): "rows" if part == "weight" else "numbers",
                (*old[:-1], num_heads): "columns" if part == "weight" else "numbers",
            }
            if tuple(x.shape) in units:
                unit = units[tuple(x.shape)]
                said += f" order counts heads, not features: each head is d_h {unit}."
            raise CheckFailed(said)


def _all_weights(layer: MultiHeadAttention) -> tuple[Tensor, Tensor]:
    """All weights of the four projections, one under the other, (4D, D), and all biases, (4D,).

    Raises:
        CheckFailed: the learner's code has taken one away.
    """
    for name in PROJECTIONS:
        for part in ("weight", "bias"):
            if getattr(getattr(layer, name, None), part, None) is None:
                raise CheckFailed(f"after your code, the layer has no {name}.{part} any more.")
    projections = (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj)
    return (
        torch.cat([proj.weight.detach() for proj in projections]),
        torch.cat([proj.bias.detach() for proj in projections]),
    )
