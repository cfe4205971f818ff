"""Loads stored conversations for the lens."""

from __future__ import annotations

from dragoman.errors import Corrupt
from dragoman.gateway.page.calls import PageCall
from dragoman.history.branch_paths import read_tail, stretches
from dragoman.history.records import message_of
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


async def stored_messages(
    call: PageCall, id: str, branch: int | None, most: int
) -> tuple[Messages, bool]:
    """Returns the latest messages of a branch, and whether there are earlier ones."""
    listing, storage = await call.page.listing(), await call.page.storage()
    session = await listing.session(id)
    path = stretches(session, session.active if branch is None else branch)
    found: list[Message] = []
    rows = await read_tail(storage, session.identity, path, most + 1)
    for row in rows[-most:]:
        try:
            found.append(message_of(row.body))
        except Corrupt:  # the History view reports it; here only readable messages count
            continue
    return Messages.wrapping(found), len(rows) > most
