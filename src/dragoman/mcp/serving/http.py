"""Serves over streamable HTTP: without a token on this machine, with one elsewhere."""

from __future__ import annotations

import ipaddress
import logging
import socket
from hmac import compare_digest
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.errors import ConfigError
from dragoman.model.jsontext import dumps

PATH = "/mcp"
TOKEN = "DRAGOMAN_MCP_TOKEN"  # noqa: S105 - the name of the variable
_MIN_TOKEN = 16
_SHUTDOWN = 2  # seconds for pending responses; streams of older clients never end
_MAX_SESSIONS = 1000
_MAX_CONNECTIONS = 500
PATIENCE = 60.0
"""Seconds that a client may take to send a request."""
_INVALID = 400
_HTTP_PORT = 80
_QUOTING = b"Validation error"
_OVERRIDDEN = "on_tick", "shutdown"


class Place(NamedTuple):
    """The address to listen on."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse `HOST:PORT`, or a port alone, on this machine."""
        host: str | None
        try:
            parts = urlsplit(f"//127.0.0.1:{text}" if text.isdecimal() else f"//{text}")
            host, port = parts.hostname, parts.port
            is_more = bool(parts.path or parts.query or parts.fragment or parts.username)
        except ValueError:  # invalid port, or an incomplete address
            host, port, is_more = None, None, True
        if not host or port is None or is_more:
            msg = "--http takes HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000"
            raise ConfigError(msg)
        return cls(host, port)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def url(self) -> str:
        """The URL for clients."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{PATH}"


def checked_token(place: Place, token: str | None) -> str | None:
    """The token that clients must send; raises if one is required and missing."""
    if token is None and not place.is_loopback:
        msg = (
            f"on a network address, clients must send a bearer token: set one in ${TOKEN}, or"
            " listen on 127.0.0.1"
        )
        raise ConfigError(msg)
    if token is not None and (len(token) < _MIN_TOKEN or not token.isascii()):
        msg = f"${TOKEN} must have at least {_MIN_TOKEN} ASCII characters"
        raise ConfigError(msg)
    return token


def app_of(server: Server[Any], place: Place, token: str | None) -> ASGIApp:
    """The server as an ASGI application."""
    hosts = ["127.0.0.1", "localhost", "[::1]"]
    # Web pages can make other names resolve to this machine (DNS rebinding): on loopback, only its
    # own names are accepted. Elsewhere the names are unknown, and the token protects us. The pages
    # of other servers on this machine have no business here either: an origin includes its port.
    origins = [f"http://{host}:{place.port}" for host in hosts]
    if place.port == _HTTP_PORT:
        origins += [f"http://{host}" for host in hosts]  # browsers leave it out
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=place.is_loopback,
        allowed_hosts=[name for host in hosts for name in (host, f"{host}:*")],
        allowed_origins=origins,
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, host=place.host,
        max_sessions=_MAX_SESSIONS,
    )  # fmt: skip
    discreet = _Discreet(app)
    return discreet if token is None else _Guard(discreet, token)


class _Discreet:
    """Removes details from the SDK's errors about invalid requests: they quote the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message | None = None

        async def told(message: Message) -> None:
            nonlocal start
            if message.get("status") == _INVALID:
                start = message  # sent with the body, whose length is in it
                return
            if start is not None:
                if _QUOTING in message.get("body", b""):
                    start, message = _without_details(start, message)
                await send(start)
                start = None
            await send(message)

        await self._app(scope, receive, told)


def _without_details(start: Message, message: Message) -> tuple[Message, Message]:
    error = {"code": INVALID_REQUEST, "message": "the body is not a JSON-RPC 2.0 message"}
    body = dumps({"jsonrpc": "2.0", "id": None, "error": error})
    kept = [each for each in start["headers"] if each[0].lower() != b"content-length"]
    headers = [*kept, (b"content-length", str(len(body)).encode())]
    return {**start, "headers": headers}, {**message, "body": body}


class _Guard:
    """Rejects requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_allowed(scope):
            headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = sent[0].partition(b" ") if len(sent) == 1 else (b"", b"", b"")
        return scheme.lower() == b"bearer" and compare_digest(token.strip(), self._token)


def listening_socket(place: Place) -> tuple[socket.socket, Place]:
    """A listening socket and its address: port 0 picks a free one."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((place.host, place.port))
        listening.listen()  # clients can connect from here on, and wait until we serve
    except BaseException:
        listening.close()
        raise
    return listening, place._replace(port=listening.getsockname()[1])


async def serve_http(app: ASGIApp, listening: socket.socket, server: Server[Any]) -> None:
    """Serve until a signal arrives, which is then raised again."""
    if not all(hasattr(uvicorn.Server, name) for name in _OVERRIDDEN):
        msg = (  # slow clients would not be dropped, and nothing would say so
            f"the installed uvicorn {uvicorn.__version__} doesn't work with this server; install"
            " one that does: pip install --upgrade 'dragoman[gateway,mcp]'"
        )
        raise ConfigError(msg)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on",
        timeout_graceful_shutdown=_SHUTDOWN, server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
    )  # fmt: skip
    await _Uvicorn(config, server).serve(sockets=[listening])


class _Uvicorn(uvicorn.Server):
    """Drops slow clients, and shuts down without waiting for event streams."""

    def __init__(self, config: uvicorn.Config, server: Server[Any]) -> None:
        super().__init__(config)
        self._server = server
        self._waiting: dict[Any, tuple[Any, float]] = {}

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if counter % 10 == 0:
            self._drop_slow(monotonic())
        return await super().on_tick(counter)

    def _drop_slow(self, now: float) -> None:
        """Drop connections on which the same request is incomplete for too long."""
        waiting = {}
        for each in self.server_state.connections:
            cycle: Any = getattr(each, "cycle", None)  # of its last request
            if cycle is None or cycle.response_complete or cycle.more_body:
                before, since = self._waiting.get(each, (cycle, now))
                waiting[each] = cycle, since if before is cycle else now
        self._waiting = waiting
        for each, (_, since) in waiting.items():
            if now - since > PATIENCE:
                each.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then finish pending responses, up to the timeout."""
        entry = self._server.get_request_handler("subscriptions/listen")
        if entry is not None and isinstance(entry.handler, ListenHandler):
            entry.handler.close()
        log = logging.getLogger("uvicorn.error")
        log.disabled = True  # it would log the connections that it cuts off
        try:
            await super().shutdown(sockets)
        finally:
            log.disabled = False
