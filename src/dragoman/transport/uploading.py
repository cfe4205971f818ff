"""Uploads files to a provider, for messages to refer to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from dragoman.errors import InvalidInputError, TimeoutError, WireError  # noqa: A004 - ours
from dragoman.model.media import MAX_FILE_BYTES, Audio, File, Image, Media, Video, sniff
from dragoman.model.parts import Origin
from dragoman.model.value import expect
from dragoman.transport.exchanges import Answer, Line
from dragoman.transport.protocol import HttpRequest
from dragoman.wire.json_values import opened
from dragoman.wire.services import Piece, ToUpload, Uploaded, UploadFormat, services

AnyMedia = Image | Audio | Video | File
Source = bytes | bytearray | memoryview | str | PathLike[str] | Media

_KINDS: dict[str, type[AnyMedia]] = {"image": Image, "audio": Audio, "video": Video}
_MAX_POLLS, _PAUSE, _MAX_PAUSE = 120, 0.5, 5.0


async def upload(
    line: Line,
    source: Source,
    *,
    mime: str | None = None,
    name: str | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AnyMedia:
    """Upload a file; returns an image, audio, video or file part that refers to it.

    Takes content, a file path, or media with inline data. Returns when the file is usable: Gemini
    processes videos first.
    """
    found = line.needs(services(line.dialect).uploads, "uploads")
    if isinstance(source, (str, PathLike)):
        # Its own loader knows the limits, and the types by suffix.
        named = name or Path(source).name
        source = await asyncio.to_thread(File.from_path, source, mime, name=named)
    file = _file(source, mime, name)
    uploaded = await _uploaded(line, found, file)
    looks = 0
    while not uploaded.is_ready and found.place is not None:
        looks += 1
        if looks > _MAX_POLLS:
            msg = "the file was uploaded, but the provider did not finish processing it in time"
            raise TimeoutError(msg, sent=True)
        await sleep(min(_PAUSE * looks, _MAX_PAUSE))
        uploaded = await _looked_at(line, found, uploaded)
    return _part(line, file, uploaded)


def _part(line: Line, file: ToUpload, uploaded: Uploaded) -> AnyMedia:
    kind = _KINDS.get(file.mime.partition("/")[0], File)
    origin = Origin(dialect=line.dialect, provider=line.deployment.provider.name)
    return kind(file_id=uploaded.file_id, mime=file.mime, name=file.name, origin=origin)


# --- the content


def _file(
    source: bytes | bytearray | memoryview | Media, mime: str | None, name: str | None
) -> ToUpload:
    """The content with its type and name, as given or detected."""
    if isinstance(source, Media):
        mime, name = mime or source.mime, name or source.name
        content = source.content
    else:
        expect(source, (bytes, bytearray, memoryview), "what is uploaded")
        content = bytes(source)
    if len(content) > MAX_FILE_BYTES:
        msg = f"the file is larger than {MAX_FILE_BYTES} bytes"
        raise InvalidInputError(msg)
    found = ToUpload(content, mime or sniff(content[:32]) or "application/octet-stream", name or "")
    return _checked(found if found.name else found._replace(name="file"))


def _checked(file: ToUpload) -> ToUpload:
    expect(file.mime, str, "the mime type")
    expect(file.name, str, "the name of the file")
    if not file.mime.isascii() or not file.mime.isprintable():
        msg = "the mime type contains characters that are invalid in a header"
        raise InvalidInputError(msg)
    return file


# --- the requests


async def _uploaded(line: Line, found: UploadFormat, file: ToUpload) -> Uploaded:
    piece = found.start(file)
    message = line.deployment.request("upload", piece.body, headers=piece.headers)
    answer = await line.exchange(message)
    if found.finish is not None:
        finish = _finish(message, _address(answer, found, line), found.finish(file))
        answer = await line.exchange(finish)
    return found.decode(opened(answer.body, line.dialect))


def _address(answer: Answer, found: UploadFormat, line: Line) -> str:
    wanted = found.address.lower()
    for name, value in answer.headers.items():
        if name.lower() == wanted:
            return value
    msg = "the provider did not return an upload URL"
    raise WireError(msg, dialect=line.dialect)


def _finish(started: HttpRequest, address: str, piece: Piece) -> HttpRequest:
    """The second request, sent to the same host as the first, whatever host the URL names.

    So keys go nowhere else, and the user's own proxy stays in between.
    """
    scheme, host, *_ = urlsplit(started.url)
    _, _, path, query, _ = urlsplit(address)
    taken = {name.lower() for name in piece.headers}
    kept = {
        name: value
        for name, value in started.headers.items()
        if name.lower() not in taken and not name.lower().startswith("x-goog-upload-")
    }
    url = urlunsplit((scheme, host, path, query, ""))
    return HttpRequest(url=url, headers={**kept, **piece.headers}, body=piece.body)


async def _looked_at(line: Line, found: UploadFormat, uploaded: Uploaded) -> Uploaded:
    message = line.deployment.request("upload", method="GET")
    if found.place is not None:
        url = found.place(message.url, uploaded.file_id)
        message = msgspec.structs.replace(message, url=url)
    return found.decode(opened((await line.exchange(message)).body, line.dialect))
