"""Titles and pins, kept in the history store as everything else is.

A title is metadata of the conversation's first message (`session_summaries.TITLE`), so that it goes
where the conversation goes. Which conversations are pinned has to be known before any of them is
read: that is a session of the page's own, which holds their ids and nothing that anybody said.
"""

from __future__ import annotations

from time import time

from dragoman.errors import Conflict, InvalidRequest, NotFound
from dragoman.gateway.page.listing import OWN
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.session_summaries import TITLE
from dragoman.history.storage.protocol import DuplicateIds, Entry, Session, Storage
from dragoman.model.messages import Message

LONGEST_TITLE = 200
_PINS = SessionIdentity(chat="pins", scope=OWN)
_MOST_PINS = 500
_TRIES = 8
_EMPTY = "a conversation in which nothing was said has no title"


async def pins(storage: Storage) -> list[str]:
    """The ids of the pinned conversations, the last pinned first."""
    rows = await storage.rows(_PINS, limit=_MOST_PINS, newest=True)
    return [row.id for row in reversed(rows)]


async def pin(storage: Storage, id: str, *, is_pinned: bool) -> None:
    """Pin a conversation, or let it go."""
    try:
        if not is_pinned:
            await storage.rewrite(_PINS, removed=[id])
            return
        if len(await pins(storage)) >= _MOST_PINS:
            msg = f"no more than {_MOST_PINS} conversations can be pinned"
            raise InvalidRequest(msg, status=400)
        body = body_of(Message.user(id).with_id(id))
        await storage.append(_PINS, [Entry(id, body, time())])
    except (DuplicateIds, NotFound):
        return  # it is as it was to be


async def entitle(storage: Storage, session: Session, title: str) -> None:
    """Give a conversation a title; an empty one takes it away."""
    identity, text = session.identity, " ".join(title.split())[:LONGEST_TITLE]
    for _ in range(_TRIES):
        rows = await storage.rows(identity, limit=1)
        if not rows:
            break
        message = message_of(rows[0].body)
        changed = message.with_metadata(TITLE, text) if text else message.without_metadata(TITLE)
        row = rows[0]
        entry = Entry(row.id, body_of(changed), row.at, row.model, row.usage)
        now = await storage.session(identity)
        try:
            # By version: nobody's other change of the message is undone.
            await storage.rewrite(
                identity, replaced=[entry], expected=None if now is None else now.version
            )
        except Conflict:
            continue
        return
    raise InvalidRequest(_EMPTY, status=409)
