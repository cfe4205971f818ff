"""Titles and pins of conversations, kept in the history store.

A title is metadata of the conversation's first message (`session_summaries.TITLE`), so that it
moves with the conversation. The pins must be known before any conversation is read, so they are a
separate session that holds only conversation ids.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import NamedTuple

from dragoman.errors import Conflict, InvalidRequest, NotFound
from dragoman.gateway.page.listing import OWN
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.session_summaries import TITLE
from dragoman.history.storage.protocol import DuplicateIds, Entry, Session, Storage
from dragoman.model.messages import Message

MAX_TITLE = 200
_TRIES = 8
_EMPTY = "a conversation without messages can't have a title or tags"


async def pins(storage: Storage) -> list[str]:
    """Returns the ids of the pinned conversations, most recently pinned first."""
    return await _PINS.ids(storage)


async def pin(storage: Storage, id: str, *, is_pinned: bool) -> None:
    """Pins or unpins a conversation."""
    await _PINS.note(storage, id, is_there=is_pinned)


class Noted(NamedTuple):
    """Ids of conversations, in a session of the page's own."""

    identity: SessionIdentity
    most: int
    too_many: str

    async def ids(self, storage: Storage) -> list[str]:
        """Returns the ids, the latest first."""
        rows = await storage.rows(self.identity, limit=self.most, newest=True)
        return [row.id for row in reversed(rows)]

    async def note(self, storage: Storage, id: str, *, is_there: bool) -> None:
        """Adds or removes an id."""
        try:
            if not is_there:
                await storage.rewrite(self.identity, removed=[id])
                return
            noted = await self.ids(storage)
            if id not in noted and len(noted) >= self.most:
                raise InvalidRequest(self.too_many, status=400)
            body = body_of(Message.user(id).with_id(id))
            await storage.append(self.identity, [Entry(id, body, time())])
        except (DuplicateIds, NotFound):
            return  # already in the requested state


_PINS = Noted(
    SessionIdentity(chat="pins", scope=OWN), 500, "no more than 500 conversations can be pinned"
)


async def entitle(storage: Storage, session: Session, title: str, *, keeps: bool = False) -> str:
    """Sets the title of a conversation, unless it `keeps` the one that it has; returns its title.

    An empty one removes it.
    """
    text = " ".join(title.split())[:MAX_TITLE]

    def entitled(message: Message) -> Message:
        if keeps and message.metadata.get(TITLE):
            return message
        return message.with_metadata(TITLE, text) if text else message.without_metadata(TITLE)

    found = (await change_first(storage, session, entitled)).metadata.get(TITLE)
    return found if isinstance(found, str) else ""


async def change_first(
    storage: Storage, session: Session, change: Callable[[Message], Message]
) -> Message:
    """Changes the metadata of a conversation's first message; returns the message."""
    identity = session.identity
    for _ in range(_TRIES):
        rows = await storage.rows(identity, limit=1)
        if not rows:
            break
        row = rows[0]
        changed = change(message_of(row.body))
        now = await storage.session(identity)
        try:
            # Checks the version, so that no concurrent change is overwritten.
            await storage.rewrite(
                identity,
                replaced=[Entry(row.id, body_of(changed), row.at, row.model, row.usage)],
                expected=None if now is None else now.version,
            )
        except Conflict:
            continue
        return changed
    raise InvalidRequest(_EMPTY, status=409)
