"""Decompresses request bodies: gzip, deflate and zstd, never beyond a limit."""

from __future__ import annotations

import sys
import zlib
from typing import Any

from dragoman.errors import InvalidRequest

_IDENTITY = frozenset({"", "identity"})
_GZIP = 16 + zlib.MAX_WBITS
_MAX_ENCODINGS = 3
"""Encodings applied one after the other: each costs up to `most` bytes of work."""
_MAX_PARTS = 16
"""Compressed parts of one body: each makes a copy of the rest."""
_MAX_WINDOW_LOG = 23  # 8 MiB, the most that senders of zstd may ask for (RFC 9659)
_TOO_LARGE, _UNSUPPORTED, _BAD = 413, 415, 400


def decompressed(raw: bytes, encodings: str, most: int) -> bytes:
    """The body without its encodings, which are separated by commas; at most `most` bytes."""
    names = [name.strip() for name in encodings.lower().split(",")]
    names = [name for name in names if name not in _IDENTITY]
    if len(names) > _MAX_ENCODINGS:
        raise _unsupported()
    for name in reversed(names):
        raw = _decompressed(raw, name, most)
    return raw


def too_large(most: int) -> InvalidRequest:
    """The error for a body beyond the limit."""
    msg = f"the request body is larger than {most:,} bytes"
    return InvalidRequest(msg, status=_TOO_LARGE)


def _decompressed(raw: bytes, name: str, most: int) -> bytes:
    """One encoding; a body may consist of several compressed parts (RFC 1952, RFC 8878)."""
    found: list[bytes] = []
    left, rest = most, raw
    while rest or not found:
        if len(found) == _MAX_PARTS:
            raise _wrong()
        part, rest = _part(_decoder(name, rest), rest, left)
        found.append(part)
        left -= len(part)
        if left < 0:
            raise too_large(most)
    return b"".join(found)


def _part(decoder: Any, data: bytes, left: int) -> tuple[bytes, bytes]:
    """The next compressed part, and what follows it; one byte more than allowed at most."""
    try:
        found = decoder.decompress(data, left + 1)
        if len(found) <= left and not decoder.eof:  # the end mark may still be unread
            found += decoder.decompress(getattr(decoder, "unconsumed_tail", b""), 1)
    except Exception:  # noqa: BLE001 - each library has errors of its own
        raise _wrong() from None
    if len(found) <= left and not decoder.eof:
        raise _wrong()
    return found, decoder.unused_data if decoder.eof else b""


def _decoder(name: str, data: bytes) -> Any:
    match name:
        case "gzip" | "x-gzip":
            return zlib.decompressobj(_GZIP)
        case "deflate":
            # Some clients send it without its zlib header.
            is_raw = bool(data) and data[0] & 0xF != zlib.DEFLATED
            return zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS)
        case "zstd":
            return _zstd_decoder()
        case _:
            raise _unsupported()


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


def _zstd_decoder() -> Any:
    zstd = _zstd()
    if zstd is None:
        raise _unsupported()
    return zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG}
    )


def _wrong() -> InvalidRequest:
    msg = "the request body does not match its Content-Encoding header"
    return InvalidRequest(msg, status=_BAD)


def _unsupported() -> InvalidRequest:
    names = "gzip, deflate" if _zstd() is None else "gzip, deflate, zstd"
    msg = f"the request's Content-Encoding is not supported; use {names} or none"
    return InvalidRequest(msg, status=_UNSUPPORTED)
