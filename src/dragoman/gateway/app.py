"""The gateway as an ASGI application: routes, authenticates and answers each request."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dragoman.errors import (
    AllFailed,
    AuthenticationError,
    DragomanError,
    InvalidRequest,
    Overloaded,
    ServerError,
)
from dragoman.gateway.clients import group_of
from dragoman.gateway.endpoints import CHAT, Endpoint, endpoint_at, front_of
from dragoman.gateway.guard import presented_key
from dragoman.gateway.handlers import HANDLERS
from dragoman.gateway.http import Call, Disconnected, Receive, Scope, Send
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import LARGE
from dragoman.gateway.responses.connections import TurnMemory
from dragoman.gateway.state import Gateway
from dragoman.wire.front import Front

if TYPE_CHECKING:
    from dragoman.gateway.keys import KeyRecord
    from dragoman.gateway.responses.connections import Connection

LOG = logging.getLogger("dragoman.gateway")
_UNKNOWN = Endpoint("unknown", CHAT, frozenset())
_NO_KEY = "the request has no API key: send a gateway key in the usual header of the API"
_PUBLIC = frozenset({"root", "health", "ready", "page"})
"""Endpoints that need no key: they reveal nothing."""
_SHARED = frozenset({"models", "model", "hosted"})
"""Endpoints whose path several APIs share."""


class App:
    """Serves a `Gateway` to an ASGI server."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.turns = TurnMemory()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope: an HTTP request, a WebSocket or the server's lifespan."""
        match scope["type"]:
            case "http":
                await self.http(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                await self._websocket(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        from dragoman.gateway.responses.websocket import Socket

        await Socket(self, scope, receive, send).serve()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.gateway.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def http(
        self, scope: Scope, receive: Receive, send: Send, connection: Connection | None = None
    ) -> None:
        """Serve one request that arrived over HTTP or on a WebSocket."""
        gateway, call = self.gateway, Call(scope, receive, send)
        prefix = gateway.config.server.path_prefix
        if prefix and call.path.startswith(f"{prefix}/"):
            call.path = call.path[len(prefix) :]
        endpoint = endpoint_at(call.path) or _UNKNOWN
        inbound = InboundRequest(gateway, call, _for_shared_path(endpoint, call), scope["method"])
        inbound.query = scope["query_string"]
        inbound.peer = gateway.clients.of((scope.get("client") or ("",))[0], scope["headers"])
        inbound.connection = connection
        gateway.in_flight.add(inbound)
        try:
            with gateway.envelopes.signing():
                await self._serve(inbound)
        finally:
            gateway.in_flight.discard(inbound)
            inbound.release()
            call.unwatch()
            gateway.notify(inbound.record())
            exchange = inbound.exchange
            drop_frames(inbound.error, None if exchange is None else exchange.error)
            if call.received > LARGE:
                gateway.memory.soon()

    async def _serve(self, inbound: InboundRequest) -> None:
        """Always respond, whatever fails. A disconnect also cancels the upstream request."""
        try:
            gateway = self.gateway
            if gateway.keys is None or inbound.endpoint.kind not in _PUBLIC:
                inbound.key = await self.identify(inbound.call, inbound.query, inbound.peer)
            self._check(inbound)
            await HANDLERS[inbound.endpoint.kind](inbound)
        except Disconnected:
            inbound.is_disconnected = True
        except asyncio.CancelledError:
            if not inbound.is_disconnected and inbound.interruption is None:
                raise
            inbound.uncancel()
            if inbound.interruption is not None:
                await self._abort(inbound, inbound.interruption)
        except DragomanError as error:
            await self._refuse(inbound, error)
        except Exception as error:  # noqa: BLE001 - one failed request must not stop the server
            _log_failure(error)
            await self._refuse(inbound, ServerError("the gateway failed", status=500))

    def _check(self, inbound: InboundRequest) -> None:
        """Raise if the endpoint can't serve a request, or too many are in progress."""
        gateway, endpoint = self.gateway, inbound.endpoint
        if endpoint.kind not in HANDLERS:
            msg = "no endpoint at this path; the documentation lists all endpoints"
            raise InvalidRequest(msg, status=404)
        if inbound.method not in endpoint.methods:
            inbound.call.more_headers["allow"] = ", ".join(sorted(endpoint.methods))
            msg = f"this path only accepts {', '.join(sorted(endpoint.methods))}"
            raise InvalidRequest(msg, status=405)
        if gateway.active > gateway.config.server.max_concurrent:
            msg = "the gateway has reached its limit of concurrent requests; try again soon"
            raise Overloaded(msg, status=503, retry_after=1.0)

    async def identify(self, call: Call, query: bytes, peer: str) -> KeyRecord | None:
        """Return the key of a request, None without a key store; raise if it isn't admitted."""
        keys = self.gateway.keys
        if keys is None:
            self.gateway.origin_guard.check(call)
            return None
        shown = presented_key(call, query)
        if shown is None:
            raise AuthenticationError(_NO_KEY, status=401, code="missing_api_key")
        return keys.recall(shown) or await keys.authenticate(shown, group_of(peer))

    async def _abort(self, inbound: InboundRequest, error: DragomanError) -> None:
        """Report to the client why the gateway ended its request, in the stream if it has begun."""
        exchange, call = inbound.exchange, inbound.call
        is_stream = exchange is not None and exchange.stream
        if exchange is not None and is_stream and call.has_begun and not call.is_over:
            inbound.error = error
            await exchange.abort(error)
        else:
            await self._refuse(inbound, error)

    async def _refuse(self, inbound: InboundRequest, error: DragomanError) -> None:
        """Send an error in the client's dialect; close the connection if the response has begun."""
        inbound.error = error
        if inbound.call.has_begun:
            if not inbound.call.is_over:
                raise _ConnectionAborted from None
            return
        if inbound.endpoint.kind == "page-api":
            from dragoman.gateway.page.api import refuse

            await refuse(inbound, error)
            return
        encoded = Front(inbound.endpoint.front).error(error)
        await inbound.call.respond(encoded.status, encoded.headers, encoded.to_bytes())


def drop_frames(*errors: BaseException | None) -> None:
    """Remove the frames from errors that were reported, and from their causes.

    They hold the request, which holds the error: it would stay in memory, with its body, until the
    garbage collector runs.
    """
    seen: set[int] = set()  # by id: errors of middleware may refer to each other, or lack a hash
    waiting = [*errors]
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = None
        waiting += (error.__cause__, error.__context__)
        if isinstance(error, AllFailed):
            waiting += error.causes


def _log_failure(error: Exception) -> None:
    """Log the error type and its location; message and traceback may quote client content."""
    LOG.error("a request failed with %s %s", type(error).__name__, _location(error))


def _location(error: Exception) -> str:
    """The file and line where an error was raised."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f"at {last.tb_frame.f_code.co_filename}:{last.tb_lineno}"


def _for_shared_path(endpoint: Endpoint, call: Call) -> Endpoint:
    """Set the dialect by the request's headers where several APIs share a path."""
    if endpoint.kind == "unknown":
        return endpoint._replace(front=front_of(call.path, call.headers))
    if endpoint.kind not in _SHARED or endpoint.front != CHAT:
        return endpoint
    return endpoint._replace(front=front_of("", call.headers))


class _ConnectionAborted(Exception):  # noqa: N818 - only the server catches it
    """The response has begun and can't be ended properly: the server closes the connection."""
