"""A connection as uvicorn's server starts, counts and ends it, and the handover of WebSockets.

Uvicorn has protocols of its own, which are private and change with its releases. What is used here
is what its server and its `Config` hand to any protocol class; `uvicorn_check` tries it at start.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

HIGH_WATER = 64 * 1024
"""Bytes of a body that wait for their reader before the client has to wait."""


class Flow:
    """Who waits for whom: the client until the body is read, or we until it has read."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_reading = True
        self.write_paused = False
        self._writable = asyncio.Event()
        self._writable.set()

    async def drain(self) -> None:
        """Wait until the client has read most of what was written."""
        await self._writable.wait()

    def pause_reading(self) -> None:
        """Let the client wait."""
        if self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Let `drain` wait."""
        self.write_paused = True
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let `drain` return."""
        self.write_paused = False
        self._writable.set()


class Connection(asyncio.Protocol):
    """An HTTP/1.1 connection: a parser that calls the subclass, and requests one after another."""

    transport: asyncio.Transport
    flow: Flow
    parser: HttpRequestParser
    scope: dict[str, Any]

    def __init__(
        self, config: Any, server_state: Any, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:  # fmt: skip
        """As uvicorn's server calls it."""
        if not config.loaded:
            config.load()
        self.config, self.server_state, self.app_state = config, server_state, app_state
        self.app = config.loaded_app
        self.loop = asyncio.get_running_loop() if _loop is None else _loop
        self.server: tuple[str, int | None] | None = None
        self.client: tuple[str, int] | None = None
        self.scheme = "http"
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.expect_100_continue = False
        self.cycle: Any = None
        """The last request and its response; None before the first."""
        self.pipeline: deque[tuple[Any, Any]] = deque()
        """Requests that wait for the current one: their cycles and applications."""
        self._new_parser()

    def _new_parser(self) -> None:
        self.parser = HttpRequestParser(self)
        # A client that closes may have sent more requests than the one that is answered last.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The connection is open."""
        self.server_state.connections.add(self)
        self.transport = transport
        self.flow = Flow(transport)
        self.server = _address(transport, "sockname")
        self.client = _address(transport, "peername")
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed: whoever waits for it goes on."""
        self.server_state.connections.discard(self)
        self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        del self.parser  # it refers to the connection: both would wait for the garbage collector

    def eof_received(self) -> None:
        """The client sends no more; what it has sent may still be answered."""

    def pause_writing(self) -> None:
        """The client doesn't read fast enough."""
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        self.flow.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        try:
            self.parser.feed_data(data)
        except HttpParserError:
            self.on_invalid()
        except HttpParserUpgrade as upgrade:
            if self.is_websocket():
                self._hand_over()
            else:
                self.on_ignored_upgrade(upgrade.args[0])

    # --- what uvicorn's server calls

    def shutdown(self) -> None:
        """Close once the response in progress is sent."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    # --- requests

    def start(self, cycle: Any, app: Any) -> None:
        """Run a request in a task that the server waits for when it stops."""
        task = self.loop.create_task(cycle.run(app))
        self.server_state.tasks.add(task)
        task.add_done_callback(self.server_state.tasks.discard)

    def on_invalid(self) -> None:
        """The parser can't read what was received."""
        raise NotImplementedError

    def on_ignored_upgrade(self, parsed: int) -> None:
        """The request asked for another protocol, which it doesn't get; `parsed` bytes are read."""
        raise NotImplementedError

    def is_websocket(self) -> bool:
        """Whether the request is the handshake of a WebSocket, and there is who speaks it."""
        asked: dict[bytes, bytes] = {}
        for name, value in self.headers:  # of repeated headers the last
            asked[name] = value.lower()
        options = [each.strip() for each in asked.get(b"connection", b"").split(b",")]
        return (
            b"upgrade" in options
            and asked.get(b"upgrade") == b"websocket"
            and b"sec-websocket-key" in asked
            and self.parser.get_method() == b"GET"
            and self.config.ws_protocol_class is not None
        )

    def _hand_over(self) -> None:
        """Let uvicorn's WebSocket protocol have the connection, beginning with this request."""
        self.server_state.connections.discard(self)
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b" % each for each in self.headers]
        protocol = self.config.ws_protocol_class(
            config=self.config, server_state=self.server_state, app_state=self.app_state
        )
        protocol.connection_made(self.transport)
        protocol.data_received(b"\r\n".join([*lines, b"", b""]))
        self.transport.set_protocol(protocol)


def _address(transport: asyncio.Transport, name: str) -> Any:
    """The host and port of one end; None if it has none, as a socket in the file system."""
    found: Any = transport.get_extra_info(name)
    if found is None:
        connected: socket.socket | None = transport.get_extra_info("socket")
        try:
            if connected is not None:
                found = getattr(connected, f"get{name}")()
        except OSError:  # it is closed already
            return None
    return (str(found[0]), int(found[1])) if isinstance(found, (tuple, list)) else None
