"""What is asked of the tables: functions of a connection, within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from time import time
from typing import Any

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import (
    MAIN,
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Appended,
    DuplicateIds,
    Entry,
    Filter,
    Fork,
    Group,
    Row,
    Session,
    Total,
    columns_of,
    conflict,
)
from dragoman.history.storage.sqlite.search import index_anew, unindex
from dragoman.model.usage import Usage

_TOUCH = """
INSERT INTO heads (digest, agent, chat, user, "group", scope, version, last_seq, created_at,
                   updated_at)
VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET version = version + 1,
    last_seq = last_seq + excluded.last_seq, updated_at = excluded.updated_at
RETURNING id, version, last_seq
"""
_INSERT = """
INSERT INTO messages (session, branch, seq, id, at, model, input, output, cache_read, cache_write,
                      thinking, reported_total, checksum, chain, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
ROW = """m.seq, m.branch, m.id, m.at, m.model, m.input, m.output, m.cache_read, m.cache_write,
m.thinking, m.reported_total, m.checksum, m.chain, m.body"""
SESSION = """s.id, s.agent, s.chat, s.user, s."group", s.scope, s.version, s.last_seq,
s.created_at, s.updated_at, s.active, s.window, s.windows, s.chain, s.seal"""
_NO_USAGE = (None,) * 6
_KEYS = {
    "session": "s.digest",
    "user": "s.user",
    "model": "m.model",
    "day": "strftime('%Y-%m-%d', CAST(m.at AS INTEGER), 'unixepoch')",
}


def session(connection: sqlite3.Connection, identity: SessionIdentity) -> Session | None:
    """The session; None where there is none."""
    found = connection.execute(
        f"SELECT {SESSION} FROM heads s WHERE digest = ?", (identity.digest,)
    ).fetchone()
    return None if found is None else _session(connection, found)


def append(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
) -> Appended:
    """See `Storage.append`."""
    times = entries[0].at, entries[-1].at
    id, version, last = _touched(connection, identity, times, expected, len(entries))
    if branch != MAIN:
        _expect_branch(connection, id, branch)
    insert(connection, id, ((last - len(entries) + n, branch, e) for n, e in enumerate(entries, 1)))
    return Appended(version, last)


def _touched(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    times: tuple[float, float],
    expected: int | None,
    more: int = 0,
) -> tuple[int, int, int]:
    """The session's number, version and last message's number, after making it if need be.

    The times are when it is made, if it is, and when it is written.
    """
    id: int
    id, version, last = connection.execute(
        _TOUCH, (identity.digest, *identity.columns, more, *times)
    ).fetchone()
    if expected is not None and version - 1 != expected:
        raise conflict(expected, version - 1)
    return id, version, last


def insert(
    connection: sqlite3.Connection, session: int, placed: Iterable[tuple[int, int, Entry]]
) -> None:
    """Write messages with their numbers and branches."""
    for seq, branch, entry in placed:
        values = (
            session, branch, seq, entry.id, entry.at, entry.model, *_usage(entry),
            *_proofs(entry), entry.body,
        )  # fmt: skip
        try:
            connection.execute(_INSERT, values)
        except sqlite3.IntegrityError:
            duplicate = entry.id
        else:
            continue
        raise DuplicateIds([duplicate])


def rows(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    branch: int | None,
    after: int,
    upto: int | None,
    limit: int | None,
    newest: bool,  # noqa: FBT001 - called with what `Storage.rows` was given
) -> list[Row]:
    """See `Storage.rows`; of all branches where `branch` is None."""
    clauses = ["m.session = (SELECT id FROM heads WHERE digest = ?)", "m.seq > ?"]
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
    """One message, on any branch."""
    found = connection.execute(
        f"SELECT {ROW} FROM messages m JOIN heads s ON s.id = m.session"
        " WHERE s.digest = ? AND m.id = ?",
        (identity.digest, id),
    ).fetchone()
    return None if found is None else row_of(found)


def count(connection: sqlite3.Connection, identity: SessionIdentity, branch: int | None) -> int:
    """See `Storage.count`."""
    values: list[Any] = [identity.digest]
    if branch is not None:
        values.append(branch)
    found = connection.execute(
        "SELECT count(*) FROM messages WHERE session = (SELECT id FROM heads WHERE digest = ?)"
        + ("" if branch is None else " AND branch = ?"),
        values,
    ).fetchone()
    return int(found[0])


def rewrite(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    replaced: Sequence[Entry],
    removed: Sequence[str],
    expected: int | None,
) -> int:
    """See `Storage.rewrite`."""
    id, version = existing(connection, identity, expected)
    for entry in replaced:
        unindex(connection, id, entry.id)
        changed = connection.execute(
            "UPDATE messages SET at = ?, model = ?, input = ?, output = ?, cache_read = ?,"
            " cache_write = ?, thinking = ?, reported_total = ?, checksum = NULL, chain = NULL,"
            " body = ? WHERE session = ? AND id = ?",
            (entry.at, entry.model, *_usage(entry), entry.body, id, entry.id),
        ).rowcount
        _expect_one(changed)
        index_anew(connection, id, entry.id)
    for gone in removed:
        unindex(connection, id, gone)
        deleted = connection.execute(
            "DELETE FROM messages WHERE session = ? AND id = ?", (id, gone)
        ).rowcount
        _expect_one(deleted)
    return version


def clear(
    connection: sqlite3.Connection, identity: SessionIdentity, at: float, expected: int | None
) -> int:
    """See `Storage.clear`."""
    id, version, _ = _touched(connection, identity, (at, at), expected)
    empty(connection, id)
    connection.execute(
        "UPDATE heads SET active = 0, window = NULL, windows = NULL, chain = NULL, seal = NULL"
        " WHERE id = ?",
        (id,),
    )
    return version


def empty(connection: sqlite3.Connection, session: int) -> int:
    """Remove a session's messages and branches; returns how many messages there were."""
    unindex(connection, session)
    connection.execute("DELETE FROM forks WHERE session = ?", (session,))
    return connection.execute("DELETE FROM messages WHERE session = ?", (session,)).rowcount


def fork(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    parent: int,
    at: int,
    expected: int | None,
) -> int:
    """See `Storage.fork`."""
    id, _ = existing(connection, identity, expected)
    _expect_branch(connection, id, parent)
    number: int = connection.execute(
        "SELECT coalesce(max(number), 0) + 1 FROM forks WHERE session = ?", (id,)
    ).fetchone()[0]
    connection.execute("INSERT INTO forks VALUES (?, ?, ?, ?)", (id, number, parent, at))
    connection.execute("UPDATE heads SET active = ? WHERE id = ?", (number, id))
    return number


def activate(connection: sqlite3.Connection, identity: SessionIdentity, branch: int) -> None:
    """See `Storage.activate`."""
    id = _number(connection, identity)
    _expect_branch(connection, id, branch)
    connection.execute("UPDATE heads SET active = ? WHERE id = ?", (branch, id))


def keep_window(
    connection: sqlite3.Connection, identity: SessionIdentity, window: bytes | None
) -> None:
    """See `Storage.keep_window`."""
    id = _number(connection, identity)
    connection.execute("UPDATE heads SET window = ? WHERE id = ?", (window, id))


def delete(connection: sqlite3.Connection, identity: SessionIdentity) -> bool:
    """See `Storage.delete`."""
    found = connection.execute(
        "SELECT id FROM heads WHERE digest = ?", (identity.digest,)
    ).fetchone()
    if found is None:
        return False
    empty(connection, found[0])
    connection.execute("DELETE FROM heads WHERE id = ?", found)
    return True


def restore(connection: sqlite3.Connection, copy: Session, rows: Sequence[Row]) -> bool:
    """See `Storage.restore`."""
    there = session(connection, copy.identity)
    if there is not None and there.version >= copy.version:
        return False
    delete(connection, copy.identity)
    id: int = connection.execute(
        'INSERT INTO heads (digest, agent, chat, user, "group", scope, version, last_seq,'
        " created_at, updated_at, active, window, windows, chain, seal)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            copy.identity.digest,
            *copy.identity.columns,
            copy.version,
            copy.last_seq,
            copy.created_at,
            copy.updated_at,
            copy.active,
            copy.window,
            copy.windows,
            copy.chain,
            copy.seal,
        ),
    ).fetchone()[0]
    connection.executemany(
        "INSERT INTO forks VALUES (?, ?, ?, ?)",
        [(id, fork.number, fork.parent, fork.at) for fork in copy.forks],
    )
    insert(connection, id, ((row.seq, row.branch, row) for row in rows))
    return True


