"""An attacker who can read and write everything in a store, but has no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage

Taken = tuple[Session, tuple[Row, ...]]


async def taken(inner: Storage, who: SessionIdentity) -> Taken:
    """A session as it is stored, with all its rows."""
    session = await inner.session(who)
    assert session is not None
    rows: list[Row] = []
    for branch in (MAIN, *(fork.number for fork in session.forks)):
        rows += await inner.rows(who, branch=branch)
    return session, tuple(rows)


async def put(inner: Storage, session: Session, rows: Sequence[Row]) -> None:
    """Store a session unchanged, with a matching checksum and tally."""
    await inner.delete(session.identity)
    bare = [msgspec.structs.replace(row, checksum=None, chain=None) for row in rows]
    await inner.restore(msgspec.structs.replace(session, chain=None), bare)


async def alter_row(inner: Storage, who: SessionIdentity, id: str, /, **changes: Any) -> None:
    """Change a field of a stored row."""
    session, rows = await taken(inner, who)
    await put(
        inner, session,
        [msgspec.structs.replace(row, **changes) if row.id == id else row for row in rows],
    )  # fmt: skip


async def alter_session(inner: Storage, who: SessionIdentity, /, **changes: Any) -> None:
    """Change a field of a stored session."""
    session, rows = await taken(inner, who)
    await put(inner, msgspec.structs.replace(session, **changes), rows)
