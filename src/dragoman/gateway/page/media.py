"""Serves media and files of conversations, by message and part index."""

from __future__ import annotations

import re
from urllib.parse import quote

from dragoman.errors import Corrupt, InvalidInputError, NotFound
from dragoman.gateway.page.calls import Content, PageCall
from dragoman.gateway.page.conversations import found_in
from dragoman.history.records import message_of
from dragoman.interop.text_files import attached_names, content_of
from dragoman.model.content import AnyPart
from dragoman.model.media import Media, sniff
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.tools import ToolResult

_PLACE = re.compile(r"(\d{1,6})(?:\.(\d{1,6}))?")
_NO_ATTACHMENT = "there is no such attachment"
_BINARY = "application/octet-stream"
_SHOWN = frozenset({"image", "audio", "video"})
_SVG = "image/svg+xml"  # may contain scripts: never served with its own type


async def media(call: PageCall) -> Content:
    """Returns the bytes of a part."""
    storage, session = await found_in(call)
    row = await storage.row(session.identity, call.names["message"])
    if row is None:
        raise NotFound(_NO_ATTACHMENT)
    try:
        message = message_of(row.body)
    except Corrupt:
        raise NotFound(_NO_ATTACHMENT) from None
    return _content(message, call.names["place"])


def _content(message: Message, place: str) -> Content:
    found = _PLACE.fullmatch(place)
    part = None if found is None else _part(message, int(found[1]), found[2])
    if isinstance(part, Text) and (name := attached_names(message).get(place)):
        text = content_of(part.text, name).encode("utf-8", "replace")
        return Content(text, "text/plain; charset=utf-8", _named(name))
    if not isinstance(part, Media) or part.data is None:
        raise NotFound(_NO_ATTACHMENT)
    try:
        body = part.content
    except InvalidInputError:
        raise NotFound(_NO_ATTACHMENT) from None
    return Content(body, _mime(body, part), _named(part.name or "file"))


def _part(message: Message, place: int, inner: str | None) -> AnyPart | None:
    parts = message.parts
    part: AnyPart | None = parts[place] if place < len(parts) else None
    if inner is None:
        return part
    if not isinstance(part, ToolResult) or isinstance(part.content, str):
        return None
    return part.content[int(inner)] if int(inner) < len(part.content) else None


def _mime(body: bytes, part: Media) -> str:
    """Returns a safe MIME type. The message's claim alone is not trusted: it could be HTML."""
    mime = sniff(body[:64]) or part.mime or _BINARY
    is_shown = mime.partition("/")[0] in _SHOWN and mime != _SVG and mime.isascii()
    return mime if is_shown and re.fullmatch(r"[\w.+-]+/[\w.+-]+", mime) else _BINARY


def _named(name: str) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
