"""Estimates the tokens of texts, media, parts, messages and tools in a prompt."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from math import ceil
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, Image, Media, Video
from dragoman.model.messages import Message
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolCall, ToolResult

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


# --- media, by the sizes in their headers
#
# Every provider counts them differently, and none by bytes. The numbers follow the more expensive
# ones: images are counted by pixels, audio and video by duration, documents by pages. Media that
# are not inline (a URL, an uploaded file) count as average.
#
# Headers are not trusted: a wrong or truncated header gives an average file, and no header can
# give more tokens for an image than providers count, as they scale large images down.


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


# --- messages, parts and tools


_PER_MESSAGE = 5
_PER_CALL = 10
_PER_RESULT = 7
_PER_TOOL = 12
_ANY_TOOL = 150
_PER_SERVER_TOOL = 300  # the provider's own description of it
_SEALED_CHARS = 10  # characters of a signature or of sealed thinking per token of thinking
_SEALED_RESULT_CHARS = 2.6


class Size(NamedTuple):
    """An estimate in three components, because providers weigh them differently."""

    text: float = 0.0
    frame: float = 0.0
    """The overhead of messages, calls and results."""
    media: int = 0

    def __add__(self, other: Size) -> Size:  # type: ignore[override]  # a sum, not concatenation
        text, frame, media = other
        return Size(self.text + text, self.frame + frame, self.media + media)

    def __sub__(self, other: Size) -> Size:
        text, frame, media = other
        return Size(self.text - text, self.frame - frame, self.media - media)

    @property
    def written(self) -> float:
        """Everything except media."""
        return self.text + self.frame

    @property
    def total(self) -> int:
        """The total in tokens."""
        return ceil(self.text + self.frame) + self.media


def size_of_message(message: Message) -> Size:
    """The estimated size of a message."""
    return size_of_parts(message.parts) + Size(text_tokens(message.name), _PER_MESSAGE)


def size_of_parts(parts: Iterable[Part]) -> Size:
    """The estimated size of parts."""
    text, frame, media = 0.0, 0.0, 0
    for part in parts:
        if isinstance(part, Media):
            media += media_tokens(part)
            continue
        frame += _FRAMES.get(type(part), 0)
        if isinstance(part, ToolResult) and not isinstance(part.content, str):
            inner = size_of_parts(part.content)
            text, frame, media = text + inner.text, frame + inner.frame, media + inner.media
        else:
            cost = _COSTS.get(type(part))
            text += cost(part) if cost else 0
    return Size(text, frame, media)


def size_of_tools(tools: Iterable[AnyTool]) -> Size:
    """The estimated size of tool definitions."""
    costs = list(map(_tool, tools))
    return Size(sum(costs) + _ANY_TOOL) if costs else Size()


def _tool(tool: AnyTool) -> float:
    if isinstance(tool, ServerTool):
        return _PER_SERVER_TOOL + json_tokens(tool.payload)
    schema = json_tokens(tool.parameters) if tool.parameters else json_tokens(tool.format)
    return _PER_TOOL + text_tokens(tool.name) + text_tokens(tool.description) + schema


def _thinking(part: Thinking) -> float:
    """The larger of text and sealed data, because the text may be only a summary."""
    sealed = len(part.data or "") + len(part.signature or "")
    return max(text_tokens(part.text), sealed / _SEALED_CHARS)


def _call(part: ToolCall) -> float:
    said = json_tokens(part.input) if part.raw is None else text_tokens(part.raw)
    return text_tokens(part.name) + said


def _result(part: ToolResult) -> float:
    said = text_tokens(part.content)
    return said if said or part.data is UNSET else json_tokens(part.data)


def _server_call(part: ServerToolCall) -> float:
    return text_tokens(part.name) + json_tokens(part.input)


def _seal(part: Part) -> float:
    """The size of a sealed part, as far as it is in its signature."""
    return len(part.signature or "") / _SEALED_CHARS


def _sealed(value: Any) -> float:
    """The size of provider-internal data, which may be sealed and then longer than its content."""
    return min(json_tokens(value), len(dumped(value)) / _SEALED_RESULT_CHARS)


_COSTS: dict[type, Callable[[Any], float]] = {
    Text: lambda part: text_tokens(part.text),
    Refusal: lambda part: text_tokens(part.text),
    Thinking: _thinking,
    ToolCall: _call,
    ToolResult: _result,
    ServerToolCall: lambda part: max(_server_call(part), _seal(part)),
    ServerToolResult: lambda part: max(_sealed(part.content), _seal(part)),
    Opaque: lambda part: _sealed(part.payload),
}
_FRAMES: dict[type, int] = {
    ToolCall: _PER_CALL,
    ServerToolCall: _PER_CALL,
    ToolResult: _PER_RESULT,
    ServerToolResult: _PER_RESULT,
}
