"""What is asked of the tables: functions of a link, writes within the caller's transaction.

A write locks its session's row first, in a statement of its own: the next ones then see all that
was written before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.postgres import search
from dragoman.history.storage.postgres.values import (
    ENTRY,
    ENTRY_TYPES,
    OF_ENTRY,
    ROW,
    SESSION,
    body_text,
    columns_of_entry,
    maybe,
    row_of,
    session_of,
    text_of,
)
from dragoman.history.storage.protocol import (
    MAIN,
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Entry,
    Row,
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
_TOUCH = """
INSERT INTO our.heads AS s (digest, agent, chat, "user", "group", scope, version, last_seq,
                            created_at, updated_at)
VALUES (%s, %s, %s, %s, %s, %s, 1, 0, %s, %s)
ON CONFLICT (digest) DO UPDATE SET version = s.version + 1, updated_at = excluded.updated_at
RETURNING id, version"""
_EXISTING = """
UPDATE our.heads SET version = version + 1, updated_at = %s WHERE digest = %s
RETURNING id, version, indexed, forks"""
_RESTORE = """
INSERT INTO our.heads AS s (digest, agent, chat, "user", "group", scope, version, last_seq,
                            created_at, updated_at, active, forks, "window", windows, chain, seal)
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
_REPLACE = (
    f"UPDATE our.messages m SET ({ENTRY}) = ({OF_ENTRY})"
    f" FROM unnest({_ARRAYS}) AS e ({ENTRY}) WHERE m.session = %s AND m.id = e.id"
    f" RETURNING {ROW}"
)


# --- reading


async def session(link: Link, identity: SessionIdentity) -> Session | None:
    """The session; None where there is none."""
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
    newest: bool,  # noqa: FBT001 - called with what `Storage.rows` was given
) -> list[Row]:
    """See `Storage.rows`."""
    values = (identity.digest, branch, after, _LAST if upto is None else upto, limit)
    found = await link.fetch(_ROWS + (" DESC" if newest else "") + " LIMIT %s", values)
    if newest:
        found.reverse()
    return [row_of(each) for each in found]


async def row(link: Link, identity: SessionIdentity, id: str) -> Row | None:
    """One message, on any branch."""
    found = await link.fetch(
        f"SELECT {ROW} FROM our.messages m WHERE m.session = {_ID} AND m.id = %s",
        (identity.digest, text_of(id)),
    )
    return row_of(found[0]) if found else None


async def count(link: Link, identity: SessionIdentity, branch: int | None) -> int:
    """See `Storage.count`."""
    template = f"SELECT count(*) FROM our.messages m WHERE m.session = {_ID}"
    values: tuple[Any, ...] = (identity.digest,)
    if branch is not None:
        template, values = f"{template} AND m.branch = %s", (*values, branch)
    [(number,)] = await link.fetch(template, values)
    return int(number)


# --- writing


async def rewrite(
    link: Link,
    identity: SessionIdentity,
    replaced: Sequence[Entry],
    removed: Sequence[str],
    expected: int | None,
) -> int:
    """See `Storage.rewrite`."""
    id, version, indexed, _ = await _existing(link, identity, expected)
    # What proves a row (checksum and chain) does not prove what takes its place.
    new = {e.id: Entry(e.id, e.body, e.at, e.model, e.usage) for e in replaced}
    for batch in _batches(list(new.values())):
        changed = await link.fetch(_REPLACE, (*_columns(batch), id), plan=False)
        if len(changed) < len(batch):
            raise NotFound(NO_MESSAGE)
        await search.index_anew(link, id, [row_of(each) for each in changed], indexed)
    gone = await _removed(link, id, "id = ANY (%s::text[])", [text_of(name) for name in removed])
    if gone < len(removed):
        raise NotFound(NO_MESSAGE)
    return version


async def clear(link: Link, identity: SessionIdentity, at: float, expected: int | None) -> int:
    """See `Storage.clear`."""
    [(id, version)] = await link.fetch(_TOUCH, (identity.digest, *identity.columns, at, at))
    if expected is not None and version - 1 != expected:
        raise conflict(expected, version - 1)
    await empty(link, [id])
    await link.run(
        "UPDATE our.heads SET active = 0, forks = '{}', \"window\" = NULL, windows = NULL,"
        " chain = NULL, seal = NULL WHERE id = %s",
        (id,),
    )
    return int(version)


async def empty(link: Link, ids: Sequence[int]) -> int:
    """Remove the messages of sessions that are locked; returns how many there were."""
    await link.run("DELETE FROM our.texts WHERE session = ANY (%s::bigint[])", (list(ids),))
    return await link.run(
        "DELETE FROM our.messages WHERE session = ANY (%s::bigint[])", (list(ids),)
    )


