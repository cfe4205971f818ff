"""Titles and pins of conversations, kept in the history store.

A title is metadata of the conversation's first message (`session_summaries.TITLE`), so that it
moves with the conversation. The pins must be known before any conversation is read, so they are a
separate session that holds only conversation ids.
"""

from __future__ import annotations

from time import time

from dragoman.errors import Conflict, InvalidRequest, NotFound
from dragoman.gateway.page.listing import OWN
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.session_summaries import TITLE, title_in
from dragoman.history.storage.protocol import DuplicateIds, Entry, Session, Storage
from dragoman.model.messages import Message

MAX_TITLE = 200
_PINS = SessionIdentity(chat="pins", scope=OWN)
_MAX_PINS = 500
_TRIES = 8
_EMPTY = "a conversation without messages can't have a title"


async def pins(storage: Storage) -> list[str]:
    """Returns the ids of the pinned conversations, most recently pinned first."""
    rows = await storage.rows(_PINS, limit=_MAX_PINS, newest=True)
    return [row.id for row in reversed(rows)]


async def pin(storage: Storage, id: str, *, is_pinned: bool) -> None:
    """Pins or unpins a conversation."""
    try:
        if not is_pinned:
            await storage.rewrite(_PINS, removed=[id])
            return
        if len(await pins(storage)) >= _MAX_PINS:
            msg = f"no more than {_MAX_PINS} conversations can be pinned"
            raise InvalidRequest(msg, status=400)
        body = body_of(Message.user(id).with_id(id))
        await storage.append(_PINS, [Entry(id, body, time())])
    except (DuplicateIds, NotFound):
        return  # already in the requested state


async def entitle(storage: Storage, session: Session, title: str, *, keeps: bool = False) -> str:
    """Sets the title of a conversation, unless it `keeps` the one that it has; returns its title.

    An empty one removes it.
    """
    identity, text = session.identity, " ".join(title.split())[:MAX_TITLE]
    for _ in range(_TRIES):
        rows = await storage.rows(identity, limit=1)
        if not rows:
            break
        message = message_of(rows[0].body)
        if keeps and (given := title_in(rows[0])):
            return given
        changed = message.with_metadata(TITLE, text) if text else message.without_metadata(TITLE)
        row = rows[0]
        entry = Entry(row.id, body_of(changed), row.at, row.model, row.usage)
        now = await storage.session(identity)
        try:
            # Checks the version, so that no concurrent change is overwritten.
            await storage.rewrite(
                identity, replaced=[entry], expected=None if now is None else now.version
            )
        except Conflict:
            continue
        return text
    raise InvalidRequest(_EMPTY, status=409)
