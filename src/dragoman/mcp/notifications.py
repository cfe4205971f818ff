"""Notifications from servers: changes of lists and resources, and logs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from inspect import isawaitable
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.mcp.connection import Connection
from dragoman.mcp.connections import Connections
from dragoman.mcp.transports import harmless
from dragoman.mcp.values import LogMessage

_Ask = Callable[[Callable[[Client], Awaitable[Any]]], Awaitable[Any]]


async def updates(
    connections: Connections, ask: _Ask, uris: tuple[str, ...]
) -> AsyncGenerator[str]:
    """The URIs of resources that change; all of them after a lost connection."""
    if not uris or not all(isinstance(uri, str) for uri in uris):
        msg = "pass the URIs of the resources to watch"
        raise InvalidInputError(msg)
    is_first = True
    while True:
        connection = await connections.current()
        is_handshake = connection.client.session.initialize_result is not None
        found = _watched(connection, ask, uris) if is_handshake else _heard(connection, uris)
        try:
            async for uri in found:
                if uri:
                    yield uri
                elif not is_first:  # the first update only confirms the subscription
                    for each in uris:
                        yield each
                is_first = False
        finally:
            await found.aclose()


async def _watched(connection: Connection, ask: _Ask, uris: tuple[str, ...]) -> AsyncGenerator[str]:
    """For servers before 2026-07-28, with one subscription request per resource."""
    watch = Watch()
    connection.watches.add(watch)
    try:
        for uri in uris:
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
            await ask(lambda client, it=request: client.session.send_request(it, types.EmptyResult))  # type: ignore[misc]
        yield ""
        while (changed := await watch.next()) is not None:
            yield changed
    finally:
        connection.watches.discard(watch)
        if connection.is_open:
            for uri in uris:
                params = types.UnsubscribeRequestParams(uri=uri)
                with suppress(MCPError, DragomanError):
                    await connection.client.session.send_request(
                        types.UnsubscribeRequest(params=params), types.EmptyResult
                    )


async def _heard(connection: Connection, uris: tuple[str, ...]) -> AsyncGenerator[str]:
    with suppress(SubscriptionLost):
        async with connection.client.listen(resource_subscriptions=uris) as heard:
            yield ""
            async for event in heard:
                if isinstance(event, ResourceUpdated):
                    yield event.uri
    connection.drop()


OnLog = Callable[[LogMessage], Any]
OnChange = Callable[[str, str | None], Any]
"""Takes what has changed: `tools`, `prompts` or `resources`; or `resource` and its URI."""

_LISTS: dict[type, tuple[str, tuple[str, ...]]] = {
    types.ToolListChangedNotification: ("tools", ("tools",)),
    types.PromptListChangedNotification: ("prompts", ("prompts",)),
    types.ResourceListChangedNotification: ("resources", ("resources", "templates")),
}
_MAX_LOGGER = 100

_log = logging.getLogger("dragoman.mcp")


class Notifications:
    """Handles the notifications of one server."""

    def __init__(
        self, server: str, on_log: OnLog | None, log_level: Any, on_change: OnChange | None
    ) -> None:
        self._server = server
        self._on_log = on_log
        self._on_change = on_change
        self.log_level: types.LoggingLevel | None = log_level or ("info" if on_log else None)
        """The minimum level of wanted logs; None: no logs."""

    def options(self, connection: Connection) -> dict[str, Any]:
        """The SDK's callbacks."""

        async def take(message: Any) -> None:
            kind, lists = _LISTS.get(type(message), (None, ()))
            connection.changes += bool(lists)
            for each in lists:
                connection.listed.pop(each, None)
            if kind is not None:
                await self._tell(self._on_change, kind, None)
            elif isinstance(message, types.ResourceUpdatedNotification):
                uri = str(message.params.uri)
                connection.tell(uri)
                await self._tell(self._on_change, "resource", uri)

        async def log(params: types.LoggingMessageNotificationParams) -> None:
            logger = None if params.logger is None else harmless(params.logger)[:_MAX_LOGGER]
            said = LogMessage(
                server=self._server, level=params.level, data=params.data, logger=logger
            )
            await self._tell(self._on_log, said)

        return {"message_handler": take, "logging_callback": log, "log_level": self.log_level}

    async def _tell(self, function: Callable[..., Any] | None, *what: Any) -> None:
        if function is None:
            return
        try:
            told = function(*what)
            if isawaitable(told):
                await told
        except Exception as error:  # noqa: BLE001 - the user's; the connection goes on
            _log.warning("a callback for an MCP server raised %s", type(error).__name__)


class Watch:
    """Resources that have changed, each once, however often it changed."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}
        self._is_over = False
        self._event = asyncio.Event()

    def tell(self, uri: str) -> None:
        """A resource has changed."""
        if len(self._changed) < 10_000:  # noqa: PLR2004 - a server may flood us
            self._changed[uri] = None
        self._event.set()

    def end(self) -> None:
        """There will be no more changes."""
        self._is_over = True
        self._event.set()

    async def next(self) -> str | None:
        """The next changed resource; None when the connection has ended."""
        while not self._changed:
            if self._is_over:
                return None
            self._event.clear()
            await self._event.wait()
        uri = next(iter(self._changed))
        with suppress(KeyError):
            del self._changed[uri]
        return uri
