"""Operations on one session; writes run in the caller's transaction.

A write first locks its session's row, in a separate statement, so that the following statements see
everything written before. The last statement writes the session's counters and tally.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import Tally, protected, tally_of
from dragoman.history.storage.postgres import search
from dragoman.history.storage.postgres.values import (
    ENTRY,
    ENTRY_TYPES,
    OF_ENTRY,
    ROW,
    SESSION,
    body_text,
    columns_of_entry,
    columns_of_row,
    maybe,
    proof_of,
    row_of,
    session_of,
    text_of,
)
from dragoman.history.storage.protocol import (
    CLEARED,
    MAIN,
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Entry,
    Fork,
    Row,
    Seal,
    Session,
    conflict,
)

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

T = TypeVar("T")
_BATCH = 1000
_LAST = 2**63 - 1
_ID = "(SELECT s.id FROM our.heads s WHERE s.digest = %s)"
_ROWS = (
    f"SELECT {ROW} FROM our.messages m WHERE m.session = {_ID} AND m.branch = %s AND m.seq > %s"
    " AND m.seq <= %s ORDER BY m.seq"
)
# Readable messages only: with assigned numbers, on existing branches.
_HELD = """
SELECT count(*) FROM our.heads s JOIN our.messages m ON m.session = s.id
WHERE s.digest = %s AND m.seq BETWEEN 1 AND s.last_seq
AND (m.branch = 0 OR m.branch = ANY (s.forks[:][1:1]))"""
_BEGIN = """
INSERT INTO our.heads (digest, agent, chat, "user", "group", scope, version, last_seq, created_at,
                       updated_at)
VALUES (%s, %s, %s, %s, %s, %s, 0, 0, %s, %s) ON CONFLICT (digest) DO NOTHING"""
_LOCK = f"SELECT s.id, s.indexed, {SESSION} FROM our.heads s WHERE s.digest = %s FOR UPDATE"
_WRITE = """
UPDATE our.heads SET version = %s, last_seq = %s, updated_at = %s, active = %s,
forks = %s::bigint[], "window" = %s, windows = %s, chain = %s, seal = %s WHERE id = %s"""
_RESTORE = """
INSERT INTO our.heads AS s (digest, agent, chat, "user", "group", scope, created_at, version,
    last_seq, updated_at, active, forks, "window", windows, chain, seal)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::bigint[], %s, %s, %s, %s)
ON CONFLICT (digest) DO UPDATE SET version = excluded.version, last_seq = excluded.last_seq,
    created_at = excluded.created_at, updated_at = excluded.updated_at, indexed = 0,
    active = excluded.active, forks = excluded.forks, "window" = excluded."window",
    windows = excluded.windows, chain = excluded.chain, seal = excluded.seal
