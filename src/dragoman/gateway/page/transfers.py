"""Conversations out as files, and files in as conversations: what `dragoman convert` knows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from dragoman.errors import ConfigError, DragomanError, InvalidInputError, InvalidRequest
from dragoman.gateway.page.branches import expect_branch
from dragoman.gateway.page.calls import Content, PageCall
from dragoman.gateway.page.conversations import found_in, new_identity
from dragoman.gateway.page.marks import LONGEST_TITLE
from dragoman.gateway.reports import report_headers
from dragoman.history.branch_paths import read_path, stretches
from dragoman.history.chat import ChatHistory
from dragoman.history.records import message_of
from dragoman.history.session_summaries import TITLE, looked_at
from dragoman.model.collection import Messages
from dragoman.model.messages import Message, make_message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.providers.documents.batches import batches
from dragoman.providers.documents.reading import Reader
from dragoman.providers.documents.splitting import Piece
from dragoman.providers.documents.writing import Destination, Written
from dragoman.wire.documents import Conversation

_JSON = "application/json"
_MOST = 1000  # conversations in one file
_MOST_LOSSES = 1000
_CHUNK = 512 * 1024
_UNSAFE = re.compile(r"[^\w .()-]+")
_NO_FORMAT = "there is no such format; `info` lists them"


# --- out


async def exported(call: PageCall) -> Content:
    """A branch of a conversation as a file: the current one, or the one that is asked for."""
    storage, session = await found_in(call)
    name = call.query.get("format", "canonical")
    branch = expect_branch(session, call.number("branch", session.active, 2**31))
    rows = await read_path(storage, session.identity, stretches(session, branch))
    messages = Messages.wrapping([message_of(row.body) for row in rows])
    listed = (await looked_at(storage, [session]))[0]
    title = listed.title or listed.first_line or "conversation"
    written = await asyncio.to_thread(_written, name, messages)
    file = quote(f"{_UNSAFE.sub('_', title)[:80].strip() or 'conversation'}.json", safe="")
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{file}"}
    told = report_headers(list(written.losses), list(written.repairs))
    return Content(written.text, _JSON, headers | told)


def _written(name: str, messages: Messages) -> Written:
    try:
        destination = Destination(name)
    except ConfigError:
        destination = None
    if destination is None:
        raise InvalidRequest(_NO_FORMAT, status=400)
    return destination.text_of(messages)


# --- in


async def imported(call: PageCall) -> Any:
    """Store the conversations of a file; those that can't be read are told, the rest comes in."""
    body, name = await call.body(), call.query.get("name", "")
    found, losses = await asyncio.to_thread(_read, body, name)
    storage = await call.page.storage()
    conversations: list[dict[str, Any]] = []
    for messages in found:
        identity = new_identity()
        history = await ChatHistory.open(identity, storage)
        added = await history.extend(Messages.wrapping(messages))
        session = await storage.session(identity)
        listed = (await looked_at(storage, [session] if session is not None else []))[0]
        conversations.append(
            {
                "id": identity.digest,
                "title": listed.title or listed.first_line,
                "messages": len(added),
            }
        )
    return {"conversations": conversations, "losses": losses}


def _read(body: bytes, name: str) -> tuple[list[list[Message]], list[dict[str, Any]]]:
    found: list[list[Message]] = []
    losses: list[dict[str, Any]] = []
    for place, piece in enumerate(_documents(body, name)):
        if len(found) >= _MOST or len(losses) >= _MOST_LOSSES:
            losses.append(_loss(place, "too much for one import: the rest of the file is left out"))
            break
        problem = piece.problem
        if problem is None:
            try:
                found.append(_messages(Reader().read(piece.raw).value))
            except DragomanError as error:
                problem = str(error)
        if problem is not None:
            losses.append(_loss(place, problem))
    _entitled(found, _title(name))
    return found, losses


def _entitled(found: list[list[Message]], title: str) -> None:
    """A file of one conversation names it, unless it has a title of its own."""
    if len(found) == 1 and title and TITLE not in found[0][0].metadata:
        found[0][0] = found[0][0].with_metadata(TITLE, title)


def _loss(place: int, reason: str) -> dict[str, Any]:
    return {"conversation": place, "path": "", "reason": reason}


def _title(name: str) -> str:
    """A file's name without folders and ending: what a conversation of its own is called."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem = last.rpartition(".")[0] or last
    return " ".join(stem.split())[:LONGEST_TITLE] if stem.isprintable() else ""


def _documents(body: bytes, name: str) -> Iterator[Piece]:
    chunks = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    for batch in batches(chunks, name):
        yield from batch.documents()


def _messages(value: Conversation) -> list[Message]:
    """The messages of a document; instructions beside them become the first one."""
    if isinstance(value, Response):
        found = [choice.message for choice in value.choices[:1]]
    elif isinstance(value, Request):
        system = [make_message(Role.SYSTEM, tuple(value.system))] if value.system else []
        found = [*system, *value.messages]
    else:
        found = list(value)
    if not found:
        msg = "there is no message in it"
        raise InvalidInputError(msg)
    return found
