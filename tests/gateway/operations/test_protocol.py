"""Connections: limits on headers and time, clients that don't read, pipelining, many at once."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from aiohttp import web

from dragoman.gateway.protocol import MAX_HEADER_BYTES, MAX_HEADERS, GatewayProtocol
from tests.gateway.operations.workers import (
    ANSWER,
    Threaded,
    answering,
    ask,
    chat,
    http,
    raw,
    read_all,
    streaming,
    threaded,
)
from tests.gateway.running import place, routed, upstream

GOOD = http("/health")


@pytest.fixture(scope="module")
def serving() -> Iterator[Threaded]:
    """A gateway."""
    with upstream(answering) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        with threaded(config) as found:
            yield found


@pytest.fixture(scope="module")
def impatient() -> Iterator[Threaded]:
    """A gateway with a short header timeout."""
    with upstream(answering) as url:
        config = routed(place("lab", "openai-compatible", url), header_timeout=0.3, log="off")
        with threaded(config) as found:
            yield found


def test_slow_headers_are_rejected(impatient: Threaded) -> None:
    """A client that sends its headers byte by byte gets a 408 and is disconnected."""
    connection = raw(impatient.port, b"GET /health HTTP/1.1\r\nx-slow: ")
    answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive in time" in answer
    assert ask(impatient.port, "/health", method="GET")[0] == 200


def test_endless_line_breaks_are_disconnected(impatient: Threaded) -> None:
    """Line breaks before a request are allowed, but not for ever."""
    connection = raw(impatient.port, b"\r\n")
    assert read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_idle_connections_are_kept(impatient: Threaded) -> None:
    """A connection without any bytes is not a slow client."""
    connection = raw(impatient.port, b"")
    slow = raw(impatient.port, b"GET ")
    read_all(slow)  # the other had at least as much time
    connection.sendall(GOOD)
    assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    connection.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"".join(b"x-%d: 1\r\n" % n for n in range(MAX_HEADERS + 1)), 431),
        (b"x: " + b"a" * (MAX_HEADER_BYTES + 1) + b"\r\n", 431),
        (b"x: " + b"a" * (4 * MAX_HEADER_BYTES), 431),
        (b"no colon\r\n", 400),
        (b"x: 1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n", 400),
        (b"content-length: -1\r\n", 400),
    ],
)
def test_invalid_heads_are_rejected(serving: Threaded, head: bytes, status: int) -> None:
    """Too many, too long and malformed headers; the connection is closed."""
    answer = read_all(raw(serving.port, b"GET /health HTTP/1.1\r\n" + head + b"\r\n"))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b'"error"' in answer
    assert ask(serving.port, "/health", method="GET")[0] == 200
    shown = ask(serving.port, "/metrics", method="GET")[1]
    assert b'kind="malformed"' in shown
    assert b'status="%d"' % status in shown


def test_a_long_url_is_rejected(serving: Threaded) -> None:
    """A path has its own limit."""
    answer = read_all(raw(serving.port, b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 414 ")


def test_no_server_header(serving: Threaded) -> None:
    """Nothing reveals the software."""
    connection = raw(serving.port, http("/health", more="connection: close\r\n"))
    assert b"\r\nserver:" not in read_all(connection).lower()


def test_pipelined_requests_are_answered_in_order(serving: Threaded) -> None:
    """One after the other."""
    last = http("/nothing", more="connection: close\r\n")
    sent = http("/health") + http("/v1/chat/completions", chat()) + http("/ready") + last
    answer = read_all(raw(serving.port, sent))
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.index(b'"version"') < answer.index(b"Hello") < answer.index(b'"ready"')
    assert answer.index(b'"ready"') < answer.index(b"HTTP/1.1 404")


def test_small_packets_are_sent_at_once(serving: Threaded) -> None:
    """Connections have TCP_NODELAY: chunks of a stream don't wait for each other."""
    connection = raw(serving.port, GOOD)
    connection.recv(4096)
    connections = serving.worker._server.server_state.connections
    found = [each for each in connections if isinstance(each, GatewayProtocol)]
    assert found
    for each in found:
        theirs = each.transport.get_extra_info("socket")
        assert theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    connection.close()


