"""A request and its response on a connection of `GatewayProtocol`.

Uvicorn's cycle speaks ASGI: a dictionary and a coroutine for every message. So does this one, but
`Call` sends most responses through its other methods, in a fraction of the time. They send headers
other than `connection`, `content-length` and `transfer-encoding`, which they set themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

if TYPE_CHECKING:
    from dragoman.gateway.protocol import GatewayProtocol

_NO_BODY = frozenset({204, 304})
_JOINED = 64 * 1024
"""Up to this size, a body is joined to its head: copying it costs less than another write."""


class Cycle(RequestResponseCycle):
    """Takes the place of uvicorn's cycle."""

    def __init__(self, protocol: GatewayProtocol, scope: Any, *, keep_alive: bool) -> None:
        super().__init__(
            scope=scope,
            transport=protocol.transport,
            flow=protocol.flow,
            logger=protocol.logger,
            access_logger=protocol.access_logger,
            access_log=False,
            default_headers=protocol.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=protocol.expect_100_continue,
            keep_alive=keep_alive,
            on_response=protocol.on_response_complete,
        )
        self.left: Callable[[], object] | None = None
        """Called when the client disconnects before its response is complete."""
        self.broken: tuple[int, str] | None = None
        """Status and reason, if the rest of the body can't be parsed."""

    def take_body(self) -> bytes | None:
        """The complete body; None: it has not arrived yet, or the client is gone."""
        if self.more_body or self.disconnected or self.response_complete:
            return None
        self.flow.resume_reading()
        self.message_event.clear()
        body = bytes(self.body)
        self.body = bytearray()
        return body

    async def respond(
        self, status: int, headers: Mapping[str, str], more: Mapping[str, str], body: bytes
    ) -> None:
        """Send a complete response."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        self.chunked_encoding = False
        head = self._head(status, {**headers, "content-length": str(len(body))}, more)
        if self.scope["method"] == "HEAD":
            self.transport.write(head)
        elif len(body) <= _JOINED:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        self._complete()

    async def begin(self, status: int, headers: Mapping[str, str], more: Mapping[str, str]) -> None:
        """Send the head of a response whose body is sent in chunks."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        self.chunked_encoding = self.scope["method"] != "HEAD" and status not in _NO_BODY
        self.transport.write(self._head(status, headers, more))

    def write(self, data: bytes) -> None:
        """Send a chunk; first wait for `flow.drain` if `flow.write_paused`."""
        if self.disconnected or not data:
            return
        if self.chunked_encoding:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self, data: bytes) -> None:
        """Send the last chunk, like `write`."""
        if self.disconnected:
            return
        if self.chunked_encoding:
            last = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n"
            self.transport.write(last)
        self._complete()

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _head(self, status: int, headers: Mapping[str, str], more: Mapping[str, str]) -> bytes:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = [STATUS_LINE[status]]
        for known, text in self.default_headers:
            lines += (known, b": ", text, b"\r\n")
        for name, value in headers.items():
            lines += (_field(name), _checked(value), b"\r\n")
        for name, value in more.items():
            lines += (_field(name), _checked(value), b"\r\n")
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"transfer-encoding: chunked\r\n\r\n" if self.chunked_encoding else b"\r\n")
        return b"".join(lines)


@lru_cache(256)
def _field(name: str) -> bytes:
    """The beginning of a header's line."""
    raw = name.encode("latin-1").lower()
    if HEADER_RE.search(raw):
        msg = "the name of a header is invalid"
        raise RuntimeError(msg)
    return raw + b": "


def _checked(value: str) -> bytes:
    """The value of a header, which must not end its line."""
    raw = value.encode("latin-1", "replace")
    if HEADER_VALUE_RE.search(raw):
        msg = "the value of a header is invalid"
        raise RuntimeError(msg)
    return raw