def set_aside(
    connection: sqlite3.Connection, identity: SessionIdentity, seqs: Sequence[int], reason: str
) -> int:
    """See `Storage.set_aside`."""
    id, _ = existing(connection, identity, None)
    moved = 0
    for seq in seqs:
        _unindex_number(connection, id, seq)
        connection.execute(
            "INSERT INTO aside SELECT s.digest, s.user, m.seq, m.branch, m.id, m.at, ?, m.body"
            " FROM messages m JOIN heads s ON s.id = m.session"
            " WHERE m.session = ? AND m.seq = ?",
            (reason, id, seq),
        )
        moved += connection.execute(
            "DELETE FROM messages WHERE session = ? AND seq = ?", (id, seq)
        ).rowcount
    return moved


def _unindex_number(connection: sqlite3.Connection, session: int, seq: int) -> None:
    found = connection.execute(
        "SELECT id FROM messages WHERE session = ? AND seq = ?", (session, seq)
    ).fetchone()
    if found is not None:
        unindex(connection, session, found[0])


def sessions(
    connection: sqlite3.Connection, which: Filter, limit: int | None, after: str
) -> list[Session]:
    """See `Storage.sessions`."""
    clause, values = where(which)
    found = connection.execute(
        f"SELECT {SESSION} FROM heads s WHERE digest > ? {clause} ORDER BY digest LIMIT ?",
        (after, *values, -1 if limit is None else limit),
    ).fetchall()
    return [_session(connection, each) for each in found]


