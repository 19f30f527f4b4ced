"""Masks: the exercises of lesson 6, and how pictures show a blocked cell."""

import pytest
import torch
from solutions.masks import attention_mask, cross_attention
from torch.nn import functional as F

from course_utils.exercises import CheckFailed, check_attention_mask, check_cross_attention
from course_utils.heatmaps import plot_attention, plot_heads
from course_utils.sliders.tables import heat_tables


def in_one_line(lengths, seq_len, causal):
    mask = (torch.arange(seq_len) < lengths[:, None])[:, None, None]  # (N, 1, 1, L)
    return mask & torch.ones(seq_len, seq_len, dtype=torch.bool).tril() if causal else mask


def by_comparison(lengths, seq_len, causal):
    i = torch.arange(seq_len)
    later = (i[None, :] > i[:, None]) & causal
    padded = i[None, :] >= lengths[:, None]
    return ~(later[None, None] | padded[:, None, None, :])


def with_torch(layer, x, memory, lengths):
    """The same through torch's own function, with the three matrices cut by hand."""
    wq, wk, wv = layer.in_proj_weight.chunk(3)
    bq, bk, bv = layer.in_proj_bias.chunk(3)
    shape = (layer.num_heads, layer.head_dim)
    q, k, v = (
        F.linear(t, w, b).unflatten(-1, shape).transpose(1, 2)
        for t, w, b in ((x, wq, bq), (memory, wk, bk), (memory, wv, bv))
    )
    may = (torch.arange(memory.shape[1]) < lengths[:, None])[:, None, None]
    one_hot = torch.eye(memory.shape[1]).expand(*k.shape[:3], -1)
    weights = F.scaled_dot_product_attention(q, k, one_hot, may)
    return layer.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights


@pytest.mark.parametrize(
    ("check", "fn"),
    [
        (check_attention_mask, attention_mask()),
        (check_attention_mask, in_one_line),
        (check_attention_mask, by_comparison),
        (check_cross_attention, cross_attention()),
        (check_cross_attention, with_torch),
    ],
)
def test_a_right_answer_passes_however_it_is_written(check, fn, capsys):
    assert check(fn) is True
    assert capsys.readouterr().out.startswith(f"✓ {check.__name__[6:]}: right on ")


def masks_meet(join, triangle=torch.tril):
    """Another way to write it: the causal part is joined only where it is asked for."""

    def fn(lengths, seq_len, causal):
        real = (torch.arange(seq_len) < lengths[:, None])[:, None, None].expand(-1, 1, seq_len, -1)
        past = triangle(torch.ones(seq_len, seq_len)).bool()
        return join(real, past) if causal else real

    return fn


@pytest.mark.parametrize(
    ("fn", "bug"),
    [
        (masks_meet(torch.logical_or), "masks-joined-by-or"),
        (masks_meet(torch.add), "masks-joined-by-or"),
        (masks_meet(torch.logical_and, lambda x: x.triu(1)), "causal-turned-round"),
    ],
)
def test_other_ways_to_the_same_mistake(fn, bug):
    with pytest.raises(CheckFailed) as failed:
        check_attention_mask(fn)
    assert failed.value.explanations == ((bug,),)


def test_numbers_for_the_causal_part_alone_are_named():
    def fn(lengths, seq_len, causal):
        real = (torch.arange(seq_len) < lengths[:, None])[:, None, None].expand(-1, 1, seq_len, -1)
        return real * torch.ones(seq_len, seq_len).tril() if causal else real

    with pytest.raises(CheckFailed) as failed:
        check_attention_mask(fn)
    assert failed.value.explanations == (("built-of-zeros-and-ones",),)


def test_a_very_low_number_is_called_one():
    def fn(lengths, seq_len, causal):
        may = attention_mask()(lengths, seq_len, causal)
        return torch.zeros(may.shape).masked_fill(~may, -1e9)

    with pytest.raises(CheckFailed, match="holds 0 and -inf, or a very low number") as failed:
        check_attention_mask(fn)
    assert failed.value.explanations == (("built-to-be-added",),)


def test_what_is_right_without_padding_only_is_said():
    def zeroed(layer, x, memory, lengths):
        real = torch.arange(memory.shape[1]) < lengths[:, None]
        memory = memory * real[..., None]
        return layer(x, memory, memory, average_attn_weights=False)

    with pytest.raises(CheckFailed, match="without any padding, everything is right") as failed:
        check_cross_attention(zeroed)
    assert "is a size fixed" not in str(failed.value)


def test_the_length_of_the_first_sample_for_all_is_no_fixed_size():
    def first(layer, x, memory, lengths):
        return cross_attention()(layer, x, memory, lengths[:1].expand(len(lengths)))

    with pytest.raises(CheckFailed, match="1 of 3 inputs come out right, the one with a single"):
        check_cross_attention(first)


