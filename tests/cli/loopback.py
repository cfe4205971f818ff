"""A provider on loopback, in threads of its own, and terminals: for the commands that talk."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread, Timer
from typing import Any

DRAGOMAN = [sys.executable, "-m", "dragoman.cli"]


@dataclass(frozen=True)
class Came:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass
class Goes:
    """What goes back: JSON, or pieces; `hangs` leaves the rest unsaid."""

    body: Any = None
    status: int = 200
    pieces: Sequence[bytes] | None = None
    hangs: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Vendor(ThreadingHTTPServer):
    """A running server: what it was asked, and whether somebody hung up."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Came], Goes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.came: list[Came] = []
        self.asked = Event()
        self.left = Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are the point of some tests."""


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
                self.connection.recv(1)  # returns when the client hangs up
            vendor.left.set()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@contextmanager
def serving(answer: Callable[[Came], Goes] | Goes) -> Generator[Vendor]:
    """A server that answers so, while the block runs."""
    vendor = Vendor(answer if callable(answer) else lambda _came: answer)
    thread = Thread(target=vendor.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield vendor
    finally:
        vendor.shutdown()
        vendor.server_close()
        thread.join()


# --- what OpenAI says


def said(text: str = "In Mostar.", finish: str = "stop", **fields: Any) -> Goes:
    """An answer of Chat Completions."""
    message = {"role": "assistant", "content": text, **fields}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    return Goes({"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice],
                 "usage": usage})  # fmt: skip


def streamed(*words: str, is_whole: bool = True, hangs: bool = False) -> Goes:
    """The same, word by word."""
    pieces = [_chunk({"content": word}, None) for word in words]
    if is_whole:
        pieces += [_chunk({}, "stop"), b"data: [DONE]\n\n"]
    return Goes(pieces=pieces, hangs=hangs)


def _chunk(delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def refused(status: int, code: str, quoted: str = "") -> Goes:
    """An error, with something in its message that must not get out."""
    error = {"message": f"no: {quoted}", "type": code, "code": code}
    return Goes({"error": error}, status, headers={"x-request-id": "req_7"})


def listed(*models: str) -> Goes:
    """A list of models."""
    return Goes({"object": "list", "data": [{"id": m, "object": "model"} for m in models]})


# --- terminals


def on_terminal(
    *arguments: str, typed: bytes = b"", environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The exit code of a command that has a terminal for all its streams, and what was seen."""
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
    with suppress(OSError):  # Linux says so when the other end is closed
        while piece := os.read(ours, 65536):
            seen += piece
    giving_up.cancel()
    os.close(ours)
    return process.wait(60), seen.decode().replace("\r\n", "\n")
