"""Lists and aggregates sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.errors import Corrupt
from dragoman.history.identity import unescaped
from dragoman.history.storage.postgres.schema import BEGINNING
from dragoman.history.storage.postgres.values import SESSION, identity_in, name_of, session_of
from dragoman.history.storage.protocol import Filter, Group, Session, Total, columns_of
from dragoman.history.storage.soundness import listed_as_damaged
from dragoman.model.usage import Usage

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

_KEYS = {
    "session": "s.digest",
    "user": 's."user"',
    "model": "m.model",
    # An altered time may be out of range: years 1 to 9999.
    "day": "CASE WHEN m.at >= -62135596800 AND m.at < 253402300800 THEN"
    " to_char(to_timestamp(m.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD') END",
}
_INDEXED = {"user", "chat", "group"}


async def sessions(link: Link, which: Filter, limit: int | None, after: str) -> list[Session]:
    """See `Storage.sessions`; skips unreadable sessions, which `verify` reports."""
    clause, values = where(which)
    listed: list[Session] = []
    while limit is None or len(listed) < limit:
        asked = None if limit is None else limit - len(listed)
        found = await link.fetch(
            f"SELECT {SESSION} FROM our.heads s WHERE digest > %s {clause}"
            " ORDER BY digest LIMIT %s",
            (after, *values, asked),
            plan=False,
        )
        for each in found:
            try:
                listed.append(session_of(each))
            except Corrupt:
                identity = identity_in(each)
                if identity is not None:  # `verify` reports the others
                    listed.append(listed_as_damaged(identity))
        if asked is None or len(found) < asked:
            break
        after = found[-1][0]
    return listed


async def totals(link: Link, by: Group, which: Filter) -> list[Total]:
    """See `Storage.totals`."""
    clause, values = where(which)
    found = await link.fetch(
        f"SELECT {_KEYS[by]} AS key, sum(input)::bigint, sum(output)::bigint,"
        " sum(cache_read)::bigint, sum(cache_write)::bigint, sum(thinking)::bigint,"
        " sum(coalesce(reported_total,"
        " input + output + cache_read + cache_write + thinking))::bigint,"
        " count(reported_total), count(*)"
        " FROM our.messages m JOIN our.heads s ON s.id = m.session"
        f" WHERE m.input IS NOT NULL {clause} GROUP BY 1",
        values,
        plan=False,
    )
    summed = [_total(by, each) for each in found]
    return sorted(summed, key=lambda total: (total.key is not None, total.key or ""))


def _total(by: Group, found: tuple[Any, ...]) -> Total:
    key, given, out, read, written, thought, total, reported, messages = found
    if by == "user":
        key = _name(key)
    elif by == "model" and key is not None:
        key = name_of(key)
    usage = Usage(given, out, read, written, thought, total if reported else None)
    return Total(key, usage, messages)


def _name(column: str | None) -> str | None:
    try:
        return unescaped(column)
    except ValueError:
        return None  # altered; `verify` reports it


def where(which: Filter) -> tuple[str, list[Any]]:
    """A filter as conditions on `s`, each with its AND, and their values."""
    clauses: list[str] = []
    values: list[Any] = []
    for field, column in columns_of(which).items():
        if column is None:
            clauses.append(f'AND s."{field}" IS NULL')
            continue
        clauses.append(f'AND s."{field}" = %s')
        values.append(column)
        if field in _INDEXED:
            clauses.append(f'AND left(s."{field}", {BEGINNING}) = %s')
            values.append(column[:BEGINNING])
    for test, moment in (
        ("AND s.updated_at >= %s", which.since),
        ("AND s.updated_at < %s", which.until),
    ):
        if moment is not None:
            clauses.append(test)
            values.append(float(moment))
    return " ".join(clauses), values
