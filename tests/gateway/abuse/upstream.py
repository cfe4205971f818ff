"""A raw-socket server behind the gateway that misbehaves as the model's name says."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, Self

from dragoman.model.parts import Text
from tests.gateway.answers import body_of, frames_of, said
from tests.wire import every_place

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
    """Register a behaviour."""
    BEHAVIOURS[function.__name__] = function
    return function


class HostileUpstream:
    """Listens on its own port until closed; each connection has a thread."""

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
                name, _, number = asked.how.partition("_number_")
                if number:
                    odd(asked, connection, int(number))
                else:
                    BEHAVIOURS.get(name, good)(asked, connection)
                if asked.how != "good":
                    return

    def _wait(self, asked: Asked, connection: socket.socket) -> None:
        """Send a part, then wait until the gateway gives up."""
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
    """A correct answer."""
    _send(asked, at, _whole(asked))


def odd(asked: Asked, at: socket.socket, number: int) -> None:
    """A recorded answer with one wrong value in it: the one of that number."""
    _send(asked, at, every_place.odd_answer(asked.back, number, is_stream=asked.stream))


SECRET = "secret-of-the-upstream-0815"
"""What no client may see: a provider's text may quote anything."""


def _chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


@behaviour
def closes(_asked: Asked, _at: socket.socket) -> None:
    """Close without an answer."""


@behaviour
def garbage(_asked: Asked, at: socket.socket) -> None:
    """Bytes that aren't HTTP."""
    at.sendall(f"\x16\x03\x01 {SECRET} \0\xff\r\n\r\n".encode("latin-1") * 50)


@behaviour
def old_http(asked: Asked, at: socket.socket) -> None:
    """A version that does not exist."""
    at.sendall(b"HTTP/7.3 200 OK\r\n\r\n" + _whole(asked))


@behaviour
def endless_head(_asked: Asked, at: socket.socket) -> None:
    """Endless headers."""
    at.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        at.sendall(b"x-more: %s\r\n" % (b"y" * 8000))


@behaviour
def endless_1xx(_asked: Asked, at: socket.socket) -> None:
    """Endless interim responses."""
    while True:
        at.sendall(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 100)


@behaviour
def early_hints(asked: Asked, at: socket.socket) -> None:
    """Interim responses, then the answer."""
    at.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
    good(asked, at)


@behaviour
def injected_header(asked: Asked, at: socket.socket) -> None:
    """Header values that try to inject headers."""
    body = _whole(asked)
    more = (
        f"content-length: {len(body)}",
        "x-request-id: a\rset-cookie: b=c",
        "request-id: \0\xff",
    )
    at.sendall(_head("200 OK", _type_of(asked), *more) + body)


@behaviour
def odd_headers(asked: Asked, at: socket.socket) -> None:
    """Valid headers of a provider that are not for our clients."""
    more = (
        "set-cookie: a=b",
        f"server: {SECRET}",
        "x-request-id: \xe9\xff",
        "connection: keep-alive",
    )
    _send(asked, at, _whole(asked), *more)


@behaviour
def redirects(asked: Asked, at: socket.socket) -> None:
    """A redirect to another server, which would get the body and the key."""
    where = f"location: http://127.0.0.1:{at.getsockname()[1]}/trap"  # here: it would be noticed
    _send(asked, at, SECRET.encode(), where, status="307 Moved")


