"""A request that the gateway is serving: its connection, key, route and final record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.gateway.endpoints import Endpoint
from dragoman.gateway.http import Call
from dragoman.gateway.intake import BodyLimits
from dragoman.gateway.records import RequestRecord
from dragoman.gateway.state import Gateway
from dragoman.wire.error_reporting import bounded, reported

if TYPE_CHECKING:
    from dragoman.gateway.keys import KeyRecord
    from dragoman.gateway.responses.connections import Connection
    from dragoman.gateway.upstream_task import UpstreamTask

NOT_CAPTURED = frozenset({"page", "page-api"})
"""Endpoints whose bodies are never captured: the page's own requests may contain keys."""
_FREE = frozenset({"count"})
_CHARGED = _FREE | {"chat", "responses", "prompt", "embed"}
"""Endpoints whose requests are charged to a key, and those that are free of charge."""
SMALL = 16 * 1024
"""Bytes of a body that costs too little to ask the key store once more."""
_CLIENT_CLOSED = 499  # nginx's status for a client that closed its connection


class InboundRequest:
    """One request from its headers to its record, over HTTP or on a WebSocket."""

    query = b""
    peer = ""
    """The client's address."""
    key: KeyRecord | None = None
    route: str | None = None
    exchange: UpstreamTask | None = None
    error: DragomanError | None = None
    connection: Connection | None = None
    """The WebSocket connection it arrived on, with its state; None: plain HTTP."""
    is_disconnected = False
    """Whether the client closed the connection."""
    interruption: DragomanError | None = None
    """Why the gateway ended the request early, such as a timeout."""
    received: float | None = None
    """When the body was complete; `routed`: when the route was known."""
    routed: float | None = None
    request_body: bytes | None = None
    _held = 0
    """Bytes of its body that count as held by the worker."""

    def __init__(self, gateway: Gateway, call: Call, endpoint: Endpoint, method: str) -> None:
        self.gateway = gateway
        self.call = call
        self.endpoint = endpoint
        self.method = method
        self._task = asyncio.current_task()

    async def body(self, *, is_json: bool = True) -> bytes:
        """Read the body, within the limits. From then on, a disconnect cancels the request.

        A key with nothing left to spend is refused first, unless the body is small.
        """
        keys, key, kind = self.gateway.keys, self.key, self.endpoint.kind
        is_due = kind in _CHARGED and not self._has_small_body
        if is_due and keys is not None and key is not None:
            await keys.expect_open(key, is_free=kind in _FREE)
        server = self.gateway.config.server
        limits = BodyLimits(
            server.max_body, server.max_ratio, server.max_values if is_json else None
        )
        body = await self.call.body(limits, server.body_timeout, self._hold)
        self.call.watch(self._on_disconnect)
        self.received = perf_counter()
        if server.keep_bodies and self.endpoint.kind not in NOT_CAPTURED:
            self.request_body = body[: server.keep_bodies]
            self.call.keep(server.keep_bodies)
        return body

    def _hold(self, size: int) -> None:
        """Count a large body among those that the worker holds, until `release`."""
        key = None if self.key is None else self.key.id
        most = self.gateway.config.server.body_memory
        self.gateway.bodies.take(key, size - self._held, most)
        self._held = size

    def release(self) -> None:
        """The request is over: its body is not held any longer."""
        if self._held:
            self.gateway.bodies.give(None if self.key is None else self.key.id, self._held)
            self._held = 0

    @property
    def _has_small_body(self) -> bool:
        """Whether the body is read before the reservation, which refuses it just as well."""
        named = self.call.named
        length = named.get(b"content-length", b"")
        is_small = length.isdigit() and int(length[:20]) <= SMALL
        return is_small and b"content-encoding" not in named and self.connection is None

    async def pieces(self, most: int) -> AsyncIterator[bytes]:
        """Stream the body, up to `most` bytes; each chunk must arrive within `body_timeout`."""
        async for piece in self.call.pieces(most, self.gateway.config.server.body_timeout):
            yield piece
        self.call.watch(self._on_disconnect)

    def _on_disconnect(self) -> None:
        """The client disconnected: cancel all work for it, including the upstream request."""
        self.is_disconnected = True
        if self._task is not None:
            self._task.cancel()

    def interrupt(self, error: DragomanError) -> None:
        """Cancel the request; the client gets the error if the response isn't complete yet."""
        if self.interruption is None and not self.is_disconnected and not self.call.is_over:
            self.interruption = error
            if self._task is not None:
                self._task.cancel()

    def uncancel(self) -> None:
        """Clear the cancellation: the task still has to report it to the client and the log."""
        if self._task is not None:
            self._task.uncancel()

    @property
    def path(self) -> str:
        """The path with its query, without the `key` parameter."""
        if not self.query:
            return self.call.path
        kept = [each for each in self.query.split(b"&") if not each.startswith(b"key=")]
        query = b"&".join(kept).decode("latin-1")
        return f"{self.call.path}?{query}" if query else self.call.path

    def record(self) -> RequestRecord:
        """Build the record of the completed request."""
        call, exchange = self.call, self.exchange
        # Clients that disconnect after the last event of a stream have the complete response.
        is_disconnected = self.is_disconnected and not (
            exchange is not None and exchange.is_complete
        )
        made = RequestRecord(
            self.endpoint.kind,
            self.endpoint.front,
            _CLIENT_CLOSED if is_disconnected else call.status,
            perf_counter() - call.began,
            None if call.first_byte is None else call.first_byte - call.began,
            self.route,
            key=None if self.key is None else self.key.id,
            sent=call.sent,
            left=is_disconnected,
            steps=self._steps(),
            request_body=self.request_body,
            answer_body=call.kept,
        )
        if exchange is not None:
            made.provider, made.place = exchange.provider, exchange.place
            made.model = exchange.model
            made.usage, made.cost = exchange.usage, exchange.cost
            if exchange.losses:
                made.losses = tuple([loss.path for loss in exchange.losses])
            if exchange.repairs:
                made.repairs = tuple([repair.rule for repair in exchange.repairs])
            made.attempts, made.passes = exchange.attempts, exchange.passes
            made.cached = exchange.cached
            made.stream = exchange.stream
            made.tried = tuple([
                (provider, model, at - call.began, error)
                for provider, model, at, error in exchange.tried
            ])  # fmt: skip
        error = self.error
        if exchange is not None and exchange.error is not None:
            error = exchange.error
        if error is not None:
            made.error = type(error).__name__
            said = reported(error).detail
            if said and self.gateway.config.server.log_provider_errors:
                made.provider_error = bounded(said)
        return made

    def _steps(self) -> tuple[tuple[str, float], ...]:
        """The time at which each stage was completed, in seconds from the start."""
        exchange, began = self.exchange, self.call.began
        times = [("received", self.received), ("routed", self.routed)]
        if exchange is not None:
            times += ("translated", exchange.translated), ("heard", exchange.response_began)
        return tuple([(name, at - began) for name, at in times if at is not None])


Handler = Callable[[InboundRequest], Awaitable[None]]
