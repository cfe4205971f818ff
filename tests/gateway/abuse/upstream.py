"""A server behind the gateway on raw sockets: as bad as the name of the model asks for."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.gateway.answers import body_of, frames_of, said

_MODEL = re.compile(r"/models/([^:]+):(\w+)")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


class Asked(NamedTuple):
    """A request that the gateway made."""

    back: str
    how: str
    stream: bool
    head: bytes
    body: bytes


Behaviour = Callable[[Asked, socket.socket], None]
BEHAVIOURS: dict[str, Behaviour] = {}
"""By the part of the model's name behind the first dot."""


def behaviour(function: Behaviour) -> Behaviour:
    """Register a way to answer."""
    BEHAVIOURS[function.__name__] = function
    return function


class HostileUpstream:
    """Listens on a port of its own until closed; each connection has a thread."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.asked: list[Asked] = []
        self.cancelled = 0
        """How often the gateway closed a connection whose answer was not complete."""
        self.under_way = 0
        """Answers that wait for the gateway to leave."""
        self._lock = threading.Lock()
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_closed = True
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._is_closed:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(60)
        with connection, suppress(OSError):
            while (asked := _read(connection)) is not None:
                with self._lock:
                    self.asked.append(asked)
                if asked.how.startswith("waits"):
                    self._wait(asked, connection)
                    return
                BEHAVIOURS[asked.how](asked, connection)
                if asked.how != "good":
                    return

    def _wait(self, asked: Asked, connection: socket.socket) -> None:
        """Answer a part, then wait until the gateway gives up."""
        if asked.how != "waits":
            frames = _frames(asked)
            connection.sendall(_head("200 OK", _type_of(asked), "connection: close"))
            if asked.how == "waits_in_stream":
                connection.sendall(frames[0] + frames[1])
        with self._lock:
            self.under_way += 1
        ready, _, _ = select.select([connection], [], [], 60)
        with self._lock:
            self.under_way -= 1
            if ready and not _peeked(connection):
                self.cancelled += 1


def _peeked(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except OSError:
        return b""


def _read(connection: socket.socket) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    found = _LENGTH.search(head)
    length = 0 if found is None else int(found[1])
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            return None
        body += piece
    return _understood(head, body)


def _understood(head: bytes, body: bytes) -> Asked:
    path = head.split(b" ", 2)[1].decode()
    sent: Any = json.loads(body or b"{}")
    found = _MODEL.search(path)
    model = found[1] if found else str(sent.get("model", "m"))
    back, _, how = model.partition(".")
    if not how:
        back, how = "openai-chat", "good"
    is_stream = found[2].startswith("stream") if found else bool(sent.get("stream"))
    return Asked(back, how, is_stream, head, body)


# --- answers


def _type_of(asked: Asked) -> str:
    if not asked.stream:
        return "application/json"
    return "application/x-ndjson" if asked.back == "ollama" else "text/event-stream"


def _head(status: str, kind: str, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", *more, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _frames(asked: Asked) -> list[bytes]:
    sent = json.loads(asked.body) if asked.back == "openai-chat" else None
    return frames_of(asked.back, said(), sent)


def _whole(asked: Asked) -> bytes:
    return b"".join(_frames(asked)) if asked.stream else body_of(asked.back, said())


def _send(asked: Asked, at: socket.socket, body: bytes, *more: str, status: str = "200 OK") -> None:
    at.sendall(_head(status, _type_of(asked), f"content-length: {len(body)}", *more) + body)


@behaviour
def good(asked: Asked, at: socket.socket) -> None:
    """As a provider should."""
    _send(asked, at, _whole(asked))


def bytes_of(size: int) -> Iterator[bytes]:
    """Bytes without end, in pieces."""
    piece = b"x" * 65536
    for _ in range(size // len(piece)):
        yield piece
