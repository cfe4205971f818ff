"""Responses on a connection of our protocol: written directly, and as ASGI messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httptools
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from dragoman.gateway.http import Call
from dragoman.gateway.protocol import KEEP_ALIVE, GatewayProtocol

Handler = Callable[[Call], Awaitable[None]]


class Wire(asyncio.Transport):
    """A connection that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        """Keep it."""
        self.written += data

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.is_closed

    def close(self) -> None:
        """Close it."""
        self.is_closed = True

    abort = close

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


async def served(request: bytes, handler: Handler, *, directly: bool) -> GatewayProtocol:
    """The connection after a request was answered."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        call = Call(scope, receive, send)
        if not directly:
            call._cycle = None
        await handler(call)

    return await served_by(app, request)


async def served_by(app: Any, request: bytes) -> GatewayProtocol:
    """The connection after an ASGI application has answered a request."""
    config = uvicorn.Config(app, http=GatewayProtocol, interface="asgi3", log_config=None)
    config.load()
    state = ServerState()
    state.default_headers = [(b"date", b"today")]
    protocol = GatewayProtocol(config, state, {}, asyncio.get_running_loop())
    protocol.connection_made(Wire())
    protocol.data_received(request)
    await asyncio.gather(*state.tasks)
    return protocol


class Read:
    """A response as a client reads it."""

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        parser = httptools.HttpResponseParser(self)
        parser.feed_data(data)
        self.told = parser.get_status_code(), sorted(self.headers), self.body

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note it."""
        self.headers.append((name.lower(), value))

    def on_body(self, data: bytes) -> None:
        """Note it."""
        self.body += data


NAMES = st.sampled_from(["content-type", "x-request-id", "Retry-After", "allow", "content-length"])
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"))
HEADERS = st.dictionaries(NAMES.filter(lambda name: name != "content-length"), VALUES, max_size=3)
METHODS = st.sampled_from([b"GET", b"POST", b"HEAD"])
VERSIONS = st.sampled_from([b"HTTP/1.1", b"HTTP/1.0"])
BODIES = st.one_of(st.binary(max_size=20), st.just(b"long" * 20_000))
STATUSES = st.sampled_from([200, 204, 304, 308, 400, 404, 431, 500])


@settings(max_examples=60, deadline=None)
@given(
    method=METHODS, version=VERSIONS, status=STATUSES, headers=HEADERS, more=HEADERS, body=BODIES,
    close=st.booleans(),
)  # fmt: skip
def test_a_plain_response_is_the_same_both_ways(
    method: bytes, version: bytes, status: int, headers: Any, more: Any, body: bytes, close: bool
) -> None:
    """What `Call` writes directly equals what its ASGI messages become, byte for byte."""
    body = b"" if status in {204, 304} else body
    connection = b"connection: close\r\n" if close else b""
    request = b"%b / %b\r\nhost: here\r\n%b\r\n" % (method, version, connection)

    async def handler(call: Call) -> None:
        call.more_headers = {**more, "x-more": "1"}
        await call.respond(status, headers, body)

    async def both() -> list[GatewayProtocol]:
        return [await served(request, handler, directly=each) for each in (True, False)]

    ours, theirs = asyncio.run(both())
    assert ours.transport.written == theirs.transport.written  # type: ignore[attr-defined]
    assert ours.transport.is_closing() == theirs.transport.is_closing()
    assert ours.is_free


@settings(max_examples=60, deadline=None)
@given(
    method=METHODS, version=VERSIONS, headers=HEADERS,
    pieces=st.lists(st.binary(max_size=20), max_size=4), last=st.binary(max_size=9),
)  # fmt: skip
def test_a_stream_is_the_same_both_ways(
    method: bytes, version: bytes, headers: Any, pieces: list[bytes], last: bytes
) -> None:
    """So do the head, the chunks and the end of a stream."""
    request = b"%b / %b\r\nhost: here\r\n\r\n" % (method, version)

    async def handler(call: Call) -> None:
        await call.begin(headers)
        for piece in pieces:
            await call.write(piece)
        await call.end(last)

    async def both() -> list[bytes]:
        found = [await served(request, handler, directly=each) for each in (True, False)]
        return [each.transport.written for each in found]  # type: ignore[attr-defined]

    ours, theirs = asyncio.run(both())
    assert Read(ours).told == Read(theirs).told
    assert ours == theirs


