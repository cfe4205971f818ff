"""The SQL that databases share: queries on heads and rows, and how columns make them.

A table `heads` has a session's document, and what is queried beside it; `messages` has its rows, by
the number of its head; `aside` has the records that were moved out of sessions. Statements are
written with `?` for values and `our.` before tables; each database puts its own in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import isfinite
from typing import Any

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.identity import unescaped
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.protocol import (
    MAIN,
    Entry,
    Filter,
    Group,
    Row,
    Total,
    columns_of,
    unreadable_row,
)
from dragoman.model.usage import Usage

HEAD = 's.digest, s.agent, s.chat, s."user", s."group", s.scope, s.stamp, s.at, s.document'
HEAD_COLUMNS = 'digest, agent, chat, "user", "group", scope, stamp, at, document'
ROW = """m.seq, m.branch, m.id, m.at, m.model, m.input, m.output, m.cache_read, m.cache_write,
m.thinking, m.reported_total, m.checksum, m.chain, m.body"""
ROW_COLUMNS = """seq, branch, id, at, model, input, output, cache_read, cache_write, thinking,
reported_total, checksum, chain, body"""
GET = f"SELECT {HEAD} FROM our.heads s WHERE s.digest = ?"
NAMED = (
    f"SELECT {ROW} FROM our.messages m JOIN our.heads s ON s.id = m.session"
    " WHERE s.digest = ? AND m.id = ?"
)
_SESSION = "m.session = (SELECT s.id FROM our.heads s WHERE s.digest = ?)"
_COUNT = f"SELECT count(*) FROM our.messages m WHERE {_SESSION}"
ORPHANS = "SELECT count(*) FROM our.messages WHERE session NOT IN (SELECT id FROM our.heads)"
ORPHANED = "{} messages belong to no session: its record is missing"
_NO_USAGE = (None,) * 6
_MAYBE = (str, type(None))


@cache
def with_percents(statement: str) -> str:
    """A statement with `%s` for values, as psycopg takes it."""
    return statement.replace("?", "%s")


def rows_query(
    digest: str, branch: int, after: int, upto: int | None, limit: int | None, *, newest: bool,
    numbered: str = "",
) -> tuple[str, list[Any]]:  # fmt: skip
    """The statement for `Shelf.rows`, and its values; `numbered` is another condition."""
    clause, values = f"{_SESSION} AND m.branch = ? AND m.seq > ?{numbered}", [digest, branch, after]
    if upto is not None:
        clause += " AND m.seq <= ?"
        values.append(upto)
    clause += " ORDER BY m.seq DESC" if newest else " ORDER BY m.seq"
    if limit is not None:
        clause += " LIMIT ?"
        values.append(limit)
    return f"SELECT {ROW} FROM our.messages m WHERE {clause}", values


def count_query(digest: str, branches: Sequence[int] | None) -> tuple[str, list[Any]]:
    """The statement for `Shelf.count`, and its values."""
    if branches is None:
        return _COUNT, [digest]
    marks = ", ".join("?" * len(branches))
    return f"{_COUNT} AND m.seq > 0 AND m.branch IN ({marks})", [digest, *branches]


def list_query(where: str, limit: int | None) -> str:
    """The statement for `Shelf.heads`; `where` comes from the filter."""
    tail = "" if limit is None else " LIMIT ?"
    return f"SELECT {HEAD} FROM our.heads s WHERE s.digest > ? {where} ORDER BY s.digest{tail}"


def conditions(
    which: Filter, beginnings: Callable[[str, str], tuple[str, Sequence[Any]]] | None = None
) -> tuple[str, list[Any]]:
    """A filter as conditions on `s`, each with its AND, and their values.

    `beginnings` gives another condition for a field and a name, for databases that index these.
    """
    clauses: list[str] = []
    values: list[Any] = []
    for field, name in columns_of(which).items():
        if name is None:
            clauses.append(f'AND s."{field}" IS NULL')
            continue
        clauses.append(f'AND s."{field}" = ?')
        values.append(name)
        if beginnings is not None:
            clause, more = beginnings(field, name)
            clauses.append(clause)
            values += more
    for test, moment in (("AND s.at >= ?", which.since), ("AND s.at < ?", which.until)):
        if moment is not None:
            clauses.append(test)
            values.append(float(moment))
    return " ".join(clauses), values


def totals_query(key: str, where: str, whole: str = "{}") -> str:
    """The statement for `Shelf.totals`; `whole` converts a sum to an integer."""
    columns = ["input", "output", "cache_read", "cache_write", "thinking"]
    total = f"coalesce(reported_total, {' + '.join(columns)})"
    sums = ", ".join(whole.format(f"sum({each})") for each in (*columns, total))
    return (
        f"SELECT {key} AS key, {sums}, count(reported_total), count(*)"
        " FROM our.messages m JOIN our.heads s ON s.id = m.session"
        f" WHERE m.input IS NOT NULL {where} GROUP BY 1"
    )


def total_of(by: Group, found: Sequence[Any]) -> Total:
    """A total from a row of `totals_query`."""
    key, fresh, out, read, wrote, thought, total, reported, messages = found
    if by == "user":
        try:
            key = unescaped(key)
        except (ValueError, TypeError):
            key = None
    if type(key) is not str:
        key = None  # altered; `verify` reports it
    return Total(
        key, Usage(fresh, out, read, wrote, thought, total if reported else None), messages
    )


def in_order(totals: Sequence[Total]) -> list[Total]:
    """Totals by key, the unknown ones first."""
    return sorted(totals, key=lambda total: (total.key is not None, total.key or ""))


UNREADABLE = -1
"""Stands for a stamp that can't be ours; 0 would be that of a session that does not exist."""
SAME_STAMP = f"coalesce(nullif(stamp, 0), {UNREADABLE})"
"""A stored stamp as it is read, for servers that check its type."""


def stored_of_columns(found: Sequence[Any]) -> Stored:
    """A head from the columns of `HEAD`."""
    digest, *names, stamp, at, document = found
    stamp = stamp if type(stamp) is int and stamp else UNREADABLE
    return Stored(digest, tuple(names), stamp, at, document)


def usage_columns(entry: Entry) -> tuple[int | None, ...]:
    """The token counts of an entry; all NULL if it has none."""
    used = entry.usage
    if used is None:
        return _NO_USAGE
    counts = (used.input, used.output, used.cache_read, used.cache_write, used.thinking)
    return (*counts, used.reported_total)


def row_columns(row: Row) -> tuple[Any, ...]:
    """The columns of a row, in the order of `ROW_COLUMNS`."""
    return (
        row.seq, row.branch, row.id, row.at, row.model, *usage_columns(row), row.checksum,
        row.chain, row.body,
    )  # fmt: skip


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
    if type(seq) is not int or type(branch) is not int:
        msg = "a stored message has lost its position; `dragoman history repair` sets it aside"
        raise Corrupt(msg)
    return salvaged_row(seq, branch, id, body)


def salvaged_row(seq: Any, branch: Any, id: Any, body: Any) -> Row:
    """What is readable of a record; its damage can be detected."""
    return unreadable_row(
        seq if type(seq) is int else 0,
        branch if type(branch) is int else MAIN,
        body if type(body) is bytes else b"",
        id if type(id) is str else "",
    )


def record_row(found: Sequence[Any]) -> Row:
    """Like `row_of`, for a repair: a row without a position has the number 0."""
    try:
        return row_of(found)
    except Corrupt:
        _, _, id, *_, body = found
        return salvaged_row(None, None, id, body)
