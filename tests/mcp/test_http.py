"""Servers by URL: streamable HTTP and server-sent events, made with the SDK, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp.server.mcpserver import Context
from mcp.server.mcpserver import MCPServer as SdkServer

from dragoman import Agent
from dragoman.errors import AuthenticationError, ConnectError, InvalidRequest, ServerError
from dragoman.mcp import MCPServer, Question
from dragoman.testing import ScriptedModel
from tests.mcp.servers import calling

pytestmark = pytest.mark.filterwarnings(
    "ignore::mcp.shared.exceptions.MCPDeprecationWarning",
    "ignore::DeprecationWarning:uvicorn", "ignore::DeprecationWarning:websockets",
)  # fmt: skip


def sdk_server() -> SdkServer:
    """Something to call, to wait for and to ask."""
    server = SdkServer("remote")

    @server.tool()
    async def echo(word: str, ctx: Context) -> str:
        """Say it again."""
        header = (ctx.headers or {}).get("x-team", "")
        return f"{word} {header}".strip()

    @server.tool()
    async def hang() -> str:
        """Never answer."""
        hung.append("begun")
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            hung.append("cancelled")
            raise
        return ""

    @server.tool()
    async def ask(ctx: Context) -> str:
        """Ask the user."""
        session: Any = ctx.session
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = await session.elicit("Who?", schema)
        return str(answer.content)

    return server


hung: list[str] = []


@asynccontextmanager
async def serving(app: Any, port: int = 0) -> AsyncGenerator[str]:
    """An ASGI app on loopback; its URL."""
    bound = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[bound]))
    await _until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await running
        bound.close()


def app_of(kind: str) -> Any:
    """The server as an app, by its transport."""
    server = sdk_server()
    if kind == "sse":
        return server.sse_app()
    return server.streamable_http_app(
        stateless_http=kind == "stateless", json_response=kind == "json"
    )


def client_of(kind: str, address: str, **options: Any) -> MCPServer:
    """Our client for such a server."""
    options = {"requires_approval": False, "timeout": 10.0, "start_timeout": 10.0, **options}
    if kind == "sse":
        return MCPServer.sse(f"{address}/sse", **options)
    return MCPServer.http(f"{address}/mcp", **options)


KINDS = ["http", "stateless", "json", "sse"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["auto", "handshake"])
async def test_an_agent_uses_a_server_by_url(kind: str, protocol: str) -> None:
    """By streamable HTTP, with and without sessions, or by server-sent events; with headers."""
    async with serving(app_of(kind)) as address:
        server = client_of(kind, address, protocol=protocol, headers={"X-Team": "blue"})
        agent = Agent(ScriptedModel([calling("echo", word="hi"), "Done."]), tools=[server])
        async with agent:
            result = await agent.send("Go.")
            info = await server.open()
        await server.close()
    assert result.messages[2].tool_results[0].text == "hi blue"
    assert info.protocol == ("2025-11-25" if protocol == "handshake" else "2026-07-28")


@pytest.mark.parametrize("kind", ["http", "json"])
async def test_a_result_of_megabytes_arrives(kind: str) -> None:
    """Such as a screenshot: also as one event, which the SDK limits to a megabyte by itself."""
    word = "x" * 2_500_000
    async with (
        serving(app_of(kind)) as address,
        client_of(kind, address, protocol="handshake") as server,
    ):
        result = await server.call_tool("echo", {"word": word})
    assert result.text == word


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_cancelling_a_run_cancels_the_call_over_http(kind: str) -> None:
    """The server's own function is cancelled."""
    hung.clear()
    async with serving(app_of(kind)) as address, client_of(kind, address) as server:
        agent = Agent(ScriptedModel([calling("hang"), "Done."]), tools=[server])
        run = asyncio.ensure_future(agent.send("Go."))
        await _until(lambda: "begun" in hung)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, 5)
        await _until(lambda: "cancelled" in hung)
        assert (await server.call_tool("echo", {"word": "hi"})).text == "hi"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_over_http_asks_the_user(kind: str) -> None:
    """During its call, over the same connection."""

    def answer(question: Question) -> dict[str, Any]:
        return {"name": question.message}

    async with serving(app_of(kind)) as address:
        server = client_of(kind, address, elicit=answer, protocol="handshake")
        async with server:
            assert (await server.call_tool("ask")).text == "{'name': 'Who?'}"


