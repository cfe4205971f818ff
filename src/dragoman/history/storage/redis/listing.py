"""Lists, searches and aggregates sessions, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from dragoman.errors import Corrupt
from dragoman.history.storage.protocol import MAIN, Filter, Group, Hit, Row, Session, Total
from dragoman.history.storage.redis.fields import identity_in, session_of
from dragoman.history.storage.redis.scripts import HEAD
from dragoman.history.storage.redis.server import Server, in_pairs
from dragoman.history.storage.scanning import found, summed, words_of
from dragoman.history.storage.soundness import listed_as_damaged

AT_ONCE = 200


async def each(server: Server, which: Filter, after: str = "") -> AsyncIterator[Session]:
    """The matching sessions, in order; `verify` reports those with unreadable names."""
    async for digest, fields in every_head(server, after):
        session: Session | None
        try:
            session = session_of(fields, digest)
        except Corrupt:
            identity = identity_in(fields, digest)
            session = None if identity is None else listed_as_damaged(identity)
        if session is not None and which.takes(session):
            yield session


async def every_head(
    server: Server, after: str = ""
) -> AsyncIterator[tuple[str, Mapping[bytes, bytes]]]:
    """The digests of all sessions, and the fields of their hashes; empty if it is not a hash."""
    async for digests in digests_above(server, after):
        for digest, fields in zip(digests, await _heads(server, digests), strict=True):
            if fields is not None:  # otherwise it was just deleted
                yield digest, fields


async def digests_above(server: Server, after: str = "") -> AsyncIterator[list[str]]:
    """The digests of all sessions, in order, page by page."""
    last = after.encode()
    while True:
        low = b"(" + last if last else b"-"
        found: Any = await server.ask(
            lambda low=low: server.client.zrangebylex(  # type: ignore[misc]
                server.keys.sessions, low, "+", start=0, num=AT_ONCE
            )
        )
        if found:
            yield [raw.decode("ascii", "replace") for raw in found]
        if len(found) < AT_ONCE or found[-1] <= last:  # out of order: `verify` reports it
            return
        last = found[-1]


async def _heads(server: Server, digests: list[str]) -> list[Mapping[bytes, bytes] | None]:
    async def ask() -> list[Any]:
        async with server.client.pipeline(transaction=False) as pipeline:
            for digest in digests:
                pipeline.hgetall(server.keys.of(digest, "session"))
            return await pipeline.execute(raise_on_error=False)

    found = await server.ask(ask)
    return [
        fields if isinstance(fields, dict) and fields else await _other(server, digest, fields)
        for digest, fields in zip(digests, found, strict=True)
    ]


async def _other(server: Server, digest: str, found: Any) -> Mapping[bytes, bytes] | None:
    """What there is of a session instead of its hash."""
    if isinstance(found, Exception):
        return {}
    try:
        return in_pairs(await server.told(HEAD, digest)) or None  # version 1: another key
    except Corrupt:
        return {}


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
    words_of(text)  # raises if there are no words, before anything is read
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
            try:
                async for rows in server.pages(session.identity.digest, branch):
                    yield session, rows
            except Corrupt:
                break  # a key has the wrong type: `verify` reports it
