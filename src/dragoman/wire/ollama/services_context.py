"""The `context` of `/api/generate`: the conversation so far, as numbers the client sends back.

Ollama's own contexts hold tokens, which no other model can read. Ours hold texts: a header, the
number of bytes, and compressed JSON, packed three bytes to a number.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps, loads
from dragoman.wire.json_values import is_list

_HEADER = (14132746, 1)  # magic number and version; unlikely as two consecutive tokens
_BYTES = 3
_MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of a decompressed conversation: a client can forge a context."""
_MAX_TURNS = 20_000
"""Turns of a conversation: a forged context may have millions in a few bytes."""
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_ROLES = frozenset({"system", "user", "assistant"})
Turns = Sequence[tuple[str, str]]
"""Pairs of role and text."""


def encode_context(turns: Turns) -> list[int]:
    """Encode a conversation; empty if it is too long.

    >>> decode_context(encode_context([("user", "Hi"), ("assistant", "Hello")]))
    [('user', 'Hi'), ('assistant', 'Hello')]
    """
    text = dumps([list(turn) for turn in turns])
    if len(text) > _MAX_BYTES:
        return []
    data = zlib.compress(text, 1)
    padded = data + bytes(-len(data) % _BYTES)
    numbers = [
        int.from_bytes(padded[place : place + _BYTES], "big")
        for place in range(0, len(padded), _BYTES)
    ]
    return [*_HEADER, len(data), *numbers]


def decode_context(wire: Any) -> list[tuple[str, str]] | None:
    """Decode a conversation; None if the context is not ours."""
    if not is_list(wire) or tuple(wire[:2]) != _HEADER or {*map(type, wire)} != {int}:
        return None
    length, *numbers = wire[2:] or [0]
    if len(numbers) > _MAX_BYTES or not all(0 <= number < 2**24 for number in numbers):
        return None
    data = b"".join([number.to_bytes(_BYTES, "big") for number in numbers])
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(data[: max(length, 0)], _MAX_BYTES)
        turns = loads(text) if _has_few_turns(text) else None
    except (zlib.error, InvalidInputError):
        return None
    if not is_list(turns) or not all(map(_is_turn, turns)):
        return None
    return [(role, text) for role, text in turns]


def _has_few_turns(text: bytes) -> bool:
    """Whether it has not too many turns, told before they become values."""
    if text.count(b"[") <= _MAX_TURNS:
        return True
    try:
        return len(_split(text)) <= _MAX_TURNS
    except (msgspec.MsgspecError, RecursionError):
        return False


def _is_turn(wire: Any) -> bool:
    is_pair = is_list(wire) and len(wire) == 2 and all(isinstance(each, str) for each in wire)  # noqa: PLR2004
    return is_pair and wire[0] in _ROLES
