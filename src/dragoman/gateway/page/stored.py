"""Loads stored conversations for the lens."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.errors import Corrupt
from dragoman.gateway.page.calls import PageCall
from dragoman.history.branches import read_tail, stretches
from dragoman.history.records import message_of
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Stored(NamedTuple):
    """The latest messages of a branch."""

    messages: Messages
    is_cut: bool
    """Whether there are earlier ones."""
    damaged: int
    """How many can't be read, and are left out."""


async def stored_messages(call: PageCall, id: str, branch: int | None, most: int) -> Stored:
    """Returns the latest messages of a branch."""
    listing, storage = await call.page.listing(), await call.page.storage()
    session = await listing.session(id)
    path = stretches(session, session.active if branch is None else branch)
    found: list[Message] = []
    rows = await read_tail(storage, session.identity, path, most + 1)
    latest = rows[-most:]
    for row in latest:
        try:
            found.append(message_of(row.body))
        except Corrupt:
            continue
    damaged = len(latest) - len(found)
    return Stored(Messages.wrapping(found), len(rows) > most, damaged)
