"""Images, audio, video and files: inline as base64, by URL, or by the id of an uploaded file.

Nothing here fetches a URL; only `from_path` reads a file.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterator
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, Self
from urllib.parse import unquote_to_bytes

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Part
from dragoman.model.value import expect, expect_fields, own_mapping

MAX_FILE_BYTES = 512 * 1024 * 1024
"""Maximum size of a file for `from_path`: more than any provider accepts inline."""

_SNIFF_BYTES = 32
_SNIFF_CHARS = 44  # base64 of at least that many bytes

# MIME type, magic bytes and their offset.
_MAGIC: tuple[tuple[str, bytes, int], ...] = (
    ("image/png", b"\x89PNG\r\n\x1a\n", 0),
    ("image/jpeg", b"\xff\xd8\xff", 0),
    ("image/gif", b"GIF8", 0),
    ("image/webp", b"WEBP", 8),
    ("image/bmp", b"\x00\x00\x00\x00", 6),
    ("image/tiff", b"II*\x00", 0),
    ("image/tiff", b"MM\x00*", 0),
    ("image/heic", b"ftypheic", 4),
    ("image/avif", b"ftypavif", 4),
    ("audio/wav", b"WAVE", 8),
    ("audio/mpeg", b"ID3", 0),
    ("audio/mpeg", b"\xff\xfb", 0),
    ("audio/mpeg", b"\xff\xf3", 0),
    ("audio/mpeg", b"\xff\xf2", 0),
    ("audio/flac", b"fLaC", 0),
    ("audio/ogg", b"OggS", 0),
    ("audio/aac", b"\xff\xf1", 0),
    ("audio/mp4", b"ftypM4A", 4),
    ("video/webm", b"\x1aE\xdf\xa3", 0),
    ("video/quicktime", b"ftypqt", 4),
    ("video/mp4", b"ftyp", 4),
    ("video/x-msvideo", b"AVI ", 8),
    ("application/pdf", b"%PDF-", 0),
    ("application/zip", b"PK\x03\x04", 0),
    ("application/gzip", b"\x1f\x8b", 0),
)

# RIFF contains images, audio and video: the tag at offset 8 counts only inside it. Many texts start
# with BM: a bitmap also has four zero bytes at offset 6.
_LEADS = {8: b"RIFF", 6: b"BM"}

# Replaces `mimetypes`, which depends on the system's tables: this is the same on every machine.
_BY_SUFFIX = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".svg": "image/svg+xml",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".opus": "audio/opus",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".mov": "video/quicktime",
    ".avi": "video/x-msvideo",
    ".pdf": "application/pdf",
    ".json": "application/json",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".md": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xml": "application/xml",
    ".txt": "text/plain",
    ".rtf": "application/rtf",
    ".doc": "application/msword",
    ".xls": "application/vnd.ms-excel",
    ".ppt": "application/vnd.ms-powerpoint",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".docm": "application/vnd.ms-word.document.macroenabled.12",
    ".xlsm": "application/vnd.ms-excel.sheet.macroenabled.12",
    ".pptm": "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".epub": "application/epub+zip",
}

# Documents that are zip archives: the file name says more than the bytes.
_ARCHIVE = "application/zip"
_ARCHIVES = frozenset(
    _BY_SUFFIX[suffix]
    for suffix in (
        *(".docx", ".xlsx", ".pptx", ".docm", ".xlsm", ".pptm"),
        *(".odt", ".ods", ".odp", ".epub"),
    )
)

_AUDIO_FORMATS = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "opus": "audio/opus",
    "ogg": "audio/ogg",
    "aac": "audio/aac",
    "m4a": "audio/mp4",
    "webm": "audio/webm",
    "pcm16": "audio/pcm",
}
_FORMAT_OF = {mime: name for name, mime in _AUDIO_FORMATS.items()} | {
    "audio/mp3": "mp3",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
}


def sniff(head: bytes) -> str | None:
    """Detects the MIME type from the first bytes of a file, or returns `None`."""
    for mime, magic, offset in _MAGIC:
        found = head[offset : offset + len(magic)] == magic
        if found and head.startswith(_LEADS.get(offset, b"")):
            return mime
    return None


def opening_of(mime: str | None) -> bytes | None:
    """The shortest prefix that `sniff` detects as this type, or `None`.

    >>> sniff(opening_of("image/webp") or b"")
    'image/webp'
    """
    for found, magic, offset in _MAGIC:
        if found == mime:
            return _LEADS.get(offset, b"").ljust(offset, b"\0") + magic
    return None


def mime_of(head: bytes, name: str) -> str | None:
    r"""The MIME type of a file, from its first bytes, or otherwise from its name.

    >>> mime_of(b"PK\x03\x04", "letter.odt")
    'application/vnd.oasis.opendocument.text'
    """
    found = sniff(head[:_SNIFF_BYTES])
    named = _BY_SUFFIX.get(PurePath(name).suffix.lower())
    return named if found is None or (found == _ARCHIVE and named in _ARCHIVES) else found


def sniff_base64(data: str) -> str | None:
    """Like `sniff`, for base64; decodes only the first few characters."""
    head = data[:_SNIFF_CHARS]
    try:
        return sniff(b64decode(head[: len(head) // 4 * 4]))
    except (binascii.Error, ValueError):
        return None


class Media(Part, frozen=True):
    """Common base of the media types. Exactly one of `data`, `url` and `file_id` is set."""

    data: str | None = None
    """Base64, without a `data:` prefix."""
    url: str | None = None
    """A URL that the provider fetches."""
    file_id: str | None = None
    """The id of a file uploaded to the provider."""
    mime: str | None = None
    """The MIME type."""
    name: str | None = None
    """The file name."""
    detail: str | None = None
    """The resolution for image input: `auto`, `low` or `high`."""

    _fallback_mime = "application/octet-stream"

    def __post_init__(self) -> None:
        if (self.data is None) + (self.url is None) + (self.file_id is None) != 2:  # noqa: PLR2004 - one of three is set
            name = type(self).__name__
            msg = f"{name} needs exactly one of data, url and file_id (see {name}.from_bytes)"
            raise InvalidInputError(msg)
        expect_fields(self, data=str, url=str, file_id=str, mime=str, name=str, detail=str)
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    @classmethod
    def from_bytes(cls, content: bytes, mime: str | None = None, **fields: Any) -> Self:
        """Creates the part from bytes; the MIME type is detected from them if not given."""
        expect(content, (bytes, bytearray, memoryview), f"{cls.__name__} content")
        mime = mime or sniff(bytes(content[:_SNIFF_BYTES])) or cls._fallback_mime
        return cls(data=b64encode(content).decode("ascii"), mime=mime, **fields)

    @classmethod
    def from_base64(cls, data: str, mime: str | None = None, **fields: Any) -> Self:
        """Creates the part from base64, which is validated and kept as is, or from a data URL."""
        expect(data, str, f"{cls.__name__} data")
        if data.startswith("data:"):
            return cls.from_data_url(data, mime, **fields)
        if not _is_base64(data):
            msg = f"{cls.__name__} data is not base64"
            raise InvalidInputError(msg)
        return cls(data=data, mime=mime or sniff_base64(data) or cls._fallback_mime, **fields)

    @classmethod
    def from_data_url(cls, url: str, mime: str | None = None, **fields: Any) -> Self:
        """Creates the part from `data:image/png;base64,…`; other encodings become base64."""
        expect(url, str, f"{cls.__name__} data URL")
        declared, data = split_data_url(url)
        if data is None or not _is_base64(data):
            msg = f"{cls.__name__} got a malformed data URL"
            raise InvalidInputError(msg)
        return cls(data=data, mime=mime or declared or sniff_base64(data), **fields)

    @classmethod
    def from_url(cls, url: str, mime: str | None = None, **fields: Any) -> Self:
        """Creates the part from a URL that the provider fetches; this library never does."""
        expect(url, str, f"{cls.__name__} url")
        if url.startswith("data:"):
            return cls.from_data_url(url, mime, **fields)
        scheme, colon, rest = url.partition(":")
        if not (colon and rest and scheme.isascii() and scheme.replace("+", "").isalnum()):
            msg = f"{cls.__name__} url must start with a scheme such as https:"
            raise InvalidInputError(msg)
        return cls(url=url, mime=mime, **fields)

    @classmethod
    def from_file_id(cls, file_id: str, mime: str | None = None, **fields: Any) -> Self:
        """Creates the part from the id of a file uploaded to the provider."""
        expect(file_id, str, f"{cls.__name__} file id")
        if not file_id:
            msg = f"{cls.__name__} file id is empty"
            raise InvalidInputError(msg)
        return cls(file_id=file_id, mime=mime, **fields)

    @classmethod
    def from_path(cls, path: str | PathLike[str], mime: str | None = None, **fields: Any) -> Self:
        """Reads a file immediately. The file name is kept unless `name` is given."""
        reason = None
        content = b""
        expect(path, (str, PathLike), f"{cls.__name__} path")
        file = Path(path)
        try:
            with file.open("rb") as stream:
                content = stream.read(MAX_FILE_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "the path is not valid"
        if reason is None and len(content) > MAX_FILE_BYTES:
            reason = f"it is larger than {MAX_FILE_BYTES} bytes"
        if reason is not None:  # outside the handler, so that no exception context quotes the path
            msg = f"{cls.__name__}.from_path can't read the file: {reason}"
            raise InvalidInputError(msg)
        fields.setdefault("name", file.name)
        return cls.from_bytes(content, mime or mime_of(content, file.name), **fields)

    @property
    def content(self) -> bytes:
        """The decoded inline data; raises `InvalidInputError` for a URL or an uploaded file."""
        if self.data is None:
            msg = f"this {type(self).__name__} has no inline data"
            raise InvalidInputError(msg)
        try:
            return b64decode(self.data)
        except (binascii.Error, ValueError):
            msg = f"this {type(self).__name__}'s data is not base64"
        raise InvalidInputError(msg)

    @property
    def data_url(self) -> str:
        """`data:…;base64,…` for inline media, otherwise the URL."""
        if self.data is not None:
            return f"data:{self.mime or self._fallback_mime};base64,{self.data}"
        if self.url is not None:
            return self.url
        msg = f"this {type(self).__name__} is an uploaded file and has no URL"
        raise InvalidInputError(msg)

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.data, self.url, self.file_id, self.mime, self.name, self.detail)

    def _sizes(self) -> Iterator[str]:
        if self.mime:
            yield self.mime if self.mime in _KNOWN_MIMES else "other type"
        if self.data is not None:
            yield f"{len(self.data) * 3 // 4} bytes"
        else:
            yield "url" if self.url is not None else "uploaded"


class Image(Media, frozen=True, tag="image"):
    """An image."""

    _fallback_mime = "image/png"


class Audio(Media, frozen=True, tag="audio"):
    """Audio, with a transcript if the model produced it."""

    transcript: str | None = None

    _fallback_mime = "audio/wav"

    @classmethod
    def from_format(cls, data: str, audio_format: str, **fields: Any) -> Audio:
        """Creates the part from base64 and one of OpenAI's format names, such as `wav` or `mp3`."""
        return cls.from_base64(data, audio_mime(audio_format), **fields)

    @property
    def format(self) -> str:
        """The short format name, such as `wav` or `mp3`."""
        mime = self.mime or self._fallback_mime
        return _FORMAT_OF.get(mime) or mime.removeprefix("audio/")

    def check(self) -> None:
        """Raises if a field has the wrong type."""
        expect_fields(self, transcript=str)
        Media.check(self)

    def _compared_fields(self) -> tuple[Any, ...]:
        return (*Media._compared_fields(self), self.transcript)


class Video(Media, frozen=True, tag="video"):
    """A video."""

    _fallback_mime = "video/mp4"


class File(Media, frozen=True, tag="file"):
    """A document, such as a PDF, text or spreadsheet."""


_KNOWN_MIMES = frozenset(mime for mime, _, _ in _MAGIC) | frozenset(_BY_SUFFIX.values())


def audio_mime(audio_format: str) -> str:
    """The MIME type of a short audio format name."""
    expect(audio_format, str, "the format of audio")
    return _AUDIO_FORMATS.get(audio_format) or f"audio/{audio_format}"


def split_data_url(url: str) -> tuple[str | None, str | None]:
    """The MIME type and base64 of a data URL, or `(None, None)` if it is not one."""
    header, comma, data = url.partition(",")
    if not comma or not header.startswith("data:"):
        return None, None
    mime, *parameters = header[5:].split(";")
    if "base64" in parameters:
        return mime or None, data
    return mime or None, b64encode(unquote_to_bytes(data)).decode("ascii")


def _is_base64(data: str) -> bool:
    try:
        b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
