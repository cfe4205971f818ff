"""A connection to a server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from time import monotonic
from typing import Any, NamedTuple, Protocol, cast

import httptools
from yarl import URL

from dragoman._version import __version__
from dragoman.transport import failures
from dragoman.transport.connections import proxy_for
from dragoman.transport.direct.response import Response, Unreadable
from dragoman.transport.protocol import HttpRequest

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_RESERVED = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection"})
Server = tuple[str, str, int]
"""Scheme, host and port."""


class RequestHead(NamedTuple):
    """Where requests to one URL go, and what they begin with."""

    server: Server | None
    """None: the request needs `HttpTransport`."""
    start: bytes
    """Everything before the value of `content-length`, which comes last."""


def request_head(request: HttpRequest) -> RequestHead:
    """Build the head of a request; raises `ConfigError` if it is not valid HTTP."""
    try:
        url = URL(request.url)
        port = url.port
    except ValueError:
        raise failures.malformed_request() from None
    host, query = url.raw_host, url.raw_path_qs
    if url.scheme not in {"http", "https"} or not host or port is None:
        raise failures.malformed_request()
    if request.method not in {"GET", "POST"} or url.raw_user is not None:
        return RequestHead(None, b"")
    if proxy_for(request.url) is not None:
        return RequestHead(None, b"")
    try:
        lines = [
            f"{request.method} {query or '/'} HTTP/1.1".encode("ascii"),
            f"host: {url.host_port_subcomponent}".encode("ascii"),
            *_header_lines(request.headers),
        ]
    except UnicodeEncodeError:
        raise failures.malformed_request() from None
    if any(_CONTROL.search(line) for line in lines):
        raise failures.malformed_request()
    head = b"\r\n".join([*lines, b"content-length: "])
    return RequestHead((url.scheme, host, port), head)


def _header_lines(headers: Mapping[str, str]) -> list[bytes]:
    given: dict[bytes, bytes] = {
        b"accept": b"*/*",
        b"accept-encoding": b"identity",  # decompression costs more than it saves
        b"user-agent": f"dragoman/{__version__}".encode(),
    }
    for name, value in headers.items():
        raw = name.encode("latin-1", "replace").lower()
        if _NAME.fullmatch(raw) is None:
            raise failures.malformed_request()
        if raw not in _RESERVED:
            given[raw] = value.encode("utf-8", "surrogateescape").strip(b" \t")
    return [b"%b: %b" % pair for pair in given.items()]


_HIGH_WATER = 256 * 1024
"""Bytes of a body that may wait to be read before the connection stops receiving."""
_SWITCHING_PROTOCOLS, _FINAL = 101, 200


class Owner(Protocol):
    """The pool that a connection belongs to."""

    def release(self, connection: Connection, /, *, keep: bool) -> None:
        """The connection is free for the next request, or is gone."""


class Connection(asyncio.Protocol):
    """One connection to a server, which answers one request at a time."""

    def __init__(self, owner: Owner, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop
        self.idle_since = 0.0
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._response: Response | None = None  # the one that is being received
        self._is_paused = False

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, head: bytes, body: bytes, seconds: float | None) -> Response:
        """Send a request. Its response has so many seconds to begin."""
        transport = self._transport
        if transport is None:  # the server closed it as soon as it was open
            raise failures.unreachable()
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)
        response = self._response = Response(self, seconds)
        if len(body) < _HIGH_WATER:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return response

    def abort(self) -> None:
        """Close at once: closing properly would wait for a server that may not read."""
        self.fail(failures.lost("closed"))

    def fail(self, error: Exception) -> None:
        """Give up the connection and the response that is being received."""
        response, self._response = self._response, None
        if self._transport is not None:
            self._transport.abort()
        if response is not None:
            response.fail(error)
        self._owner.release(self, keep=False)

    def resume(self) -> None:
        """Receive again, after the reader has caught up."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server closed the connection, or the network failed."""
        self._transport = self._parser = None  # both refer to this object
        response = self._response
        if response is None:
            return
        if not response.has_head:
            kind = "ServerDisconnected" if exc is None else type(exc).__name__
            self.fail(failures.lost_before_response(kind))
        elif response.ends_with_connection and exc is None:
            self._complete(response)
        else:
            self.fail(failures.incomplete())

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        response = self._response
        if response is None:  # unsolicited: it must not be taken for the next response
            self.abort()
            return
        try:
            if not response.has_head:
                response.count_head(len(data))
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Unreadable):
            response.flush(len(data))
            if response.has_head:
                self.fail(failures.incomplete())
            else:
                self.fail(failures.not_http())
            return
        if response.flush(len(data)) > _HIGH_WATER and self._response is response:
            self._pause()

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    # --- called by the parser

    def on_message_begin(self) -> None:
        """Bytes after a complete response must not become part of the next one."""
        if self._response is None:
            raise Unreadable

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer after the body."""
        response = self._response
        if response is None:
            raise Unreadable
        if not response.has_head:
            response.raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete; 1xx statuses announce another one."""
        response, status = self._response, self._parser.get_status_code()
        if response is None or status == _SWITCHING_PROTOCOLS:
            raise Unreadable
        if status >= _FINAL:
            response.begin(status)

    def on_body(self, data: bytes) -> None:
        """A chunk of the body."""
        response = self._response
        if response is None:
            raise Unreadable
        response.pieces.append(data)

    def on_message_complete(self) -> None:
        """The response is complete; the connection may serve the next request."""
        response = self._response
        if response is not None and response.has_head:
            self._complete(response)

    def _complete(self, response: Response) -> None:
        self._response = None
        response.end()
        self.resume()
        keep = self.is_usable and self._parser.should_keep_alive()
        if keep:
            self.idle_since = monotonic()
        elif self._transport is not None:
            self._transport.abort()
        self._owner.release(self, keep=keep)
