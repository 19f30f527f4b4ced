"""Tokens as labels, and pictures in words."""

from collections.abc import Sequence

import numpy as np

from course_utils.arguments import count_of, require_names

MAX_LABEL = 14  # characters; a longer token is shown without its middle


def token_labels(
    shape: Sequence[int],
    query_tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
) -> tuple[list[str], list[str]]:
    """Return a name for each row and column of weights whose shape ends in (L_q, L_k).

    Raises:
        ValueError: a token list of another length, a bare string, or tokens that are not strings.
    """
    height, width = shape[-2:]
    if query_tokens is not None:
        query_tokens = require_names("query_tokens", query_tokens, height, "one per query")
    if key_tokens is not None:
        key_tokens = require_names("key_tokens", key_tokens, width, "one per key")
    elif height == width:
        key_tokens = query_tokens
    return (
        query_tokens or [str(i) for i in range(height)],
        key_tokens or [str(i) for i in range(width)],
    )


def display_token(token: str) -> str:
    """Return a token as it is shown: white space visible, control characters escaped, shortened."""
    shown = visible_token(token)
    if len(shown) > MAX_LABEL:
        shown = f"{shown[: MAX_LABEL - 6]}…{shown[-5:]}"
    return shown


def visible_token(token: str) -> str:
    """Return a token with nothing invisible in it: blanks quoted, control characters escaped."""
    joiner = "\u200d"  # it joins several emoji into one
    token = str(token)  # a string of NumPy has another repr
    if not token.replace(joiner, "").strip():
        return repr(token)
    return "".join(c if c.isprintable() or c == joiner else escape_character(c) for c in token)


def one_line(text: str) -> str:
    """Return a text in one line, with nothing invisible in it; a blank text comes back empty."""
    text = " ".join(text.split())
    return visible_token(text) if text else ""


def describe_weights(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Say in words which key each query attends to most, for the first six rows."""
    tops = [
        f"{display_token(row)} → {display_token(columns[int(line.argmax())])} {line.max():.2f}"
        for row, line in zip(rows[:6], weights, strict=False)
    ]
    more = ", …" if len(rows) > 6 else ""
    height, width = weights.shape
    size = f"{count_of(height, 'query', 'queries')} by {count_of(width, 'key')}"
    return f"{size}, largest weight per row {', '.join(tops)}{more}"


def describe_blocked(blocked: np.ndarray) -> str:
    """Say in words how much a mask blocks, if anything."""
    return f"; {blocked.sum()} of {blocked.size} cells blocked" if blocked.any() else ""


def escape_character(character: str) -> str:
    """Return a character as its escape sequence in Python."""
    return character.encode("unicode_escape").decode()


def two_decimals(x: float) -> str:
    """Return a number with two decimals, as every table shows it."""
    return f"{x:z.2f}"  # z: a rounded -0.001 is 0.00, not -0.00
