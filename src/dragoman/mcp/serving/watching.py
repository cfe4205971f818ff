"""Notifies clients of changed conversations, whoever wrote to them.

Other processes write to the same store, and few stores notify of that, so subscribed sessions are
polled every few seconds.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from dragoman.errors import DragomanError
from dragoman.mcp.serving.resources import address_of
from dragoman.mcp.serving.served_sessions import ServedSessions

INTERVAL = 2.0  # seconds
_LIST = ""  # instead of a URI: the list of all sessions
_MAX_URIS = 100


class Watcher:
    """Compares subscribed sessions with their earlier state, and publishes changes."""

    def __init__(self, served: ServedSessions, bus: InMemorySubscriptionBus) -> None:
        self._served = served
        self._bus = bus
        self._followed: Counter[str] = Counter()
        self._seen: dict[str, object] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def following(self, uris: list[str], *, lists: bool) -> AsyncGenerator[None]:
        """Watch these while somebody listens; changes from now on are reported."""
        wanted = [*uris[:_MAX_URIS], *([_LIST] if lists else [])]
        for uri in wanted:
            if uri not in self._seen:
                await self._look(uri)
        self._followed.update(wanted)
        if wanted and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._followed.subtract(wanted)
            for uri in wanted:
                if not self._followed[uri]:
                    del self._followed[uri]
                    self._seen.pop(uri, None)

    def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while self._followed:
            await asyncio.sleep(INTERVAL)
            for uri in list(self._followed):
                await self._look(uri)

    async def _look(self, uri: str) -> None:
        try:
            now = await self._state(uri)
        except DragomanError:  # not served, or unreachable for now: nothing to report
            return
        if uri in self._seen and self._seen[uri] != now:
            await self._bus.publish(ResourceUpdated(uri) if uri else ResourcesListChanged())
        self._seen[uri] = now

    async def _state(self, uri: str) -> object:
        """A value that changes whenever a session, or the list of sessions, changes."""
        if uri == _LIST:
            return frozenset(each.identity.digest for each in await self._served.all())
        session = await self._served.of_id(address_of(uri).id)
        return session.version, session.active, session.created_at


class Listening(ListenHandler):
    """The SDK's event streams, with a watcher for what their readers subscribe to."""

    def __init__(self, watcher: Watcher, bus: InMemorySubscriptionBus) -> None:
        super().__init__(bus)
        self._watcher = watcher

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream."""
        asked = params.notifications
        uris = list(dict.fromkeys(filter(None, asked.resource_subscriptions or ())))
        async with self._watcher.following(uris, lists=bool(asked.resources_list_changed)):
            return await super().__call__(ctx, params)
