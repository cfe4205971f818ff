"""A provider on loopback that runs in its own threads, and terminals, for the CLI tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

from dragoman.providers import registry
from dragoman.providers.provider import Provider
from dragoman.wire.target import Target

DRAGOMAN = [sys.executable, "-m", "dragoman.cli"]


@dataclass(frozen=True)
class Came:
    """A request that the server received."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The request body, parsed."""
        return json.loads(self.body)


@dataclass
class Goes:
    """A reply: JSON or chunks; with `hangs`, the connection stays open and the rest never comes."""

    body: Any = None
    status: int = 200
    pieces: Sequence[bytes] | None = None
    hangs: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Vendor(ThreadingHTTPServer):
    """A running server: the requests it received, and whether a client disconnected."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Came], Goes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.came: list[Came] = []
        self.asked = Event()
        self.left = Event()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: some tests disconnect on purpose."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        vendor = self.server
        assert isinstance(vendor, Vendor)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        came = Came(self.path, dict(self.headers), body)
        vendor.came.append(came)
        goes = vendor.answer(came)
        pieces = [json.dumps(goes.body).encode()] if goes.pieces is None else goes.pieces
        self.send_response(goes.status)
        kind = "application/json" if goes.pieces is None else "text/event-stream"
        for name, value in {"Content-Type": kind, **goes.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
        vendor.asked.set()
        if goes.hangs:
            with suppress(OSError):
                self.connection.recv(1)  # returns when the client disconnects
            vendor.left.set()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Log nothing."""


@contextmanager
def serving(answer: Callable[[Came], Goes] | Goes) -> Generator[Vendor]:
    """Serve these replies while the block runs."""
    vendor = Vendor(answer if callable(answer) else lambda _came: answer)
    thread = Thread(target=vendor.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield vendor
    finally:
        vendor.shutdown()
        vendor.server_close()
        thread.join()


# --- OpenAI's responses


def said(text: str = "In Mostar.", finish: str = "stop", **fields: Any) -> Goes:
    """A Chat Completions response."""
    message = {"role": "assistant", "content": text, **fields}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    return Goes({"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice],
                 "usage": usage})  # fmt: skip


def streamed(*words: str, is_whole: bool = True, hangs: bool = False) -> Goes:
    """The same response, streamed word by word."""
    pieces = [_chunk({"content": word}, None) for word in words]
    if is_whole:
        pieces += [_chunk({}, "stop"), b"data: [DONE]\n\n"]
    return Goes(pieces=pieces, hangs=hangs)


def _chunk(delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def refused(status: int, code: str, quoted: str = "") -> Goes:
    """An error response whose message holds something that must not be repeated."""
    error = {"message": f"no: {quoted}", "type": code, "code": code}
    return Goes({"error": error}, status, headers={"x-request-id": "req_7"})


def listed(*models: str) -> Goes:
    """A list of models."""
    return Goes({"object": "list", "data": [{"id": m, "object": "model"} for m in models]})


def acme(vendor: Vendor, name: str = "acme", **fields: Any) -> None:
    """Register a provider on loopback."""
    target = (Target(dialect="openai-chat"),)
    registry.register(Provider(name, target, f"{vendor.url}/v1", **fields))


def script(*steps: Any) -> str:
    """The name of a scripted model that gives these answers."""
    Path("play.json").write_text(json.dumps(steps))
    return "scripted:play.json"


# --- terminals


def on_terminal(
    *arguments: str, typed: bytes = b"", environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a command with a terminal for all its streams; returns its exit code and its output."""
    import pty  # which Windows lacks; other tests use the server there

    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*DRAGOMAN, *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "TERM": "xterm", **(environment or {})}, close_fds=True,
        )  # fmt: skip
    finally:
        os.close(theirs)
    giving_up = Timer(60, process.kill)
    giving_up.start()
    if typed:
        os.write(ours, typed)
    seen = b""
    with suppress(OSError):  # Linux raises this when the other end is closed
        while piece := os.read(ours, 65536):
            seen += piece
    giving_up.cancel()
    os.close(ours)
    return process.wait(60), seen.decode().replace("\r\n", "\n")
