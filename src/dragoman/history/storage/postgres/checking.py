"""Checks the consistency of each session in the tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import damage_in, damage_to
from dragoman.history.storage.postgres.search import words_in
from dragoman.history.storage.postgres.values import ROW, SESSION, row_of, session_of

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.connections import Connections
    from dragoman.history.storage.postgres.link import Link
    from dragoman.history.storage.protocol import Storage

_AT_ONCE = 200
_SESSIONS = f"""
SELECT s.id, {SESSION} FROM our.heads s WHERE s.id > %s ORDER BY s.id LIMIT {_AT_ONCE}"""
_INDEXED = f"""
SELECT t.words, t.at = m.at, {ROW} FROM our.messages m JOIN our.heads s ON s.id = m.session
LEFT JOIN our.texts t ON t.session = m.session AND t.branch = m.branch AND t.seq = m.seq
WHERE m.session = %s AND m.seq <= s.indexed AND (m.branch, m.seq) > (%s, %s)
AND (m.branch = 0 OR m.branch = ANY (s.forks[:][1:1]))
ORDER BY m.branch, m.seq LIMIT {_AT_ONCE}"""
_UNREADABLE = (
    "its counters or names are damaged; run `dragoman history repair` to recount its messages"
)
_MISPLACED = (
    "its digest does not match its names, so it can't be found; run `dragoman history repair` with"
    " its names to restore it, if there is no other session of these names"
)
_UNINDEXED = (
    "messages are missing in the search index or outdated, and a search may miss them ({} of"
    " them); run `dragoman history repair` to rebuild it"
)


async def verify(storage: Storage, connections: Connections) -> list[str]:
    """See `Storage.verify`."""
    found = await connections.read_slowly(_problems)
    after = 0
    while page := await connections.read_slowly(_page, after):
        for id, *columns in page:
            about = [what async for what in _of(storage, connections, id, columns)]
            found += [f"session {columns[0]}: {what}" for what in about]
        after = page[-1][0]
    return found


async def _of(
    storage: Storage, connections: Connections, id: int, columns: list[Any]
) -> AsyncIterator[str]:
    try:
        session = session_of(columns)
        async for problem in damage_in(storage, session):
            yield problem
    except Corrupt:
        yield _MISPLACED if _is_misplaced(columns) else _UNREADABLE
        return
    if wrong := await connections.read_slowly(_index_problems, id):
        yield _UNINDEXED.format(wrong)


def _is_misplaced(columns: list[Any]) -> bool:
    """Whether a session's digest does not match its names, so that it can't be found."""
    digest, *names = columns[:6]
    try:
        return bool(SessionIdentity.from_columns(tuple(names)).digest != digest)
    except (ValueError, TypeError):
        return False


async def _page(link: Link, after: int) -> list[tuple[Any, ...]]:
    return await link.fetch(_SESSIONS, (after,))


async def _index_problems(link: Link, id: int) -> int:
    """The number of messages that the index has wrong; damaged ones are reported elsewhere."""
    wrong, branch, seq = 0, -1, 0
    while found := await link.fetch(_INDEXED, (id, branch, seq), plan=False):
        for words, is_dated, *columns in found:
            row = row_of(columns)
            branch, seq = row.branch, row.seq
            # An altered array may contain arrays.
            texts = {word for word in words or () if isinstance(word, str)}
            is_right = is_dated and words is not None and texts == words_in(row)
            wrong += not is_right and damage_to(row) is None
    return wrong


async def _problems(link: Link) -> list[str]:
    """Problems of the store as a whole."""
    found: list[str] = []
    for text, template in _CHECKS.items():
        [(number,)] = await link.fetch(template, plan=False)
        if number:
            found.append(text.format(number))
    return found


_CHECKS = {
    "the server runs with fsync off: a power cut can destroy the store": """
SELECT count(*) FROM pg_settings WHERE name = 'fsync' AND setting = 'off'""",
    "the server runs with synchronous_commit off: a crash loses the last messages": """
SELECT count(*) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'""",
    "indexes are invalid ({} of them); run REINDEX on them": """
SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE NOT i.indisvalid
AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'our.texts'::regclass)""",
    "messages belong to sessions that don't exist ({} of them)": """
SELECT count(DISTINCT m.session) FROM our.messages m
WHERE NOT EXISTS (SELECT 1 FROM our.heads s WHERE s.id = m.session)""",
    "sessions have messages beyond their last number ({} of them)": """
SELECT count(*) FROM our.heads s WHERE s.last_seq <
(SELECT max(seq) FROM our.messages m WHERE m.session = s.id)""",
    "sessions have messages that belong to none of their branches ({} of them)": """
SELECT count(DISTINCT m.session) FROM our.messages m JOIN our.heads s ON s.id = m.session
WHERE m.seq < 1 OR NOT (m.branch = 0 OR m.branch = ANY (s.forks[:][1:1]))""",
    "sessions are indexed beyond their last number ({} of them)": """
SELECT count(*) FROM our.heads s WHERE s.indexed > s.last_seq""",
    "the search index has messages that don't exist ({} of them)": """
SELECT count(*) FROM our.texts t WHERE NOT EXISTS (SELECT 1 FROM our.messages m
JOIN our.heads s ON s.id = m.session WHERE m.session = t.session AND m.branch = t.branch
AND m.seq = t.seq AND m.seq <= s.indexed)""",
}
