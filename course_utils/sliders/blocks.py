"""Choose a step and see every number of some tokens move into its head, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

from course_utils.arguments import divisors, names_or_numbers, require_num_heads, require_whole
from course_utils.heatmaps.figure import CourseFigure
from course_utils.heatmaps.texts import display_token
from course_utils.pictures.blocks import (
    HEIGHT,
    MAX_FEATURES,
    MAX_TOKENS,
    Stage,
    blocks_height,
    blocks_picture,
)
from course_utils.pictures.figures import paint_pictures
from course_utils.pictures.shapes import Picture
from course_utils.pictures.svg import picture_html
from course_utils.sliders.controls import make_buttons, make_slider
from course_utils.sliders.explorer import Explorer
from course_utils.sliders.tables import html_table

STEPS = ("project", "view", "transpose", "attend", "merge", "W_O")
WAYS = ("right", "view only", "interleaved", "transpose too early")
LEAST_WIDTH = 700  # pixels of a picture whose labels can still be read


def explore_blocks(
    tokens: Sequence[str] = ("the", "cat", "sat"), *, embed_dim: int = 8, num_heads: int = 2
) -> Explorer:
    """Follow every number of the queries through the split into heads, and through the merge.

    Each number is a block. Its colour is the head that owns it, its label the token it comes from.

    Args:
        tokens: up to 3 names.
        embed_dim: D, up to 8.
        num_heads: where the slider stands at first.

    Returns:
        An explorer with the controls ``step`` (one of ``STEPS``), ``num_heads`` and ``way`` (one of
        ``WAYS``, of which the first is right). Its state holds ``cards`` (nested lists, three axes,
        the numbers of the blocks where they stand now; block i is feature i % D of token i // D),
        ``shape``, ``code``, ``strangers`` (blocks in the row of another token) and ``fact``.

    Raises:
        ValueError: too many tokens or features to be drawn, or num_heads does not divide D.
    """
    names = names_or_numbers(tokens, len(tokens) if isinstance(tokens, Sequence) else 1)
    embed_dim = require_whole("embed_dim", embed_dim)
    if not 1 <= len(names) <= MAX_TOKENS:
        raise ValueError(f"tokens must be 1 to {MAX_TOKENS}, to be drawn; got {len(names)}")
    if embed_dim > MAX_FEATURES:
        raise ValueError(f"embed_dim must be at most {MAX_FEATURES}, to be drawn; got {embed_dim}")
    num_heads = require_num_heads(embed_dim, num_heads)
    shown = _Blocks(names, embed_dim)
    return Explorer(
        {
            "step": make_slider("step", [(step, step) for step in STEPS], STEPS[0], width="23em"),
            "num_heads": make_slider("heads H", divisors(embed_dim), num_heads, width="13em"),
            "way": make_buttons("way", WAYS, WAYS[0]),
        },
        compute=shown.compute,
        view=shown.view,
        draw=lambda state: shown.paint([state]),
        describe=shown.describe,
        still=shown.still,
    )


@dataclass(frozen=True)
class _Blocks:
    """The queries of some tokens."""

    tokens: list[str]
    embed_dim: int

    def stages(self, num_heads: int, way: str) -> list[Stage]:
        """The input, and what there is after each of ``STEPS``."""
        length, d = len(self.tokens), self.embed_dim
        ids = torch.arange(length * d).view(length, d)
        viewed, transposed = self.split(ids, num_heads, way)
        heads = torch.tensor(transposed.cards)  # (head, token, head feature)
        attend = "softmax(q @ kᵀ / √d_h) @ v, in each head"
        merge = "heads.transpose(0, 1).reshape(L, D)"
        merged = heads.transpose(0, 1).reshape(length, d)
        return [
            self.whole("x", "x", ids, plain=True),
            self.whole("project", "q = q_proj(x)", ids, has_token_rows=True, weight="W_Q"),
            viewed,
            transposed,
            self.per_head("attend", attend, heads, mixes_rows=True, prime=True),
            self.whole("merge", merge, merged, has_token_rows=True, prime=True),
            self.whole("W_O", "out_proj(merged)", ids, plain=True, prime=True, weight="W_O"),
        ]

    def split(self, q: Tensor, num_heads: int, way: str) -> tuple[Stage, Stage]:
        """What a way of splitting makes of q (L, D), after its view and after its transpose."""
        length, d, names = len(self.tokens), self.embed_dim, self.names
        size = length, num_heads, d // num_heads
        if way == "right":
            code, shape = "q.view(L, H, d_h)", f"(L, H, d_h) = {size}"
            viewed, heads = q.view(size), [f"head {head}" for head in range(num_heads)]
            first = Stage("view", code, shape, viewed.tolist(), names, heads)
            return first, self.per_head(
                "transpose", f"{code}.transpose(0, 1)", viewed.transpose(0, 1)
            )
        if way == "view only":
            code, viewed = "q.view(H, L, d_h)", q.view(num_heads, length, -1)
            first = self.per_head("view", code, viewed)
            return first, self.per_head("transpose", f"{code}, and no transpose", viewed)
        if way == "interleaved":
            size = length, d // num_heads, num_heads
            code, shape = "q.view(L, d_h, H)", f"(L, d_h, H) = {size}"
            viewed = q.view(size)
            first = Stage("view", code, shape, viewed.tolist(), names, [""] * size[1])
            return first, self.per_head(
                "transpose", f"{code}.permute(2, 0, 1)", viewed.permute(2, 0, 1)
            )
        turned, shape = q.T, f"(D, L) = ({d}, {length})"
        code = "q.transpose(0, 1)"
        first = Stage("view", f"{code}, and no view yet", shape, [turned.tolist()], [""], [""] * d)
        heads = turned.reshape(num_heads, length, -1)
        return first, self.per_head("transpose", f"{code}.reshape(H, L, d_h)", heads)

    @property
    def names(self) -> list[str]:
        return [display_token(token) for token in self.tokens]

    def whole(self, name: str, code: str, numbers: Tensor, **look) -> Stage:
        """A stage (L, D)."""
        shape = f"(L, D) = {tuple(numbers.shape)}"
        return Stage(name, code, shape, [numbers.tolist()], [""], self.names, **look)

    def per_head(self, name: str, code: str, numbers: Tensor, **look) -> Stage:
        """A stage (H, L, d_h)."""
        shape, heads = f"(H, L, d_h) = {tuple(numbers.shape)}", range(len(numbers))
        card_names = [f"head {head}" for head in heads]
        own = (name, code, shape, numbers.tolist(), card_names, self.names)
        return Stage(*own, has_token_rows=True, **look)

    def compute(self, step: str, num_heads: int, way: str) -> dict:
        controls = {"step": step, "num_heads": num_heads, "way": way}
        before, stage = self.around(controls)
        # What W_O makes of a row is a new row; what it was made from counts.
        strangers = (before if step == "W_O" else stage).strangers(self.embed_dim)
        return {
            **controls,
            "code": stage.code,
            "shape": stage.shape,
            "cards": stage.cards,
            "strangers": strangers,
            "fact": self.fact(stage, num_heads, len(strangers)),
        }

    def fact(self, stage: Stage, num_heads: int, strangers: int) -> str:
        """What there is to see."""
        count, d, head_dim = len(self.tokens), self.embed_dim, self.embed_dim // num_heads
        if strangers:
            where = "were" if stage.name == "W_O" else "stand"
            of = f"{strangers} of {count * d} numbers"
            return f"✗ {of} {where} in the row of another token (framed)."
        if stage.shape.startswith("(D, L)"):
            return "✗ Tokens and features have changed places, before anything was split."
        colours = [{block % d // head_dim for row in card for block in row} for card in stage.cards]
        if stage.name in ("transpose", "attend") and any(len(own) > 1 for own in colours):
            return "✗ Every token is whole, but a head holds numbers of several heads (colours)."
        if stage.name == "merge" and stage.cards[0][0] != list(range(d)):
            return "✗ Every number is back in the row of its token, but not in its column."
        return {
            "project": f"Each number of q is made of all {d} numbers of its token.",
            "view": "Nothing moves in memory: the same numbers, counted with one axis more.",
            "transpose": f"✓ Each head has all {count} tokens, {head_dim} of {d} numbers of each.",
            "attend": "Each head mixes the rows of its own card, with weights of its own.",
            "merge": "✓ The heads stand side by side again, each number in the row of its token.",
            "W_O": "Each number of the output is made of its whole row: of all heads.",
        }[stage.name]

    def around(self, state: dict) -> list[Stage]:
        """What there is before the step, and after it."""
        place = STEPS.index(state["step"])
        return self.stages(state["num_heads"], state["way"])[place : place + 2]

    def picture(self, state: dict, height: float = HEIGHT) -> Picture:
        own = self.tokens, self.embed_dim, self.embed_dim // state["num_heads"]
        return blocks_picture(*own, *self.around(state), fact=state["fact"], height=height)

    def view(self, state: dict) -> str:
        _, stage = self.around(state)
        tables = [
            html_table(
                escape(name or state["step"]),
                ["", *map(str, range(len(card[0])))],
                [
                    [escape(row_name), *(escape(self.label(block)) for block in row)]
                    for row_name, row in zip(stage.row_names, card, strict=True)
                ],
            )
            for name, card in zip(stage.card_names, state["cards"], strict=True)
        ]
        picture = picture_html(
            self.picture(state), f"Numbers as blocks: {self.describe(state)}", least=LEAST_WIDTH
        )
        return f'{picture}<div class="ac-unseen">{"".join(tables)}</div>'

    def label(self, block: int) -> str:
        token, feature = divmod(block, self.embed_dim)
        return f"{self.names[token]} {feature}"

    def describe(self, state: dict) -> str:
        return (
            f"{state['step']}, {state['way']}, H = {state['num_heads']}: {state['code']} is "
            f"{state['shape']}. {state['fact']}"
        )

    def paint(self, states: Sequence[dict]) -> CourseFigure:
        height = max(blocks_height(*self.around(state)) for state in states)
        return paint_pictures(
            [self.picture(state, height) for state in states],
            titles=[state["way"] for state in states],
            alt="; ".join(map(self.describe, states)),
        )

    def still(self, state: dict) -> CourseFigure:
        """Before the split, after it, and after a wrong one."""
        h = state["num_heads"]
        stops = (("project", WAYS[0]), ("transpose", WAYS[0]), ("transpose", WAYS[1]))
        return self.paint([self.compute(step, h, way) for step, way in stops])