WHERE s.version < excluded.version
RETURNING id"""
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in ENTRY_TYPES)
_INSERT = (
    f"INSERT INTO our.messages (session, seq, branch, {ENTRY}) SELECT %s, e.* FROM"
    f" unnest(%s::bigint[], %s::integer[], {_ARRAYS}) AS e"
)
_OF_PLACE = OF_ENTRY.replace("e.chain", "'p1-' || m.branch || '.' || m.seq")
_REPLACE = (
    f"UPDATE our.messages m SET ({ENTRY}) = ({_OF_PLACE})"
    f" FROM unnest({_ARRAYS}) AS e ({ENTRY}) WHERE m.session = %s AND m.id = e.id"
    f" RETURNING {ROW}"
)


class Locked(NamedTuple):
    """A locked session: the id of its row, how far it is indexed, and the session."""

    id: int
    indexed: int
    session: Session


# --- reading


async def session(link: Link, identity: SessionIdentity) -> Session | None:
    """The session, or `None`."""
    found = await link.fetch(
        f"SELECT {SESSION} FROM our.heads s WHERE digest = %s", (identity.digest,)
    )
    return session_of(found[0]) if found else None


async def rows(
    link: Link,
    identity: SessionIdentity,
    branch: int,
    after: int,
    upto: int | None,
    limit: int | None,
    newest: bool,  # noqa: FBT001 - called with the arguments of `Storage.rows`
) -> list[Row]:
    """See `Storage.rows`."""
    values = (identity.digest, branch, after, _LAST if upto is None else upto, limit)
    found = await link.fetch(_ROWS + (" DESC" if newest else "") + " LIMIT %s", values)
    if newest:
        found.reverse()
    return [row_of(each) for each in found]


async def row(link: Link, identity: SessionIdentity, id: str) -> Row | None:
    """A message by id, on any branch."""
    found = await link.fetch(
        f"SELECT {ROW} FROM our.messages m WHERE m.session = {_ID} AND m.id = %s",
        (identity.digest, text_of(id)),
    )
    return row_of(found[0]) if found else None


async def count(link: Link, identity: SessionIdentity, branch: int | None) -> int:
    """See `Storage.count`."""
    template = _HELD
    values: tuple[Any, ...] = (identity.digest,)
    if branch is not None:
        template = f"SELECT count(*) FROM our.messages m WHERE m.session = {_ID} AND m.branch = %s"
        values = (identity.digest, branch)
    [(number,)] = await link.fetch(template, values)
    return int(number)


# --- writing


async def rewrite(
    link: Link,
    identity: SessionIdentity,
    replaced: Sequence[Entry],
    removed: Sequence[str],
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.rewrite`."""
    locked = await _existing(link, identity, expected)
    held = await _rows_of(link, locked.session)
    new = {entry.id: entry for entry in replaced}
    for batch in _batches(list(new.values())):
        columns = _columns([columns_of_entry(entry) for entry in batch])
        changed = await link.fetch(_REPLACE, (*columns, locked.id), plan=False)
        if len(changed) < len(batch):
            raise NotFound(NO_MESSAGE)
        rows = [row_of(each) for each in changed]
        await search.index_anew(link, locked.id, rows, locked.indexed)
    names = [text_of(name) for name in removed]
    gone = await taken_out(link, locked.id, "id = ANY (%s::text[])", names) if names else 0
    if gone < len(removed):
        raise NotFound(NO_MESSAGE)
    return await _written(link, locked, rows=held - gone, at=time(), **_sealed(seal))


async def clear(
    link: Link, identity: SessionIdentity, at: float, expected: int | None, seal: Seal
) -> int:
    """See `Storage.clear`."""
    locked = await _locked(link, identity)
    if locked is None:
        await link.run(_BEGIN, (identity.digest, *identity.columns, at, at))
        locked = await _locked(link, identity)
        if locked is None:
            raise NotFound(NO_SESSION)  # created by another writer, and deleted at once
    _expect(locked.session, expected)
    await empty(link, [locked.id])
    return await _written(link, locked, rows=0, at=at, **{**CLEARED, **_sealed(seal)})


async def empty(link: Link, ids: Sequence[int]) -> int:
    """Deletes the messages of locked sessions; returns how many there were."""
    await link.run("DELETE FROM our.texts WHERE session = ANY (%s::bigint[])", (list(ids),))
    return await link.run(
        "DELETE FROM our.messages WHERE session = ANY (%s::bigint[])", (list(ids),)
    )


async def fork(
    link: Link, identity: SessionIdentity, parent: int, at: int, expected: int | None, seal: Seal
) -> int:
    """See `Storage.fork`."""
    locked = await _existing(link, identity, expected)
    forks = locked.session.forks
    numbers = {MAIN, *(fork.number for fork in forks)}
    if parent not in numbers:
        raise NotFound(NO_BRANCH)
    number = max(numbers) + 1
    changes = {"active": number, "forks": (*forks, Fork(number, parent, at)), **_sealed(seal)}
    rows = await _rows_of(link, locked.session)
    await _written(link, locked, rows=rows, at=time(), **changes)
    return number


async def activate(
    link: Link, identity: SessionIdentity, branch: int, expected: int | None, seal: Seal
) -> None:
    """See `Storage.activate`."""
    locked = await _existing(link, identity, expected)
    session = locked.session
    if branch not in {MAIN, *(fork.number for fork in session.forks)}:
        raise NotFound(NO_BRANCH)
    await write(link, locked.id, msgspec.structs.replace(session, active=branch, **_sealed(seal)))