async def fork(
    link: Link, identity: SessionIdentity, parent: int, at: int, expected: int | None
) -> int:
    """See `Storage.fork`."""
    id, _, _, forks = await _existing(link, identity, expected)
    numbers = {MAIN, *(number for number, _, _ in forks)}
    if parent not in numbers:
        raise NotFound(NO_BRANCH)
    number = max(numbers) + 1
    await link.run(
        "UPDATE our.heads SET active = %s, forks = %s::bigint[] WHERE id = %s",
        (number, [*forks, [number, parent, at]], id),
    )
    return number


async def activate(link: Link, identity: SessionIdentity, branch: int) -> None:
    """See `Storage.activate`."""
    found = await _locked(link, identity)
    if found is None:
        raise NotFound(NO_SESSION)
    id, forks = found
    if branch != MAIN and branch not in {number for number, _, _ in forks}:
        raise NotFound(NO_BRANCH)
    await link.run("UPDATE our.heads SET active = %s WHERE id = %s", (branch, id))


async def keep_window(link: Link, identity: SessionIdentity, window: bytes | None) -> None:
    """See `Storage.keep_window`."""
    text = maybe(body_text, window)
    changed = await link.run(
        'UPDATE our.heads SET "window" = %s WHERE digest = %s', (text, identity.digest)
    )
    if not changed:
        raise NotFound(NO_SESSION)


async def delete(link: Link, identity: SessionIdentity) -> bool:
    """See `Storage.delete`."""
    found = await _locked(link, identity)
    if found is None:
        return False
    await empty(link, [found[0]])
    await link.run("DELETE FROM our.heads WHERE id = %s", (found[0],))
    return True


async def restore(link: Link, copy: Session, rows: Sequence[Row]) -> bool:
    """See `Storage.restore`."""
    identity = copy.identity
    forks = [[fork.number, fork.parent, fork.at] for fork in copy.forks]
    windows = (maybe(body_text, copy.window), maybe(body_text, copy.windows))
    proofs = (copy.chain, maybe(body_text, copy.seal))
    times = (copy.created_at, copy.updated_at)
    numbers = (copy.version, copy.last_seq)
    rest = (*numbers, *times, copy.active, forks, *windows, *proofs)
    found = await link.fetch(_RESTORE, (identity.digest, *identity.columns, *rest))
    if not found:
        return False
    id = found[0][0]
    await empty(link, [id])
    for batch in _batches(rows):
        places = [row.seq for row in batch], [row.branch for row in batch]
        await link.run(_INSERT, (id, *places, *_columns(batch)))
    return True


async def set_aside(link: Link, identity: SessionIdentity, seqs: Sequence[int], reason: str) -> int:
    """See `Storage.set_aside`."""
    id, *_ = await _existing(link, identity, None)
    await link.run(
        'INSERT INTO our.aside SELECT s.digest, s."user", m.seq, m.branch, m.at, m.id, %s, m.body'
        " FROM our.messages m JOIN our.heads s ON s.id = m.session"
        " WHERE m.session = %s AND m.seq = ANY (%s::bigint[])",
        (text_of(reason), id, list(seqs)),
    )
    return await _removed(link, id, "seq = ANY (%s::bigint[])", list(seqs))


async def _removed(link: Link, session: int, condition: str, values: list[Any]) -> int:
    """Remove messages and what is indexed of them; returns how many there were."""
    if not values:
        return 0
    gone = await link.fetch(
        f"DELETE FROM our.messages WHERE session = %s AND {condition} RETURNING branch, seq",
        (session, values),
    )
    await search.unindex(link, session, gone)
    return len(gone)


async def _existing(
    link: Link, identity: SessionIdentity, expected: int | None
) -> tuple[int, int, int, list[list[int]]]:
    """A session that is there and about to be changed: id, new version, indexed, forks."""
    found = await link.fetch(_EXISTING, (time(), identity.digest))
    if not found:
        raise NotFound(NO_SESSION)
    id, version, indexed, forks = found[0]
    if expected is not None and version - 1 != expected:
        raise conflict(expected, version - 1)
    return id, version, indexed, forks


async def _locked(link: Link, identity: SessionIdentity) -> tuple[int, list[list[int]]] | None:
    """A session's id and forks, locked."""
    found = await link.fetch(
        "SELECT id, forks FROM our.heads WHERE digest = %s FOR UPDATE", (identity.digest,)
    )
    return (found[0][0], found[0][1]) if found else None


def _columns(entries: Sequence[Entry]) -> list[list[Any]]:
    return [list(column) for column in zip(*map(columns_of_entry, entries), strict=True)]


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
