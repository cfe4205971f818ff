"""Invalid HTTP, and requests that are cut, repeated and mixed up: the next one is served."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

import pytest

from tests.gateway.operations.workers import (
    Threaded,
    answering,
    ask,
    chat,
    http,
    raw,
    read_all,
    threaded,
)
from tests.gateway.running import place, routed, upstream

pytestmark = pytest.mark.whole

GOOD = http("/v1/chat/completions", chat())
HEAD = b" HTTP/1.1\r\nhost: 127.0.0.1\r\n"
ODD = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/0.9\r\n\r\n",
    b"GET / HTTP/1.1\nhost: 127.0.0.1\n\n",
    b"OPTIONS *" + HEAD + b"\r\n",
    b"CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n\r\n",
    b"GET http://example.org/health" + HEAD + b"\r\n",
    b"GET //health" + HEAD + b"\r\n",
    b"GET /v1/%00%ff%2e%2e/models" + HEAD + b"\r\n",
    b"GET /\xff\xfe" + HEAD + b"\r\n",
    b"GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost : 127.0.0.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\n x: folded\r\n\r\n",
    b"POST /v1/messages" + HEAD + b"transfer-encoding: chunked\r\n\r\nffffffffff\r\n",
    b"POST /v1/messages" + HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\n\r\n",
    b"POST /v1/messages" + HEAD + b"transfer-encoding: xchunked\r\n\r\n",
    b"POST /v1/messages" + HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
    b"POST /v1/messages" + HEAD + b"content-length: 99999999999999999999\r\n\r\n",
    b"GET /v1/responses" + HEAD + b"upgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    b"GET /health" + HEAD + b"upgrade: h2c\r\nconnection: upgrade\r\n\r\n",
]


@pytest.fixture(scope="module")
def serving() -> Iterator[Threaded]:
    """A gateway."""
    with upstream(answering) as url:
        config = routed(place("lab", "openai-compatible", url), header_timeout=5, log="off")
        with threaded(config) as found:
            yield found


def survives(serving: Threaded, data: bytes) -> bytes:
    """Send it and close; it may leave nothing behind."""
    connection = raw(serving.port, b"")
    try:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:  # it was closed already
        connection.close()
        return b""
    return read_all(connection)


@pytest.mark.parametrize("data", ODD)
def test_odd_requests(serving: Threaded, data: bytes) -> None:
    """Each is rejected or served, never an internal error."""
    answer = survives(serving, data)
    assert not answer.startswith((b"HTTP/1.1 500", b"HTTP/1.1 502"))
    assert b"Traceback" not in answer
    assert ask(serving.port)[0] == 200


@pytest.mark.parametrize("seed", range(4))
def test_damaged_requests(serving: Threaded, seed: int) -> None:
    """Requests with changed, cut, repeated and joined bytes leave nothing behind."""
    chance = random.Random(seed)
    for _ in range(60):
        data = bytearray(b"".join(chance.choices([GOOD, *ODD], k=chance.randint(1, 3))))
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(data))
            match chance.randrange(3):
                case 0:
                    data[place] = chance.randrange(256)
                case 1:
                    del data[place : place + chance.randrange(1, 9)]
                case _:
                    data[place:place] = chance.randbytes(chance.randrange(1, 9))
            if not data:
                break
        answer = survives(serving, bytes(data))
        assert b"HTTP/1.1 500" not in answer
    assert ask(serving.port)[0] == 200
    state = serving.worker._server.server_state
    serving.until(lambda: serving.worker.gateway.active == 0 and not state.connections)