def totals(connection: sqlite3.Connection, by: Group, which: Filter) -> list[Total]:
    """See `Storage.totals`."""
    from dragoman.history.identity import unescaped

    clause, values = where(which)
    found = connection.execute(
        f"SELECT {_KEYS[by]} AS key, sum(input), sum(output), sum(cache_read), sum(cache_write),"
        " sum(thinking), sum(coalesce(reported_total,"
        " input + output + cache_read + cache_write + thinking)),"
        " count(reported_total), count(*)"
        " FROM messages m JOIN heads s ON s.id = m.session"
        f" WHERE m.input IS NOT NULL {clause} GROUP BY key ORDER BY key IS NOT NULL, key",
        values,
    ).fetchall()
    return [
        Total(
            unescaped(key) if by == "user" else key,
            Usage(fresh, out, read, wrote, thought, total if reported else None),
            messages,
        )
        for key, fresh, out, read, wrote, thought, total, reported, messages in found
    ]


def where(which: Filter) -> tuple[str, list[Any]]:
    """A filter as conditions on `s`, each with its AND, and their values."""
    clauses: list[str] = []
    values: list[Any] = []
    for field, column in columns_of(which).items():
        clauses.append(f'AND s."{field}" IS ?')
        values.append(column)
    for test, moment in (
        ("AND s.updated_at >= ?", which.since),
        ("AND s.updated_at < ?", which.until),
    ):
        if moment is not None:
            clauses.append(test)
            values.append(moment)
    return " ".join(clauses), values


def existing(
    connection: sqlite3.Connection, identity: SessionIdentity, expected: int | None
) -> tuple[int, int]:
    """The number and the new version of a session that is there, and about to be changed."""
    found = connection.execute(
        "UPDATE heads SET version = version + 1, updated_at = ? WHERE digest = ?"
        " RETURNING id, version",
        (time(), identity.digest),
    ).fetchone()
    if found is None:
        raise NotFound(NO_SESSION)
    id, version = found
    if expected is not None and version - 1 != expected:
        raise conflict(expected, version - 1)
    return id, version


def row_of(found: Sequence[Any]) -> Row:
    """A row from the columns of `ROW`."""
    seq, branch, id, at, model, *usage, checksum, chain, body = found
    used = None if usage[0] is None else Usage(*usage)
    return Row(id, body, at, model, used, seq=seq, branch=branch, checksum=checksum, chain=chain)


def _session(connection: sqlite3.Connection, found: Sequence[Any]) -> Session:
    id, *columns, version, last, created, updated, active, window, windows, chain, seal = found
    forks = connection.execute(
        "SELECT number, parent, at FROM forks WHERE session = ? ORDER BY number", (id,)
    ).fetchall()
    identity = SessionIdentity.from_columns(tuple(columns))
    return Session(
        identity, version, last, created, updated, active,
        tuple(Fork(*fork) for fork in forks), window, windows, chain, seal,
    )  # fmt: skip


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


def _proofs(entry: Entry) -> tuple[str | None, str | None]:
    """Checksum and chain; a copy's are kept."""
    return (entry.checksum, entry.chain) if isinstance(entry, Row) else (None, None)


def _usage(entry: Entry) -> tuple[int | None, ...]:
    used = entry.usage
    if used is None:
        return _NO_USAGE
    counts = (used.input, used.output, used.cache_read, used.cache_write, used.thinking)
    return (*counts, used.reported_total)
