"""The explorer of a real model's heads, on a small random encoder."""

import json

import numpy as np
import pytest
import torch
from helpers import ENCODER, SmallEncoder, body, page, row_names, two

from course_utils.data.minilm import tokenize
from course_utils.heatmaps import CourseFigure
from course_utils.sliders import explore_sentence
from course_utils.sliders.sentence import MAX_SHOWN, SHARES

SENTENCE = "The animal didn't cross the street because it was too tired."


def test_shows_the_encoders_own_numbers():
    explorer = explore_sentence(ENCODER, SENTENCE, layer=1, head=2)
    words = tokenize(SENTENCE)
    with torch.no_grad():
        maps = ENCODER(words.ids, words.mask)[1]
    state = explorer.state
    assert torch.tensor(state["weights"]).shape == (1, 16, 16)
    assert torch.allclose(torch.tensor(state["weights"][0]), maps[1][0, 2])
    assert state["tokens"] == words.tokens[0]

    explorer.controls["averaged"].value = True
    mean = maps[1][0].mean(0)
    assert torch.allclose(torch.tensor(explorer.state["weights"][0]), mean, atol=1e-6)
    explorer.controls["layer"].value = 0
    assert "layer 0, mean of 3 heads" in repr(explorer)


def test_shares_by_a_loop():
    explorer = explore_sentence(ENCODER, "a b c", layer=1)
    with torch.no_grad():
        words = tokenize("a b c")
        maps = ENCODER(words.ids, words.mask)[1][1][0]  # (head, query, key)
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


def test_the_view_shows_the_state():
    shown = page(explore_sentence(ENCODER, "a b c", head=1))
    heads, shares = shown.tables
    assert heads["caption"] == "layer 0, head 1"
    assert heads["rows"][0][1:] == row_names(heads) == ["[CLS]", "a", "b", "c", "[SEP]"]
    assert shares["rows"][0] == ["", *SHARES]
    assert row_names(shares) == ["head 0", "▸ head 1", "head 2", "mean"]
    state = explore_sentence(ENCODER, "a b c", head=1).state
    assert body(heads) == [two(row) for row in state["weights"][0]]
    assert body(shares) == [two(row) for row in state["shares"]]
    assert shown.paragraphs == []


def test_typing_moves_the_view_and_sliders_do_not_run_the_model_again():
    calls = []

    def encoder(ids, mask):
        calls.append(ids.shape[1])
        return ENCODER(ids, mask)

    explorer = explore_sentence(encoder, "a b")
    before = len(calls)
    explorer.controls["text"].value = "a b c"
    assert explorer.state["tokens"][1:-1] == ["a", "b", "c"]
    for name, value in (("head", 2), ("layer", 1), ("averaged", True)):
        explorer.controls[name].value = value
    assert calls[before:] == [5]


@pytest.mark.parametrize("text", ["", "   ", "\u200b", "\n"])
def test_an_empty_text_gets_a_friendly_sentence(text):
    explorer = explore_sentence(ENCODER, text)
    assert explorer.state["error"] == ("text is empty: type a sentence, in any language you like")
    assert page(explorer).tables == []
    explorer.controls["text"].value = "a"
    assert "error" not in explorer.state
    assert "image/png" in explorer._repr_mimebundle_()[0]


def test_the_stored_picture_shows_the_heads_of_a_layer():
    explorer = explore_sentence(ENCODER, "a b", layer=1)
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
def test_any_text_is_shown_and_nothing_in_it_is_run(text):
    explorer = explore_sentence(ENCODER, text)
    shown = page(explorer)
    tokens = explorer.state["tokens"]
    assert len(row_names(shown.tables[0])) == len(tokens)
    assert json.loads(json.dumps(explorer.state))["tokens"] == tokens
    assert "\n" not in repr(explorer)
    assert isinstance(explorer.figure(), CourseFigure)


def test_what_unknown_tokens_stood_for_is_said():
    explorer = explore_sentence(ENCODER, "<b> 🙂 ሰላም 🙂 你 好 x")
    assert page(explorer).paragraphs == [
        "[UNK] stands for “🙂”, “ሰላም”, “你” and 1 more: not in the model's vocabulary."
    ]


def test_a_long_text_is_shown_in_part_and_one_sentence_says_so():
    explorer = explore_sentence(ENCODER, "word " * 40)
    (note,) = page(explorer).paragraphs
    assert note == (
        "Of 42 tokens the table shows the first 24, as many as fit on a page, so its rows "
        "need not sum to 1."
    )
    assert torch.tensor(explorer.state["weights"]).shape == (1, MAX_SHOWN, MAX_SHOWN)
    assert explorer.state["num_tokens"] == 42


def test_a_text_that_is_too_long():
    explorer = explore_sentence(ENCODER, "word " * 300)
    (note,) = page(explorer).paragraphs
    assert note.startswith("Of 302 tokens the model reads the first 256, as it was made for no")
    assert "the table shows the first 24" in note
    assert note.count(". ") == 0
    assert explorer.state["left_out"] == 46
    explorer.controls["text"].value = "word " * 500_000  # must not freeze
    assert page(explorer).paragraphs[0].startswith("Of more than 4002 tokens the model reads")


def test_a_changed_encoder_changes_no_explorer():
    encoder = SmallEncoder()
    explorer = explore_sentence(encoder, "a b c")
    with torch.no_grad():
        encoder.embedding.weight.zero_()
    explorer.controls["text"].value = "d e"
    assert explorer.state["weights"] == explore_sentence(ENCODER, "d e").state["weights"]


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
def test_wrong_arguments(options, said):
    with pytest.raises(ValueError, match=said):
        explore_sentence(ENCODER, **{"text": "a", **options})


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
def test_an_encoder_that_returns_something_else(encoder):
    with pytest.raises(ValueError, match="encoder must return"):
        explore_sentence(encoder, "a")


def test_the_text_form_is_one_line_with_the_largest_share():
    explorer = explore_sentence(ENCODER, SENTENCE)
    share = max(explorer.state["shares"][0])
    place = SHARES[explorer.state["shares"][0].index(share)]
    assert repr(explorer) == (
        f"Explorer: layer 0, head 0 over 16 tokens; most weight on {place}, {share:.2f}"
    )
