"""A stored conversation as the lens reads it."""

from __future__ import annotations

from dragoman.errors import Corrupt
from dragoman.gateway.page.calls import PageCall
from dragoman.history.branch_paths import read_tail, stretches
from dragoman.history.records import message_of
from dragoman.model.collection import Messages
from dragoman.model.messages import Message

_MOST = 2000
"""Messages that are shown: the latest."""


async def stored_messages(call: PageCall, id: str, branch: int | None) -> Messages:
    """The latest messages of a branch of a conversation; raises `NotFound`."""
    listing, storage = await call.page.listing(), await call.page.storage()
    session = await listing.session(id)
    path = stretches(session, session.active if branch is None else branch)
    found: list[Message] = []
    for row in await read_tail(storage, session.identity, path, _MOST):
        try:
            found.append(message_of(row.body))
        except Corrupt:  # the history says so; here is what can be sent
            continue
    return Messages.wrapping(found)
