"""Workers of the gateway on real sockets: in a thread of this process, or as `dragoman serve`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from aiohttp import web

from dragoman.gateway.config.settings import GatewayConfig
from dragoman.gateway.serving import Worker, _loop_factory, bind

_LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")


class Threaded:
    """A worker in a thread."""

    def __init__(self, port: int, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        self.port = port
        self.worker = worker
        self.loop = loop

    def call(self, function: Callable[[], object]) -> None:
        """Call it on the worker's loop."""
        self.loop.call_soon_threadsafe(function)

    def until(self, is_so: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for a condition, with a generous timeout."""
        for _ in range(int(seconds / 0.01)):
            if is_so():
                return
            threading.Event().wait(0.01)
        raise AssertionError(is_so)


@contextmanager
def threaded(config: GatewayConfig, **options: Any) -> Generator[Threaded, None, None]:
    """A worker on a free port, until the block ends."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    found: list[Threaded] = []
    ready = threading.Event()

    async def serve() -> None:
        worker = Worker(config, **options)
        found.append(Threaded(port, worker, asyncio.get_running_loop()))
        await worker.serve([listening], ready.set)

    def run() -> None:
        making = asyncio.Runner(loop_factory=_loop_factory())
        with making as runner, suppress(asyncio.CancelledError):
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield found[0]
    finally:
        with suppress(RuntimeError):  # it has ended already
            found[0].call(found[0].worker.stop_now)
        thread.join(20)
        assert not thread.is_alive()


class Process:
    """`dragoman serve` in a separate process."""

    def __init__(self, process: subprocess.Popen[str], port: int, screen: list[str]) -> None:
        self.process = process
        self.port = port
        self.screen = screen
        """What it says on standard error."""

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def wait_for(self, text: str, seconds: float = 20.0) -> None:
        """Wait until it has printed something."""
        for _ in range(int(seconds / 0.02)):
            if any(text in line for line in self.screen):
                return
            threading.Event().wait(0.02)
        raise AssertionError(self.screen)

    def workers(self) -> list[int]:
        """The process ids of its workers."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(each) for each in path.read_text().split()]


@contextmanager
def process(
    folder: Path, text: str, *arguments: str, env: dict[str, str] | None = None
) -> Generator[Process, None, None]:
    """`dragoman serve` with this file, on a free port, until the block ends."""
    file = folder / "dragoman.toml"
    file.write_text(text)
    command = [sys.executable, "-m", "dragoman.cli", "serve", "-c", str(file), "--port", "0"]
    with (folder / "requests.log").open("w") as log:
        started = subprocess.Popen(
            [*command, *arguments], stdout=log, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # without the terminal that the tests may run on
        )  # fmt: skip
    screen: list[str] = []
    assert started.stderr is not None
    reader = threading.Thread(target=screen.extend, args=(iter(started.stderr.readline, ""),))
    reader.start()
    running = Process(started, 0, screen)
    try:
        running.wait_for("Ctrl-C")
        running.port = int(_LISTENS.findall("".join(screen))[0])
        yield running
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGTERM)
            try:
                started.wait(15)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait(15)
                raise
        reader.join(10)
        started.stderr.close()


# --- clients


def ask(
    port: int, path: str = "/v1/chat/completions", body: Any = None, method: str = "POST",
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes]:  # fmt: skip
    """One request on a new connection."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        given = json.dumps(body if body is not None else chat()) if method == "POST" else None
        connection.request(method, path, given, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def chat(model: str = "m", *, stream: bool = False) -> dict[str, Any]:
    """A Chat Completions request."""
    return {"model": model, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}


def raw(port: int, data: bytes) -> socket.socket:
    """A connection on which bytes were sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(data)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes; then this side does."""
    pieces: list[bytes] = []
    with connection, suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def http(path: str, body: Any = None, *, more: str = "") -> bytes:
    """A request as bytes."""
    data = b"" if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{more}content-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


# --- servers behind

ANSWER: dict[str, Any] = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "Hello"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}  # fmt: skip


async def answering(request: web.Request) -> web.StreamResponse:
    """A Chat server that answers at once."""
    body = await request.json()
    if not body.get("stream"):
        return web.json_response(ANSWER)
    return await streaming(request, [b"Hel", b"lo"])


async def streaming(
    request: web.Request, words: list[bytes], before_last: Any = None
) -> web.StreamResponse:
    """A Chat stream that may wait before its last word."""
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    head = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    for number, word in enumerate(words):
        if number == len(words) - 1 and before_last is not None:
            await before_last()
        delta = b'[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % word
        await response.write(head + delta)
    end = b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    await response.write(head + end)
    return response
