"""Full-text search in a store without an index, such as an encrypted one."""

from __future__ import annotations

from dragoman.errors import ConfigError
from dragoman.history.records import is_sealed
from dragoman.history.storage.protocol import Filter, Hit, Row, Session, Storage
from dragoman.history.storage.scanning import found, words_of
from dragoman.history.transfer import every_row, every_session

_BATCH = 200


async def scanned(storage: Storage, text: str, which: Filter, limit: int) -> list[Hit]:
    """The messages that contain all words, latest first; reads every message."""
    words_of(text)  # raises if there are no words, before anything is read
    hits: list[Hit] = []
    batch: list[tuple[Session, Row]] = []
    async for session in every_session(storage, which):
        async for row in every_row(storage, session):
            batch.append((session, row))
            if len(batch) == _BATCH:
                hits, batch = _latest([*hits, *found(text, batch, limit)], limit), []
    return _latest([*hits, *found(text, batch, limit)], limit)


def _latest(hits: list[Hit], limit: int) -> list[Hit]:
    return sorted(hits, key=lambda hit: (hit.row.at, hit.row.seq), reverse=True)[:limit]


async def encrypted_sessions(storage: Storage, which: Filter) -> int:
    """The number of sessions whose first message is encrypted."""
    count = 0
    async for session in every_session(storage, which):
        try:
            first = await storage.rows(session.identity, limit=1)
        except ConfigError:
            count += 1
        else:
            count += any(is_sealed(row.body) for row in first)
    return count
