"""`/v1/responses` over a WebSocket: turns run one after the other, and each event is a message.

Each `response.create` is handled like the same HTTP request, including keys and limits; only the
framing differs. The connection remembers its latest responses, so that a client can continue them
even if nothing is stored (`connections`).
"""

from __future__ import annotations

import asyncio
import builtins
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import DragomanError, InvalidRequest, Overloaded
from dragoman.gateway.client_request import accepted_fields
from dragoman.gateway.endpoints import RESPONSES, endpoint_at
from dragoman.gateway.http import Call, Receive, Scope, Send
from dragoman.gateway.inbound import SMALL
from dragoman.gateway.intake import BodyLimits, Intake
from dragoman.gateway.large_bodies import LARGE, translated_aside
from dragoman.gateway.responses.connections import Connection
from dragoman.gateway.responses.turns import TurnInProgress, error_event, object_in, turn_body
from dragoman.wire.dialect import dialect
from dragoman.wire.front import Front

if TYPE_CHECKING:
    from dragoman.gateway.app import App
    from dragoman.gateway.keys import KeyRecord

_FRONT = RESPONSES
_MAX_STREAM_ID = 256
_MAX_QUEUED = 16
"""Requests queued behind the one in progress."""
_LIFETIME: Final = 3600.0
"""Maximum seconds a connection lasts, as at OpenAI; a turn in progress is not interrupted."""
_TOO_BIG, _GOING_AWAY, _UNSUPPORTED = 1009, 1001, 1003
_LIMIT = InvalidRequest(
    "Responses websocket connection limit reached (60 minutes). Create a new websocket connection"
    " to continue.",
    status=400, code="websocket_connection_limit_reached",
)  # fmt: skip


