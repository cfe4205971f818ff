"""Sessions as MCP resources: `dragoman://session/ID` (Markdown), `…/ID/json` (JSON)."""

from __future__ import annotations

import re
from typing import NamedTuple

from mcp_types import (
    Annotations,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from dragoman.errors import InvalidInputError, NotFound
from dragoman.history.session_summaries import Listed
from dragoman.history.storage.protocol import Session
from dragoman.mcp.serving.markdown import moment
from dragoman.mcp.serving.reading import Wanted, read_json, read_markdown
from dragoman.mcp.serving.served_sessions import ServedSessions
from dragoman.mcp.serving.shapes import whole_text
from dragoman.mcp.serving.tools import name_of

PREFIX = "dragoman://session/"
_ADDRESS = re.compile(rf"{PREFIX}([0-9a-f]{{40}})(/json)?")
_MAX_CHARS = 1_000_000  # maximum characters of a resource
_NOT_FOUND = f"there is no such resource; the URIs are {PREFIX}ID and {PREFIX}ID/json"
_TOO_LARGE = (
    "the conversation is too large for a resource; read_session reads it page by page, and"
    " `dragoman history export` writes it to a file"
)

TEMPLATES = [
    ResourceTemplate(
        uri_template=f"{PREFIX}{{id}}",
        name="session",
        title="Conversation",
        description="A conversation as Markdown; only the last part if it is very long.",
        mime_type="text/markdown",
    ),
    ResourceTemplate(
        uri_template=f"{PREFIX}{{id}}/json",
        name="session-json",
        title="Conversation as JSON",
        description="A conversation as a Dragoman document, for `dragoman convert`.",
        mime_type="application/json",
    ),
]


class Address(NamedTuple):
    """The session and format of a URI."""

    id: str
    is_json: bool


def address_of(uri: str) -> Address:
    """Parse a URI; only the exact form is valid."""
    found = _ADDRESS.fullmatch(uri)
    if found is None:
        raise NotFound(_NOT_FOUND)
    return Address(found[1], found[2] is not None)


def resource_of(listed: Listed) -> Resource:
    """A session in the list of resources."""
    session = listed.session
    return Resource(
        uri=f"{PREFIX}{session.identity.digest}",
        name=whole_text(name_of(session.identity)),
        description=None if listed.first_line is None else whole_text(listed.first_line),
        mime_type="text/markdown",
        annotations=Annotations(last_modified=moment(session.updated_at)),
    )


async def contents_of(served: ServedSessions, uri: str) -> TextResourceContents:
    """The content of a resource."""
    address = address_of(uri)
    session = await served.of_id(address.id)
    if address.is_json:
        text, kind = await _json(served, session), "application/json"
    else:
        text, kind = await conversation(served, session, _MAX_CHARS), "text/markdown"
    return TextResourceContents(uri=uri, mime_type=kind, text=whole_text(text))


async def conversation(served: ServedSessions, session: Session, room: int) -> str:
    """A conversation as Markdown; if it doesn't fit, only its end, with a note."""
    page = await read_markdown(served.storage, session, Wanted(limit=room, max_chars=room))
    notes = [f"*{note}*" for note in page.unreadable]
    if page.more_before:
        notes.append("*Earlier messages are omitted; read_session reads them.*")
    return "\n\n".join((*notes, page.text))


async def _json(served: ServedSessions, session: Session) -> str:
    page = await read_json(served.storage, session, Wanted(limit=_MAX_CHARS, max_chars=_MAX_CHARS))
    if page.more_before:
        raise InvalidInputError(_TOO_LARGE)
    return page.text
