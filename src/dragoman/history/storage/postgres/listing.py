"""What is asked of many sessions: lists, sums, and checks of the store itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.history.identity import unescaped
from dragoman.history.storage.postgres.schema import BEGINNING
from dragoman.history.storage.postgres.values import SESSION, name_of, session_of
from dragoman.history.storage.protocol import Filter, Group, Session, Total, columns_of
from dragoman.model.usage import Usage

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

_KEYS = {
    "session": "s.digest",
    "user": 's."user"',
    "model": "m.model",
    "day": "to_char(to_timestamp(m.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
}
_INDEXED = {"user", "chat", "group"}


async def sessions(link: Link, which: Filter, limit: int | None, after: str) -> list[Session]:
    """See `Storage.sessions`."""
    clause, values = where(which)
    found = await link.fetch(
        f"SELECT {SESSION} FROM our.heads s WHERE digest > %s {clause} ORDER BY digest LIMIT %s",
        (after, *values, limit),
        plan=False,
    )
    return [session_of(each) for each in found]


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
        key = unescaped(key)
    elif by == "model" and key is not None:
        key = name_of(key)
    usage = Usage(given, out, read, written, thought, total if reported else None)
    return Total(key, usage, messages)


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


async def problems(link: Link) -> list[str]:
    """What is wrong with the store itself."""
    found: list[str] = []
    for text, template in _CHECKS.items():
        [(number,)] = await link.fetch(template, plan=False)
        if number:
            found.append(text.format(number))
    return found


_CHECKS = {
    "the server runs with fsync off: a power cut can destroy the store": """
SELECT count(*) FROM pg_settings WHERE name = 'fsync' AND setting = 'off'""",
    "the server runs with synchronous_commit off: its crash loses the last messages": """
SELECT count(*) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'""",
    "indexes are not valid ({} of them): REINDEX them": """
SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE NOT i.indisvalid
AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'our.texts'::regclass)""",
    "messages belong to sessions that are not there ({} of them)": """
SELECT count(DISTINCT m.session) FROM our.messages m
WHERE NOT EXISTS (SELECT 1 FROM our.heads s WHERE s.id = m.session)""",
    "sessions hold messages beyond their last number ({} of them)": """
SELECT count(*) FROM our.heads s WHERE s.last_seq <
(SELECT max(seq) FROM our.messages m WHERE m.session = s.id)""",
}
