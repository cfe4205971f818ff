"""What tells people which session is which, without reading it whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dragoman.errors import ConfigError, Corrupt, NotFound
from dragoman.history.branch_paths import Stretch, read_path, read_tail, stretches
from dragoman.history.records import is_sealed, message_of
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.roles import Role

TITLE = "dragoman.title"
"""In the metadata of a session's first message: what its owner calls the conversation.

There it goes wherever the conversation goes: into exports and copies, and with it when it is
deleted or forgotten.
"""
_FIRST, _LAST = 3, 5  # messages that are looked at
_AT_ONCE = 16
_LONGEST = 200  # characters of a first line
_DIGEST = 40
_HEXADECIMAL = frozenset("0123456789abcdef")


class Listed(NamedTuple):
    """A session, and what tells people which one it is."""

    session: Session
    messages: int
    model: str | None
    first_line: str | None
    unreadable: str | None
    """Why there is no first line to show: it is encrypted, or damaged."""
    title: str | None = None
    """What its owner calls it."""


async def looked_at(
    storage: Storage, sessions: Sequence[Session], advance: Callable[[], None] = lambda: None
) -> list[Listed]:
    """What there is to say of each; some at once, since a server may be far away.

    `advance` is called for each that was looked at.
    """
    found: list[Listed] = []
    for start in range(0, len(sessions), _AT_ONCE):
        some = sessions[start : start + _AT_ONCE]
        found += await asyncio.gather(*(_listed(storage, session) for session in some))
        for _ in some:
            advance()
    return found


async def _listed(storage: Storage, session: Session) -> Listed:
    messages = await storage.count(session.identity)
    try:
        first, last = await _ends(storage, session, messages)
    except ConfigError:  # a key that is not among those given
        return Listed(session, messages, None, None, "encrypted with another key")
    except (Corrupt, NotFound):  # a branch that leads nowhere; `verify` tells
        return Listed(session, messages, None, None, "damaged")
    model = next((row.model for row in reversed(last) if row.model), None)
    title = await _title(storage, session, first)
    return Listed(session, messages, model, *_first_line(first), title)


async def _ends(storage: Storage, session: Session, messages: int) -> tuple[list[Row], list[Row]]:
    path = stretches(session, session.active)
    if messages <= _FIRST + _LAST:
        rows = await read_path(storage, session.identity, path)
        return rows[:_FIRST], rows
    first = await _beginning(storage, session, path)
    return first, await read_tail(storage, session.identity, path, _LAST)


async def _beginning(storage: Storage, session: Session, path: list[Stretch]) -> list[Row]:
    rows: list[Row] = []
    for branch, upto in path:
        missing = _FIRST - len(rows)
        if missing <= 0:
            break
        rows += await storage.rows(session.identity, branch=branch, upto=upto, limit=missing)
    return rows


def _first_line(rows: Sequence[Row]) -> tuple[str | None, str | None]:
    """What the user said first, or else anybody; and why it can't be told."""
    messages: list[Message] = []
    unreadable: str | None = None
    for row in rows:
        try:
            messages.append(message_of(row.body))
        except Corrupt:
            unreadable = unreadable or ("encrypted" if is_sealed(row.body) else "damaged")
    said = [message for message in messages if message.role is Role.USER]
    said += [m for m in messages if m.role not in {Role.SYSTEM, Role.DEVELOPER}]
    said += messages
    if said:
        return _line_of(said[0]), None
    return (None, unreadable) if unreadable else ("", None)


def _line_of(message: Message) -> str:
    text = message.text.lstrip()
    if text:
        line = text[: _LONGEST + 1].splitlines()[0].rstrip()
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    kinds = [type(part).__name__ for part in message.parts if not isinstance(part, Text)]
    return f"[{kinds[0]}]" if kinds else ""


# --- its title


async def _title(storage: Storage, session: Session, rows: Sequence[Row]) -> str | None:
    """The title, where the session has one. Not every branch goes through the first message."""
    if not rows or rows[0].branch != MAIN:
        rows = await storage.rows(session.identity, limit=1)
    return title_in(rows[0]) if rows else None


def title_in(row: Row) -> str | None:
    """The title that a session's first message carries; anybody may have written anything there."""
    try:
        found = message_of(row.body).metadata.get(TITLE)
    except Corrupt:
        return None
    return found[:_LONGEST] if isinstance(found, str) and found else None


# --- finding one by its digest


async def sessions_with_digest(storage: Storage, digits: str, *, limit: int) -> list[Session]:
    """The sessions whose digest begins so; none where these are no digits of one."""
    digits = digits.lower()
    if not 0 < len(digits) <= _DIGEST or not set(digits) <= _HEXADECIMAL:
        return []
    # Everything above the digest itself and below its successor; the digest itself is above its
    # predecessor.
    before = f"{int(digits, 16) - 1:0{len(digits)}x}g" if int(digits, 16) else ""
    found = await storage.sessions(limit=limit, after=before)
    return [session for session in found if session.identity.digest.startswith(digits)]
