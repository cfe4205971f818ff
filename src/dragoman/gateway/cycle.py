"""A request and its response on a connection of `GatewayProtocol`.

ASGI takes a dictionary and a coroutine for every message. A cycle speaks it, but `Call` sends most
responses through its other methods, in a fraction of the time. They send headers other than
`connection`, `content-length` and `transfer-encoding`, which they set themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dragoman.gateway.asgi_cycle import NO_BODY, STATUS_LINE, AsgiCycle, header_line

if TYPE_CHECKING:
    from dragoman.gateway.protocol import GatewayProtocol

_JOINED = 64 * 1024
"""Up to this size, a body is joined to its head: copying it costs less than another write."""


class Cycle(AsgiCycle):
    """A request on one of our connections, and its response."""

    left: Callable[[], object] | None = None
    """Called when the client disconnects before its response is complete."""
    broken: tuple[int, str] | None = None
    """Status and reason, if the rest of the body can't be parsed."""
    _event: asyncio.Event | None = None
    _is_taken = False

    def __init__(
        self, protocol: GatewayProtocol, scope: Any, named: dict[bytes, bytes], *, keep_alive: bool
    ) -> None:
        self.scope = scope
        self.named = named
        """The request's headers by name; of repeated ones the first."""
        self.transport = protocol.transport
        self.flow = protocol.flow
        self.default_headers = protocol.server_state.default_headers
        self.on_response = protocol.on_response_complete
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = protocol.expect_100_continue
        self.body: Any = b""

    @property
    def message_event(self) -> asyncio.Event:
        """Whether `receive` has something to return; most requests never call it."""
        if self._event is None:
            self._event = asyncio.Event()
            has_body = not self._is_taken and bool(self.body or not self.more_body)
            if has_body or self.disconnected or self.response_complete or self.broken:
                self._event.set()
        return self._event

    def wake(self) -> None:
        """Let `receive` return."""
        if self._event is not None:
            self._event.set()

    def add(self, data: bytes) -> int:
        """Add a part of the body; returns the number of bytes that were not received yet."""
        if not self.body:
            self.body = data
        else:
            if type(self.body) is bytes:
                self.body = bytearray(self.body)
            self.body += data
        self.wake()
        return len(self.body)

    def take_body(self) -> bytes | None:
        """The complete body; None: it has not arrived yet, or the client is gone."""
        if self.more_body or self.disconnected or self.response_complete:
            return None
        self.flow.resume_reading()
        if self._event is not None:
            self._event.clear()
        body, self.body = self.body, b""
        self._is_taken = True
        return bytes(body)

    async def respond(
        self, status: int, headers: Mapping[str, str], more: Mapping[str, str], body: bytes
    ) -> None:
        """Send a complete response."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        self.chunked_encoding = False
        head = self._head(status, headers, more, b"content-length: %d\r\n" % len(body))
        if self.scope["method"] == "HEAD":
            self.transport.write(head)
        elif len(body) <= _JOINED:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        self.complete()

    async def begin(self, status: int, headers: Mapping[str, str], more: Mapping[str, str]) -> None:
        """Send the head of a response whose body is sent in chunks."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        self.chunked_encoding = self.scope["method"] != "HEAD" and status not in NO_BODY
        self.transport.write(self._head(status, headers, more, b""))

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
        self.complete()

    def complete(self) -> None:
        """The response is sent: close, or let the connection go on."""
        self.response_complete = True
        self.wake()
        if not self.keep_alive:
            self._hang_up()
        self.on_response()

    def _hang_up(self) -> None:
        """Close the connection, or only our side of it while the client is still sending.

        Closing all of it would discard what arrives, and with it a refusal that the client has not
        read yet. The rest of the body is ignored, and its end closes the connection.
        """
        if self.more_body and self.broken is None and self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _head(
        self, status: int, headers: Mapping[str, str], more: Mapping[str, str], length: bytes
    ) -> bytes:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = [STATUS_LINE[status]]
        for known, text in self.default_headers:
            lines += (known, b": ", text, b"\r\n")
        for name, value in headers.items():
            lines.append(_line(name, value) if len(value) < _SHORT else _made_line(name, value))
        lines.append(length)
        for name, value in more.items():
            lines.append(_made_line(name, value))
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"transfer-encoding: chunked\r\n\r\n" if self.chunked_encoding else b"\r\n")
        return b"".join(lines)


def _made_line(name: str, value: str) -> bytes:
    """The line of a header, whose value must not end it."""
    return header_line(name.encode("latin-1"), value.encode("latin-1", "replace"))


_line = lru_cache(1024)(_made_line)
"""Most responses have the same headers."""
_SHORT = 64
