"""One session's messages, read in pages that belong together."""

from __future__ import annotations

from typing import Any

from dragoman.history.records import row_of
from dragoman.history.storage.lines import parsed
from dragoman.history.storage.protocol import Row
from dragoman.history.storage.redis.scripts import COUNT
from dragoman.history.storage.redis.server import PAGE, Server, rows_in

_TRIES = 5
_ALL = 1 << 53


async def rows(
    server: Server,
    digest: str,
    branch: int,
    after: int,
    upto: int | None,
    limit: int | None,
    *,
    newest: bool,
) -> list[Row]:
    """See `Storage.rows`."""
    wanted = _ALL if limit is None else limit
    order = "newest" if newest else "oldest"
    found: list[tuple[int, bytes]] | None = None
    size = PAGE
    for attempt in range(_TRIES):
        if attempt == _TRIES - 1:
            size = _ALL  # rewritten all the time: then in one go, though the others have to wait
        found = await _in_pages(server, digest, branch, after, upto, wanted, order, size)
        if found is not None:
            break
    found = found or []
    return rows_in(found[::-1] if newest else found)


async def _in_pages(
    server: Server,
    digest: str,
    branch: int,
    after: int,
    upto: int | None,
    wanted: int,
    order: str,
    size: int,
) -> list[tuple[int, bytes]] | None:
    """Lines with their numbers; None where the session was changed between two pages."""
    found: list[tuple[int, bytes]] = []
    begun: bytes | None = None
    while len(found) < wanted:
        asked = min(size, wanted - len(found))
        generation, page = await server.page(digest, branch, after, upto, asked, order)
        if begun not in {None, generation}:
            return None
        begun = generation
        found += page
        if len(page) < asked:
            break
        after, upto = (after, page[-1][0] - 1) if order == "newest" else (page[-1][0], upto)
    return found


async def row(server: Server, digest: str, id: str) -> Row | None:
    """One message, on any branch."""
    (line,) = await server.lines_by_id(digest, [id])
    stored = parsed(line) if line else None
    return None if stored is None else row_of(stored)


async def count(server: Server, digest: str, branch: int | None) -> int:
    """See `Storage.count`."""
    client, keys = server.client, server.keys
    if branch is None:
        held: Any = await server.told(COUNT, digest)
    else:
        own = keys.of(digest, f"branch:{branch}")
        held = await server.ask(lambda: client.zcard(own))
    return int(held)
