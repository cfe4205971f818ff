"""Subscriptions to resources, in the form of the server's protocol version."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.mcp.connection import Connection
from dragoman.mcp.connections import Connections
from dragoman.mcp.notifications import Watch

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
