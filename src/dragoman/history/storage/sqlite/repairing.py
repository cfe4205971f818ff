"""Sets damaged records aside, and recomputes a session's counters from the rest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from math import isfinite
from time import time
from typing import Any, TypeGuard

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import Corrupt, NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import place_of
from dragoman.history.storage.plausibility import is_plain, mended
from dragoman.history.storage.protocol import MAIN, NO_SESSION, Fork, Seal, Session, conflict
from dragoman.history.storage.sqlite.checking import mend_index
from dragoman.history.storage.sqlite.columns import NUMBERED, SESSION, forks_of, session_of
from dragoman.history.storage.sqlite.connection import Connection
from dragoman.history.storage.sqlite.numbers import rows_in, save
from dragoman.history.storage.sqlite.search import unindex_row

_MAX_NUMBER = 2**53  # larger numbers can't be ours


def set_aside(
    connection: Connection,
    identity: SessionIdentity,
    seqs: Sequence[int],
    reason: str,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.set_aside`; also moves records without a readable position."""
    found = connection.execute(
        f"SELECT {SESSION} FROM heads s WHERE digest = ?", (identity.digest,)
    ).fetchone()
    if found is None:
        raise NotFound(NO_SESSION)
    id = found[0]
    head = _head(connection, identity, found)
    if expected is not None and head.version != expected:
        raise conflict(expected, head.version)
    forks = _mend_forks(connection, id, head.forks)
    moved = sum(_move(connection, id, rowid, reason) for rowid in _broken(connection, id, seqs))
    head = replace(
        head,
        version=head.version + 1,
        last_seq=_last_seq(connection, id, found),
        updated_at=time(),
        active=head.active if head.active in {fork.number for fork in forks} else MAIN,
        forks=forks,
    )
    head = mended(head, is_plain=is_plain(_bodies(connection, id)))
    head = head if seal is UNSET else replace(head, seal=seal)
    _name(connection, id, identity)
    mend_index(connection)
    save(connection, id, head, rows_in(connection, id))
    return moved


def _head(connection: sqlite3.Connection, identity: SessionIdentity, found: Any) -> Session:
    """The session, or what is readable of it."""
    try:
        head = session_of(connection, found, identity)
    except Corrupt:
        id, *_, version, _, created, updated, active, window, windows, chain, seal, _ = found
    else:
        return head
    forks = [Fork(*each) for each in forks_of(connection, id) if _is_number(each[0])]
    return Session(
        identity,
        version=max(
            number for number in (0, version, _tally_number(chain, 0)) if _is_number(number)
        ),
        last_seq=0,
        created_at=_moment(created),
        updated_at=_moment(updated),
        active=active if _is_number(active) else MAIN,
        forks=tuple(forks),
        window=window if type(window) is bytes else None,
        windows=windows if type(windows) is bytes else None,
        seal=seal if type(seal) is bytes else None,
    )


def _bodies(connection: sqlite3.Connection, id: int) -> Iterator[bytes]:
    for (body,) in connection.execute("SELECT body FROM messages WHERE session = ?", (id,)):
        if type(body) is bytes:
            yield body


def _is_number(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MAX_NUMBER


def _moment(value: Any) -> float:
    return value if type(value) is float and isfinite(value) else time()


def _tally_number(chain: Any, index: int) -> int | None:
    """One of the numbers that a tally repeats, if readable."""
    if type(chain) is not str or not chain.startswith("n1-"):
        return None
    told = chain.removeprefix("n1-").split(".")[index : index + 1]
    return int(told[0]) if told and told[0].isascii() and told[0].isdecimal() else None


def _last_seq(connection: sqlite3.Connection, id: int, found: Any) -> int:
    """The last sequence number: the lowest recorded one that is not below an existing row."""
    highest: int = connection.execute(
        f"SELECT coalesce(max(m.seq), 0) FROM messages m WHERE m.session = ? AND {NUMBERED}", (id,)
    ).fetchone()[0]
    told = (found[7], _tally_number(found[13], 1))
    return min((n for n in told if _is_number(n) and n >= highest), default=highest)


def _mend_forks(connection: sqlite3.Connection, id: int, held: Sequence[Fork]) -> tuple[Fork, ...]:
    """The branches; damaged or missing ones that have messages start again at the main branch."""
    forks: dict[int, Fork] = {}
    for fork in held:
        leads = fork.parent == MAIN or fork.parent in forks
        whole = leads and _is_number(fork.at) and fork.number not in {MAIN, fork.parent}
        if fork.number != MAIN:
            forks[fork.number] = fork if whole else Fork(fork.number, MAIN, 0)
    rows = connection.execute(
        f"SELECT m.branch, m.seq, m.chain FROM messages m WHERE m.session = ? AND {NUMBERED}"
        " AND m.branch NOT IN (SELECT 0 UNION SELECT number FROM forks WHERE session = ?)",
        (id, id),
    ).fetchall()
    for branch, seq, chain in rows:
        if _is_number(branch) and chain == place_of(branch, seq):
            forks.setdefault(branch, Fork(branch, MAIN, 0))
    mended = tuple(forks[number] for number in sorted(forks))
    connection.execute("DELETE FROM forks WHERE session = ?", (id,))
    connection.executemany(
        "INSERT INTO forks VALUES (?, ?, ?, ?)",
        [(id, fork.number, fork.parent, fork.at) for fork in mended],
    )
    return mended


def _broken(connection: sqlite3.Connection, id: int, seqs: Sequence[int]) -> list[int]:
    """The rows with one of these numbers, and those without a valid position."""
    named = [rowid for seq in seqs for rowid in _with_number(connection, id, seq)]
    lost = connection.execute(
        f"SELECT rowid FROM messages m WHERE m.session = ? AND (NOT {NUMBERED} OR m.seq < 1"
        f" OR m.seq >= {_MAX_NUMBER}"
        " OR m.branch NOT IN (SELECT 0 UNION SELECT number FROM forks WHERE session = ?)"
        " OR typeof(m.branch) <> 'integer')",
        (id, id),
    ).fetchall()
    return [*dict.fromkeys([*named, *(rowid for (rowid,) in lost)])]


def _with_number(connection: sqlite3.Connection, id: int, seq: int) -> list[int]:
    """The rows with a number; if there are several, those written elsewhere, if any."""
    rows = connection.execute(
        "SELECT rowid, branch, chain FROM messages WHERE session = ? AND seq = ?", (id, seq)
    ).fetchall()
    misplaced = [
        rowid for rowid, branch, chain in rows if chain not in {None, place_of(branch, seq)}
    ]
    return misplaced or [rowid for rowid, _, _ in rows]


def _move(connection: Connection, id: int, rowid: int, reason: str) -> int:
    unindex_row(connection, rowid)
    connection.execute(
        "INSERT INTO aside SELECT s.digest, s.user, coalesce(m.seq, 0), coalesce(m.branch, 0),"
        " coalesce(m.id, ''), coalesce(m.at, 0), ?, coalesce(m.body, x'')"
        " FROM messages m JOIN heads s ON s.id = ? WHERE m.rowid = ?",
        (reason, id, rowid),
    )
    return connection.execute("DELETE FROM messages WHERE rowid = ?", (rowid,)).rowcount


def _name(connection: sqlite3.Connection, id: int, identity: SessionIdentity) -> None:
    connection.execute(
        'UPDATE heads SET agent = ?, chat = ?, user = ?, "group" = ?, scope = ?, indexed = 0'
        " WHERE id = ?",
        (*identity.columns, id),
    )