@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.parametrize("protocol", ["auto", "handshake"])
async def test_a_restarted_server_is_used_again(kind: str, protocol: str) -> None:
    """Whether or not it remembers the session: the next call opens another."""
    async with serving(app_of(kind)) as address:
        server = client_of(kind, address, protocol=protocol)
        assert (await server.call_tool("echo", {"word": "one"})).text == "one"
        port = int(address.rpartition(":")[2])
    async with serving(app_of(kind), port):
        with contextlib.suppress(ConnectError):  # it may have to notice first
            await server.call_tool("echo", {"word": "two"})
        assert (await server.call_tool("echo", {"word": "three"})).text == "three"
        await server.close()


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_connection_refused(kind: str) -> None:
    """The error names host and port, but neither path nor query, which may hold a key."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    make = MCPServer.sse if kind == "sse" else MCPServer.http
    server = make(f"http://127.0.0.1:{port}/mcp?key=sk-1")
    with pytest.raises(ConnectError, match=f"could not be reached at 127.0.0.1:{port}") as caught:
        await server.open()
    assert "sk-1" not in str(caught.value)


async def _answering(status: int, scope: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b"the secret is sk-1"})


STATUSES = [(401, AuthenticationError, "pass headers= or auth="), (404, InvalidRequest, "no MCP"),
            (500, ServerError, "HTTP status 500")]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "problem"), STATUSES)
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_http_error(status: int, kind: Any, problem: str, transport: str) -> None:
    """By its status, which says what to do."""

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        await _answering(status, scope, send)

    async with serving(app) as address:
        with pytest.raises(kind, match=problem) as caught:
            await client_of(transport, address).open()
    assert caught.value.status == status
    assert "sk-1" not in str(caught.value)


async def test_an_expired_key_is_reported() -> None:
    """During a connection, too."""
    inner, allowed = app_of("http"), [True]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if allowed[0] or scope["type"] == "lifespan":
            await inner(scope, receive, send)
        else:
            await _answering(401, scope, send)

    async with serving(app) as address, client_of("http", address) as server:
        assert (await server.call_tool("echo", {"word": "hi"})).text == "hi"
        allowed[0] = False
        with pytest.raises(AuthenticationError):
            await server.call_tool("echo", {"word": "hi"})
        allowed[0] = True


@pytest.mark.parametrize("is_packed", [False, True])
async def test_an_endless_answer_is_aborted(is_packed: bool, monkeypatch: Any) -> None:
    """If it is not an event stream, and sooner if it is compressed."""
    monkeypatch.setattr("dragoman.mcp.transports.MAX_BYTES", 200_000)
    monkeypatch.setattr("dragoman.mcp.transports.MAX_PACKED_BYTES", 20_000)
    inner = app_of("json")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        names = dict(scope.get("headers", ()))
        if scope["type"] == "lifespan" or names.get(b"mcp-method") != b"tools/call":
            await inner(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        headers += [(b"content-encoding", b"identity")] if is_packed else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for _ in range(1_000):
            await send({"type": "http.response.body", "body": b" " * 10_000, "more_body": True})

    async with serving(app) as address, client_of("http", address) as server:
        result = await server.call_tool("echo", {"word": "hi"})
    assert result.is_error is True
    assert "the response is too large" in result.text


async def test_redirects_to_other_hosts_are_not_followed() -> None:
    """A server can't send our headers to another."""
    heard: list[str] = []

    async def elsewhere(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            heard.append(scope["path"])
            await _answering(200, scope, send)

    async with serving(elsewhere) as other:

        async def app(scope: Any, _receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                headers = [(b"location", f"{other}/mcp".encode())]
                await send({"type": "http.response.start", "status": 307, "headers": headers})
                await send({"type": "http.response.body", "body": b""})

        async with serving(app) as address:
            for kind in ("http", "sse"):
                server = client_of(kind, address, headers={"Authorization": "Bearer sk-1"})
                with pytest.raises(Exception, match="MCP server"):
                    await server.open()
    assert heard == []


class _Signing(httpx2.Auth):
    """Signs each request."""

    def auth_flow(self, request: httpx2.Request) -> Any:
        request.headers["X-Team"] = "signed"
        yield request


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_an_httpx_auth_is_passed_on(kind: str) -> None:
    """Such as the SDK's OAuth providers."""
    async with (
        serving(app_of(kind)) as address,
        client_of(kind, address, auth=_Signing()) as server,
    ):
        assert (await server.call_tool("echo", {"word": "hi"})).text == "hi signed"


async def _until(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError
