"""Abuse of `/v1/responses` over a WebSocket: bad frames and handshakes, floods, silent clients."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct

import pytest

from tests.gateway.abuse.stage import CANARY, MAX_BODY, Stage, request
from tests.gateway.client_requests import body_for

pytestmark = pytest.mark.whole

TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9


def handshake(path: str = "/v1/responses", **changes: str) -> bytes:
    """The opening handshake of a connection."""
    headers = {
        "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13",
        "sec-websocket-key": base64.b64encode(os.urandom(16)).decode(),
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }  # fmt: skip
    return request(path, b"", *headers.items(), ("content-length", "0"), method="GET")


def frame(code: int, data: bytes, *, fin: bool = True, mask: bool = True, rsv: int = 0) -> bytes:
    """A frame, valid or not."""
    head = bytes([(0x80 if fin else 0) | rsv << 4 | code])
    flag = 0x80 if mask else 0
    if len(data) < 126:
        head += bytes([flag | len(data)])
    elif len(data) < 65536:
        head += bytes([flag | 126]) + struct.pack("!H", len(data))
    else:
        head += bytes([flag | 127]) + struct.pack("!Q", len(data))
    return head + (bytes(4) if mask else b"") + data  # a mask of zeros changes nothing


def opened(stage: Stage, **headers: str) -> socket.socket:
    """An accepted connection."""
    connection = stage.connect()
    connection.sendall(handshake(**headers))
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(4096)
    assert received.startswith(b"HTTP/1.1 101 "), received
    return connection


def until_closed(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


TURN = json.dumps({
    "type": "response.create", **body_for("openai-responses", CANARY, model="openai-chat.good")
}).encode()  # fmt: skip
CLOSED: dict[str, bytes] = {
    "not masked": frame(TEXT, TURN, mask=False),
    "reserved bits": frame(TEXT, TURN, rsv=7),
    "reserved code": frame(3, b"x"),
    "reserved control code": frame(11, b"x"),
    "long ping": frame(PING, b"x" * 126),
    "ping in pieces": frame(PING, b"x", fin=False),
    "continuation of nothing": frame(0, b"x"),
    "text within a text": frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"),
    "no UTF-8": frame(TEXT, b"\xff\xfe"),
    "binary": frame(BINARY, TURN),
    "too large": frame(TEXT, b" " * (MAX_BODY + 1)),
    "too large in pieces": frame(TEXT, b" " * 600_000, fin=False) + frame(0, b" " * 600_000),
    "length of an exabyte": b"\x81\xff" + struct.pack("!Q", 2**62) + bytes(4),
    "negative length": b"\x81\xff" + struct.pack("!Q", 2**63 + 5) + bytes(4),
    "close without a code": frame(CLOSE, b"x"),
    "close with a wrong code": frame(CLOSE, struct.pack("!H", 5)),
    "HTTP": request("/health", method="GET"),
    "garbage": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("kind", CLOSED)
def test_bad_frames_close_the_connection(stage: Stage, kind: str) -> None:
    """There is no answer, and the next client is served."""
    asked = len(stage.upstream.asked)
    with opened(stage) as connection:
        connection.sendall(CLOSED[kind])
        answer = until_closed(connection)
    assert b"response.completed" not in answer
    assert len(stage.upstream.asked) == asked
    stage.serves("openai-responses")


BAD = {
    "no JSON": b"{",
    "no object": b"[]",
    "deep": b'{"a":' * 50_000,
    "no type": b"{}",
    "unknown type": b'{"type":"response.destroy"}',
    "cancel of nothing": b'{"type":"response.cancel","response_id":"x"}',
    "no model": b'{"type":"response.create"}',
    "wrong fields": b'{"type":"response.create","model":5,"input":{},"stream_id":[]}',
    "unknown response": b'{"type":"response.create","model":"m","input":"x",'
    b'"previous_response_id":"resp_of_another_provider"}',
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_messages_are_rejected(stage: Stage, kind: str) -> None:
    """With an error event in OpenAI's form; the connection stays open for the next turn."""
    with opened(stage) as connection:
        connection.sendall(frame(TEXT, BAD[kind]))
        answer = connection.recv(65536)
        assert b'"type":"error"' in answer, answer
        assert CANARY.encode() not in answer
        connection.sendall(frame(PING, b"still there") + frame(TEXT, TURN))
        received = b""
        while b"response.completed" not in received:
            received += connection.recv(65536)
        connection.sendall(frame(CLOSE, struct.pack("!H", 1000)))
    stage.serves("openai-responses")


def test_a_fragmented_message_is_one(stage: Stage) -> None:
    """Fragments of one byte, with pings between them."""
    pieces = b"".join(
        frame(TEXT if number == 0 else 0, bytes([byte]), fin=number == len(TURN) - 1)
        + (frame(PING, b"") if number % 16 == 0 else b"")
        for number, byte in enumerate(TURN)
    )
    with opened(stage) as connection:
        connection.sendall(pieces)
        received = b""
        while b"response.completed" not in received:
            received += connection.recv(65536)
    stage.serves("openai-responses")


def test_floods(stage: Stage) -> None:
    """Thousands of pings or turns on one connection: memory is bounded, others are served."""
    before = stage.memory
    with opened(stage) as connection:
        connection.sendall(frame(PING, b"x" * 100) * 5000)
        stage.serves("openai-responses")
    with opened(stage) as connection:
        connection.sendall(frame(TEXT, b'{"type":"x"}') * 2000)
        stage.serves("openai-responses")
    assert stage.memory - before < 64 * 1024 * 1024


def test_no_close(stage: Stage) -> None:
    """Clients that vanish during a turn leave nothing behind."""
    before = stage.upstream.cancelled
    waiting = TURN.replace(b"openai-chat.good", b"openai-chat.waits_in_stream")
    held = [opened(stage) for _ in range(3)]
    for each in held:
        each.sendall(frame(TEXT, waiting))
        assert each.recv(100)
    for each in held:
        each.close()
    for _ in range(3000):
        if stage.upstream.cancelled == before + 3:
            break
        stage.serves("openai-responses")
    assert stage.upstream.cancelled == before + 3


HANDSHAKES = {
    "another path": (handshake("/v1/chat/completions"), 404),
    "unknown path": (handshake("/v1/realtime"), 404),
    "foreign origin": (handshake(origin="http://evil.example"), 403),
    "foreign host": (handshake(host="evil.example"), 403),
    "no key": (
        handshake(connection="close, Upgrade").replace(b"sec-websocket-key", b"x-other"),
        405,
    ),
}


@pytest.mark.parametrize("kind", HANDSHAKES)
def test_bad_handshakes_are_rejected(stage: Stage, kind: str) -> None:
    """By HTTP, with an error in OpenAI's form."""
    data, status = HANDSHAKES[kind]
    [answer] = stage.send(data).answers
    assert answer.status == status
    assert answer.json["error"]["message"]
    stage.serves("openai-responses")


@pytest.mark.parametrize("changes", [{"sec_websocket_version": "7"}, {"sec_websocket_key": "x"}])
def test_malformed_handshakes_are_rejected(stage: Stage, changes: dict[str, str]) -> None:
    """Another version, or an invalid key."""
    [answer] = stage.send(handshake(**changes)).answers
    assert answer.status in {400, 426}
    stage.serves("openai-responses")
