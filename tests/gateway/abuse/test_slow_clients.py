"""Clients that are slow on purpose are disconnected in time, and don't delay others."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import Overloaded
from dragoman.gateway.intake import BodyRoom
from tests.environment import PATIENCE
from tests.gateway.abuse.stage import CANARY, Stage, read_raw, refused, request, staged
from tests.gateway.client_requests import body_for, path_for

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A gateway with timeouts of one second."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads Linux's /proc")
    folder = tmp_path_factory.mktemp("impatient")
    times = {"header_timeout": "700ms", "body_timeout": "700ms", "send_timeout": "700ms"}
    with staged(folder, **times, max_body=64 * 1024 * 1024) as made:
        yield made


def _drip(connection: socket.socket, data: bytes) -> None:
    """Send byte by byte until the other side closes."""
    try:
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)
    except OSError:
        pass


def test_slow_headers(impatient: Stage, front: str) -> None:
    """Headers that arrive byte by byte give a 408 in the form of the path, which came first."""
    with impatient.connect() as connection:
        connection.sendall(f"POST {path_for(front)} HTTP/1.1\r\nx: ".encode())
        _drip(connection, b"y" * 200)
        [answer] = read_raw(connection).answers
    refused(front, answer, 408)
    impatient.serves(front)


@pytest.mark.parametrize("how", ["length", "chunks"])
def test_slow_bodies(impatient: Stage, front: str, how: str) -> None:
    """A body that arrives byte by byte, or stops, is a 408."""
    body = json.dumps(body_for(front, CANARY)).encode()
    data = request(path_for(front), body * 100)
    if how == "chunks":
        data = request(path_for(front), b"fff\r\n" + body, ("transfer-encoding", "chunked"))
    begun = data.index(b"\r\n\r\n") + 10
    with impatient.connect() as connection:
        connection.sendall(data[:begun])
        _drip(connection, data[begun : begun + 100])
        [answer] = read_raw(connection).answers
    refused(front, answer, 408)
    impatient.serves(front)


@pytest.mark.parametrize("stream", [False, True])
def test_clients_that_do_not_read(impatient: Stage, front: str, stream: bool) -> None:
    """A client that reads nothing of a large answer is disconnected; the memory is freed."""
    model = "openai-chat.large"
    body = json.dumps(body_for(front, CANARY, stream=stream, model=model)).encode()
    data = request(path_for(front, stream=stream, model=model), body)
    held = [socket.socket() for _ in range(3)]
    for each in held:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        each.connect(("127.0.0.1", impatient.port))
        each.settimeout(PATIENCE)
        each.sendall(data)
    _until(lambda: _connections(impatient) == 0)
    for each in held:
        each.close()
    impatient.serves(front)


def test_many_slow_clients_at_once(impatient: Stage) -> None:
    """A valid request is served while hundreds of slow ones wait."""
    held = [impatient.connect() for _ in range(300)]
    for number, each in enumerate(held):
        each.sendall(b"POST /v1/messages HTTP/1.1\r\n" if number % 2 else b"")
    impatient.serves("anthropic")
    _until(lambda: _connections(impatient) <= 150)  # those that have sent nothing are only idle
    for each in held:
        each.close()
    impatient.serves("anthropic")


def _connections(stage: Stage) -> int:
    """The number of client connections of the gateway, except the one that asks."""
    text = stage.send(request("/metrics", method="GET")).answers[0].body.decode()
    [line] = [each for each in text.splitlines() if each.startswith("dragoman_connections")]
    return int(float(line.split()[-1])) - 1


def _until(is_so: object) -> None:
    assert callable(is_so)
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_large_bodies_have_a_limit_together(tmp_path: Path) -> None:
    """While some are held, others are refused; once they are given back, they are served."""
    mebibyte = 1024 * 1024
    with staged(tmp_path, max_body=4 * mebibyte, body_memory=6 * mebibyte) as stage:
        text = "x" * (3 * mebibyte + mebibyte // 2)
        body = json.dumps(body_for("openai-chat", text, model="openai-chat.good")).encode()
        whole = request("/v1/chat/completions", body)
        with stage.connect() as first:
            first.sendall(whole[:-1])
            refusal = stage.post("openai-chat", body)
            deadline = time.monotonic() + PATIENCE
            while refusal.status == 200 and time.monotonic() < deadline:  # it was read first
                refusal = stage.post("openai-chat", body)
            assert "body_memory" in refused("openai-chat", refusal, 503)
            assert refusal.headers["retry-after"]
            stage.serves()  # a small one
            first.sendall(whole[-1:])
            assert first.recv(64).startswith(b"HTTP/1.1 200 ")
        assert stage.post("openai-chat", body).status == 200


def test_a_key_has_half_of_the_memory_for_bodies() -> None:
    """The rest is for others; what is given back can be held again."""
    room = BodyRoom()
    room.take("a", 500, 1000)
    with pytest.raises(Overloaded):
        room.take("a", 1, 1000)
    room.take("b", 400, 1000)
    with pytest.raises(Overloaded):
        room.take(None, 101, 1000)
    room.give("a", 500)
    room.take(None, 600, 1000)
    room.give(None, 600)
    room.give("b", 400)
    room.take("a", 500, 1000)
    assert room.held == 500
