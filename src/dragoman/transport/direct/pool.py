"""The transport: a pool of connections for each server."""

from __future__ import annotations

import asyncio
import builtins
import socket
import ssl
from collections import deque
from time import monotonic
from typing import Any, cast

import aiohappyeyeballs

from dragoman.transport import failures
from dragoman.transport.connections import trusted_authorities
from dragoman.transport.direct.connection import Connection, RequestHead, Server, request_head
from dragoman.transport.direct.response import DirectReply
from dragoman.transport.http import HttpTransport
from dragoman.transport.protocol import MIN_UPLOAD_RATE, HttpRequest, Reply, Timeouts

KEEP_ALIVE = 15.0
"""Seconds that a connection may be idle before it is closed; servers close theirs later."""
_MAX_HEADS = 512
_NEXT_ADDRESS = 0.25  # seconds before a host's next address is tried as well (RFC 8305)
_HeadKey = tuple[str, str, tuple[tuple[str, str], ...]]


class DirectTransport:
    """Requests over the network, for one event loop."""

    def __init__(self) -> None:
        self._others = HttpTransport(connections=0)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: dict[Server, deque[Connection]] = {}
        self._active: set[Connection] = set()
        self._heads: dict[_HeadKey, RequestHead] = {}
        self._tls: ssl.SSLContext | None = None
        self._cleaning: asyncio.TimerHandle | None = None

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """Send a request; returns once the reply's headers have arrived."""
        key = (request.method, request.url, tuple(request.headers.items()))
        head = self._heads.get(key) or self._head(key, request)
        if head.server is None or request.pieces is not None:
            return await self._others.open(request, timeouts)
        connection = self._reused(head.server) or await self._connected(
            head.server, timeouts.connect
        )
        body, limit = request.body or b"", timeouts.first_byte
        if limit is not None:
            limit += len(body) / MIN_UPLOAD_RATE
        response = connection.send(b"%b%d\r\n\r\n" % (head.start, len(body)), body, limit)
        self._active.add(connection)
        try:
            await response.head()
        except asyncio.CancelledError:
            connection.abort()
            raise
        return DirectReply(response, timeouts.between_chunks)

    async def close(self) -> None:
        """Close all connections."""
        if self._cleaning is not None:
            self._cleaning.cancel()
            self._cleaning = None
        for connection in [*self._active, *(each for kept in self._idle.values() for each in kept)]:
            connection.abort()
        self._idle.clear()
        await self._others.close()

    def _head(self, key: _HeadKey, request: HttpRequest) -> RequestHead:
        if len(self._heads) >= _MAX_HEADS:
            self._heads.clear()
        head = self._heads[key] = request_head(request)
        return head

    # --- connections

    def _reused(self, server: Server) -> Connection | None:
        """The most recently used idle connection, so that the others can time out."""
        if self._loop is not asyncio.get_running_loop():
            self._adopt_loop()
            return None
        kept = self._idle.get(server)
        while kept:
            connection = kept.pop()
            if connection.is_usable:
                return connection
        return None

    def _adopt_loop(self) -> None:
        """Drop all connections: they belong to another event loop."""
        self._loop = asyncio.get_running_loop()
        self._idle.clear()
        self._active.clear()
        self._cleaning = None

    def release(self, connection: Connection, *, keep: bool) -> None:
        """A response is complete, or the connection is lost."""
        self._active.discard(connection)
        if keep and self._loop is connection.loop:
            self._idle.setdefault(connection.server, deque()).append(connection)
            if self._cleaning is None:
                self._cleaning = connection.loop.call_later(KEEP_ALIVE, self._clean)

    def _clean(self) -> None:
        """Close connections that have been idle for too long."""
        self._cleaning = None
        oldest = monotonic() - KEEP_ALIVE
        for server, kept in list(self._idle.items()):
            while kept and (kept[0].idle_since <= oldest or not kept[0].is_usable):
                kept.popleft().abort()
            if not kept:
                del self._idle[server]
        if self._idle and self._loop is not None:
            self._cleaning = self._loop.call_later(KEEP_ALIVE / 3, self._clean)

    async def _connected(self, server: Server, seconds: float | None) -> Connection:
        try:
            async with asyncio.timeout(seconds):
                return await self._connect(server)
        except builtins.TimeoutError:
            failure = failures.connect_timeout()
        except ssl.SSLCertVerificationError:
            failure = failures.untrusted_certificate()
        except ssl.SSLError:
            failure = failures.tls_failure()
        except socket.gaierror:
            failure = failures.unknown_host()
        except OSError:
            failure = failures.unreachable()
        raise failure

    async def _connect(self, server: Server) -> Connection:
        scheme, host, port = server
        loop = asyncio.get_running_loop()
        tls = self._tls_context()  # first, because it may raise
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(
            cast("Any", infos), happy_eyeballs_delay=_NEXT_ADDRESS, interleave=1
        )
        options: dict[str, Any] = {}
        if scheme == "https":
            options = {"ssl": tls, "server_hostname": host}
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _, connection = await loop.create_connection(
                lambda: Connection(self, server, loop), sock=sock, **options
            )
        except BaseException:
            sock.close()
            raise
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            given = trusted_authorities()
            default = ssl.create_default_context
            self._tls = given if isinstance(given, ssl.SSLContext) else default()
        return self._tls
