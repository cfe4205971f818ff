"""Loads stored responses; marks one as failed if its worker is gone."""

from __future__ import annotations

from dragoman.gateway.responses.store import ResponseStore, StoredResponse

_ABANDONED = {
    "code": "server_error",
    "message": "the server stopped before the response was complete",
}


async def load_current(store: ResponseStore, id: str) -> StoredResponse | None:
    """Returns a stored response; None if there is none."""
    found = await store.load(id)
    if found is not None and found.is_abandoned:
        return await store.end(id, "failed", error=_ABANDONED)
    return found
