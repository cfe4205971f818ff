"""Queries over many sessions, within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.errors import Corrupt
from dragoman.history.identity import escaped, unescaped
from dragoman.history.storage.protocol import Dated, Filter, Group, Session, Total, columns_of
from dragoman.history.storage.soundness import listed_as_damaged
from dragoman.history.storage.sqlite.columns import SESSION, identity_in, session_of
from dragoman.model.usage import Usage

_KEYS = {
    "session": "s.digest",
    "user": "s.user",
    "model": "m.model",
    "day": "strftime('%Y-%m-%d', CAST(m.at AS INTEGER), 'unixepoch')",
}


def sessions(
    connection: sqlite3.Connection, which: Filter, limit: int | None, after: str
) -> list[Session]:
    """See `Storage.sessions`."""
    clause, values = where(which)
    found = connection.execute(
        f"SELECT {SESSION} FROM heads s WHERE digest > ? {clause} ORDER BY digest LIMIT ?",
        (after, *values, -1 if limit is None else limit),
    ).fetchall()
    return list(_readable(connection, found))


# A damaged time sorts last. There is no index on it: every append would have to update it, and
# scanning ten thousand sessions takes a few milliseconds.
_AT = "CASE typeof(s.updated_at) WHEN 'real' THEN s.updated_at ELSE 0.0 END"


def sessions_by_time(
    connection: sqlite3.Connection,
    limit: int,
    before: tuple[float, str] | None,
    without: Sequence[str],
) -> list[Dated]:
    """See `Ordering.sessions_by_time`."""
    clauses, values = _without(without)
    if before is not None:
        clauses.append(f"({_AT} < ? OR ({_AT} = ? AND s.digest > ?))")
        values += [before[0], *before]
    found = connection.execute(
        f"WITH found AS (SELECT s.id, {_AT} AS time FROM heads s WHERE {' AND '.join(clauses)}"
        f" ORDER BY time DESC, s.digest LIMIT ?) SELECT found.time, {SESSION}"
        " FROM found JOIN heads s ON s.id = found.id ORDER BY found.time DESC, s.digest",
        (*values, limit),
    ).fetchall()
    return [Dated(at, each) for at, *columns in found for each in _readable(connection, [columns])]


def number_of_sessions(connection: sqlite3.Connection, without: Sequence[str]) -> int:
    """See `Ordering.number_of_sessions`."""
    clauses, values = _without(without)
    found = connection.execute(
        f"SELECT count(*) FROM heads s WHERE {' AND '.join(clauses)}", values
    ).fetchone()
    return int(found[0])


def _without(scopes: Sequence[str]) -> tuple[list[str], list[Any]]:
    """Conditions that exclude sessions by the start of their scope, and their values."""
    clauses, values = ["TRUE"], list[Any]()
    for scope in scopes:
        clauses.append("(s.scope IS NULL OR substr(s.scope, 1, ?) <> ?)")
        start = escaped(scope)
        values += [len(start), start]
    return clauses, values


def _readable(connection: sqlite3.Connection, found: list[Any]) -> Iterator[Session]:
    """The sessions; a damaged one does not abort a listing, but is marked."""
    for each in found:
        try:
            yield session_of(connection, each)
        except Corrupt:
            identity = identity_in(each)
            if identity is not None:  # `verify` reports the others
                yield listed_as_damaged(identity)


def totals(connection: sqlite3.Connection, by: Group, which: Filter) -> list[Total]:
    """See `Storage.totals`."""
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
