"""`dragoman mcp --http` under attack: bodies, sessions and connections that no client sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from dragoman.errors import ConfigError
from dragoman.history.storage.memory import MemoryStorage
from dragoman.mcp.serving import http
from dragoman.mcp.serving.served_sessions import scope_of
from dragoman.mcp.serving.server import server_of
from tests.mcp.serving.processes import INITIALIZE

SECRET = "xyzzy-the-secret"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
SLOW = (
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\ncontent-length: 1000\r\n"
)


@asynccontextmanager
async def _served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[http.Place]:
    """A server on loopback, in this event loop."""
    made: list[Any] = []

    class Kept(http._Uvicorn):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(http, "_Uvicorn", Kept)
    storage = MemoryStorage()
    server = server_of(storage, await scope_of(storage))
    listening, place = http.listening_socket(http.Place("127.0.0.1", 0))
    with listening:
        serving = asyncio.create_task(
            http.serve_http(http.app_of(server, place, None), listening, server)
        )
        yield place
        made[0].should_exit = True
        await asyncio.wait_for(serving, 30)


async def _opened(client: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """The headers of a new session."""
    answer = await client.post(url, json=INITIALIZE, headers=HEADERS)
    return {**HEADERS, "mcp-session-id": answer.headers["mcp-session-id"]}


def _nested(depth: int) -> bytes:
    body = b'{"a":' * depth + b"1" + b"}" * depth
    return (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":'
        b'{"name":"check","arguments":{"target":"openai","body":' + body + b"}}}"
    )


BODIES = {
    "deep": (_nested(100_000), 400),
    "unclosed": (b"[" * 1_000_000, 400),
    "large": (b" " * (5 << 20), 413),
    "batch": (json.dumps([{**INITIALIZE, "params": {"x": SECRET}}]).encode(), 400),
    "text": (json.dumps(SECRET).encode(), 400),
    "no method": (json.dumps({"jsonrpc": "1", "key": SECRET}).encode(), 400),
    "an object as id": (json.dumps({"jsonrpc": "2.0", "id": {SECRET: 1}}).encode(), 400),
    "not JSON": (SECRET.encode(), 400),
    "not UTF-8": (b"\xff\xfe", 400),
    "huge number": (b'{"jsonrpc":"2.0","method":"ping","id":' + b"9" * 5000 + b"}", 400),
}


async def test_invalid_bodies_are_rejected_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a session and without; the session still works afterwards."""
    async with _served(monkeypatch) as place, httpx2.AsyncClient() as client:
        session = await _opened(client, place.url)
        for headers in (HEADERS, session):
            for name, (body, status) in BODIES.items():
                answer = await client.post(place.url, content=body, headers=headers)
                assert answer.status_code == status, name
                assert SECRET not in answer.text, name
                assert "input_value" not in answer.text, name
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await client.post(place.url, json=ping, headers=session)).status_code == 200


async def test_sessions_can_not_be_guessed_chosen_or_used_after_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ids are random, chosen by the server, and invalid once the session has ended."""
    async with _served(monkeypatch) as place, httpx2.AsyncClient() as client:
        one, two = await _opened(client, place.url), await _opened(client, place.url)
        ids = {each["mcp-session-id"] for each in (one, two)}
        assert len(ids) == 2
        assert all(len(each) >= 32 for each in ids)
        for guess in ("0" * 32, "chosen-by-attacker"):
            sent = {**HEADERS, "mcp-session-id": guess}
            answer = await client.post(place.url, json=INITIALIZE, headers=sent)
            assert answer.status_code == 404
        assert (await client.delete(place.url, headers=one)).status_code == 200
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await client.post(place.url, json=ping, headers=one)).status_code == 404
        assert (await client.post(place.url, json=ping, headers=two)).status_code == 200


async def test_the_number_of_sessions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A further session is rejected until another one ends."""
    monkeypatch.setattr(http, "_MAX_SESSIONS", 3)
    async with _served(monkeypatch) as place, httpx2.AsyncClient() as client:
        opened = [await _opened(client, place.url) for _ in range(3)]
        refused = await client.post(place.url, json=INITIALIZE, headers=HEADERS)
        assert refused.status_code == 503
        await client.delete(place.url, headers=opened[0])
        await _opened(client, place.url)


UNFINISHED = (b"", b"POST /mcp HT", SLOW, SLOW + b"\r\n", SLOW + b"\r\n{")


async def test_connections_that_send_no_whole_request_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However much of it arrives; a client that waits for its stream stays connected."""
    monkeypatch.setattr(http, "PATIENCE", 0.2)
    async with _served(monkeypatch) as place, httpx2.AsyncClient() as client:
        session = await _opened(client, place.url)
        async with client.stream("GET", place.url, headers=session) as stream:
            await asyncio.gather(*(_dropped(place, sent) for sent in UNFINISHED))
            assert stream.status_code == 200
            with pytest.raises(TimeoutError):  # nothing comes, and nothing ends
                async with asyncio.timeout(0.3):
                    await anext(stream.aiter_raw())


async def _dropped(place: http.Place, sent: bytes) -> None:
    """Send this, and wait until the server closes the connection without a reply."""
    reader, writer = await asyncio.open_connection(place.host, place.port)
    writer.write(sent)
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 20) == b""
    writer.close()


async def test_other_paths_are_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the older transport nor another spelling of the path."""
    async with _served(monkeypatch) as place, httpx2.AsyncClient() as client:
        for path in ("/", "//mcp", "/mcp/../mcp/x", "/mcp;x", "/sse", "/messages/"):
            found = await client.get(place.url.removesuffix("/mcp") + path, headers=HEADERS)
            assert found.status_code == 404, path


async def test_a_uvicorn_that_can_not_drop_slow_clients_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its hooks are not documented: without them nothing would call what drops these clients."""
    # Its own class stays as it is: other tests' servers run in threads of this process.
    monkeypatch.setattr(http, "uvicorn", SimpleNamespace(Server=object, __version__="0.1"))
    nothing: Any = None
    with pytest.raises(ConfigError, match=r"installed uvicorn .* doesn't work .*pip install"):
        await http.serve_http(nothing, nothing, nothing)
