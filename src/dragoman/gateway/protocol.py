"""HTTP/1.1 with limits on headers, and timeouts for slow or idle clients.

Each connection notes since when it waits, and a `Sweeper` checks all connections every second. A
timer per request would cost more than everything else in this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from httptools import parse_url

from dragoman.errors import InvalidRequest
from dragoman.gateway.asgi_cycle import STATUS_LINE
from dragoman.gateway.config.settings import ServerSettings
from dragoman.gateway.connection import HIGH_WATER, Connection
from dragoman.gateway.cycle import Cycle
from dragoman.gateway.endpoints import front_of
from dragoman.wire.front import Front

if TYPE_CHECKING:
    from dragoman.gateway.state import Gateway

MAX_HEADERS = 128
MAX_HEADER_BYTES = 64 * 1024
MAX_URL_BYTES = 16 * 1024
_MAX_PIPELINED = 8
KEEP_ALIVE = 75.0
"""Seconds that a connection may be idle; longer than clients keep idle connections."""
_HEADERS_TOO_LARGE, _URL_TOO_LONG, _TOO_SLOW, _BAD = 431, 414, 408, 400
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_BAD_REQUEST = "the request is not valid HTTP/1.1"
_PIPELINED_UPGRADE = "an upgrade can't be requested before the response to an earlier request"


class _Refusal(Exception):  # noqa: N818 - stops the parser, which then calls `send_400_response`
    """The request's headers exceed a limit."""


