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
MAX_MESSAGES = 20_000
"""Elements of a conversation. The smallest costs as much as a message: it may become one."""
_MAX_SEPARATORS = 1_000_000
_MIN_BYTES_PER_VALUE = 2
_elements = msgspec.json.Decoder(list[Raw]).decode
_STRING = re.compile(rb'"[^"]*"')
_TOO_LARGE = 413
# One thread: more would only take turns with the event loop more often.
_pool = ThreadPoolExecutor(1, "dragoman-translation")


def check_values(body: bytes, most: int) -> None:
    """Raise an error if a body has more than `most` objects, arrays and strings."""
    if not has_more_values(body, most):
        return
    plain = _without_escapes(body)
    rest = _STRING.sub(b"", plain)
    if plain.count(b'"') // 2 + rest.count(b"{") + rest.count(b"[") > most:
        msg = (
            f"the request body has more than {most:,} objects, arrays and strings"
            " (the server's limit `max_values`)"
        )
        raise InvalidRequest(msg, status=_TOO_LARGE)


def check_messages(conversation: bytes) -> None:
    """Raise an error if a conversation has more than `MAX_MESSAGES` elements, whatever they are."""
    if conversation.count(b",") < MAX_MESSAGES:
        return
    separators = _STRING.sub(b"", _without_escapes(conversation)).count(b",")
    if separators < MAX_MESSAGES:
        return
    with suppress(msgspec.MsgspecError, RecursionError):
        # Too many to split them, whether they are messages or numbers inside of one.
        is_over = separators > _MAX_SEPARATORS or len(_elements(conversation)) > MAX_MESSAGES
        if is_over:
            msg = f"the conversation has more than {MAX_MESSAGES:,} messages, or too many values"
            raise InvalidRequest(msg, status=_TOO_LARGE)


def _without_escapes(body: bytes) -> bytes:
    """The body with the same strings, in which every quote begins or ends one.

    So one pass finds them all. A pattern that knows escapes would start anew at each of them in a
    string that never ends.
    """
    return body.replace(b"\\\\", b"").replace(b'\\"', b"")


def has_more_values(body: bytes, most: int) -> bool:
    """Whether a body may have more values than `most`: brackets and quotes in texts count, too."""
    if len(body) <= most * _MIN_BYTES_PER_VALUE:
        return False
    return body.count(b'"') // 2 + body.count(b"{") + body.count(b"[") > most


async def translated_aside(
    body: bytes, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function that reads a body: in a thread, if the body has many values."""
    if not has_more_values(body, MANY):
        return work(*args, **kwargs)
    loop, context = asyncio.get_running_loop(), copy_context()
    return await loop.run_in_executor(_pool, lambda: context.run(work, *args, **kwargs))
