"""Reads a session's messages, in consistent pages."""

from __future__ import annotations

from typing import Any

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Session
from dragoman.history.storage.redis.fields import place_in, row_at
from dragoman.history.storage.redis.scripts import COUNT
from dragoman.history.storage.redis.server import HIGHEST, PAGE, Found, Server, rows_in
from dragoman.history.storage.soundness import unreadable_row

_TRIES = 5
_ALL = 1 << 53


async def session(server: Server, identity: SessionIdentity) -> Session | None:
    """The session, or `None`."""
    return await server.session(identity.digest)


async def rows(
    server: Server,
    identity: SessionIdentity,
    branch: int,
    after: int,
    upto: int | None,
    limit: int | None,
    newest: bool,  # noqa: FBT001 - called with the arguments of `Storage.rows`
) -> list[Row]:
    """See `Storage.rows`."""
    digest = identity.digest
    wanted = _ALL if limit is None else limit
    order = "newest" if newest else "oldest"
    high = HIGHEST if upto is None else str(upto)
    found: list[Found] | None = None
    size = PAGE
    for attempt in range(_TRIES):
        if attempt == _TRIES - 1:
            size = _ALL  # constantly rewritten: read it in one go, although others have to wait
        found = await _in_pages(server, digest, branch, str(after), high, wanted, order, size)
        if found is not None:
            break
    listed, last = rows_in(found or [], branch), int(high)
    # An altered position differs from its number.
    return [row for row in (listed[::-1] if newest else listed) if after < row.seq <= last]


async def _in_pages(
    server: Server,
    digest: str,
    branch: int,
    low: str,
    high: str,
    wanted: int,
    order: str,
    size: int,
) -> list[Found] | None:
    """The messages between two positions; `None` if the session changed between two pages."""
    found: list[Found] = []
    begun: bytes | None = None
    while len(found) < wanted:
        asked = min(size, wanted - len(found))
        generation, page = await server.page(digest, branch, low, high, asked, order)
        if begun not in {None, generation}:
            return None
        begun = generation
        found += page
        if len(page) < asked:
            break
        last = page[-1].place
        low, high = (low, f"({last}") if order == "newest" else (last, high)
    return found


async def row(server: Server, identity: SessionIdentity, id: str) -> Row | None:
    """A message by id, on any branch."""
    [(place, line)] = await server.lines_by_id(identity.digest, [id])
    if not place:
        return None
    found = place_in(place)
    if found is None:
        return unreadable_row(0, MAIN, line, id)
    return row_at(*found, line, id)


async def count(server: Server, identity: SessionIdentity, branch: int | None) -> int:
    """See `Storage.count`; counts messages on the session's branches."""
    client, keys, digest = server.client, server.keys, identity.digest
    if branch is None:
        held: Any = await server.told(COUNT, digest, keys.of(digest, "branch:"))
    else:
        own = keys.of(digest, f"branch:{branch}")
        held = await server.ask(lambda: client.zcard(own))
    return int(held)