class Socket:
    """One WebSocket connection."""

    idle: float = 900.0
    """Maximum idle seconds between requests."""
    most_open: int = 20_000
    """Maximum connections per worker."""
    open_now = 0

    def __init__(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        self._app = app
        self._scope = scope
        self._receive = receive
        self._send = send
        server = app.gateway.config.server
        self._most = server.max_body
        self._limits = BodyLimits(server.max_body, server.max_ratio, server.max_values)
        self.connection = Connection(app.turns, None, self._most)
        self._call = Call(scope, receive, send)
        self._waiting: asyncio.Queue[TurnInProgress | None] = asyncio.Queue(_MAX_QUEUED)
        self._now: TurnInProgress | None = None
        self._queued = 0
        """Bytes of the requests that wait."""
        self._is_closed = False
        self._was_large = False

    async def serve(self) -> None:
        """Serves the connection until it closes."""
        if (await self._receive())["type"] != "websocket.connect":
            return
        try:
            await self._check()
        except DragomanError as error:
            await self._refuse(error)
            return
        Socket.open_now += 1
        turning = asyncio.get_running_loop().create_task(self._turn())
        try:
            await self._send({"type": "websocket.accept"})
            await self._listen()
        finally:
            Socket.open_now -= 1
            self._is_closed = True
            self._leave()
            self.connection.close()
            self._waiting.put_nowait(None)
            if self._was_large:
                self._app.gateway.memory.soon(is_cyclic=True)
            await turning  # not cancelled: `_leave` cancels the turn, which then records its end

    # --- the handshake

    async def _check(self) -> None:
        gateway, call = self._app.gateway, self._call
        key = await self._identified()
        self.connection.key = None if key is None else key.id
        prefix, path = gateway.config.server.path_prefix, call.path
        if prefix and path.startswith(f"{prefix}/"):
            path = path[len(prefix) :]
        found = endpoint_at(path)
        if found is None or found.kind != "responses":
            msg = "there is no WebSocket at this path"
            raise InvalidRequest(msg, status=404)
        if Socket.open_now >= self.most_open or gateway.is_draining:
            msg = "the gateway has reached its maximum number of connections; try again later"
            raise Overloaded(msg, status=503, retry_after=5.0)

    async def _identified(self) -> KeyRecord | None:
        call = self._call
        peer = self._app.gateway.clients.of((self._scope.get("client") or ("",))[0], call.headers)
        return await self._app.identify(call, self._scope["query_string"], peer)

    async def _refuse(self, error: DragomanError) -> None:
        """Rejects the handshake with an HTTP error; servers without that extension send 403."""
        if "websocket.http.response" not in self._scope.get("extensions", {}):
            await self._send({"type": "websocket.close", "code": 1008})
            return
        told = Front(_FRONT).error(error)
        headers = [(name.encode(), value.encode("latin-1")) for name, value in told.headers.items()]
        start = {"status": told.status, "headers": headers}
        await self._send({"type": "websocket.http.response.start", **start})
        await self._send({"type": "websocket.http.response.body", "body": told.to_bytes()})

    # --- incoming messages

    async def _listen(self) -> None:
        began = monotonic()
        while True:
            try:
                async with asyncio.timeout(self.idle):
                    message = await self._receive()
            except builtins.TimeoutError:
                if self._is_busy:
                    continue
                await self._close(_GOING_AWAY)
                return
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                await self._close(_UNSUPPORTED)
                return
            if len(text) > self._most:
                await self._close(_TOO_BIG)
                return
            if monotonic() - began > _LIFETIME and not self._is_busy:
                await self.tell_error(_LIMIT)
                await self._close(_GOING_AWAY)
                return
            self._was_large |= len(text) > LARGE
            await self._take(text)
            del message, text  # the next one may come much later

    @property
    def _is_busy(self) -> bool:
        return self._now is not None or not self._waiting.empty()

    async def _take(self, text: str) -> None:
        try:
            await self._expect_open(len(text))
            raw = await self._counted(text)
        except DragomanError as error:
            await self.tell_error(error)
            return
        event = await translated_aside(raw, object_in, raw)
        kind, stream_id = event.get("type"), event.get("stream_id")
        stream_id = (
            stream_id if isinstance(stream_id, str) and len(stream_id) <= _MAX_STREAM_ID else None
        )
        if kind == "response.create":
            try:  # while the text is known: what came twice is not seen in the object
                await translated_aside(raw, accepted_fields, dialect(_FRONT), raw)
                body = await translated_aside(raw, turn_body, event)
                if self._queued and self._queued + len(body) > self._most:
                    raise asyncio.QueueFull  # noqa: TRY301 - as if there were too many
                self._waiting.put_nowait(TurnInProgress(self, body, stream_id))
                self._queued += len(body)
            except DragomanError as error:
                await self.tell_error(error, stream_id)
            except asyncio.QueueFull:
                msg = (
                    f"at most {_MAX_QUEUED} requests can be queued on a connection, with"
                    f" {self._most:,} bytes"
                )
                await self.tell_error(Overloaded(msg, status=503), stream_id)
        elif kind == "response.cancel":
            await self._cancel(event.get("response_id"), stream_id)
        else:
            msg = "a message must be a JSON object of type response.create or response.cancel"
            await self.tell_error(InvalidRequest(msg, status=400, param="type"), stream_id)

    async def _expect_open(self, size: int) -> None:
        """Raise if the key has nothing left to spend, before anything of a long message is read."""
        keys = self._app.gateway.keys
        key = await self._identified() if keys is not None and size > SMALL else None
        if keys is not None and key is not None:
            await keys.expect_open(key)

    async def _counted(self, text: str) -> bytes:
        """The message as bytes, within the limits of a body."""
        intake = Intake(self._limits, None)
        await intake.take(text.encode("utf-8", "surrogatepass"))
        return intake.complete()

    async def _cancel(self, id: Any, stream_id: str | None) -> None:
        now = self._now
        if now is None or (id is not None and id != now.id):
            msg = "this response is not in progress on this connection"
            await self.tell_error(InvalidRequest(msg, status=404, param="response_id"), stream_id)
            return
        now.leave()

    # --- one turn after the other

    async def _turn(self) -> None:
        while (turn := await self._waiting.get()) is not None:
            self._now = turn
            self._queued -= turn.size
            scope = turn.scope(self._scope)
            # An interrupted response raises, to make an HTTP server close the connection.
            with suppress(Exception):
                await self._app.http(scope, turn.receive, turn.send, self.connection)
            with suppress(Exception):
                await turn.close()
            self._now = None

    def _leave(self) -> None:
        if self._now is not None:
            self._now.leave()
        while not self._waiting.empty():
            self._waiting.get_nowait()

    # --- outgoing messages

    async def tell(self, text: str) -> None:
        """Sends an event; does nothing after the connection has closed."""
        if self._is_closed:
            return
        try:
            await self._send({"type": "websocket.send", "text": text})
        except (OSError, RuntimeError):  # the client has disconnected; `_listen` will notice
            self._is_closed = True
            self._leave()

    async def tell_error(self, error: DragomanError, stream_id: str | None = None) -> None:
        """Sends an error event."""
        told = Front(_FRONT).error(error)
        await self.tell(error_event(told.status, told.body, told.headers, stream_id))

    async def _close(self, code: int) -> None:
        self._is_closed = True
        with suppress(RuntimeError, OSError):
            await self._send({"type": "websocket.close", "code": code})
