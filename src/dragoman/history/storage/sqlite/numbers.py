"""The counters of a session: its version, last sequence number, and number of messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from time import time
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import damaged, tally_of
from dragoman.history.storage.protocol import NO_SESSION, Entry, Seal, Session, conflict
from dragoman.history.storage.sqlite.columns import SESSION, chain_of, session_of
from dragoman.history.storage.sqlite.connection import Connection

# For a session that this process has not written to yet: the stored tally is updated in SQL. In
# 'n1-V.L.R…', V and L are replaced, R is incremented, and the rest is kept.
_NUMBERS = "'n1-' || version || '.' || last_seq || '.'"
_REST = f"substr(chain, 1 + length({_NUMBERS}))"
_MAKE = f"""
INSERT INTO heads (digest, agent, chat, user, "group", scope, version, last_seq, created_at,
                   updated_at, chain, seal)
VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET version = version + 1,
    last_seq = last_seq + excluded.last_seq, updated_at = excluded.updated_at,
    chain = CASE
        WHEN instr(chain, {_NUMBERS}) = 1 THEN
            'n1-' || (version + 1) || '.' || (last_seq + excluded.last_seq) || '.'
            || (CAST({_REST} AS INTEGER) + excluded.last_seq)
            || substr({_REST}, instr({_REST}, '.'))
        WHEN substr(coalesce(chain, ''), 1, 3) <> 'n1-'
            AND typeof(version) = 'integer' AND typeof(last_seq) = 'integer' THEN NULL
        ELSE '' END
"""
_RETURNING = " RETURNING id, version, last_seq, chain"
_TOUCH, _TOUCH_SEALED = _MAKE + _RETURNING, _MAKE + ", seal = excluded.seal" + _RETURNING
# For a session that it has written to: everything is known if it is unchanged, which is checked.
# This is cheaper.
_GO_ON = "UPDATE heads SET version = ?, last_seq = ?, updated_at = ?, chain = ?"
_IF_AS_KNOWN = " WHERE id = ? AND digest = ? AND version = ? AND last_seq = ? AND chain = ?"
_ON, _ON_SEALED = _GO_ON + _IF_AS_KNOWN, _GO_ON + ", seal = ?" + _IF_AS_KNOWN
_MAX_CACHED = 1000  # sessions whose counters are cached


class Known(NamedTuple):
    """A session's counters after the last append; `rest` follows them in `chain`."""

    id: int
    version: int
    last_seq: int
    rows: int
    rest: str
    chain: str


def touch(
    connection: Connection,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    expected: int | None,
    seal: Seal,
) -> Known:
    """Reserves numbers for messages, creates the session if necessary, and returns its counters.

    Cached counters may be outdated: they are verified before anything is written.
    """
    digest, known = identity.digest, connection.known
    last = known.get(digest)
    if last is not None and (expected is None or expected == last.version):
        now = _continued(connection, digest, last, entries, seal)
        if now is not None:
            known[digest] = now
            return now
    now = _made(connection, identity, entries, expected, seal)
    if len(known) >= _MAX_CACHED:
        del known[next(iter(known))]
    known[digest] = now
    return now


def _continued(
    connection: sqlite3.Connection, digest: str, last: Known, entries: Sequence[Entry], seal: Seal
) -> Known | None:
    id, version, seq, rows, rest, chain = last
    more = len(entries)
    new = f"n1-{version + 1}.{seq + more}.{rows + more}{rest}"
    values = (version + 1, seq + more, entries[-1].at, new)
    as_known = (id, digest, version, seq, chain)
    if seal is UNSET:
        done = connection.execute(_ON, (*values, *as_known))
    else:
        done = connection.execute(_ON_SEALED, (*values, seal, *as_known))
    if done.rowcount != 1:
        return None
    return Known(id, version + 1, seq + more, rows + more, rest, new)


def _made(
    connection: sqlite3.Connection,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    expected: int | None,
    seal: Seal,
) -> Known:
    more = len(entries)
    statement, kept = (_TOUCH, None) if seal is UNSET else (_TOUCH_SEALED, seal)
    id, version, last, chain = connection.execute(
        statement,
        (
            identity.digest, *identity.columns, more, entries[0].at, entries[-1].at,
            f"n1-1.{more}.{more}.0", kept,
        ),
    ).fetchone()  # fmt: skip
    if chain is None:
        chain = _count(connection, id, more)
    numbers = f"n1-{version}.{last}."
    rows, dot, rest = chain.removeprefix(numbers).partition(".")
    if not chain.startswith(numbers) or not rows.isdecimal():
        raise damaged(identity.digest)
    if expected is not None and version - 1 != expected:
        raise conflict(expected, version - 1)
    return Known(id, version, last, int(rows), dot + rest, chain)


def _count(connection: sqlite3.Connection, id: int, more: int) -> str:
    """Adds a tally to a session that has none, at the first write."""
    found = connection.execute(f"SELECT {SESSION} FROM heads s WHERE id = ?", (id,)).fetchone()
    held = session_of(connection, found)
    chain = chain_of(held, rows_in(connection, id) + more)
    connection.execute("UPDATE heads SET chain = ? WHERE id = ?", (chain, id))
    return chain


def rows_in(connection: sqlite3.Connection, session: int) -> int:
    """The number of rows of a session in the table."""
    found = connection.execute("SELECT count(*) FROM messages WHERE session = ?", (session,))
    return int(found.fetchone()[0])


class Held(NamedTuple):
    """An existing session, the id of its row, and its number of messages."""

    id: int
    head: Session
    rows: int

    def save(
        self, connection: sqlite3.Connection, seal: Seal, *, more: int = 0, **changes: Any
    ) -> int:
        """Increments the version, changes fields, adds `more` messages; returns the version."""
        given = {} if seal is UNSET else {"seal": seal}
        version = self.head.version + 1
        changed = {"version": version, "updated_at": time(), **changes, **given}
        head = msgspec.structs.replace(self.head, **changed)
        save(connection, self.id, head, self.rows + more)
        return version


def save(connection: sqlite3.Connection, id: int, head: Session, rows: int) -> None:
    """Writes a session's head, with its tally."""
    connection.execute(
        "UPDATE heads SET version = ?, last_seq = ?, created_at = ?, updated_at = ?, active = ?,"
        " window = ?, windows = ?, chain = ?, seal = ? WHERE id = ?",
        (
            head.version, head.last_seq, head.created_at, head.updated_at, head.active,
            head.window, head.windows, chain_of(head, rows), head.seal, id,
        ),
    )  # fmt: skip


def existing(
    connection: sqlite3.Connection, identity: SessionIdentity, expected: int | None
) -> Held:
    """The session to be changed; raises if it does not exist or has another version."""
    found = connection.execute(
        f"SELECT {SESSION} FROM heads s WHERE digest = ?", (identity.digest,)
    ).fetchone()
    if found is None:
        raise NotFound(NO_SESSION)
    head = session_of(connection, found, identity)
    if expected is not None and head.version != expected:
        raise conflict(expected, head.version)
    tally = tally_of(head)
    return Held(found[0], head, rows_in(connection, found[0]) if tally is None else tally.rows)
