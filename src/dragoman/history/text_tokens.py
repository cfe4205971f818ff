"""Estimates the tokens of text by character classes, fitted to recorded responses."""

from __future__ import annotations

from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps

_LOWER, _UPPER, _DIGITS = ascii_lowercase.encode(), ascii_uppercase.encode(), digits.encode()
_CONTINUATION = bytes(range(0x80, 0xC0))  # UTF-8 continuation bytes
_TWO, _THREE, _FOUR = bytes(range(0xC0, 0xE0)), bytes(range(0xE0, 0xF0)), bytes(range(0xF0, 0x100))
_SOLID = bytes(0x61 if chr(byte) in ascii_letters + digits else 0x20 for byte in range(256))
_MIN_RUN = 24  # letters and digits without a break: not a word, but base64, a hash or a key
_RUN_OF_LETTERS = b"a" * _MIN_RUN

_WEIGHTS = (
    (_UPPER, 0.35),
    (_DIGITS, 0.7),
    (_CONTINUATION, 0.0),
    (_TWO, 0.7),
    (_THREE, 1.1),
    (_FOUR, 2.5),
)


def text_tokens(text: Any) -> float:
    """The estimated tokens of a text; 0 for other values."""
    if type(text) is not str or not text:
        return 0.0
    return _bytes(text.encode("utf-8", "surrogatepass"))


def json_tokens(value: Any) -> float:
    """The estimated tokens of a JSON value in compact form; 0 if it is empty."""
    return _bytes(dumped(value)) if value else 0.0


def dumped(value: Any) -> bytes:
    """A value as JSON; empty if it can't be encoded, because then it can't be sent either."""
    try:
        return dumps(value)
    except InvalidInputError:
        return b""


def _bytes(raw: bytes) -> float:
    """The tokens of UTF-8 text: counts one character class after the other, and removes it."""
    rest = raw.translate(None, _LOWER)
    lower = len(raw) - len(rest)
    spaces, pairs, lines = rest.count(b" "), raw.count(b"  "), rest.count(b"\n")
    tokens = 0.235 * lower + 0.17 * spaces - 0.25 * pairs + 0.7 * lines  # a run of spaces is one
    rest = rest.translate(None, b" \n")
    mixed = len(rest)
    for kind, weight in _WEIGHTS:
        left = rest.translate(None, kind)
        tokens += weight * (len(rest) - len(left))
        rest = left
    tokens += 0.5 * len(rest)  # punctuation
    solid = raw.translate(_SOLID)
    if _RUN_OF_LETTERS in solid:
        runs = sum(len(run) for run in solid.split() if len(run) >= _MIN_RUN)
        tokens += min(0.35 * runs, 0.65 * mixed)
    return tokens
