"""The connections of each event loop, and how they are closed."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary, WeakSet, finalize

import aiohttp

from dragoman.errors import ConfigError
from dragoman.transport.protocol import Timeouts


def proxy_for(url: str) -> str | None:
    """The proxy for a URL (`HTTPS_PROXY`, `ALL_PROXY` …); None: a direct connection.

    Addresses on this machine never use a proxy, as in Go and browsers: the proxy could not reach
    models that run here.
    """
    proxies = getproxies()
    if not proxies:
        return None
    parts = urlsplit(url)
    found = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not found or _is_here(host) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return _usable(found)


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _usable(proxy: str) -> str:
    scheme, named, _ = proxy.partition("://")
    if not named:
        return f"http://{proxy}"
    if scheme.lower() not in {"http", "https"}:
        msg = "the proxy in the environment must start with http:// or https://"
        raise ConfigError(msg)
    return proxy


_AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_LINE = 64 * 1024  # bytes per header line: some gateways put whole traces there


class Closable(Protocol):
    """Something open on a session."""

    async def close(self) -> None:
        """Close it."""
        ...


class Way(NamedTuple):
    """How a request is sent."""

    session: aiohttp.ClientSession
    replies: WeakSet[Closable]
    """Open replies: `aiohttp` would let their readers wait forever."""
    proxy: str | None
    limits: aiohttp.ClientTimeout


class _Connector(aiohttp.TCPConnector):
    """A connector that closes connections immediately.

    aiohttp's own would first wait until everything is sent: a server that doesn't read would hold
    the socket of a cancelled request forever.
    """

    def _release(self, key: Any, protocol: Any, **options: Any) -> None:
        if options.get("should_close") and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, **options)

    def drop(self) -> None:
        """Close all connections now, without waiting."""
        self._close(abort_ssl=True)


class _Session:
    """One loop's connections, and cached proxies."""

    def __init__(self, connections: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.connector = _Connector(limit=connections, ssl=trusted_authorities())
        self.session = aiohttp.ClientSession(
            connector=self.connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_LINE,
            max_field_size=_LINE,
        )
        self.replies: WeakSet[Closable] = WeakSet()
        self.proxies: dict[str, str | None] = {}
        self.limits: dict[Timeouts, aiohttp.ClientTimeout] = {}
        self._keeper = _until_the_loop_ends(self)
        with suppress(StopIteration):
            anext(self._keeper).send(None)  # registers it with the loop
        _held.add(self)

    async def close(self) -> None:
        await self._keeper.aclose()


async def _until_the_loop_ends(own: _Session) -> AsyncGenerator[None]:
    """Closes an unclosed session: `asyncio.run` finalises all generators before the loop ends."""
    try:
        yield
    finally:
        for reply in list(own.replies):
            await reply.close()
        await own.session.close()
        _held.discard(own)


# Keeps them alive: one collected while its loop ends would be finalised by an unawaited task.
_held: set[_Session] = set()


def _forget_ended() -> None:
    for own in [own for own in _held if own.session.closed or own.loop.is_closed()]:
        _held.discard(own)


class Sessions:
    """One session per event loop."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Session] = WeakKeyDictionary()
        finalize(self, _drop, self._by_loop)

    def way(self, url: str, timeouts: Timeouts) -> Way:
        """How to reach an address from the running loop."""
        loop = asyncio.get_running_loop()
        own = self._by_loop.get(loop)
        if own is None or own.session.closed:
            self._forget_ended_loops()
            _forget_ended()
            own = self._by_loop[loop] = _Session(self._connections)
        origin = url[: url.find("/", 8)]
        try:
            proxy = own.proxies[origin]
        except KeyError:
            proxy = own.proxies[origin] = proxy_for(url)
        limits = own.limits.get(timeouts)
        if limits is None:
            limits = own.limits[timeouts] = aiohttp.ClientTimeout(
                sock_connect=timeouts.connect, sock_read=timeouts.first_byte
            )
        return Way(own.session, own.replies, proxy, limits)

    async def close(self) -> None:
        """Close the connections of the running loop."""
        own = self._by_loop.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.close()

    def _forget_ended_loops(self) -> None:
        # A session refers to its loop, and would keep it alive forever.
        for loop in [loop for loop in list(self._by_loop) if loop.is_closed()]:
            self._by_loop.pop(loop, None)


def _drop(by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Session]) -> None:
    """Close what nobody closed, on loops that still run; called at the latest when Python exits."""
    for loop, own in list(by_loop.items()):
        if loop.is_running() and not own.session.closed:
            with suppress(RuntimeError):  # it ended at this moment
                loop.call_soon_threadsafe(own.connector.drop)


def trusted_authorities() -> ssl.SSLContext | bool:
    """The trusted certificate authorities: from the environment, or the system's."""
    for variable in _AUTHORITIES:
        if path := os.environ.get(variable):
            try:
                return ssl.create_default_context(cafile=path)
            except (OSError, ssl.SSLError):
                problem = f"{variable} must name a readable file of certificates"
            raise ConfigError(problem)
    return True
