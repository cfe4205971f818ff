"""Keeps a request body of many small values from blocking a worker's other requests.

Decoding and encoding cost time per JSON value, not per byte: 300 KB can hold 100,000 messages. A
body with too many values is refused; one with many is translated in a thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import ParamSpec, TypeVar

import msgspec
from msgspec import Raw

from dragoman.errors import InvalidRequest

P = ParamSpec("P")
T = TypeVar("T")

MANY = 1000
"""Bodies of more values are translated in a thread; fewer take a few milliseconds."""
LARGE = 1024 * 1024
"""So are bodies of more bytes: even a copy of one takes its time."""
MAX_MESSAGES = 20_000
"""Elements of a conversation. The smallest costs as much as a message: it may become one."""
_MAX_SEPARATORS = 1_000_000
_PER_VALUE = 5
"""How many numbers and literals count as one value: they cost that much less than others."""
_VALUE, _NUMBER, _INNER_BRACKET, _INNER_COMMA = 50, 10, 5, 2
"""What is counted, in fiftieths of a value; the inner ones are those of JSON in a string."""
_BEFORE_INNER = b" \\ntru029adAD"
"""Of what may stand in front of JSON in a string: white space, also escaped in any way."""
_DIGITS = 20
"""Digits that cost as much as another number does."""
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_BACKSLASH = b"\\"
_elements = msgspec.json.Decoder(list[Raw]).decode
_STRING = re.compile(rb'"[^"]*"')
_TOO_LARGE = 413
_MIN_BYTES_PER_VALUE = 2
# One thread: more would only take turns with the event loop more often.
_pool = ThreadPoolExecutor(1, "dragoman-translation")


class ValueCounter:
    """Counts the values of a JSON text that arrives in pieces, without parsing it.

    Each object, array and string counts as one, names included; five numbers or literals count as
    one, and twenty of their digits as a further number. A comma or colon outside of strings stands
    for a fifth of the value after it. The first value of an object or array has neither: so the
    count is never too high, and at most a fifth of it is missing.

    A string that begins as JSON does, such as the arguments of a call, may be parsed, too: ten of
    its brackets count as one, and twenty-five of its commas.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = _VALUE * most - _NUMBER  # the first value has nothing before it
        self._digits = 0
        self._is_in_string = False
        self._is_escaping = False
        self._is_inner: bool | None = False
        """Whether the last string is JSON; None: nothing but white space came of it yet."""

    def feed(self, piece: bytes) -> None:
        """Count the next bytes; raises an error as soon as there are too many values."""
        piece = self._unescaped(piece)
        quotes = piece.count(b'"')
        self._left -= (quotes + (not self._is_in_string)) // 2 * (_VALUE - _NUMBER)
        if self._left >= 0:  # otherwise there are too many strings even to split them
            parts = piece.split(b'"')
            self._count(b"".join(parts[self._is_in_string :: 2]))
            self._count_inner(parts[not self._is_in_string :: 2])
        if self._left < 0:
            msg = (
                f"the request body has more than {self._most:,} objects, arrays and strings; five"
                " numbers count as one, ten brackets of JSON in a string, too (the server's limit"
                " `max_values`)"
            )
            raise InvalidRequest(msg, status=_TOO_LARGE)
        self._is_in_string ^= bool(quotes % 2)

    def _count(self, outside: bytes) -> None:
        """Count what is outside of strings."""
        separators = outside.count(b",") + outside.count(b":")
        opened = outside.count(b"[") + outside.count(b"{")
        self._left -= separators * _NUMBER + opened * (_VALUE - _NUMBER)
        self._digits += len(outside.translate(None, _NO_DIGITS))
        if self._digits >= _DIGITS:
            self._left -= self._digits // _DIGITS * _NUMBER
            self._digits %= _DIGITS

    def _count_inner(self, strings: list[bytes]) -> None:
        """Count what is in strings; the first may continue that of the last piece."""
        for number, part in enumerate(strings):
            if number or not self._is_in_string:
                self._is_inner = None
            if self._is_inner is None and (begun := part.lstrip(_BEFORE_INNER)):
                self._is_inner = begun.startswith((b"{", b"["))
            if self._is_inner:
                brackets = part.count(b"{") + part.count(b"[")
                self._left -= brackets * _INNER_BRACKET + part.count(b",") * _INNER_COMMA

    def _unescaped(self, piece: bytes) -> bytes:
        """The bytes with the same strings, in which every quote begins or ends one."""
        if self._is_escaping:
            piece = _BACKSLASH + piece
        self._is_escaping = False
        if _BACKSLASH not in piece:
            return piece
        ending = len(piece) - len(piece.rstrip(_BACKSLASH))
        if ending % 2:  # what it escapes is in the next piece
            self._is_escaping, piece = True, piece[:-1]
        return _without_escapes(piece)


def check_values(body: bytes, most: int) -> None:
    """Raise an error if a body has more than `most` values, as `ValueCounter` counts them."""
    if len(body) > most:
        ValueCounter(most).feed(body)


def check_messages(conversation: bytes) -> None:
    """Raise an error if a conversation has more than `MAX_MESSAGES` elements, whatever they are."""
    if conversation.count(b",") < MAX_MESSAGES:
        return
    separators = _STRING.sub(b"", _without_escapes(conversation)).count(b",")
    if separators < MAX_MESSAGES:
        return
    with suppress(msgspec.MsgspecError, RecursionError):
        # Too many to split them, whether they are messages or numbers inside of one.
        is_over = separators > _MAX_SEPARATORS
        expect_few_messages(separators if is_over else len(_elements(conversation)))


def expect_few_messages(number: int) -> None:
    """Raise an error if a conversation is too long."""
    if number > MAX_MESSAGES:
        msg = f"the conversation has more than {MAX_MESSAGES:,} messages, or too many values"
        raise InvalidRequest(msg, status=_TOO_LARGE)


def _without_escapes(body: bytes) -> bytes:
    """The body with the same strings, in which every quote begins or ends one.

    So one pass finds them all. A pattern that knows escapes would start anew at each of them in a
    string that never ends.
    """
    return body.replace(b"\\\\", b"").replace(b'\\"', b"")


def has_more_values(body: bytes, most: int) -> bool:
    """Whether a body may have more values than `most`: what is in texts may count, too."""
    if len(body) <= most * _MIN_BYTES_PER_VALUE:
        return False
    strings = body.count(b'"') // 2
    if strings > most or strings + body.count(b"{") + body.count(b"[") > most:
        return True
    return len(body) > most * _MIN_BYTES_PER_VALUE * _PER_VALUE and body.count(b",") > (
        most * _PER_VALUE
    )


async def translated_aside(
    body: bytes, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function that reads a body: in a thread, if the body is large or has many values."""
    if len(body) <= LARGE and not has_more_values(body, MANY):
        return work(*args, **kwargs)
    return await aside(work, *args, **kwargs)


async def aside_if_large(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread if its work grows with a size in bytes, and that is large."""
    return work(*args, **kwargs) if size <= LARGE else await aside(work, *args, **kwargs)


async def aside(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread."""
    loop, context = asyncio.get_running_loop(), copy_context()
    return await loop.run_in_executor(_pool, lambda: context.run(work, *args, **kwargs))
