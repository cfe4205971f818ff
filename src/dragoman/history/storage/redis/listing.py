"""Many sessions: listing, searching and summing up, some at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from dragoman.history.storage.protocol import MAIN, Filter, Group, Hit, Row, Session, Total
from dragoman.history.storage.redis.fields import session_of
from dragoman.history.storage.redis.scripts import HEAD
from dragoman.history.storage.redis.server import Server, in_pairs
from dragoman.history.storage.scanning import found, summed, words_of

_AT_ONCE = 200


async def each(server: Server, which: Filter, after: str = "") -> AsyncIterator[Session]:
    """The sessions that are meant, in order."""
    async for digests in digests_above(server, after):
        for fields in await _heads(server, digests):
            if fields:  # else it was deleted meanwhile
                session = session_of(fields)
                if which.takes(session):
                    yield session


async def digests_above(server: Server, after: str = "") -> AsyncIterator[list[str]]:
    """The digests of all sessions, in order, some at a time."""
    while True:
        low = f"({after}" if after else "-"
        found: Any = await server.ask(
            lambda low=low: server.client.zrangebylex(  # type: ignore[misc]
                server.keys.sessions, low, "+", start=0, num=_AT_ONCE
            )
        )
        digests = [raw.decode() for raw in found]
        if digests:
            yield digests
        if len(digests) < _AT_ONCE:
            return
        after = digests[-1]


async def _heads(server: Server, digests: list[str]) -> list[dict[bytes, bytes]]:
    async def ask() -> list[dict[bytes, bytes]]:
        async with server.client.pipeline(transaction=False) as pipeline:
            for digest in digests:
                pipeline.hgetall(server.keys.of(digest, "session"))
            return await pipeline.execute()

    found = await server.ask(ask)
    return [
        fields or in_pairs(await server.told(HEAD, digest))  # those of version 1 are elsewhere
        for digest, fields in zip(digests, found, strict=True)
    ]


async def sessions(server: Server, which: Filter, limit: int | None, after: str) -> list[Session]:
    """See `Storage.sessions`."""
    listed: list[Session] = []
    if limit == 0:
        return listed
    async for session in each(server, which, after):
        listed.append(session)
        if len(listed) == limit:
            break
    return listed


async def search(server: Server, text: str, which: Filter, limit: int) -> list[Hit]:
    """See `Storage.search`."""
    words_of(text)  # raises where there are none, whatever is stored
    hits: list[Hit] = []
    async for session, rows in _pages(server, which):
        hits += found(text, ((session, row) for row in rows), limit)
        hits.sort(key=lambda hit: (hit.row.at, hit.row.seq), reverse=True)
        del hits[limit:]
    return hits


async def totals(server: Server, by: Group, which: Filter) -> list[Total]:
    """See `Storage.totals`."""
    sums: dict[str | None, Total] = {}
    async for session, rows in _pages(server, which):
        for total in summed(by, ((session, row) for row in rows)):
            old = sums.get(total.key)
            sums[total.key] = total if old is None else _added(old, total)
    return sorted(sums.values(), key=lambda total: (total.key is not None, total.key or ""))


def _added(one: Total, other: Total) -> Total:
    return Total(one.key, one.usage + other.usage, one.messages + other.messages)


async def _pages(server: Server, which: Filter) -> AsyncIterator[tuple[Session, list[Row]]]:
    async for session in each(server, which):
        for branch in (MAIN, *(fork.number for fork in session.forks)):
            async for rows in server.pages(session.identity.digest, branch):
                yield session, rows
