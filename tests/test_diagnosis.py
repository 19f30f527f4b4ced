"""diagnose: what it says about library layers, and about layers that depart from the textbook."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention, merge_heads, split_heads
from course_utils.diagnosis import diagnose

USUAL = {
    "num_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "causal": False,
    "rotary": None,
    "layout": "separate",
    "cross": False,
    "masked": False,
    "dropout": 0.0,
}
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
BART = {
    **{"d_model": 32, "vocab_size": 60, "encoder_layers": 1, "decoder_layers": 1},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4},
    **{"encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
}
GPT2 = {"n_embd": 32, "n_layer": 1, "n_head": 4, "vocab_size": 60}
T5 = {"d_model": 32, "d_kv": 8, "num_layers": 1, "num_heads": 4, "d_ff": 64, "vocab_size": 60}
GROUPED = {"num_key_value_heads": 2, "head_dim": 8, "vocab_size": 60}
CAUSAL = {"causal": True}
TURNED = {**CAUSAL, "rotary": "half"}

# model, its configuration, which attention in it, where its weights are, facts that are not usual
FAMILIES = {
    "bert": ("Bert", {**SMALL, "vocab_size": 60}, ("SelfAttention", 0), "attentions", {}),
    "gpt2": ("GPT2", GPT2, ("Attention", 0), "attentions", {**CAUSAL, "layout": "stacked"}),
    "neox": (
        "GPTNeoX",
        {**SMALL, "vocab_size": 60},
        ("Attention", 0),
        "attentions",
        {**TURNED, "layout": "interleaved"},
    ),
    "llama": (
        "Llama",
        {**SMALL, **GROUPED},
        ("Attention", 0),
        "attentions",
        {**TURNED, "num_key_value_heads": 2},
    ),
    "qwen3": (
        "Qwen3",
        {**SMALL, **GROUPED},
        ("Attention", 0),
        "attentions",
        {**TURNED, "num_key_value_heads": 2},
    ),
    "vit": ("ViT", {**SMALL, "image_size": 8, "patch_size": 4}, ("Attention", 0), "attentions", {}),
    "bart": ("Bart", BART, ("Attention", 0), "encoder_attentions", {}),
    "bart, causal": ("Bart", BART, ("Attention", 1), "decoder_attentions", CAUSAL),
    "bart, cross": ("Bart", BART, ("Attention", 2), "cross_attentions", {"cross": True}),
    "t5": ("T5", T5, ("Attention", 0), "encoder_attentions", {}),
    "t5, causal": ("T5", T5, ("Attention", 1), "decoder_attentions", CAUSAL),
    "t5, cross": ("T5", T5, ("Attention", 2), "cross_attentions", {"cross": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_library_model_is_recognised(family, implementation):
    transformers = pytest.importorskip("transformers")
    name, sizes, (ending, place), field, unusual = FAMILIES[family]
    config = getattr(transformers, f"{name}Config")(**sizes)
    config._attn_implementation = "eager"
    torch.manual_seed(1)
    model = getattr(transformers, f"{name}Model")(config).eval()
    modules = [m for m in model.modules() if type(m).__name__ == name + ending]
    given = {"input_ids": torch.randint(5, 50, (2, 7))}
    if name == "ViT":
        given = {"pixel_values": torch.randn(2, 3, 8, 8)}
    elif name in ("Bart", "T5"):
        given["decoder_input_ids"] = given["input_ids"][:, :5]
    caught = []
    modules[place].register_forward_pre_hook(
        lambda _, args, kwargs: caught.append(copy.deepcopy((args, kwargs))), with_kwargs=True
    )
    with torch.no_grad():
        shown = model(**given, output_attentions=True)[field][0]
        config._attn_implementation = implementation
        model(**given)
    args, kwargs = caught[-1]
    report = diagnose(modules[place], *args, **kwargs)
    assert {**report.facts, "scale": None} == {**USUAL, **unusual, "scale": None}
    assert report.facts["scale"] == pytest.approx(1 if name == "T5" else 8**-0.5, rel=1e-4)
    assert report.departures == (("no-scale",) if name == "T5" else ())
    assert report.verdict == ("departs" if name == "T5" else "attention")
    assert report.first_difference is None
    torch.testing.assert_close(report.weights, shown, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_torchs_layer_in_both_batch_orders(batch_first, need_weights):
    torch.manual_seed(2)
    layer = nn.MultiheadAttention(32, 4, batch_first=batch_first).eval()
    x = torch.randn((2, 7, 32) if batch_first else (7, 2, 32))
    report = diagnose(layer, x, x, x, need_weights=need_weights)
    assert report.verdict == "attention", str(report)
    report.expect(**{**USUAL, "layout": "stacked"})
    shown = layer(x, x, x, average_attn_weights=False)[1]
    torch.testing.assert_close(report.weights, shown, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_first", [True, False])
def test_torchs_layer_inside_an_encoder_layer(batch_first):
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first).eval()
    report = diagnose(layer, torch.randn((2, 7, 32) if batch_first else (7, 2, 32)))
    assert report.verdict == "attention", str(report)
    report.expect(**{**USUAL, "layout": "stacked"})


class Plain(nn.Module):
    """Attention with one part that a test replaces."""

    def __init__(self, **parts):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(32, 32) for _ in range(3))
        self.out_proj = nn.Linear(32, 32)
        self.parts = parts

    def forward(self, x):
        do = {
            "split": lambda x: split_heads(x, 4),
            "turn_query": lambda x: x,
            "turn_key": lambda x: x,
            "share": lambda x: x,
            "scale": lambda s: s / math.sqrt(8),
            "after": lambda w: w,
            "merge": merge_heads,
            **self.parts,
        }
        q, k, v = (do["split"](proj(x)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        q, k = do["turn_query"](q), do["turn_key"](k)
        scores = do["scale"](q @ do["share"](k).mT)
        return self.out_proj(do["merge"](do["after"](scores.softmax(-1)) @ do["share"](v)))


def report_on(**parts):
    torch.manual_seed(4)
    return diagnose(Plain(**parts), torch.randn(2, 7, 32))


def test_a_plain_layer_and_ours_are_attention():
    assert report_on().verdict == "attention"
    x = torch.randn(2, 7, 32)
    layer = MultiHeadAttention(32, 4)
    report = diagnose(layer, x, mask=torch.ones(7, 7, dtype=torch.bool).tril())
    report.expect(**{**USUAL, "causal": True})
    torch.testing.assert_close(report.figure().axes[0].images[0].get_array().shape, (7, 7))


@pytest.mark.parametrize(
    ("part", "departure"),
    [
        ({"scale": lambda s: s}, "no-scale"),
        ({"scale": lambda s: s / 8}, "scale-without-root"),
        ({"scale": lambda s: s / math.sqrt(32)}, "scale-by-embed-dim"),
        ({"scale": lambda s: s * math.sqrt(8)}, "scale-multiplied"),
        ({"scale": lambda s: s / 3}, "other-scale"),
        ({"share": lambda x: x[:, :2].repeat(1, 2, 1, 1)}, "key-value-heads-tiled"),
    ],
)
def test_a_departure_is_named_with_its_evidence(part, departure):
    report = report_on(**part)
    assert (report.verdict, report.departures) == ("departs", (departure,))
    assert len(report.evidence) == 1
    assert report.evidence[0] in str(report)


@pytest.mark.parametrize(
    ("part", "step"),
    [
        ({"split": lambda x: x.view(2, 4, 7, 8)}, "query"),
        ({"split": lambda x: x.view(2, 7, 8, 4).permute(0, 3, 1, 2)}, "query"),
        ({"scale": lambda s: s.tanh()}, "scaled_scores"),
        ({"after": lambda w: w * torch.ones(7, 7).tril()}, "weights"),
        ({"merge": lambda x: x.reshape(2, 7, 32)}, "merged"),
    ],
)
def test_what_is_not_known_is_located(part, step):
    report = report_on(**part)
    assert (report.verdict, report.first_difference) == ("unknown", step)


def turned(kind):
    """RoPE over eight features, which are paired by halves or as neighbours."""
    angles = torch.arange(7.0)[:, None] * 10 ** -torch.arange(4.0)
    turn = torch.polar(torch.ones_like(angles), angles)

    def turn_pairs(x):
        pairs = x.unflatten(-1, (2, 4)).mT if kind == "half" else x.unflatten(-1, (4, 2))
        y = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
        return (y.mT if kind == "half" else y).flatten(-2)

    return turn_pairs


@pytest.mark.parametrize("kind", ["half", "interleaved"])
def test_both_layouts_of_rope_are_told_apart(kind):
    report = report_on(turn_query=turned(kind), turn_key=turned(kind))
    assert report.verdict == "attention", str(report)
    report.expect(**{**USUAL, "rotary": kind})


def test_rope_of_two_kinds_or_on_one_side_is_located():
    for turns in (
        {"turn_query": turned("half"), "turn_key": turned("interleaved")},
        {"turn_query": turned("half")},
    ):
        report = report_on(**turns)
        assert (report.verdict, report.first_difference) == ("unknown", "key")


def test_with_one_token_little_is_claimed():
    x = torch.randn(2, 1, 32)
    report = diagnose(Plain(), x)
    assert (report.verdict, report.facts["scale"], report.facts["layout"]) == (
        "unknown",
        None,
        None,
    )


def test_without_attention_nothing_is_claimed():
    report = diagnose(nn.Linear(4, 4), torch.randn(2, 4))
    assert (report.verdict, report.facts, report.weights) == ("unknown", {}, None)


def test_what_differs_is_said():
    with pytest.raises(AssertionError, match="num_heads is 4, expected 8"):
        report_on().expect(num_heads=8)
    with pytest.raises(ValueError, match="no fact is called 'heads'"):
        report_on().expect(heads=4)


@pytest.mark.parametrize("fails", [False, True])
def test_the_layer_its_arguments_and_the_random_state_stay(fails):
    class Careless(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(7)

        def forward(self, x):
            self.norm(x)
            self.eval()
            x.zero_()
            torch.rand(1)
            self.register_forward_hook(print)
            if fails:
                raise RuntimeError("halfway")

    layer, x = Careless(), torch.ones(2, 7, 32)
    state, rng = copy.deepcopy(layer.state_dict()), torch.get_rng_state()
    fastpath, look = torch.backends.mha.get_fastpath_enabled(), F.has_torch_function
    if fails:
        with pytest.raises(RuntimeError, match="halfway"):
            diagnose(layer, x)
    else:
        diagnose(layer, x)
    assert all(torch.equal(state[k], v) for k, v in layer.state_dict().items())
    assert layer.training
    assert not layer._forward_hooks
    assert (x == 1).all()
    assert torch.equal(rng, torch.get_rng_state())
    assert (fastpath, look) == (torch.backends.mha.get_fastpath_enabled(), F.has_torch_function)
