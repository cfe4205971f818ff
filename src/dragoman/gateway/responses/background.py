"""Background responses: generated without a waiting client, and fetched later.

The worker that generates a response writes all progress to the store, so that any worker can
return, stream or cancel it. Each write expects the version of the previous write; another version
means that the response was cancelled or deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic, time
from typing import Any

from dragoman.errors import Conflict, DragomanError, NotFound, Overloaded, ServerError
from dragoman.gateway.chat import answer
from dragoman.gateway.http import Call
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.responses.creating import Creation
from dragoman.gateway.responses.frames import data_in
from dragoman.gateway.responses.lifecycle import blank, failed
from dragoman.gateway.responses.replaying import replay
from dragoman.gateway.responses.store import ResponseStore
from dragoman.gateway.responses.storing_sink import END
from dragoman.gateway.sessions import HEADER
from dragoman.model.jsontext import dumps, loads

_FLUSH_INTERVAL, _CHECK_INTERVAL, _HEARTBEAT_INTERVAL = 0.25, 1.0, 15.0
"""Seconds between writes of events, checks of the store, and heartbeats."""
_SESSION = HEADER.encode()
_MAX_EVENT_BYTES = 32 * 1024 * 1024
_STOPPED = ServerError("the server stopped before the response was complete", status=500)


class _GoneError(Exception):
    """The response was cancelled or deleted."""


async def run_in_background(inbound: InboundRequest, creation: Creation) -> None:
    """Stores the response as queued, starts to generate it, and returns it to the client."""
    gateway, store = inbound.gateway, creation.state.responses
    assert store is not None  # noqa: S101 - background responses require a store
    if len(gateway.background) >= gateway.config.server.max_concurrent:
        msg = "the maximum number of background responses is running; try again later"
        raise Overloaded(msg, status=503, retry_after=5.0)
    body = blank(creation.client_request, creation.id, creation.says, "queued")
    version = await store.add(creation.id, creation.stored_request(time()), body)
    run = _Run(inbound, creation, store, body, version)
    gateway.background.start(creation.id, run.work())
    if creation.client_request.stream:
        await replay(inbound, store, creation.id, after=-1)
    else:
        await inbound.call.respond(200, {"content-type": "application/json"}, dumps(body))


class _Run:
    """One background response; also the sink of its output."""

    def __init__(
        self, inbound: InboundRequest, creation: Creation, store: ResponseStore,
        body: dict[str, Any], version: int,
    ) -> None:  # fmt: skip
        self._inbound = inbound
        self._creation = creation
        self._store = store
        self._body = body
        self._version = version
        self._id = creation.id
        headers = [each for each in inbound.call.headers if each[0] == _SESSION]
        self._call = Call({"path": inbound.call.path, "headers": headers}, _never, _nowhere)
        self._writing = asyncio.Lock()
        self._events: list[str] = []
        self._count = self._size = 0
        self._is_over = False

    # --- the work

    async def work(self) -> None:
        """Generates the response and stores its outcome."""
        client = self._inbound
        inbound = InboundRequest(client.gateway, self._call, client.endpoint, "POST")
        inbound.key = client.key
        ticking = asyncio.get_running_loop().create_task(self._tick(asyncio.current_task()))
        try:
            await self._replace({**self._body, "status": "in_progress"})
            await answer(inbound, self._creation.exchange(inbound, self))
        except _GoneError:
            inbound.is_disconnected = True
        except DragomanError as error:
            inbound.error = error
            await self._fail(error)
        except asyncio.CancelledError:  # by `cancel`, which has ended it already, or by shutdown
            inbound.is_disconnected = True
            await self._fail(_STOPPED)
        except Exception:  # noqa: BLE001 - any exception fails the response
            inbound.error = ServerError("the gateway failed", status=500)
            await self._fail(inbound.error)
        finally:
            ticking.cancel()
            client.gateway.notify(inbound.record())

    async def _fail(self, error: DragomanError) -> None:
        problem = failed(self._body, error)["error"]
        await self._store.end(self._id, "failed", error=problem)

    async def _tick(self, task: asyncio.Task[Any] | None) -> None:
        checked = beat = monotonic()
        while True:
            await asyncio.sleep(_FLUSH_INTERVAL)
            now = monotonic()
            try:
                if self._events:
                    await self._flush()
                if now - beat > _HEARTBEAT_INTERVAL:
                    beat = now
                    await self._replace(self._body)
                elif now - checked > _CHECK_INTERVAL:
                    checked = now
                    await self._check()
            except _GoneError:
                if task is not None:
                    task.cancel()
                return
            except DragomanError:
                continue  # the store may recover; otherwise the final write fails

    async def _check(self) -> None:
        async with self._writing:
            if not self._is_over and await self._store.version(self._id) != self._version:
                raise _GoneError

    # --- writing

    async def _replace(self, body: dict[str, Any]) -> None:
        async with self._writing:
            if self._is_over:
                return
            self._body = body
            try:
                self._version = await self._store.replace(self._id, body, expected=self._version)
            except (Conflict, NotFound):
                raise _GoneError from None

    async def _flush(self) -> None:
        async with self._writing:
            events, self._events = self._events, []
            if not events:
                return
            first, self._count = self._count, self._count + len(events)
            try:
                self._version = await self._store.add_events(
                    self._id, first, events, expected=self._version
                )
            except (Conflict, NotFound):
                raise _GoneError from None

    async def _finish(self, body: dict[str, Any]) -> None:
        """Stores the finished response, first in its conversation."""
        await self._check()
        await self._creation.join(body)
        await self._replace(body)
        self._is_over = True
        await self._flush()

    # --- the sink

    @property
    def has_begun(self) -> bool:
        """Whether output has started."""
        return self._call.has_begun

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Stores a response that is not streamed."""
        await self._finish(loads(body))
        await self._call.respond(status, headers, body)

    async def begin(self, headers: Mapping[str, str]) -> None:
        """See `Sink.begin`."""
        await self._call.begin(headers)

    async def write(self, data: bytes) -> None:
        """Stores events of the response."""
        await self._take(data)
        await self._call.write(data)

    async def end(self, data: bytes = b"") -> None:
        """Stores the last events."""
        await self._take(data)
        await self._call.end(data)

    async def _take(self, data: bytes) -> None:
        is_end = END.search(data) is not None
        self._size += len(data)
        if self._size <= _MAX_EVENT_BYTES:  # beyond that, only the final response is stored
            self._events += data_in(data)
        if is_end:
            await self._finish(loads(data_in(data)[-1])["response"])


async def _never() -> dict[str, Any]:
    """Waits forever: there is no client that could disconnect."""
    await asyncio.Event().wait()
    return {}


async def _nowhere(_message: dict[str, Any]) -> None:
    """Discards the message: there is no client."""
