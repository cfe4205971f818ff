"""Estimates the tokens of images, audio, video and documents, from the sizes in their headers.

Every provider counts them differently, and none by bytes. The numbers follow the more expensive
ones: images are counted by pixels, audio and video by duration, documents by pages. Media that are
not inline (a URL, an uploaded file) count as average.

Headers are not trusted: a wrong or truncated header gives an average file, and no header can give
more tokens for an image than providers count, as they scale large images down.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from math import ceil

from dragoman.model.media import Audio, Image, Media, Video

_IMAGE = 500  # not inline: recorded ones were counted as 170 to 1,100
_AUDIO = 200
_VIDEO = 300
_PAGE = 1_500  # a page as text and as an image
_DOCUMENT = 1_000

_LOW_DETAIL = 85  # OpenAI's; others count as usual, or have no such setting
_MIN_IMAGE = 258  # Gemini's
_MAX_IMAGE = 1_600  # Claude's
_EDGE = 1_568  # the size that Claude scales down to
_PIXELS_PER_TOKEN = 750  # Claude's
_TILE = 512  # OpenAI's, for an image scaled to fit 2048 by 2048, and 768 on the shorter side
_TILE_TOKENS = 170
_WIDE, _SHORT = 2_048, 768

_AUDIO_RATE = 32  # tokens per second: Gemini's, three times OpenAI's
_VIDEO_RATE = 300  # Gemini's
_RAW_SOUND = 32_000  # bytes per second: 16 kHz, 16 bits, mono
_PACKED_SOUND = 8_000  # 64 kbit/s
_PACKED_FILM = 125_000  # 1 Mbit/s
_PACKED_TEXT = 6  # bytes per token of an office document, which is zipped XML
_PLAIN_TEXT = 3
_PAGE_BYTES = 100_000  # for PDFs whose pages are in compressed objects

_HEAD_CHARS = 350_000  # of base64: in a JPEG, previews and colour profiles precede the size
_SOUND_CHARS = 60
_PAGES = re.compile(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_RAW_SOUNDS = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/pcm", "audio/flac"})
_TEXTS = ("text/", "application/json", "application/xml", "application/yaml")
_URL_SAFE = str.maketrans("-_", "+/")


def media_tokens(media: Media) -> int:
    """The estimated tokens of a media part in a prompt."""
    if isinstance(media, Image):
        return _image(media)
    size = None if media.data is None else len(media.data) * 3 // 4
    if isinstance(media, Audio):
        return _AUDIO if size is None else ceil(_AUDIO_RATE * size / _sound_rate(media))
    if isinstance(media, Video):
        return _VIDEO if size is None else max(_VIDEO_RATE, _VIDEO_RATE * size // _PACKED_FILM)
    return _DOCUMENT if size is None else _document(media, size)


def _image(image: Media) -> int:
    if image.detail == "low":
        return _LOW_DETAIL
    size = None if image.data is None else dimensions(_decoded(image.data, _HEAD_CHARS))
    return _IMAGE if size is None else image_tokens(*size)


def image_tokens(width: int, height: int) -> int:
    """The most expensive of the common counts for an image of this size."""
    shrink = min(1.0, _EDGE / max(width, height))
    by_area = min(_MAX_IMAGE, ceil(width * shrink * height * shrink / _PIXELS_PER_TOKEN))
    return max(_MIN_IMAGE, by_area, _LOW_DETAIL + _TILE_TOKENS * _tiles(width, height))


def _tiles(width: int, height: int) -> int:
    shrink = min(1.0, _WIDE / max(width, height))
    shrink *= min(1.0, _SHORT / max(1.0, min(width, height) * shrink))
    return ceil(width * shrink / _TILE) * ceil(height * shrink / _TILE)


def _sound_rate(audio: Media) -> int:
    """Bytes per second: from a WAV header if plausible, otherwise a typical value."""
    head = _decoded(audio.data or "", _SOUND_CHARS)
    if head.startswith(b"RIFF") and head[8:16] == b"WAVEfmt ":
        stated = int.from_bytes(head[28:32], "little")
        return min(max(stated, _PACKED_SOUND), 2_000_000)
    return _RAW_SOUND if audio.mime in _RAW_SOUNDS else _PACKED_SOUND


def _document(document: Media, size: int) -> int:
    mime = document.mime or ""
    if mime.startswith(_TEXTS):
        return size // _PLAIN_TEXT
    if mime == "application/pdf" or (document.data or "").startswith("JVBERi"):  # %PDF
        return _PAGE * _pages(_decoded(document.data or ""))
    return max(_DOCUMENT, size // _PACKED_TEXT)


def _pages(pdf: bytes) -> int:
    return len(_PAGES.findall(pdf)) or ceil(len(pdf) / _PAGE_BYTES) or 1


def _decoded(data: str, chars: int | None = None) -> bytes:
    """The decoded bytes, or the first of them; empty if it is not base64."""
    head = data[:chars].translate(_URL_SAFE)
    try:
        return b64decode(head[: len(head) // 4 * 4] if chars else head)
    except (binascii.Error, ValueError):
        return b""


def dimensions(head: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, JPEG, GIF or WebP file, or `None`."""
    size = None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = _big(head, 16, 4), _big(head, 20, 4)
    elif head.startswith(b"GIF8"):
        size = _little(head, 6, 2), _little(head, 8, 2)
    elif head.startswith(b"\xff\xd8\xff"):
        size = _jpeg(head)
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        size = _webp(head)
    return size if size and all(size) else None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """The size in the first frame header; skips the segments before it."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:  # noqa: PLR2004 - the start of every marker
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:  # noqa: PLR2004 - SOF0 to SOF15
            return _big(head, at + 7, 2), _big(head, at + 5, 2)
        at += 2 + max(2, _big(head, at + 2, 2))  # always moves forward, even if the length is wrong
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    form = head[12:16]
    if form == b"VP8 ":
        return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    if form == b"VP8L":
        bits = _little(head, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X":
        return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    return None


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
