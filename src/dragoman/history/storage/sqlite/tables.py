"""Operations on one session, within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET

from dragoman.errors import Corrupt, NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import (
    CLEARED,
    MAIN,
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Appended,
    DuplicateIds,
    Entry,
    Fork,
    Row,
    Seal,
    Session,
    conflict,
    placed,
)
from dragoman.history.storage.sqlite.columns import (
    NUMBERED,
    ROW,
    SESSION,
    chain_of,
    columns_of_row,
    paths_of,
    proofs_of,
    row_of,
    session_of,
    usage_of,
)
from dragoman.history.storage.sqlite.connection import Connection
from dragoman.history.storage.sqlite.numbers import existing, touch
from dragoman.history.storage.sqlite.search import index_anew, unindex

_INSERT = """
INSERT INTO messages (session, branch, seq, id, at, model, input, output, cache_read, cache_write,
                      thinking, reported_total, checksum, chain, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def session(connection: sqlite3.Connection, identity: SessionIdentity) -> Session | None:
    """The session, or `None`."""
    found = connection.execute(
        f"SELECT {SESSION} FROM heads s WHERE digest = ?", (identity.digest,)
    ).fetchone()
    return None if found is None else session_of(connection, found, identity)


def append(
    connection: Connection,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
    seal: Seal,
) -> Appended:
    """See `Storage.append`."""
    now = touch(connection, identity, entries, expected, seal)
    if branch != MAIN:
        _expect_branch(connection, now.id, branch)
    first = now.last_seq - len(entries) + 1
    insert(connection, now.id, ((seq, branch, each) for seq, each in enumerate(entries, first)))
    return Appended(now.version, now.last_seq)


def insert(
    connection: sqlite3.Connection, session: int, placed: Iterable[tuple[int, int, Entry]]
) -> None:
    """Inserts messages with their numbers and branches."""
    for seq, branch, entry in placed:
        values = columns_of_row(session, seq, branch, entry, *proofs_of(entry, seq, branch))
        try:
            connection.execute(_INSERT, values)
        except sqlite3.IntegrityError:
            duplicate = entry.id
        else:
            continue
        raise _refused(connection, session, duplicate)


def _refused(connection: sqlite3.Connection, session: int, id: str) -> Exception:
    found = connection.execute(
        "SELECT count(*) FROM messages WHERE session = ? AND id = ?", (session, id)
    ).fetchone()
    if found[0]:
        return DuplicateIds([id])
    return Corrupt(  # its number is in use
        "the session's counters are damaged: the next sequence number is already in use; nothing"
        " was changed. Run `dragoman history repair` to recount its messages"
    )


def rows(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    branch: int | None,
    after: int,
    upto: int | None,
    limit: int | None,
    newest: bool,  # noqa: FBT001 - called with the arguments of `Storage.rows`
) -> list[Row]:
    """See `Storage.rows`; all branches if `branch` is `None`."""
    clauses = ["m.session = (SELECT id FROM heads WHERE digest = ?)", "m.seq > ?", NUMBERED]
    values: list[Any] = [identity.digest, after]
    if branch is not None:
        clauses.append("m.branch = ?")
        values.append(branch)
    if upto is not None:
        clauses.append("m.seq <= ?")
        values.append(upto)
    order = "DESC" if newest else "ASC"
    found = connection.execute(
        f"SELECT {ROW} FROM messages m WHERE {' AND '.join(clauses)} ORDER BY m.seq {order}"
        " LIMIT ?",
        (*values, -1 if limit is None else limit),
    ).fetchall()
    if newest:
        found.reverse()
    return [row_of(each) for each in found]


def row(connection: sqlite3.Connection, identity: SessionIdentity, id: str) -> Row | None:
    """A message by id, on any branch."""
    found = connection.execute(
        f"SELECT {ROW} FROM messages m JOIN heads s ON s.id = m.session"
        " WHERE s.digest = ? AND m.id = ?",
        (identity.digest, id),
    ).fetchone()
    return None if found is None else row_of(found)


def count(connection: sqlite3.Connection, identity: SessionIdentity, branch: int | None) -> int:
    """See `Storage.count`; counts reachable messages only."""
    chosen = "SELECT 0 UNION SELECT number FROM forks WHERE session = s.id"
    found = connection.execute(
        "SELECT count(*) FROM heads s JOIN messages m ON m.session = s.id"
        f" WHERE s.digest = ? AND m.seq BETWEEN 1 AND s.last_seq AND {NUMBERED}"
        f" AND m.branch {f'IN ({chosen})' if branch is None else '= ?'}",
        (identity.digest,) if branch is None else (identity.digest, branch),
    ).fetchone()
    return int(found[0])


def rewrite(
    connection: Connection,
    identity: SessionIdentity,
    replaced: Sequence[Entry],
    removed: Sequence[str],
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.rewrite`."""
    held = existing(connection, identity, expected)
    for entry in replaced:
        _replace(connection, held.id, entry)
    for gone in removed:
        unindex(connection, held.id, gone)
        deleted = connection.execute(
            "DELETE FROM messages WHERE session = ? AND id = ?", (held.id, gone)
        ).rowcount
        _expect_one(deleted)
    return held.save(connection, seal, more=-len(removed))


def _replace(connection: Connection, session: int, entry: Entry) -> None:
    found = connection.execute(
        "SELECT rowid, seq, branch FROM messages WHERE session = ? AND id = ?", (session, entry.id)
    ).fetchone()
    if found is None:
        raise NotFound(NO_MESSAGE)
    rowid, seq, branch = found
    row = placed(entry, seq, branch)
    unindex(connection, session, entry.id)
    connection.execute(
        "UPDATE messages SET at = ?, model = ?, input = ?, output = ?, cache_read = ?,"
        " cache_write = ?, thinking = ?, reported_total = ?, checksum = ?, chain = ?,"
        " body = ? WHERE rowid = ?",
        (row.at, row.model, *usage_of(row), row.checksum, row.chain, row.body, rowid),
    )
    index_anew(connection, session, entry.id)


def clear(
    connection: Connection,
    identity: SessionIdentity,
    at: float,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.clear`."""
    kept = None if seal is UNSET else seal
    try:
        held = existing(connection, identity, expected)
    except NotFound:
        if expected:
            raise conflict(expected, 0) from None
        made = Session(identity, 1, 0, at, at, seal=kept)
        _insert_head(connection, made, chain_of(made, 0))
        return 1
    empty(connection, held.id)
    changes = {name: value for name, value in CLEARED.items() if name != "seal"}
    return held.save(connection, kept, more=-held.rows, updated_at=at, **changes)


def empty(connection: Connection, session: int) -> int:
    """Removes a session's messages and branches; returns the number of messages."""
    unindex(connection, session)
    connection.execute("DELETE FROM forks WHERE session = ?", (session,))
    return connection.execute("DELETE FROM messages WHERE session = ?", (session,)).rowcount


def fork(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    parent: int,
    at: int,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.fork`."""
    held = existing(connection, identity, expected)
    _expect_branch(connection, held.id, parent)
    forks = held.head.forks
    number = max((fork.number for fork in forks), default=MAIN) + 1
    connection.execute("INSERT INTO forks VALUES (?, ?, ?, ?)", (held.id, number, parent, at))
    held.save(connection, seal, active=number, forks=(*forks, Fork(number, parent, at)))
    return number


def activate(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    branch: int,
    expected: int | None,
    seal: Seal,
) -> None:
    """See `Storage.activate`."""
    held = existing(connection, identity, expected)
    _expect_branch(connection, held.id, branch)
    head = held.head
    held.save(connection, seal, active=branch, version=head.version, updated_at=head.updated_at)


def keep_windows(
    connection: sqlite3.Connection, identity: SessionIdentity, windows: bytes | None
) -> None:
    """See `Storage.keep_windows`."""
    id = _number(connection, identity)
    connection.execute("UPDATE heads SET window = NULL, windows = ? WHERE id = ?", (windows, id))


def delete(connection: Connection, identity: SessionIdentity) -> bool:
    """See `Storage.delete`."""
    found = connection.execute(
        "SELECT id FROM heads WHERE digest = ?", (identity.digest,)
    ).fetchone()
    if found is None:
        return False
    empty(connection, found[0])
    connection.execute("DELETE FROM heads WHERE id = ?", found)
    return True


def restore(connection: Connection, copy: Session, rows: Sequence[Row]) -> bool:
    """See `Storage.restore`."""
    there = session(connection, copy.identity)
    if there is not None and there.version >= copy.version:
        return False
    delete(connection, copy.identity)
    chain = chain_of(copy, len(rows)) if copy.chain is None else copy.chain + paths_of(copy)
    id = _insert_head(connection, copy, chain)
    connection.executemany(
        "INSERT INTO forks VALUES (?, ?, ?, ?)",
        [(id, fork.number, fork.parent, fork.at) for fork in copy.forks],
    )
    insert(connection, id, ((row.seq, row.branch, row) for row in rows))
    return True


def _insert_head(connection: sqlite3.Connection, head: Session, chain: str) -> int:
    found = connection.execute(
        'INSERT INTO heads (digest, agent, chat, user, "group", scope, version, last_seq,'
        " created_at, updated_at, active, window, windows, chain, seal)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            head.identity.digest, *head.identity.columns, head.version, head.last_seq,
            head.created_at, head.updated_at, head.active, head.window, head.windows, chain,
            head.seal,
        ),
    ).fetchone()  # fmt: skip
    return int(found[0])


def _number(connection: sqlite3.Connection, identity: SessionIdentity) -> int:
    found = connection.execute(
        "SELECT id FROM heads WHERE digest = ?", (identity.digest,)
    ).fetchone()
    if found is None:
        raise NotFound(NO_SESSION)
    return int(found[0])


def _expect_branch(connection: sqlite3.Connection, session: int, branch: int) -> None:
    found = (
        branch == MAIN
        or connection.execute(
            "SELECT 1 FROM forks WHERE session = ? AND number = ?", (session, branch)
        ).fetchone()
    )
    if not found:
        raise NotFound(NO_BRANCH)


def _expect_one(changed: int) -> None:
    if changed != 1:
        raise NotFound(NO_MESSAGE)