class GatewayProtocol(Connection):
    """A client's connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The connection is open."""
        super().connection_made(transport)
        self._refusal: tuple[int, str] | None = None
        self._head_bytes = 0
        self.idle_since: float | None = perf_counter()
        """Since when the client has sent nothing, at first or after a request."""
        self.head_since: float | None = None
        """Since when the request's headers are incomplete."""
        self.body_since: float | None = None
        """Since when the headers are complete and the body is not."""
        self.stalled: tuple[int, float] | None = None
        """Bytes that the client has not read, and since when it has read none."""
        self._is_upgrade = False
        self._earlier: list[Cycle] = []  # pipelined requests in progress before the current one
        self._data = b""  # the bytes being parsed
        self._again: bytes | None = None
        """A request without its `Upgrade` and what follows it, which are parsed next."""
        self._ignores_upgrade = False

    def connection_lost(self, exc: Exception | None) -> None:
        """The client disconnected: notify all of its requests."""
        super().connection_lost(exc)
        current: Any = self.cycle
        for cycle in (*self._earlier, current):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.wake()
                if cycle.left is not None:
                    cycle.left()

    @property
    def is_free(self) -> bool:
        """Whether no response is in progress."""
        cycle = self.cycle
        return cycle is None or bool(cycle.response_complete)

    # --- a request's headers

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; limits the headers even if they never end."""
        if self.head_since is None and self.body_since is None and self.is_free:
            self.head_since = perf_counter()
        self.idle_since = None
        self._parse(data)
        if self._again is not None:  # at most once: what follows can't be upgraded before its turn
            again, self._again = self._again, None
            self._parse(again)

    def _parse(self, data: bytes) -> None:
        self._data = data
        super().data_received(data)
        if self.head_since is not None and self._again is None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
                self.refuse(_HEADERS_TOO_LARGE, _headers_too_large())

    def on_message_begin(self) -> None:
        """A request begins."""
        self.url = b""
        self.headers = []
        self._trailer_bytes = 0
        if self.head_since is None:
            self.head_since = perf_counter()

    def on_url(self, url: bytes) -> None:
        """A part of the path and query."""
        self.url += url
        if len(self.url) > MAX_URL_BYTES:
            self._refusal = _URL_TOO_LONG, f"the URL is longer than {MAX_URL_BYTES:,} bytes"
            raise _Refusal

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; those after the body (trailers) are dropped: no check has seen them."""
        headers = self.headers
        if self.body_since is None and len(headers) < MAX_HEADERS:
            headers.append((name.lower(), value))
            return
        self._trailer_bytes += len(name) + len(value)
        if self.body_since is None or self._trailer_bytes > MAX_HEADER_BYTES:
            self._refuse_headers()

    def _refuse_headers(self) -> NoReturn:
        self._refusal = _HEADERS_TOO_LARGE, _headers_too_large()
        raise _Refusal

    def _check_size(self) -> None:
        """Limit the size of headers that arrived with the end of their head."""
        if sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            self._refuse_headers()

    def on_headers_complete(self) -> None:
        """The headers are complete: the request can be served."""
        if self._head_bytes + len(self._data) > MAX_HEADER_BYTES:
            self._check_size()
        if self.parser.should_upgrade():
            if not self.is_free:  # the bytes that follow would belong to another protocol
                self._refusal = _BAD, _PIPELINED_UPGRADE
                raise _Refusal
            if self._should_ignore_upgrade():
                self._ignores_upgrade = True
                return
        self.head_since = None
        self.body_since = perf_counter()
        self._head_bytes = 0
        parser: Any = self.parser
        app: Any = self.app
        version = parser.get_http_version()
        path, query = _parsed(self.url)
        scope: Any = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": path.encode("ascii"),
            "query_string": query,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
        }
        self.scope = scope
        self._is_upgrade = parser.should_upgrade() and self.is_websocket()
        if self._is_upgrade:
            return
        named = dict(reversed(self.headers))
        self.expect_100_continue = named.get(b"expect", b"").lower() == b"100-continue"
        before: Any = self.cycle
        keep_alive = version != "1.0" and parser.should_keep_alive()
        self.cycle = cycle = Cycle(self, scope, named, keep_alive=keep_alive)
        if before is None or before.response_complete:
            self.start(cycle, app)
            return
        self.pipeline.appendleft((cycle, app))
        self._earlier = [each for each in self._earlier if not each.response_complete]
        self._earlier.append(before)
        if len(self.pipeline) >= _MAX_PIPELINED:  # otherwise a disconnect would go unnoticed
            self.flow.pause_reading()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        cycle: Any = self.cycle
        if self._is_upgrade or cycle.response_complete:
            return
        if cycle.add(body) > HIGH_WATER:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """The body is complete."""
        if self._ignores_upgrade:
            return
        self.body_since = None
        cycle: Any = self.cycle
        if self._is_upgrade:
            return
        cycle.more_body = False
        if not cycle.response_complete:
            cycle.wake()
        elif not cycle.keep_alive:
            self.transport.close()

    def on_response_complete(self) -> None:
        """The response is sent: serve the next request, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self.start(*self.pipeline.pop())
        else:
            self.idle_since = perf_counter()

    # --- upgrades

    def _should_ignore_upgrade(self) -> bool:
        # CONNECT is an upgrade of its own, and refused as a method.
        return self.parser.get_method() != b"CONNECT" and not self.is_websocket()

    def on_ignored_upgrade(self, parsed: int) -> None:
        """Parse the request again without its `Upgrade`: httptools skips the body of one with it.

        Java's HTTP client asks for `h2c` with its first request, whatever the method.
        """
        if not self._ignores_upgrade:
            return
        self._ignores_upgrade = False
        version = self.parser.get_http_version().encode()
        head = b"".join((
            self.parser.get_method(), b" ", self.url, b" HTTP/", version, b"\r\n",
            *(b"%s: %s\r\n" % each for each in self.headers if each[0] != b"upgrade"), b"\r\n",
        ))  # fmt: skip
        self._new_parser()
        self._again = head + self._data[parsed:]

    # --- refusals

    def on_invalid(self) -> None:
        """The parser rejected the request: if only its body is broken, its handler reports it."""
        refusal = self._refusal or (_BAD, _BAD_REQUEST)
        cycle: Any = self.cycle
        if self.body_since is None or cycle is None or cycle.response_started:
            self.refuse(*refusal)
        else:
            cycle.broken = refusal  # `Call.body` raises it
            cycle.keep_alive = False
            cycle.wake()

    def refuse(self, status: int, reason: str) -> None:
        """Send an error and close; only close if another response was begun."""
        if self.is_free and self.body_since is None:
            self.transport.write(_answer(self._front(), status, reason))
        self.transport.close()
        since = self.head_since
        self.note_refusal(status, 0.0 if since is None else perf_counter() - since)

    def _front(self) -> str:
        """The dialect of the client, as far as its request was parsed."""
        url = b"" if self.head_since is None else self.url
        return front_of(url.decode("latin-1"), self.headers)

    def note_refusal(self, status: int, seconds: float) -> None:
        """Called if a request was refused before it was parsed; a hook for metrics."""

    def expire(self, now: float, limits: ServerSettings) -> None:
        """Close the connection if a timeout has expired."""
        if self.head_since is not None and now - self.head_since > limits.header_timeout:
            self.refuse(_TOO_SLOW, "the request headers did not arrive in time")
            self.head_since = None
        elif self.is_free and self.body_since and now - self.body_since > limits.body_timeout:
            self.transport.close()  # the response is sent, but the client keeps sending its body
        elif self.idle_since is not None and now - self.idle_since > KEEP_ALIVE:
            self.transport.close()
            self.idle_since = None
        self._drop_stalled(now, limits.send_timeout)

    def _drop_stalled(self, now: float, seconds: float) -> None:
        """Abort the connection of a client that stopped reading: closing it would wait."""
        size = self.transport.get_write_buffer_size()
        if not size:
            self.stalled = None
        elif self.stalled is None or self.stalled[0] != size:
            self.stalled = size, now
        elif now - self.stalled[1] > seconds:
            self.transport.abort()


def _parsed(url: bytes) -> tuple[str, bytes]:
    """The path, which may be escaped, and the query; raises if the URL is malformed."""
    if url[:1] == b"/" and b"#" not in url and url.isascii():
        path, _, query = url.partition(b"?")
    else:
        parsed = parse_url(url)
        path, query = parsed.path, parsed.query
    return path.decode("ascii"), query or b""


def _headers_too_large() -> str:
    return f"the request has more than {MAX_HEADERS} headers or {MAX_HEADER_BYTES:,} header bytes"


def _answer(front: str, status: int, reason: str) -> bytes:
    """An error response in a dialect."""
    encoded = Front(front).error(InvalidRequest(reason, status=status))
    body = encoded.to_bytes()
    headers = {**encoded.headers, "content-length": str(len(body)), "connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return b"".join((STATUS_LINE[status], lines.encode("latin-1"), b"\r\n", body))


class Sweeper:
    """Periodically ends connections and requests that exceed a timeout."""

    def __init__(
        self, gateway: Gateway, connections: Iterable[Any], *also: Callable[[], object]
    ) -> None:
        """`also` are further functions to call each time."""
        self._gateway = gateway
        self._connections = connections
        self._also = also

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(self._interval())
            self.sweep(perf_counter())

    def _interval(self) -> float:
        server = self._gateway.config.server
        limits = (server.header_timeout, server.send_timeout, server.request_timeout)
        return max(min(1.0, *(each / 4 for each in limits if each is not None)), 0.02)

    def sweep(self, now: float) -> None:
        """Check all connections and requests once."""
        server = self._gateway.config.server
        for each in tuple(self._connections):
            if isinstance(each, GatewayProtocol):  # WebSockets have pings
                each.expire(now, server)
        if server.request_timeout is not None:
            for inbound in tuple(self._gateway.in_flight):
                if now - inbound.call.began > server.request_timeout:
                    inbound.interrupt(_took_too_long(server.request_timeout))
        for function in self._also:
            function()


def _took_too_long(seconds: float) -> Any:
    from dragoman.errors import TimeoutError as TookTooLong

    return TookTooLong(f"the request took longer than {seconds:g} seconds")
