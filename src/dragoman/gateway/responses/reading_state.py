"""A stored response as it is now: one whose worker is gone has failed."""

from __future__ import annotations

from dragoman.gateway.responses.store import ResponseStore, Stored

_ABANDONED = {"code": "server_error", "message": "the server stopped while it answered"}


async def settled(store: ResponseStore, id: str) -> Stored | None:
    """A response; None: it is not there."""
    found = await store.load(id)
    if found is not None and found.is_abandoned:
        return await store.end(id, "failed", error=_ABANDONED)
    return found
