"""The history store of a worker: opened on first use, with a periodic sweep of expired data."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack

from dragoman.errors import DragomanError
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from dragoman.history.retention import Retention, sweep
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage_urls import open_storage

LOG = logging.getLogger("dragoman.gateway")
RESPONSES, ITEMS, CONVERSATIONS, SESSIONS = (
    "gateway.responses",
    "gateway.items",
    "gateway.conversations",
    "gateway",
)
"""Scopes of the gateway's data, separate from the sessions of other programs."""
_MAX_OPEN = 256
_MAX_PAUSE = 600.0
"""Maximum seconds between two sweeps."""


class OpenSession:
    """The history of a session, with a lock for its writers."""

    __slots__ = ("history", "writing")

    def __init__(self, history: ChatHistory) -> None:
        self.history = history
        self.writing = asyncio.Lock()


class Histories:
    """The history store at a URL, and the task that removes expired responses."""

    retention = ""
    """What errors about a missing response say about how responses are kept."""

    def __init__(self, url: str, *, response_ttl: float) -> None:
        self.url = url
        self.response_ttl = response_ttl
        self._storage: Storage | None = None
        self._stores = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None
        self.deleted: set[tuple[str | None, str]] = set()
        """Keys and ids of responses that were deleted while being generated."""
        self.under_way: set[tuple[str | None, str]] = set()
        """Keys and ids of responses that will be stored when they are complete."""
        self._sessions: dict[SessionIdentity, OpenSession] = {}

    def __repr__(self) -> str:
        return f"<histories, {'open' if self._storage is not None else 'closed'}>"

    async def storage(self) -> Storage:
        """Return the store, opening it on first use."""
        if self._storage is not None:
            return self._storage
        async with self._opening:
            if self._storage is None:
                self._storage = await self._opened()
                self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        return self._storage

    async def _opened(self) -> Storage:
        return await self._stores.enter_async_context(open_storage(self.url))

    async def session(self, identity: SessionIdentity) -> OpenSession:
        """Return a session's history; recently used ones stay open."""
        storage, kept = await self.storage(), self._sessions
        found = kept.pop(identity, None)
        if found is None:
            history = await ChatHistory.open(identity, storage)
            found = kept.pop(identity, None) or OpenSession(history)
        kept[identity] = found  # in order of last use
        if len(kept) > _MAX_OPEN:
            idle = [each for each, one in kept.items() if not one.writing.locked()]
            for each in idle[: len(kept) - _MAX_OPEN]:
                del kept[each]
        return found

    def rules(self) -> Mapping[str, Retention]:
        """The retention rules. Conversations and sessions are kept until they are deleted."""
        limit = Retention(max_age=self.response_ttl)
        return {RESPONSES: limit, ITEMS: limit}

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(max(self._lifetime / 4, 1.0), _MAX_PAUSE))
            try:
                await self._remove_expired()
            except DragomanError as error:  # harmless: readers check the age anyway
                LOG.warning("expired responses could not be removed: %s", type(error).__name__)

    @property
    def _lifetime(self) -> float:
        return self.response_ttl

    async def _remove_expired(self) -> None:
        await sweep(await self.storage(), self.rules())

    async def close(self) -> None:
        """Close the store."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._storage = None
        await self._stores.aclose()
