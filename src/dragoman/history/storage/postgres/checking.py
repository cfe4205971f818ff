"""Checks the tables, and the server's durability settings. Sessions are checked by the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.history.storage import sql
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.postgres.schema import row_of
from dragoman.history.storage.postgres.search import words_in

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.pool import Link

_AT_ONCE = 200
_INDEXED = f"""
SELECT m.session, t.words, t.at = m.at, {sql.ROW} FROM our.messages m
JOIN our.heads s ON s.id = m.session
LEFT JOIN our.texts t ON t.session = m.session AND t.branch = m.branch AND t.seq = m.seq
WHERE m.seq > 0 AND m.seq <= s.indexed AND (m.session, m.branch, m.seq) > (%s, %s, %s)
ORDER BY m.session, m.branch, m.seq LIMIT {_AT_ONCE}"""
_UNINDEXED = (
    "messages are missing in the search index or outdated, and a search may miss them ({} of"
    " them); run `dragoman history repair` to rebuild it"
)


async def problems(link: Link) -> list[str]:
    """Problems of the store as a whole."""
    found: list[str] = []
    for text, template in _CHECKS.items():
        [(number,)] = await link.fetch(template, plan=False)
        if number:
            found.append(text.format(number))
    if wrong := await _index_problems(link):
        found.append(_UNINDEXED.format(wrong))
    return found


async def _index_problems(link: Link) -> int:
    """The number of messages that the index has wrong; damaged ones are reported elsewhere."""
    wrong, session, branch, seq = 0, -1, 0, 0
    while found := await link.fetch(_INDEXED, (session, branch, seq), plan=False):
        for number, words, is_dated, *columns in found:
            row = row_of(columns)
            session, branch, seq = number, row.branch, row.seq
            # An altered array may contain arrays.
            texts = {word for word in words or () if isinstance(word, str)}
            is_right = is_dated and words is not None and texts == words_in(row)
            wrong += not is_right and damage_to(row) is None
    return wrong


_CHECKS = {
    "the server runs with fsync off: a power cut can destroy the store": """
SELECT count(*) FROM pg_settings WHERE name = 'fsync' AND setting = 'off'""",
    "the server runs with synchronous_commit off: a crash loses the last messages": """
SELECT count(*) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'""",
    "indexes are invalid ({} of them); run REINDEX on them": """
SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE NOT i.indisvalid
AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'our.texts'::regclass)""",
    sql.ORPHANED: sql.ORPHANS,
    "sessions have messages beyond their last number ({} of them)": """
SELECT count(*) FROM our.heads s WHERE s.last_seq <
(SELECT max(seq) FROM our.messages m WHERE m.session = s.id)""",
    "sessions are indexed beyond their last number ({} of them)": """
SELECT count(*) FROM our.heads s WHERE s.indexed > s.last_seq""",
    "the search index has messages that don't exist ({} of them)": """
SELECT count(*) FROM our.texts t WHERE NOT EXISTS (SELECT 1 FROM our.messages m
JOIN our.heads s ON s.id = m.session WHERE m.session = t.session AND m.branch = t.branch
AND m.seq = t.seq AND m.seq <= s.indexed)""",
}