def test_disconnecting_cancels_pipelined_requests() -> None:
    """Also a request that waits behind another."""
    begun, gone = threading.Event(), threading.Event()

    async def waiting(request: web.Request) -> web.StreamResponse:
        begun.set()

        async def left() -> None:
            try:  # the server behind may cancel this, or only close the connection
                while request.transport and not request.transport.is_closing():  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.01)
            finally:
                gone.set()

        return await streaming(request, [b"a"] * 3, before_last=left)

    with upstream(waiting) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        with threaded(config) as serving:
            body = http("/v1/chat/completions", chat(stream=True))
            connection = raw(serving.port, body + GOOD)
            assert begun.wait(10)
            connection.recv(100)
            connection.close()
            assert gone.wait(10)
            serving.until(lambda: serving.worker.gateway.active == 0)


async def _forever() -> None:
    await asyncio.sleep(60)


def test_a_client_that_reads_nothing_is_disconnected() -> None:
    """After a timeout; the memory is freed."""
    big = {**ANSWER, "system_fingerprint": "x" * 12_000_000}

    async def large(_request: web.Request) -> web.StreamResponse:
        return web.json_response(big)

    with upstream(large) as url:
        config = routed(place("lab", "openai-compatible", url), send_timeout=0.4, log="off")
        with threaded(config) as serving:
            connection = raw(serving.port, http("/v1/chat/completions", chat()))
            state = serving.worker._server.server_state
            serving.until(lambda: state.total_requests > 0)
            serving.until(lambda: not state.connections)
            assert len(read_all(connection)) < 12_000_000


class _Buffered:
    """A transport with unsent bytes."""

    def __init__(self) -> None:
        self.size = 0
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        """The number of unsent bytes."""
        return self.size

    def abort(self) -> None:
        """The connection is dropped."""
        self.is_aborted = True


def test_a_slow_reader_is_not_disconnected() -> None:
    """As long as it reads a little now and then."""
    protocol = GatewayProtocol.__new__(GatewayProtocol)
    transport = protocol.transport = _Buffered()  # type: ignore[assignment]
    protocol.stalled = None
    for now in range(0, 600, 50):
        transport.size = 1000 - now
        protocol._drop_stalled(float(now), 60.0)
    assert not transport.is_aborted
    transport.size = 0
    protocol._drop_stalled(700.0, 60.0)
    transport.size = 400
    for later in (800.0, 859.0):
        protocol._drop_stalled(later, 60.0)
        assert not transport.is_aborted
    protocol._drop_stalled(861.0, 60.0)
    assert transport.is_aborted


def test_a_request_has_a_total_timeout() -> None:
    """A request over its limit gets a 504 in the client's form; a stream ends in an error."""

    async def never(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body.get("stream"):
            return await streaming(request, [b"a", b"b"], before_last=_forever)
        await _forever()
        raise AssertionError

    with upstream(never) as url:
        config = routed(place("lab", "openai-compatible", url), request_timeout=0.3, log="off")
        with threaded(config) as serving:
            status, answer = ask(serving.port, "/v1/messages", {**chat(), "max_tokens": 5})
            assert status == 504
            assert b'"type":"error"' in answer
            status, answer = ask(serving.port, body=chat(stream=True))
            assert status == 200
            assert b'"error"' in answer
            assert b"[DONE]" not in answer.split(b'"error"')[0]


def test_a_thousand_idle_connections() -> None:
    """Another client is served meanwhile."""
    with upstream(answering) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        with threaded(config) as serving:
            held = [raw(serving.port, GOOD) for _ in range(1000)]
            for each in held:
                assert each.recv(4096).startswith(b"HTTP/1.1 200 ")
            assert len(serving.worker._server.server_state.connections) == 1000
            assert ask(serving.port)[0] == 200
            held[0].sendall(GOOD)
            assert held[0].recv(4096).startswith(b"HTTP/1.1 200 ")
            for each in held:
                each.close()