@behaviour
def trailing(asked: Asked, at: socket.socket) -> None:
    """More than the answer: a second one, as if it had been requested."""
    body = _whole(asked)
    head = _head("200 OK", _type_of(asked), f"content-length: {len(body)}")
    at.sendall(head + body + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")


@behaviour
def cut_length(asked: Asked, at: socket.socket) -> None:
    """Fewer bytes than the content length."""
    body = _whole(asked)
    at.sendall(_head("200 OK", _type_of(asked), f"content-length: {len(body) + 9}") + body[:-20])


@behaviour
def cut_chunks(asked: Asked, at: socket.socket) -> None:
    """No last chunk."""
    body = _whole(asked)
    head = _head("200 OK", _type_of(asked), "transfer-encoding: chunked")
    at.sendall(head + _chunked(body[: len(body) // 2]))


@behaviour
def bad_chunks(asked: Asked, at: socket.socket) -> None:
    """Chunks without a length."""
    head = _head("200 OK", _type_of(asked), "transfer-encoding: chunked")
    at.sendall(head + b"-5\r\n" + SECRET.encode() + b"\r\n0\r\n\r\n")


@cache
def _packed(start: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    packed = packer.compress(start + b'{"x":"')
    piece = b"0" * (1 << 20)
    return packed + b"".join(packer.compress(piece) for _ in range(512)) + packer.flush()


@behaviour
def bomb(asked: Asked, at: socket.socket) -> None:
    """A small answer that expands to half a gigabyte."""
    start = b"data: " if asked.stream and asked.back != "ollama" else b""
    _send(asked, at, _packed(start), "content-encoding: gzip")


@behaviour
def unknown_encoding(asked: Asked, at: socket.socket) -> None:
    """An encoding that was not requested."""
    _send(asked, at, SECRET.encode(), "content-encoding: rot13")


@behaviour
def html(_asked: Asked, at: socket.socket) -> None:
    """An HTML page of some proxy."""
    body = f"<html>{SECRET}</html>".encode()
    at.sendall(_head("200 OK", "text/html", f"content-length: {len(body)}") + body)


@behaviour
def empty(asked: Asked, at: socket.socket) -> None:
    """Nothing, with status 200."""
    _send(asked, at, b"")


@behaviour
def no_content(_asked: Asked, at: socket.socket) -> None:
    """A status without a body."""
    at.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


@behaviour
def no_json(asked: Asked, at: socket.socket) -> None:
    """Frames that aren't JSON."""
    end = b"\n\n"
    _send(
        asked, at, (b"data: {" + SECRET.encode() + end) if asked.stream else b"{" + SECRET.encode()
    )


@behaviour
def wrong_json(asked: Asked, at: socket.socket) -> None:
    """JSON of another form."""
    body = json.dumps([{"choices": SECRET, "content": 5, "candidates": {}, "message": []}]).encode()
    framed = body if asked.back == "ollama" else b"data: " + body + b"\n\n"
    _send(asked, at, framed + b"\n" if asked.stream else body)


@behaviour
def no_utf8(asked: Asked, at: socket.socket) -> None:
    """Invalid UTF-8."""
    body = _whole(asked).replace(b"Old", b"\xff\xfe")
    _send(asked, at, body)


@behaviour
def deep(asked: Asked, at: socket.socket) -> None:
    """Endless nesting."""
    body = b'{"a":' * 100_000
    framed = body if asked.back == "ollama" else b"data: " + body + b"\n\n"
    _send(asked, at, framed + b"\n" if asked.stream else body)


@behaviour
def hidden_error(asked: Asked, at: socket.socket) -> None:
    """An error in an answer with status 200."""
    error: Any = {"error": {"message": "oops", "param": SECRET, "code": 500, "status": "INTERNAL"}}
    if asked.back == "anthropic":
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "oops"}}
    if asked.back == "ollama":
        error = {"error": "oops", "code": SECRET}
    body = json.dumps(error).encode()
    if asked.stream:
        body = body + b"\n" if asked.back == "ollama" else b"event: error\ndata: " + body + b"\n\n"
    _send(asked, at, body)


@behaviour
def quoting_error(asked: Asked, at: socket.socket) -> None:
    """An error that quotes the key and the address."""
    quoted = {"error": {"message": asked.head.decode(), "type": SECRET, "code": SECRET}}
    _send(asked, at, json.dumps(quoted).encode(), status="400 Bad")


@behaviour
def huge_error(_asked: Asked, at: socket.socket) -> None:
    """A huge error."""
    at.sendall(_head("500 Oops", "application/json", "connection: close"))
    for _ in range(2048):
        at.sendall(b"x" * 65536)


@behaviour
def endless_frame(asked: Asked, at: socket.socket) -> None:
    """A line or a text that never ends."""
    at.sendall(_head("200 OK", _type_of(asked), "connection: close"))
    at.sendall(b'data: {"x":"' if asked.stream else b'{"x":"')
    while True:
        at.sendall(b"y" * 65536)


@behaviour
def comments(asked: Asked, at: socket.socket) -> None:
    """Comments and empty lines around the frames, which are allowed."""
    filler = b"\n" * 50 if asked.back == "ollama" else b": ping\n\n" * 50
    body = filler + filler.join(_frames(asked)) + filler if asked.stream else _whole(asked)
    _send(asked, at, body)


@behaviour
def stalls(asked: Asked, at: socket.socket) -> None:
    """The beginning of an answer, then nothing."""
    body = _whole(asked)
    at.sendall(_head("200 OK", _type_of(asked), f"content-length: {len(body)}") + body[:40])
    select.select([at], [], [], 20)


@behaviour
def silent(_asked: Asked, at: socket.socket) -> None:
    """No answer."""
    select.select([at], [], [], 20)


@behaviour
def large(asked: Asked, at: socket.socket) -> None:
    """An answer of sixteen megabytes, whole or in many frames."""
    text = "x" * (16 << 20 if not asked.stream else 65536)
    frames = frames_of(asked.back, said(Text(text)))
    body = body_of(asked.back, said(Text(text)))
    if asked.stream:
        [long] = [frame for frame in frames if len(frame) > len(text)]
        at_frame = frames.index(long)
        body = b"".join([*frames[:at_frame], *([long] * 256), *frames[at_frame + 1 :]])
    _send(asked, at, body)
