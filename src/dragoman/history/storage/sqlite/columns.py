"""Converts between columns and values. A file may be damaged: any column can hold anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from math import isfinite
from typing import Any

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import Tally, checksum_of, place_of, tally_of
from dragoman.history.storage.protocol import MAIN, Entry, Fork, Row, Session
from dragoman.history.storage.soundness import shape_of, unreadable_row
from dragoman.model.usage import Usage

ROW = """m.seq, m.branch, m.id, m.at, m.model, m.input, m.output, m.cache_read, m.cache_write,
m.thinking, m.reported_total, m.checksum, m.chain, m.body"""
SESSION = """s.id, s.agent, s.chat, s.user, s."group", s.scope, s.version, s.last_seq,
s.created_at, s.updated_at, s.active, s.window, s.windows, s.chain, s.seal,
EXISTS (SELECT 1 FROM forks WHERE session = s.id)"""
NUMBERED = "typeof(m.seq) = 'integer'"  # other rows have no position
_NO_USAGE = (None,) * 6
_PATHS = "/f1-"  # follows a tally: a hash of the branches, which nothing else repeats


def columns_of_row(
    session: int, seq: int, branch: int, entry: Entry, checksum: str | None, chain: str | None
) -> tuple[Any, ...]:
    """The columns of a row, in the order of the table."""
    return (
        session, branch, seq, entry.id, entry.at, entry.model, *usage_of(entry),
        checksum, chain, entry.body,
    )  # fmt: skip


def usage_of(entry: Entry) -> tuple[int | None, ...]:
    """The token counts of an entry; all NULL if it has none."""
    used = entry.usage
    if used is None:
        return _NO_USAGE
    counts = (used.input, used.output, used.cache_read, used.cache_write, used.thinking)
    return (*counts, used.reported_total)


def proofs_of(entry: Entry, seq: int, branch: int) -> tuple[str | None, str | None]:
    """Checksum and position; those of a copy are kept."""
    if isinstance(entry, Row) and entry.checksum is not None:
        return entry.checksum, entry.chain
    return checksum_of(entry), place_of(branch, seq)


_MAYBE = (str, type(None))


def row_of(found: Sequence[Any]) -> Row:
    """A row from the columns of `ROW`. A damaged row is returned so that its damage is detectable.

    Raises `Corrupt` if it has no position.
    """
    # Inlined for speed: a history is loaded row by row.
    seq, branch, id, at, model, used, out, read, write, thought, total, checksum, chain, body = (
        found
    )
    if (
        type(seq) is type(branch) is int
        and type(id) is str
        and type(at) is float
        and isfinite(at)
        and type(body) is bytes
        and type(model) in _MAYBE
        and type(checksum) in _MAYBE
        and type(chain) in _MAYBE
    ):
        try:
            # Without usage, all counts are NULL: totals would include any other.
            is_absent = used is out is read is write is thought is total is None
            usage = None if is_absent else Usage(used, out, read, write, thought, total)
        except (InvalidInputError, TypeError):
            pass
        else:
            return Row(
                id, body, at, model, usage, seq=seq, branch=branch, checksum=checksum, chain=chain
            )
    return _damaged(seq, branch, id, body)


def _damaged(seq: Any, branch: Any, id: Any, body: Any) -> Row:
    if type(seq) is not int or type(branch) is not int:
        msg = "a stored message has lost its position; `dragoman history repair` sets it aside"
        raise Corrupt(msg)
    kept = body if type(body) is bytes else b""
    known = id if type(id) is str else ""
    return unreadable_row(seq, branch, kept, known)


_WHOLE, _MOMENTS, _DOCUMENTS = {int}, {float}, {bytes, type(None)}


def session_of(
    connection: sqlite3.Connection, found: Sequence[Any], named: SessionIdentity | None = None
) -> Session:
    """A session from the columns of `SESSION`; raises `Corrupt` if they are damaged.

    Also raises if its names differ from `named`, if given.
    """
    (
        id, *columns, version, last, created, updated, active, window, windows, chain, seal,
        has_forks,
    ) = found  # fmt: skip
    forks = forks_of(connection, id) if has_forks else []
    identity = _identity(tuple(columns), named)
    numbers = [version, last, active]
    for fork in forks:
        numbers += fork
    if (
        identity is None
        or {*map(type, numbers)} != _WHOLE
        or min(numbers) < 0
        or {type(created), type(updated)} != _MOMENTS
        or not isfinite(created + updated)
        or not {type(window), type(windows), type(seal)} <= _DOCUMENTS
        or type(chain) not in _MAYBE
    ):
        msg = (
            "the record of a session is damaged; nothing was changed. Run `dragoman history repair`"
            " to rebuild it from its messages"
        )
        raise Corrupt(msg)
    tally, mark, paths = (chain or "").partition(_PATHS)
    session = Session(
        identity, version, last, created, updated, active, tuple(Fork(*fork) for fork in forks),
        window, windows, tally if chain is not None else None, seal,
    )  # fmt: skip
    if tally_of(session) is not None and mark + paths != paths_of(session):
        msg = (
            f"the branches of session {identity.digest} are damaged; nothing was changed. Run"
            " `dragoman history repair` to reconnect what is left"
        )
        raise Corrupt(msg)
    return session


def identity_in(found: Sequence[Any]) -> SessionIdentity | None:
    """The identity in the columns of `SESSION`, whatever else is damaged; `None` if unreadable."""
    return _identity(tuple(found[1:6]), None)


def _identity(columns: tuple[Any, ...], named: SessionIdentity | None) -> SessionIdentity | None:
    """The identity in these columns; `None` if they are damaged, or differ from `named`."""
    if named is not None:
        return named if named.columns == columns else None
    try:
        identity = SessionIdentity.from_columns(columns)
    except (InvalidInputError, ValueError, TypeError, AttributeError):
        return None
    return identity if identity.columns == columns else None


def forks_of(connection: sqlite3.Connection, session: int) -> list[tuple[Any, Any, Any]]:
    """A session's branches, whatever their columns hold."""
    return connection.execute(
        "SELECT number, parent, at FROM forks WHERE session = ? ORDER BY number", (session,)
    ).fetchall()


def chain_of(session: Session, rows: int) -> str:
    """The value of a session's column `chain`: its tally, and a hash of its branches."""
    tally = Tally(session.version, session.last_seq, rows, len(session.forks))
    return f"{tally}{paths_of(session)}"


def paths_of(session: Session) -> str:
    """A hash of the branches and the active one; empty if there is only the main branch."""
    if not session.forks and session.active == MAIN:
        return ""
    return f"/{shape_of(session)}"
