"""Checks the consistency of a store in Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from dragoman.errors import Corrupt
from dragoman.history.storage.integrity import damage_in
from dragoman.history.storage.lines import parsed
from dragoman.history.storage.protocol import MAIN, Session, Storage
from dragoman.history.storage.redis.fields import place_in
from dragoman.history.storage.redis.listing import digests_above
from dragoman.history.storage.redis.scripts import LINES, RECORDS
from dragoman.history.storage.redis.server import PAGE, Server

_TRIES = 20
_LIST = "the list of sessions is damaged: repairing a session adds it again"
_REPAIR = "run `dragoman history repair` to rebuild it from its messages"


async def verify(storage: Storage, server: Server) -> list[str]:
    """See `Storage.verify`."""
    problems: list[str] = []
    listed: set[str] = set()
    try:
        async for digests in digests_above(server):
            for digest in digests:
                listed.add(digest)
                about = await _lasting(storage, server, digest)
                problems += [f"session {digest}: {what}" for what in about]
        if await _is_out_of_order(server):
            problems.append(_LIST)
    except Corrupt:
        problems.append(_LIST)
    heads = {digest async for digest in _heads(server)}
    problems += [what async for what in _misplaced(server, listed, heads)]
    return problems


async def _misplaced(server: Server, listed: set[str], heads: set[str]) -> AsyncIterator[str]:
    """Sessions that are only in the list, or not in it: then, and still now."""
    if listed == heads:
        return
    now: set[str] = set()
    with suppress(Corrupt):
        now = {digest async for digests in digests_above(server) for digest in digests}
    for digest in sorted(listed - heads):
        if digest in now and await _version(server, digest) is None:
            yield f"session {digest}: it is in the list of sessions, but does not exist"
    for digest in sorted(heads - listed):
        if digest not in now and await _version(server, digest) is not None:
            yield f"session {digest}: it is not in the list of sessions"


async def _lasting(storage: Storage, server: Server, digest: str) -> list[str]:
    """What is wrong with a session; checked again if it was changed in the meantime."""
    found: list[str] = []
    for _ in range(_TRIES):
        before = await _version(server, digest)
        found = [what async for what in _of(storage, server, digest)]
        if not found or before == await _version(server, digest):
            break
    return found


async def _version(server: Server, digest: str) -> int | None:
    try:
        session = await server.session(digest)
    except Corrupt:
        return -1
    return None if session is None else session.version


async def _is_out_of_order(server: Server) -> bool:
    """Whether the list of sessions is out of order: all entries must have the same score."""
    listed = server.keys.sessions

    async def ask() -> list[int]:
        async with server.client.pipeline(transaction=True) as pipeline:
            pipeline.zcount(listed, 0, 0)
            pipeline.zcard(listed)
            return await pipeline.execute()

    sound, all_ = await server.ask(ask)
    return sound != all_


async def _heads(server: Server) -> AsyncIterator[str]:
    keys = server.keys
    for pattern in keys.heads():
        cursor = 0
        while True:
            reply: Any = await server.ask(
                lambda cursor=cursor, pattern=pattern: server.client.scan(  # type: ignore[misc]
                    cursor, match=pattern, count=PAGE
                )
            )
            cursor, found = reply
            for head in found:
                yield keys.digest_of(head.decode("utf-8", "replace"))
            if cursor == 0:
                break


async def _of(storage: Storage, server: Server, digest: str) -> AsyncIterator[str]:
    try:
        session = await server.session(digest)
        if session is None:
            return  # see `_misplaced`
        held = await _counts(server, digest, session)
        if len(set(held)) > 1:
            yield "it has {} records, {} ids and {} positions on branches".format(*held)
        async for problem in damage_in(storage, session):
            yield problem
        async for problem in _ids(server, digest):
            yield problem
    except Corrupt:
        yield f"its counters, names or keys are damaged; {_REPAIR}"


async def _counts(server: Server, digest: str, session: Session) -> list[int]:
    keys = server.keys
    known = (MAIN, *(fork.number for fork in session.forks))

    async def ask() -> list[int]:
        async with server.client.pipeline(transaction=True) as pipeline:
            pipeline.hlen(keys.of(digest, "ids"))
            for branch in known:
                pipeline.zcard(keys.of(digest, f"branch:{branch}"))
            return await pipeline.execute()

    rows = await server.told(RECORDS, digest)
    ids, *branches = await server.ask(ask)
    return [rows, ids, sum(branches)]


async def _ids(server: Server, digest: str) -> AsyncIterator[str]:
    """Reports ids that point to something else than their message."""
    ids = server.keys.of(digest, "ids")
    cursor = 0
    while True:
        reply: Any = await server.ask(
            lambda cursor=cursor: server.client.hscan(ids, cursor, count=PAGE)  # type: ignore[misc]
        )
        cursor, found = reply
        places = {id: place_in(place) for id, place in found.items()}
        for _ in range(sum(place is None for place in places.values())):
            yield "an id points nowhere"
        sound = {id: place for id, place in places.items() if place is not None}
        if sound:
            seqs = [seq for seq, _ in sound.values()]
            lines: Any = await server.told(LINES, digest, *seqs)
            for (id, place), line in zip(sound.items(), lines, strict=True):
                problem = _problem(id, place, line)
                if problem is not None:
                    yield f"message {place[0]}: {problem}"
        if cursor == 0:
            return


def _problem(id: bytes, place: tuple[int, int], line: bytes) -> str | None:
    if not line:
        return "its id points nowhere"
    row = parsed(line)
    if row is None:
        return None  # reported elsewhere
    is_there = (row.id.encode("utf-8", "surrogatepass"), row.seq, row.branch) == (id, *place)
    return None if is_there else "its id points to another record"
