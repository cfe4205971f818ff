"""Decompression of response bodies, in bounded steps."""

from __future__ import annotations

import zlib
from typing import Any

from dragoman.transport.direct.unreadable import Unreadable
from dragoman.transport.failures import incomplete

_GZIP = 16 + zlib.MAX_WBITS
_WINDOW_BITS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}
_STEP = 256 * 1024
"""Bytes that are decompressed at a time, so that a reader with a limit can stop in between."""


class Inflater:
    """Decompresses a body that the server compressed without being asked to."""

    def __init__(self, encoding: str) -> None:
        if encoding not in _WINDOW_BITS:
            raise Unreadable
        self._bits = _WINDOW_BITS[encoding]
        self._zlib: Any = None
        self._waiting = b""

    def feed(self, data: bytes) -> None:
        """Take the next compressed bytes."""
        if self._zlib is None:
            # Some servers send deflate without its zlib header.
            is_raw = self._bits == zlib.MAX_WBITS and data[0] & 0xF != zlib.DEFLATED
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else self._bits)
        self._waiting += data

    def unpacked(self) -> bytes:
        """The next decompressed bytes; empty: more input is needed."""
        if not self._waiting or self._zlib.eof:
            return b""
        try:
            found: bytes = self._zlib.decompress(self._waiting, _STEP)
        except zlib.error:
            problem = incomplete()
        else:
            self._waiting = self._zlib.unconsumed_tail
            return found
        raise problem

    def expect_end(self) -> None:
        """Raise if the compressed body is incomplete."""
        if self._zlib is not None and not self._zlib.eof:
            raise incomplete()