@pytest.mark.parametrize("header", [{"x-id": "a\r\nset-cookie: b"}, {"x\r\ny": "z"}])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_header_can_not_contain_a_line_break(header: dict[str, str], stream: bool) -> None:
    """It is rejected, and nothing of it is sent."""

    async def handler(call: Call) -> None:
        await (call.begin(header) if stream else call.respond(200, header, b""))

    protocol = await served(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n", handler, directly=True)
    sent = protocol.transport.written  # type: ignore[attr-defined]
    assert b"set-cookie" not in sent
    assert b"\r\ny" not in sent


async def test_an_explicit_content_length_is_kept() -> None:
    """The response is then not chunked."""

    async def handler(call: Call) -> None:
        await call.begin({"content-length": "4"})
        await call.write(b"ab")
        await call.end(b"cd")

    protocol = await served(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n", handler, directly=True)
    sent = protocol.transport.written  # type: ignore[attr-defined]
    assert sent.endswith(b"\r\n\r\nabcd")
    assert b"chunked" not in sent


async def test_an_idle_connection_is_closed_after_a_response() -> None:
    """Not before its timeout, and not during a request."""

    async def handler(call: Call) -> None:
        await call.respond(200, {}, b"")

    from dragoman.gateway.config.settings import ServerSettings

    protocol = await served(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n", handler, directly=True)
    since = protocol.idle_since
    assert since is not None
    protocol.expire(since + KEEP_ALIVE - 1, ServerSettings())
    assert not protocol.transport.is_closing()
    protocol.expire(since + KEEP_ALIVE + 1, ServerSettings())
    assert protocol.transport.is_closing()


@pytest.mark.parametrize(
    ("url", "path", "query"),
    [
        (b"/a/b?c=d?e", "/a/b", b"c=d?e"),
        (b"/a%20b", "/a b", b""),
        (b"/a?b#c", "/a", b"b"),
        (b"http://there:80/a?b", "/a", b"b"),
        (b"//a", "//a", b""),
    ],
)
async def test_urls_are_split(url: bytes, path: str, query: bytes) -> None:
    """The path is unescaped, the query is not, and a fragment is part of neither."""
    found: list[Any] = []

    async def handler(call: Call) -> None:
        found.append(call.path)
        await call.respond(200, {}, b"")

    protocol = await served(b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n" % url, handler, directly=True)
    assert found == [path]
    assert protocol.scope["query_string"] == query


START: Any = {"type": "http.response.start", "status": 200, "headers": []}
SIZED: Any = {**START, "headers": [(b"content-length", b"3")]}


def body(data: bytes, *, more: bool = False) -> Any:
    """An ASGI message with a part of a body."""
    return {"type": "http.response.body", "body": data, "more_body": more}


async def after(messages: list[Any], *, raises: bool = False) -> tuple[bytes, bool]:
    """What an application that sends these messages has written, and whether it was cut off."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        for each in messages:
            await send(each)
        if raises:
            raise ValueError

    protocol = await served_by(app, b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
    wire: Any = protocol.transport
    return wire.written, wire.is_closed


@pytest.mark.parametrize("raises", [False, True])
async def test_a_missing_response_is_an_error_500(raises: bool) -> None:
    """Whether the application failed or forgot it; the connection is closed."""
    written, is_closed = await after([], raises=raises)
    assert written.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert written.endswith(b"\r\n\r\nInternal Server Error")
    assert is_closed


@pytest.mark.parametrize(
    ("messages", "sent"),
    [
        ([START, body(b"ab", more=True)], b"2\r\nab\r\n"),
        ([SIZED, body(b"ab")], b"ab"),
        ([SIZED, body(b"abcd")], b""),
        ([SIZED, body(b"ab", more=True), body(b"cd")], b"ab"),
        ([START, START], b""),
    ],
)
async def test_a_response_that_goes_wrong_is_cut_off(messages: list[Any], sent: bytes) -> None:
    """If it ends early, is longer or shorter than it said, or begins twice: nothing may follow."""
    written, is_closed = await after(messages)
    assert written.partition(b"\r\n\r\n")[2] == sent
    assert is_closed


async def test_nothing_can_follow_a_complete_response() -> None:
    """The application's mistake; the client has its response."""
    written, _ = await after([SIZED, body(b"abc"), body(b"more")])
    assert written.endswith(b"\r\n\r\nabc")


@pytest.mark.parametrize("name", [b"x y", b"", b"x:", "ä".encode()])
async def test_a_header_of_asgi_needs_a_valid_name(name: bytes) -> None:
    """Nothing of it is sent."""
    written, _ = await after([{**START, "headers": [(name, b"value-of-it")]}])
    assert b"value-of-it" not in written