def test_ones_for_real_keys_are_numbers_too():
    def fn(layer, x, memory, lengths):
        real = (torch.arange(memory.shape[1]) < lengths[:, None]).float()
        return layer(x, memory, memory, key_padding_mask=real, average_attn_weights=False)

    with pytest.raises(CheckFailed) as failed:
        check_cross_attention(fn)
    assert failed.value.explanations == (("cross-mask-of-numbers",),)


def test_the_input_is_said_in_full():
    with pytest.raises(CheckFailed) as failed:
        check_attention_mask(lambda lengths, seq_len, causal: lengths > 0)
    assert "input: lengths [3, 2], seq_len 3, causal False" in str(failed.value)


def test_what_is_no_mask_gets_a_sentence():
    with pytest.raises(CheckFailed, match="the mask is of type list; expected a torch tensor"):
        check_attention_mask(lambda lengths, seq_len, causal: [[True]])
    with pytest.raises(CheckFailed, match="no known mistake gives these numbers"):
        check_attention_mask(lambda lengths, seq_len, causal: torch.ones(2, 3) > 0)


# --- Blocked cells in pictures -------------------------------------------------------------------

WEIGHTS = torch.tensor([[1.0, 0.0, 0.0], [0.4, 0.6, 0.0]])
BLOCKED = torch.tensor([[False, True, True], [False, False, True]])


class TestBlockedCells:
    @pytest.mark.parametrize("make", [torch.Tensor.clone, torch.Tensor.tolist, torch.Tensor.numpy])
    def test_figures_hatch_them(self, make):
        for figure in (
            plot_attention(WEIGHTS, blocked=make(BLOCKED)),
            plot_heads(WEIGHTS[None].repeat(2, 1, 1), blocked=make(BLOCKED)),
        ):
            figure.draw_without_rendering()
            assert figure.alt.endswith("; 3 of 6 cells blocked")
            for axes in figure.axes:
                (hatched,) = [p for p in axes.patches if p.get_hatch()]
                corners = hatched.get_path().vertices.reshape(-1, 4, 2)
                assert (corners.max(1) - corners.min(1) == 1).all()  # each has the size of a cell
                assert corners.mean(1)[:, ::-1].tolist() == BLOCKED.nonzero().tolist()
                texts = [text.get_text() for text in axes.texts]
                assert texts == ["1.00", "×", "×", "0.40", "0.60", "×"]
                assert {t.get_color() for t in axes.texts if t.get_text() == "×"} == {"black"}

    def test_each_head_may_have_its_own(self):
        figure = plot_heads(WEIGHTS.repeat(2, 1, 1), blocked=torch.stack([BLOCKED, ~BLOCKED]))
        for axes, blocked in zip(figure.axes, (BLOCKED, ~BLOCKED), strict=True):
            crosses = [text.get_text() == "×" for text in axes.texts]
            assert crosses == blocked.flatten().tolist()

    def test_without_a_mask_nothing_is_hatched(self):
        for blocked in (None, torch.zeros_like(BLOCKED)):
            figure = plot_attention(WEIGHTS, blocked=blocked)
            assert "blocked" not in figure.alt
            assert not figure.axes[0].patches
            assert "×" not in [text.get_text() for text in figure.axes[0].texts]

    @pytest.mark.parametrize(
        ("blocked", "said"),
        [
            (BLOCKED.T, r"blocked must be \(2, 3\)( or \(1, 2, 3\))?, got shape \(3, 2\)"),
            (
                BLOCKED.repeat(2, 1, 1),
                r"blocked must be \(2, 3\)( or \(1, 2, 3\))?, got shape \(2, 2, 3\)",
            ),
            (BLOCKED.float(), "blocked must be booleans, True = blocked; got float32"),
            ([[True], [False, True]], "blocked must be booleans, got list"),
        ],
    )
    def test_blocked_of_another_kind_is_refused(self, blocked, said):
        for call in (
            lambda **o: plot_attention(WEIGHTS, **o),
            lambda **o: plot_heads([WEIGHTS.tolist()], **o),
        ):
            with pytest.raises(ValueError, match=said):
                call(blocked=blocked)

    def test_tables_hatch_them_and_say_so(self):
        (table,) = heat_tables(
            [WEIGHTS.tolist()], ["a", "b"], ["x", "y", "z"], ["t"], blocked=BLOCKED.tolist()
        )
        assert table.count('<td class="ac-blocked"') == table.count(">× 0</td>") == 3
        assert 'title="a → y: 0.0000">× 0<' in table
        (plain,) = heat_tables([WEIGHTS.tolist()], ["a", "b"], ["x", "y", "z"], ["t"])
        assert "×" not in plain
