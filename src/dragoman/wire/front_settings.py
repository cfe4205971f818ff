"""The client's settings, which some responses echo; cached by content.

Clients send the same settings with each request. The encoded settings are cached as JSON under the
request's serialised form, and every caller gets its own copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps, loads
from dragoman.model.requests import Request
from dragoman.wire.dialect import Dialect
from dragoman.wire.lane import switch

_MAX_CACHED = 128
_MAX_KEY_BYTES = 4096  # bytes of a serialised request without its messages
_encode = msgspec.json.Encoder().encode


def client_settings(dialect: Dialect, bare: Request) -> Mapping[str, Any]:
    """The body of a request without messages, as its client would have sent it."""
    try:
        key = _encode(bare) if switch.is_on() else b""
    except (TypeError, ValueError, OverflowError, RecursionError):  # such as a lone surrogate
        key = b""
    if not 0 < len(key) <= _MAX_KEY_BYTES:
        return _encoded(dialect, bare)
    try:
        found: Mapping[str, Any] = loads(_cached(_CacheKey(dialect, bare, key)))
    except (InvalidInputError, _TooLargeError):
        return _encoded(dialect, bare)
    return found


class _TooLargeError(Exception):
    """The encoded settings are too large to cache."""


class _CacheKey:
    """Cache key: a dialect and a request, compared by its serialised form."""

    __slots__ = ("_key", "bare", "dialect")

    def __init__(self, dialect: Dialect, bare: Request, key: bytes) -> None:
        self.dialect = dialect
        self.bare = bare
        self._key = key

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _CacheKey):
            return NotImplemented
        return self.dialect is other.dialect and self._key == other._key


@lru_cache(maxsize=_MAX_CACHED)
def _cached(asked: _CacheKey) -> bytes:
    written = dumps(_encoded(asked.dialect, asked.bare))
    if len(written) > 2 * _MAX_KEY_BYTES:
        raise _TooLargeError
    return written


def _encoded(dialect: Dialect, bare: Request) -> Mapping[str, Any]:
    return dialect.encode_request(bare, repair=False).body
