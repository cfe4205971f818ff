"""Export and import of conversations, in the formats of `dragoman convert`; export as Markdown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from dragoman.errors import (
    ConfigError,
    Corrupt,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    NotFound,
)
from dragoman.gateway.large_bodies import check_values
from dragoman.gateway.page.branches import expect_branch
from dragoman.gateway.page.calls import Content, PageCall
from dragoman.gateway.page.conversations import found_in, new_identity
from dragoman.gateway.page.gateway_info import MARKDOWN
from dragoman.gateway.page.listing import MAX_TITLE, note_tags
from dragoman.gateway.reports import report_headers
from dragoman.history.branches import read_path, stretches
from dragoman.history.records import message_of
from dragoman.history.session_summaries import TITLE, looked_at
from dragoman.history.transfer import exported_messages, import_messages
from dragoman.interop.chat_exports import ChatBranch
from dragoman.interop.markdown import markdown, markdown_losses
from dragoman.interop.text_files import attached_names, content_of
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.media import Media, sniff
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.tools import ToolResult
from dragoman.providers.documents.batches import batches
from dragoman.providers.documents.conversations import UNPACK, ZIP, messages_of
from dragoman.providers.documents.reading import Document, Reader, StoredMessages
from dragoman.providers.documents.splitting import Piece
from dragoman.providers.documents.writing import Destination, Written

# --- media and files, by message and part index

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


# --- export and import

_JSON = "application/json"
_MARKDOWN = "text/markdown; charset=utf-8"
_MAX_IMPORTED = 1000  # conversations in one file
_MAX_LOSSES = 1000
_MAX_VALUES = 500_000  # of one conversation
_CHUNK = 512 * 1024
_UNSAFE = re.compile(r"[^\w .()-]+")
_NO_FORMAT = "unknown format; `info` lists the supported formats"


# --- export


async def exported(call: PageCall) -> Content:
    """Exports a branch of a conversation as a file; by default the active branch."""
    storage, session = await found_in(call)
    name = call.query.get("format", "canonical")
    branch = expect_branch(session, call.number("branch", session.active, 2**31))
    rows = await read_path(storage, session.identity, stretches(session, branch))
    messages = Messages.wrapping([message_of(row.body) for row in rows])
    listed = (await looked_at(storage, [session]))[0]
    title = listed.title or listed.first_line or "conversation"
    if name == MARKDOWN:
        text = await asyncio.to_thread(markdown, messages, title)
        headers = _file(title, "md") | report_headers(markdown_losses(messages), [])
        return Content(text.encode(errors="replace"), _MARKDOWN, headers)
    written = await asyncio.to_thread(_written, name, messages)
    report = report_headers(list(written.losses), list(written.repairs))
    return Content(written.text, _JSON, _file(title, "json") | report)


def _file(title: str, extension: str) -> dict[str, str]:
    """Returns the header that makes the response a download, named after the conversation."""
    stem = _UNSAFE.sub("_", title)[:80].strip() or "conversation"
    file = quote(f"{stem}.{extension}", safe="")
    return {"content-disposition": f"attachment; filename*=UTF-8''{file}"}


def _written(name: str, messages: Messages) -> Written:
    try:
        destination = Destination(name)
    except ConfigError:
        destination = None
    if destination is None:
        raise InvalidRequest(_NO_FORMAT, status=400)
    return destination.text_of(messages)


# --- import


async def imported(call: PageCall) -> Any:
    """Imports the conversations of a file; reports those that can't be read as losses."""
    body, name = await call.body(), call.query.get("name", "")
    found, losses = await asyncio.to_thread(_read, body, name)
    storage = await call.page.storage()
    conversations: list[dict[str, Any]] = []
    for each in found:
        identity = new_identity()
        await import_messages(storage, identity, each.messages, branches=each.branches)
        session = await storage.session(identity)
        listed = (await looked_at(storage, [session] if session is not None else []))[0]
        await note_tags(storage, identity.digest, has_tags=bool(listed.tags))
        conversations.append(
            {
                "id": identity.digest,
                "title": listed.title or listed.first_line,
                "messages": listed.messages,
            }
        )
    return {"conversations": conversations, "losses": losses}


class _Imported(NamedTuple):
    messages: list[Message]
    branches: tuple[ChatBranch, ...] = ()


def _read(body: bytes, name: str) -> tuple[list[_Imported], list[dict[str, Any]]]:
    found: list[_Imported] = []
    losses: list[dict[str, Any]] = []
    if body.startswith(ZIP):
        raise InvalidRequest(UNPACK, status=400)
    reader = Reader(read_session=_stored)
    for place, piece in enumerate(_documents(body, name)):
        if len(found) >= _MAX_IMPORTED or len(losses) >= _MAX_LOSSES:
            losses.append(_loss(place, "too much for one import; the rest of the file was skipped"))
            break
        problem = piece.problem
        if problem is None:
            try:
                check_values(piece.raw, _MAX_VALUES)
                document = reader.read(piece.raw)
                made = _imported(document)
            except DragomanError as error:
                problem = str(error)
            else:
                found.append(made)
                if document.chat is None:  # with the branches, nothing of an export is lost
                    losses += [_loss(place, loss.reason, loss.path) for loss in document.losses]
        if problem is not None:
            losses.append(_loss(place, problem))
    _entitled(found, _title(name))
    return found, losses


def _imported(document: Document) -> _Imported:
    messages, _ = messages_of(document)
    chat = document.chat
    if chat is None:
        return _Imported(messages)
    _entitle(messages, chat.title or "")
    return _Imported(messages, chat.branches)


def _entitled(found: list[_Imported], title: str) -> None:
    """Uses the file name as the title if the file holds one conversation without a title."""
    if len(found) == 1:
        _entitle(found[0].messages, title)


def _entitle(messages: list[Message], title: str) -> None:
    if title and TITLE not in messages[0].metadata:
        messages[0] = messages[0].with_metadata(TITLE, " ".join(title.split())[:MAX_TITLE])


def _stored(raw: bytes) -> StoredMessages:
    return StoredMessages(*exported_messages(raw))


def _loss(place: int, reason: str, path: str = "") -> dict[str, Any]:
    return {"conversation": place, "path": path, "reason": reason}


def _title(name: str) -> str:
    """Returns the title for a file: its name without folders and extension."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem = last.rpartition(".")[0] or last
    return " ".join(stem.split())[:MAX_TITLE] if stem.isprintable() else ""


def _documents(body: bytes, name: str) -> Iterator[Piece]:
    chunks = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    for batch in batches(chunks, name):
        yield from batch.documents()
