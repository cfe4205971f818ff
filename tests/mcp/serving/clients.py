"""The official SDK's client on a server of ours, in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from mcp.client.client import Client
from mcp_types import CallToolResult, TextContent

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.history.storage.protocol import EVERYTHING, Filter, Storage
from dragoman.mcp.serving.served_sessions import scope_of
from dragoman.mcp.serving.server import server_of

MODES = ("auto", "legacy")
"""The protocol of 2026-07-28, and the handshake of those before."""


@asynccontextmanager
async def connected(
    storage: Storage,
    *,
    names: Iterable[str] = (),
    which: Filter = EVERYTHING,
    writes: bool = False,
    mode: str = "auto",
) -> AsyncGenerator[Client]:
    """A client of the sessions in scope."""
    server = server_of(storage, await scope_of(storage, names, which), writes=writes)
    async with Client(server, mode=mode) as client:
        yield client


async def call(client: Client, name: str, **arguments: Any) -> Any:
    """The result of a tool; the client validates it against the tool's output schema."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


async def refusal(client: Client, name: str, **arguments: Any) -> str:
    """The error text of a tool."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


async def stored(
    storage: Storage, *messages: Message | str, **names: str
) -> tuple[SessionIdentity, list[str]]:
    """A conversation in a store: its identity, and the ids of its messages."""
    identity = SessionIdentity(**names)
    history = await ChatHistory.open(identity, storage)
    added = [await history.add(message) for message in messages]
    return identity, [message.id for message in added]
