"""A request under way in the gateway: what came, who asks, and what to note about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.gateway.endpoints import Endpoint
from dragoman.gateway.http import Call
from dragoman.gateway.records import RequestRecord
from dragoman.gateway.state import Gateway

if TYPE_CHECKING:
    from dragoman.gateway.keys import KeyRecord
    from dragoman.gateway.responses.connections import Connection
    from dragoman.gateway.upstream_task import UpstreamTask

NOT_CAPTURED = frozenset({"page", "page-api"})
"""What the page itself asks: no client's request, and it may show keys."""
_LEFT = 499  # nginx's number for a client that closed its connection


class InboundRequest:
    """One request, from its headers to its record."""

    __slots__ = (
        "_task", "call", "connection", "endpoint", "error", "exchange", "gateway", "interruption",
        "is_disconnected", "key", "method", "peer", "query", "received", "request_body", "route",
        "routed",
    )  # fmt: skip

    def __init__(self, gateway: Gateway, call: Call, endpoint: Endpoint, method: str) -> None:
        self.gateway = gateway
        self.call = call
        self.endpoint = endpoint
        self.method = method
        self.query: bytes = b""
        self.peer = ""
        """The client's address."""
        self.key: KeyRecord | None = None
        self.route: str | None = None
        self.exchange: UpstreamTask | None = None
        self.error: DragomanError | None = None
        self.connection: Connection | None = None
        """The WebSocket that it came over, with what it remembers."""
        self.is_disconnected = False
        """Whether the client closed the connection."""
        self.interruption: DragomanError | None = None
        """Why the gateway itself ended the request before its time."""
        self.received: float | None = None
        """When the body was there, and when the route was known."""
        self.routed: float | None = None
        self.request_body: bytes | None = None
        self._task = asyncio.current_task()

    async def body(self) -> bytes:
        """The request's body, within the limits. From here on, a client that leaves is noticed."""
        server = self.gateway.config.server
        body = await self.call.body(server.max_body, server.body_timeout)
        self.call.watch(self._leave)
        self.received = perf_counter()
        if server.keep_bodies and self.endpoint.kind not in NOT_CAPTURED:
            self.request_body = body[: server.keep_bodies]
            self.call.keep(server.keep_bodies)
        return body

    async def pieces(self, most: int) -> AsyncIterator[bytes]:
        """The body as it comes, of at most so many bytes; each piece within `body_timeout`."""
        async for piece in self.call.pieces(most, self.gateway.config.server.body_timeout):
            yield piece
        self.call.watch(self._leave)

    def _leave(self) -> None:
        """The client has left: whatever is done for it stops, the request to the model first."""
        self.is_disconnected = True
        if self._task is not None:
            self._task.cancel()

    def interrupt(self, error: DragomanError) -> None:
        """End the request; the client is told why, as far as it can be told anything."""
        if self.interruption is None and not self.is_disconnected and not self.call.is_over:
            self.interruption = error
            if self._task is not None:
                self._task.cancel()

    def uncancel(self) -> None:
        """The task was cancelled only for its request; it has to tell about it."""
        if self._task is not None:
            self._task.uncancel()

    @property
    def path(self) -> str:
        """The path with its query, without the key that may stand in it."""
        if not self.query:
            return self.call.path
        kept = [each for each in self.query.split(b"&") if not each.startswith(b"key=")]
        query = b"&".join(kept).decode("latin-1")
        return f"{self.call.path}?{query}" if query else self.call.path

    def record(self) -> RequestRecord:
        """What is known of it, now that it is over."""
        call, exchange = self.call, self.exchange
        # Clients close their connection at the last word of a stream: they miss nothing.
        is_disconnected = self.is_disconnected and not (
            exchange is not None and exchange.is_complete
        )
        made = RequestRecord(
            self.endpoint.kind,
            self.endpoint.front,
            _LEFT if is_disconnected else call.status,
            perf_counter() - call.began,
            None if call.first_byte is None else call.first_byte - call.began,
            self.route,
            key=None if self.key is None else self.key.id,
            sent=call.sent,
            error=None if self.error is None else type(self.error).__name__,
            left=is_disconnected,
            steps=self._steps(),
            request_body=self.request_body,
            answer_body=call.kept,
        )
        if exchange is not None:
            made.provider, made.model = exchange.provider, exchange.model
            made.usage, made.cost = exchange.usage, exchange.cost
            made.losses = tuple([loss.path for loss in exchange.losses])
            made.repairs = tuple([repair.rule for repair in exchange.repairs])
            made.attempts, made.passes = exchange.attempts, exchange.passes
            made.cached = exchange.cached
            made.stream = exchange.stream
            made.tried = tuple([
                (provider, model, at - call.began, error)
                for provider, model, at, error in exchange.tried
            ])  # fmt: skip
            if exchange.error is not None:
                made.error = type(exchange.error).__name__
        return made

    def _steps(self) -> tuple[tuple[str, float], ...]:
        """When each of the layers was done."""
        exchange, began = self.exchange, self.call.began
        times = [("received", self.received), ("routed", self.routed)]
        if exchange is not None:
            times += [("translated", exchange.translated), ("heard", exchange.response_began)]
        return tuple([(name, at - began) for name, at in times if at is not None])


Handler = Callable[[InboundRequest], Awaitable[None]]
