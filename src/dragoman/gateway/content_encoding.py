"""Decompresses request bodies while they arrive: gzip, deflate and zstd, in small steps."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from typing import Any

from dragoman.errors import InvalidRequest

STEP = 256 * 1024
"""Bytes that are decompressed at a time; the event loop runs in between."""
_FED = 64 * 1024
"""Compressed bytes that are read at a time: what a step leaves of them is copied."""
_IDENTITY = frozenset({"", "identity"})
_GZIP = 16 + zlib.MAX_WBITS
_MAX_ENCODINGS = 3
"""Encodings applied one after the other: each costs as much work as another body."""
_MAX_PARTS = 16
"""Compressed parts of one body (RFC 1952, RFC 8878): each makes a copy of the rest."""
_MAX_WINDOW_LOG = 23  # 8 MiB, the most that senders of zstd may ask for (RFC 9659)
_FREE = 1024 * 1024
"""Decompressed bytes that may have any ratio: small bodies can't cost much."""
_TOO_LARGE, _UNSUPPORTED, _BAD = 413, 415, 400


def too_large(most: int) -> InvalidRequest:
    """The error for a body beyond the limit."""
    msg = f"the request body is larger than {most:,} bytes"
    return InvalidRequest(msg, status=_TOO_LARGE)


class Decompression:
    """Removes the encodings of a body, which are separated by commas, piece by piece.

    `most` and `ratio` limit what each encoding expands to: in bytes, and as a multiple of what the
    client sent.
    """

    def __init__(self, encodings: str, most: int, ratio: int) -> None:
        names = [name.strip() for name in encodings.lower().split(",")]
        names = [name for name in names if name not in _IDENTITY]
        if len(names) > _MAX_ENCODINGS:
            raise _unsupported()
        self._layers = [_Layer(name) for name in reversed(names)]
        self._most = most
        self._ratio = ratio
        self._arrived = 0

    def feed(self, raw: bytes) -> Iterator[bytes]:
        """What follows from the next bytes, in pieces of at most `STEP` bytes, some of them empty.

        Take one, and let the event loop run before the next one.
        """
        self._arrived += len(raw)
        size = _FED if self._layers else STEP
        for begin in range(0, len(raw), size):
            yield from self._through(0, raw[begin : begin + size])

    def close(self) -> None:
        """Raise an error unless all parts are complete."""
        if not all(layer.is_complete for layer in self._layers):
            raise _wrong()

    def _through(self, number: int, data: bytes) -> Iterator[bytes]:
        if number == len(self._layers):
            yield data
            return
        layer = self._layers[number]
        for piece in layer.feed(data):
            if layer.size > self._most:
                raise too_large(self._most)
            if layer.size > max(_FREE, self._ratio * self._arrived):
                msg = (
                    f"the request body expands to more than {self._ratio:,} times its compressed"
                    " size (the server's limit `max_ratio`); send it with less or no compression"
                )
                raise InvalidRequest(msg, status=_TOO_LARGE)
            yield from self._through(number + 1, piece)


class _Layer:
    """One encoding of a body, which may consist of several compressed parts."""

    def __init__(self, name: str) -> None:
        self._name = name
        _expect_known(name)
        self._decoder: Any = None
        self._parts = 0
        self.size = 0
        """Bytes that it expanded to so far."""

    @property
    def is_complete(self) -> bool:
        """Whether the last part has ended, and there was one."""
        return self._parts > 0 and self._decoder is None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What follows from the next bytes."""
        is_full = False
        while data or is_full:
            if self._decoder is None:
                self._begin(data)
            found, data = self._next(data)
            is_full = len(found) == STEP and self._decoder is not None
            self.size += len(found)
            yield found

    def _begin(self, data: bytes) -> None:
        if self._parts == _MAX_PARTS:
            raise _wrong()
        self._parts += 1
        self._decoder = _decoder(self._name, data)

    def _next(self, data: bytes) -> tuple[bytes, bytes]:
        """The next decompressed bytes, and the compressed ones that are still to be read."""
        decoder = self._decoder
        try:
            found = decoder.decompress(data, STEP)
        except Exception:  # noqa: BLE001 - each library has errors of its own
            found = None
        if found is None:
            raise _wrong()
        if decoder.eof:
            self._decoder = None
            return found, decoder.unused_data
        return found, getattr(decoder, "unconsumed_tail", b"")  # zstd keeps it


def _expect_known(name: str) -> None:
    if name not in {"gzip", "x-gzip", "deflate"} and (name != "zstd" or _zstd() is None):
        raise _unsupported()


def _decoder(name: str, data: bytes) -> Any:
    match name:
        case "zstd":
            zstd = _zstd()
            options = {zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG}
            return zstd.ZstdDecompressor(options=options)
        case "deflate":
            # Some clients send it without its zlib header.
            is_raw = data[0] & 0xF != zlib.DEFLATED
            return zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS)
        case _:
            return zlib.decompressobj(_GZIP)


def _zstd() -> Any:
    """The module for zstd: part of Python from 3.14 on; None where it is missing."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        return None
    return zstd


def _wrong() -> InvalidRequest:
    msg = "the request body does not match its Content-Encoding header"
    return InvalidRequest(msg, status=_BAD)


def _unsupported() -> InvalidRequest:
    names = "gzip, deflate" if _zstd() is None else "gzip, deflate, zstd"
    msg = f"the request's Content-Encoding is not supported; use {names} or none"
    return InvalidRequest(msg, status=_UNSUPPORTED)
