"""Compressed bodies: valid ones are read, decompression bombs are rejected in time."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.gateway.abuse.stage import CANARY, MAX_BODY, Stage, refused
from tests.gateway.client_requests import body_for

pytestmark = pytest.mark.whole

zstd: Any = pytest.importorskip("backports.zstd")

MEBIBYTE = 1024 * 1024


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, Callable[[bytes], tuple[list[tuple[str, str]], bytes]]] = {
    "gzip": lambda body: ([("content-encoding", "gzip")], gzip.compress(body)),
    "x-gzip, upper case": lambda body: ([("content-encoding", "X-GZIP")], gzip.compress(body)),
    "two parts": lambda body: (
        [("content-encoding", "gzip")], gzip.compress(body[:9]) + gzip.compress(body[9:])),
    "deflate": lambda body: ([("content-encoding", "deflate")], zlib.compress(body)),
    "raw deflate": lambda body: ([("content-encoding", "deflate")], _raw_deflate(body)),
    "zstd": lambda body: ([("content-encoding", "zstd")], zstd.compress(body)),
    "two frames of zstd": lambda body: (
        [("content-encoding", "zstd")], zstd.compress(body[:9]) + zstd.compress(body[9:])),
    "zstd in gzip": lambda body: (
        [("content-encoding", "zstd, gzip")], gzip.compress(zstd.compress(body))),
    "two headers": lambda body: (
        [("content-encoding", "zstd"), ("content-encoding", "gzip")],
        gzip.compress(zstd.compress(body))),
    "identity": lambda body: ([("content-encoding", "identity,, identity")], body),
    "nothing packed": lambda body: ([("content-encoding", "gzip")], gzip.compress(b"") +
                                    gzip.compress(body)),
}  # fmt: skip


@pytest.mark.parametrize("kind", PACKED)
def test_compressed_bodies_are_read(stage: Stage, front: str, kind: str) -> None:
    """Every encoding that clients may send."""
    headers, data = PACKED[kind](json.dumps(body_for(front, CANARY)).encode())
    answer = stage.post(front, data, *headers)
    assert answer.status == 200, answer
    assert CANARY.encode() in stage.upstream.asked[-1].body


@cache
def _zeros(packed: Callable[[bytes], bytes]) -> bytes:
    """A bomb: packed when a test needs it, as every process of a run imports this module."""
    return packed(b"0" * (64 * MEBIBYTE))


_WIDE = zstd.compress(
    b'{"a":1}', options={zstd.CompressionParameter.window_log: 27,
                         zstd.CompressionParameter.content_size_flag: 0})  # fmt: skip
BOMBS: dict[str, tuple[str, bytes | Callable[[], bytes], int]] = {
    "gzip": ("gzip", lambda: _zeros(gzip.compress), 413),
    "deflate": ("deflate", lambda: _zeros(zlib.compress), 413),
    "raw deflate": ("deflate", lambda: _zeros(_raw_deflate), 413),
    "zstd": ("zstd", lambda: _zeros(zstd.compress), 413),
    "gzip in gzip": ("gzip, gzip", lambda: gzip.compress(_zeros(gzip.compress)), 413),
    "zstd in gzip": ("zstd, gzip", lambda: gzip.compress(_zeros(zstd.compress)), 413),
    "many parts": ("gzip", gzip.compress(b"0" * 100_000) * 16, 413),
    "many empty parts": ("gzip", gzip.compress(b"") * 50_000, 400),
    "many encodings": (",".join(["gzip"] * 100), gzip.compress(b"{}"), 415),
    "just too large": ("gzip", gzip.compress(b" " * (MAX_BODY + 1)), 413),
    "no gzip": ("gzip", b'{"model":"m"}', 400),
    "cut gzip": ("gzip", gzip.compress(b"{}" * 100)[:-3], 400),
    "bytes behind": ("gzip", gzip.compress(b"{}") + b"garbage", 400),
    "empty": ("gzip", b"", 400),
    "cut zstd": ("zstd", zstd.compress(b"{}" * 100)[:-3], 400),
    "no zstd": ("zstd", b"{}", 400),
    "brotli": ("br", b"{}", 415),
    "compress": ("compress", b"{}", 415),
    "unknown": ("\xff\xfe", b"{}", 415),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs_are_rejected(stage: Stage, front: str, kind: str) -> None:
    """A small body that expands beyond the limit, or to nothing, takes no memory."""
    stage.serves(front)
    before = stage.memory
    encoding, made, status = BOMBS[kind]
    data = made() if callable(made) else made
    refused(front, stage.post(front, data, ("content-encoding", encoding)), status)
    assert stage.memory - before < 16 * MEBIBYTE
    stage.serves(front)


def test_a_large_window_is_rejected(stage: Stage, front: str) -> None:
    """For a zstd frame with a window beyond what HTTP allows."""
    assert _WIDE[:4] == b"\x28\xb5\x2f\xfd"
    wide = _WIDE[:4] + bytes([_WIDE[4] & 0xDF, 0xA8]) + b"\x01\x00\x00"  # 2**31 bytes
    refused(front, stage.post(front, wide, ("content-encoding", "zstd")), 400)
    stage.serves(front)
