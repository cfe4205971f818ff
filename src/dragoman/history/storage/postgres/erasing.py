"""Erases a user: rows and index at once, their disk space as far as VACUUM can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.errors import StoreError
from dragoman.history.storage.postgres.listing import where
from dragoman.history.storage.postgres.tables import empty
from dragoman.history.storage.protocol import Erasure, Filter

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

_FREE_SPACE = (
    "free space in the tables' files until it is overwritten, and rows that an older transaction"
    " can still see (VACUUM FULL rewrites the files)"
)
_OUTSIDE = (
    _FREE_SPACE,
    "the server's write-ahead log and its archive",
    "lagging replicas, backups and snapshots",
)
_DELAYED = "deleted rows in the tables, because VACUUM failed: {}"


async def erase(link: Link, user: str) -> Erasure:
    """Deletes all rows of a user, within the caller's transaction."""
    clause, values = where(Filter(user=user))
    found = await link.fetch(
        f"SELECT s.id FROM our.heads s WHERE true {clause} ORDER BY s.id FOR UPDATE", values
    )
    ids = [id for (id,) in found]
    messages = await empty(link, ids)
    await link.run("DELETE FROM our.heads WHERE id = ANY (%s::bigint[])", (ids,))
    await link.run('DELETE FROM our.aside WHERE "user" = %s', (values[0],))
    return Erasure(len(ids), messages)


async def scrub(link: Link) -> tuple[str, ...]:
    """Frees the space of deleted rows; returns where copies may be left."""
    try:
        await link.run("VACUUM our.heads, our.messages, our.texts, our.aside")
    except StoreError as error:
        return (_DELAYED.format(error), *_OUTSIDE)
    return _OUTSIDE
