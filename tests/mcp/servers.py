"""Servers for the tests: made with the SDK, scripted message by message, or as a process.

Third-party servers are in `reference_servers.py`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer as SdkServer
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from dragoman import Message
from dragoman.mcp import MCPServer
from dragoman.model.tools import ToolCall, make_call

HERE = Path(__file__).parent
SCHEMA = {"type": "object", "properties": {}}


def in_process(server: SdkServer, **options: Any) -> MCPServer:
    """A server of the SDK in this process; each connection is a new session."""
    options = {"requires_approval": False, "name": "sdk", **options}
    return MCPServer(lambda: InMemoryTransport(server), **options)


def process(*args: str, **options: Any) -> MCPServer:
    """The small server of `small_server.py`, as a process; it is written without the SDK."""
    options = {"requires_approval": False, "name": "small", **options}
    return MCPServer.stdio(sys.executable, "-I", str(HERE / "small_server.py"), *args, **options)


def calling(name: str, id: str = "call_1", **arguments: Any) -> Message:
    """A model's answer that calls a tool, whatever it is named."""
    return Message.assistant(make_call(id, name, None, arguments))


def call_named(name: str, **arguments: Any) -> ToolCall:
    """A call, whatever the tool is named."""
    return make_call("call_1", name, None, arguments)


# --- scripted, message by message

Answers = Mapping[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Scripted:
    """A server with given answers, valid or not; it records what it receives.

    An answer is a result, a function of the request and of `send` (to send anything), or None: then
    there is never an answer.
    """

    def __init__(self, answers: Answers | None = None, **options: Any) -> None:
        self.answers: dict[str, Any] = {"initialize": _initialize, **(answers or {})}
        self.heard: list[dict[str, Any]] = []
        self.connections = 0
        options = {"requires_approval": False, "name": "scripted", "timeout": 5.0, **options}
        self.server = MCPServer(self._transport, **options)

    def methods(self) -> list[str]:
        """The received requests and notifications, in order."""
        return [str(each.get("method")) for each in self.heard if "method" in each]

    async def hears(self, method: str) -> dict[str, Any]:
        """Wait for the first message of a kind."""
        for _ in range(500):
            for each in self.heard:
                if each.get("method") == method:
                    return each
            await anyio.sleep(0.01)
        msg = f"{method} was never heard"
        raise AssertionError(msg)

    def _transport(self) -> AbstractAsyncContextManager[Any]:
        return self._streams()

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[Any]:
        self.connections += 1
        to_client, client_reads = anyio.create_memory_object_stream[Any](1_000)
        client_writes, from_client = anyio.create_memory_object_stream[Any](1_000)

        async def send(message: dict[str, Any]) -> None:
            parsed = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message})
            await to_client.send(SessionMessage(parsed))

        async def serve() -> None:
            async for item in from_client:
                message = item.message.model_dump(by_alias=True, exclude_unset=True)
                self.heard.append(message)
                if "method" in message:
                    group.start_soon(self._answer, message, send, to_client)

        async with (
            to_client,
            client_reads,
            client_writes,
            from_client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(serve)
            yield client_reads, client_writes
            group.cancel_scope.cancel()

    async def _answer(self, message: dict[str, Any], send: Send, stream: Any) -> None:
        method = message["method"]
        if "id" not in message:
            return
        if method not in self.answers:
            error = {"code": -32601, "message": "Method not found"}
            await send({"id": message["id"], "error": error})
            return
        made: Any = self.answers[method]
        is_function = inspect.iscoroutinefunction(made)
        answer: Any = await made(message, send) if is_function else made
        if answer == "crash":
            await stream.aclose()
        elif answer is not None:
            key = "error" if "code" in answer else "result"
            await send({"id": message["id"], key: answer})


async def _initialize(message: dict[str, Any], _send: Send) -> dict[str, Any]:
    return {
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": {
            "tools": {"listChanged": True}, "prompts": {}, "logging": {}, "completions": {},
            "resources": {"subscribe": True},
        },
        "serverInfo": {"name": "scripted", "version": "1"},
    }  # fmt: skip


def tools_listed(*tools: Mapping[str, Any] | str) -> dict[str, Any]:
    """The answer to `tools/list`, of names or whole descriptions."""
    return {
        "tools": [
            {"name": each, "inputSchema": SCHEMA} if isinstance(each, str) else each
            for each in tools
        ]
    }


def text_result(text: str, **more: Any) -> dict[str, Any]:
    """The answer to `tools/call` with a text."""
    return {"content": [{"type": "text", "text": text}], **more}
