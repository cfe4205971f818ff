"""Checks what Redis keeps beside heads and rows: the list of sessions, ids and positions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from dragoman.errors import Corrupt
from dragoman.history.records import parsed
from dragoman.history.storage.redis.connection import PAGE, Server
from dragoman.history.storage.redis.fields import place_in

ASIDES = ("session", "records", "ids", "aside", "asides", "sessions")
"""The keys that may be next to a session's `aside`, as `aside:<name>`: those of a wrong type."""
_AT_ONCE = 200
_TAGS_AT_ONCE = 32
_TRIES = 20
_LIST = "the list of sessions is damaged: repairing a session adds it again"
_REPAIR = "run `dragoman history repair` to rebuild it from its messages"


async def digests_above(server: Server, after: str = "") -> AsyncIterator[list[str]]:
    """The digests of all sessions, in order, page by page."""
    tags = [tag for tag in server.keys.tags if tag >= server.keys.tag_of(after)]
    for start in range(0, len(tags), _TAGS_AT_ONCE):
        group = tags[start : start + _TAGS_AT_ONCE]
        for tag, first in zip(group, await _listed(server, group, after.encode()), strict=True):
            found, last = first, after.encode()
            while found:
                yield [raw.decode("ascii", "replace") for raw in found]
                if len(found) < _AT_ONCE or found[-1] <= last:
                    break  # out of order: `problems` reports it
                last = found[-1]
                [found] = await _listed(server, [tag], last)


async def _listed(server: Server, tags: Sequence[str], last: bytes) -> list[list[bytes]]:
    low = b"(" + last if last else b"-"
    return await server.each(
        tags,
        lambda pipeline, tag: pipeline.zrangebylex(
            server.keys.shared("sessions", tag), low, "+", start=0, num=_AT_ONCE
        ),
    )


async def problems(server: Server) -> list[str]:
    """Structural problems; the rows of sessions are checked separately."""
    found: list[str] = []
    listed: set[str] = set()
    try:
        async for digests in digests_above(server):
            for digest in digests:
                listed.add(digest)
                about = await _lasting(server, digest)
                found += [f"session {digest}: {what}" for what in about]
        if await _is_out_of_order(server):
            found.append(_LIST)
    except Corrupt:
        found.append(_LIST)
    heads = {digest async for digest in _heads(server)}
    found += [what async for what in _misplaced(server, listed, heads)]
    return found


async def _misplaced(server: Server, listed: set[str], heads: set[str]) -> AsyncIterator[str]:
    """Sessions that are only in the list, or not in it: then, and still now."""
    if listed == heads:
        return
    now: set[str] = set()
    with suppress(Corrupt):
        now = {digest async for digests in digests_above(server) for digest in digests}
    for digest in sorted(listed - heads):
        if digest in now and (await server.head(digest))[0] == b"0":
            yield f"session {digest}: it is in the list of sessions, but does not exist"
    for digest in sorted(heads - listed):
        if digest not in now and (await server.head(digest))[0] != b"0":
            yield f"session {digest}: it is not in the list of sessions"


async def _lasting(server: Server, digest: str) -> list[str]:
    """What is wrong with a session; checked again if it was changed in the meantime."""
    found: list[str] = []
    for _ in range(_TRIES):
        before = (await server.head(digest))[0]
        try:
            found = [what async for what in _of(server, digest)]
        except Corrupt:
            found = [f"a key of it has the wrong type; {_REPAIR}"]
        if not found or before == (await server.head(digest))[0]:
            break
    return found


async def _is_out_of_order(server: Server) -> bool:
    """Whether the list of sessions is out of order: all entries must have the same score."""

    def count(pipeline: Any, tag: str) -> None:
        pipeline.zcount(server.keys.shared("sessions", tag), 0, 0)
        pipeline.zcard(server.keys.shared("sessions", tag))

    keys = server.keys
    counts = await server.each(keys.tags, count, is_atomic=not keys.is_cluster)
    return counts[::2] != counts[1::2]


async def _heads(server: Server) -> AsyncIterator[str]:
    keys = server.keys
    pattern = keys.heads()
    for node in server.nodes():
        cursor = 0
        while True:
            reply: Any = await server.ask(
                lambda cursor=cursor, node=node: node.execute_command(  # type: ignore[misc]
                    "SCAN", cursor, "MATCH", pattern, "COUNT", PAGE
                )
            )
            cursor, found = int(reply[0]), reply[1]
            for head in found:
                yield keys.digest_of(head.decode("utf-8", "replace"))
            if cursor == 0:
                break


async def _of(server: Server, digest: str) -> AsyncIterator[str]:
    """Reports ids that point to something else than their message, and records without one."""
    keys, client = server.keys, server.client
    ids, records = keys.of(digest, "ids"), keys.of(digest, "records")
    held: Any = await server.ask(lambda: client.hlen(records))
    named: Any = await server.ask(lambda: client.hlen(ids))
    if held != named:
        yield f"it has {held} records, and {named} ids"
    cursor = 0
    while True:
        reply: Any = await server.ask(
            lambda cursor=cursor: client.hscan(ids, cursor, count=PAGE)  # type: ignore[misc]
        )
        cursor, found = reply
        places = {id: place_in(place) for id, place in found.items()}
        for _ in range(sum(place is None for place in places.values())):
            yield "an id points nowhere"
        sound = {id: place for id, place in places.items() if place is not None}
        if sound:
            seqs = [seq for seq, _ in sound.values()]
            lines: Any = await server.ask(lambda seqs=seqs: client.hmget(records, seqs))  # type: ignore[misc]
            for (id, place), line in zip(sound.items(), lines, strict=True):
                problem = _problem(id, place, line)
                if problem is not None:
                    yield f"message {place[0]}: {problem}"
        if cursor == 0:
            return


def _problem(id: bytes, place: tuple[int, int], line: bytes | None) -> str | None:
    if not line:
        return "its id points nowhere"
    row = parsed(line)
    if row is None:
        return None  # reported elsewhere
    is_there = (row.id.encode("utf-8", "surrogatepass"), row.seq, row.branch) == (id, *place)
    return None if is_there else "its id points to another record"