async def keep_windows(link: Link, identity: SessionIdentity, windows: bytes | None) -> None:
    """See `Storage.keep_windows`."""
    text = maybe(body_text, windows)
    changed = await link.run(
        'UPDATE our.heads SET "window" = NULL, windows = %s WHERE digest = %s',
        (text, identity.digest),
    )
    if not changed:
        raise NotFound(NO_SESSION)


async def delete(link: Link, identity: SessionIdentity) -> bool:
    """See `Storage.delete`; an unreadable session can be deleted too."""
    found = await link.fetch(
        "SELECT id FROM our.heads WHERE digest = %s FOR UPDATE", (identity.digest,)
    )
    if not found:
        return False
    [(id,)] = found
    await empty(link, [id])
    await link.run("DELETE FROM our.heads WHERE id = %s", (id,))
    return True


async def restore(link: Link, copy: Session, rows: Sequence[Row]) -> bool:
    """See `Storage.restore`."""
    identity = copy.identity
    await _locked(link, identity)  # raises if its version may be wrong
    if copy.chain is None:
        copy = _counted(copy, len(rows))
    values = (identity.digest, *identity.columns, copy.created_at, *_values(copy))
    found = await link.fetch(_RESTORE, values)
    if not found:
        return False
    [(id,)] = found
    await empty(link, [id])
    for batch in _batches(list(map(protected, rows))):
        places = [row.seq for row in batch], [row.branch for row in batch]
        await link.run(_INSERT, (id, *places, *_columns(list(map(columns_of_row, batch)))))
    return True


async def taken_out(link: Link, session: int, condition: str, values: list[Any]) -> int:
    """Deletes messages and their index entries; returns how many there were."""
    gone = await link.fetch(
        f"DELETE FROM our.messages WHERE session = %s AND ({condition}) RETURNING branch, seq",
        (session, values),
    )
    await search.unindex(link, session, gone)
    return len(gone)


async def write(link: Link, id: int, session: Session) -> None:
    """Writes a locked session."""
    await link.run(_WRITE, (*_values(session), id))


async def _written(link: Link, locked: Locked, *, rows: int, at: float, **changes: Any) -> int:
    """Writes a session with the next version, which is returned."""
    version = locked.session.version + 1
    session = msgspec.structs.replace(locked.session, version=version, updated_at=at, **changes)
    await write(link, locked.id, _counted(session, rows))
    return version


def _counted(session: Session, rows: int) -> Session:
    tally = Tally(session.version, session.last_seq, rows, len(session.forks))
    return msgspec.structs.replace(session, chain=str(tally))


def _values(session: Session) -> tuple[Any, ...]:
    """The changeable columns of a session, in the order of `_WRITE`."""
    forks = [[fork.number, fork.parent, fork.at] for fork in session.forks]
    return (
        session.version, session.last_seq, session.updated_at, session.active, forks,
        maybe(body_text, session.window), maybe(body_text, session.windows), proof_of(session),
        maybe(body_text, session.seal),
    )  # fmt: skip


async def _rows_of(link: Link, session: Session) -> int:
    """The number of rows of a locked session; counted if there is no tally."""
    tally = tally_of(session)
    return await count(link, session.identity, None) if tally is None else tally.rows


async def _existing(link: Link, identity: SessionIdentity, expected: int | None) -> Locked:
    """An existing session, locked."""
    locked = await _locked(link, identity)
    if locked is None:
        raise NotFound(NO_SESSION)
    _expect(locked.session, expected)
    return locked


async def _locked(link: Link, identity: SessionIdentity) -> Locked | None:
    found = await link.fetch(_LOCK, (identity.digest,))
    if not found:
        return None
    id, indexed, *columns = found[0]
    return Locked(id, indexed, session_of(columns))


def _expect(session: Session, expected: int | None) -> None:
    if expected is not None and session.version != expected:
        raise conflict(expected, session.version)


def _sealed(seal: Seal) -> dict[str, Any]:
    return {} if seal is UNSET else {"seal": seal}


def _columns(entries: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*entries, strict=True)]


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
