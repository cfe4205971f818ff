"""Queries over many sessions, within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from dragoman.errors import Corrupt
from dragoman.history.storage.protocol import Filter, Group, Session, Total, columns_of
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
