"""Whether what Redis holds of a store fits together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from dragoman.errors import Corrupt
from dragoman.history.storage.lines import parsed
from dragoman.history.storage.protocol import MAIN, Session
from dragoman.history.storage.redis.listing import digests_above
from dragoman.history.storage.redis.scripts import COUNT, LINES
from dragoman.history.storage.redis.server import PAGE, Server


async def verify(server: Server) -> list[str]:
    """See `Storage.verify`."""
    problems: list[str] = []
    listed: set[str] = set()
    async for digests in digests_above(server):
        for digest in digests:
            listed.add(digest)
            problems += [f"session {digest}: {what}" async for what in _of(server, digest)]
    unlisted = {digest async for digest in _heads(server)} - listed
    problems += [f"session {digest}: it is not in the list of sessions" for digest in unlisted]
    return problems


async def _heads(server: Server) -> AsyncIterator[str]:
    keys = server.keys
    for pattern in keys.heads():
        async for head in server.client.scan_iter(match=pattern, count=PAGE):
            yield keys.digest_of(head.decode())


async def _of(server: Server, digest: str) -> AsyncIterator[str]:
    try:
        session = await server.session(digest)
    except Corrupt:
        yield "its head can't be read"
        return
    if session is None:
        yield "it is in the list of sessions, but not there"
        return
    held = await _counts(server, digest, session)
    if len(set(held)) > 1:
        yield "it has {} records, {} ids and {} places on branches".format(*held)
    async for problem in _rows(server, digest, session):
        yield problem


async def _counts(server: Server, digest: str, session: Session) -> list[int]:
    keys = server.keys

    async def ask() -> list[int]:
        async with server.client.pipeline(transaction=True) as pipeline:
            pipeline.hlen(keys.of(digest, "ids"))
            for branch in (MAIN, *(fork.number for fork in session.forks)):
                pipeline.zcard(keys.of(digest, f"branch:{branch}"))
            return await pipeline.execute()

    rows = await server.told(COUNT, digest)
    ids, *branches = await server.ask(ask)
    return [rows, ids, sum(branches)]


async def _rows(server: Server, digest: str, session: Session) -> AsyncIterator[str]:
    ids = server.keys.of(digest, "ids")
    cursor = 0
    while True:
        reply: Any = await server.ask(
            lambda cursor=cursor: server.client.hscan(ids, cursor, count=PAGE)  # type: ignore[misc]
        )
        cursor, found = reply
        places = {id: place.split()[0] for id, place in found.items()}
        if places:
            lines: Any = await server.told(LINES, digest, *places.values())
            for (id, seq), line in zip(places.items(), lines, strict=True):
                problem = _problem(id, int(seq), line, session)
                if problem is not None:
                    yield f"message {int(seq)}: {problem}"
        if cursor == 0:
            return


def _problem(id: bytes, seq: int, line: bytes, session: Session) -> str | None:
    if not line:
        return "its id leads nowhere"
    row = parsed(line)
    if row is None:
        return "the record can't be read"
    if (row.id.encode(), row.seq) != (id, seq):
        return "its id leads to another record"
    return "its number was not given out yet" if seq > session.last_seq else None
