"""Responses in the background: answered whether or not the client waits, and asked for later.

The worker that answers writes what becomes of it into the store, and nowhere else: any worker can
tell about it, stream it, or cancel it. Each write expects the version that the last one made, so
that who finds another one knows that somebody has cancelled or deleted the response.
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
from dragoman.gateway.responses.keeping import END
from dragoman.gateway.responses.lifecycle import blank, failed
from dragoman.gateway.responses.replaying import replay
from dragoman.gateway.responses.store import ResponseStore
from dragoman.gateway.sessions import HEADER
from dragoman.model.jsontext import dumps, loads

_TICK, _LOOK, _SIGN = 0.25, 1.0, 15.0
"""Seconds: between two writes of events, two looks at the store, two signs of life."""
_SESSION = HEADER.encode()
_MOST_EVENTS = 32 * 1024 * 1024
_STOPPED = ServerError("the server stopped while it answered", status=500)


class _GoneError(Exception):
    """Somebody has cancelled or deleted the response: nobody wants the answer."""


async def run_in_background(inbound: InboundRequest, creation: Creation) -> None:
    """Store the response as queued, begin to answer it, and tell the client."""
    gateway, store = inbound.gateway, creation.places.responses
    assert store is not None  # noqa: S101 - nothing runs in the background without
    if len(gateway.background) >= gateway.config.server.max_concurrent:
        msg = "as many responses run in the background as may; try again soon"
        raise Overloaded(msg, status=503, retry_after=5.0)
    body = blank(creation.client_request, creation.id, creation.says, "queued")
    version = await store.add(creation.id, creation.asked(time()), body)
    run = _Run(inbound, creation, store, body, version)
    gateway.background.start(creation.id, run.work())
    if creation.client_request.stream:
        await replay(inbound, store, creation.id, after=-1)
    else:
        await inbound.call.respond(200, {"content-type": "application/json"}, dumps(body))


class _Run:
    """One response that is answered in the background; also the sink of its answer."""

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
        """Answer, and write down how it ends."""
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
        except asyncio.CancelledError:  # by `cancel`, then it is over already; or the server stops
            inbound.is_disconnected = True
            await self._fail(_STOPPED)
        except Exception:  # noqa: BLE001 - whatever it is, the response has failed
            inbound.error = ServerError("the gateway failed", status=500)
            await self._fail(inbound.error)
        finally:
            ticking.cancel()
            client.gateway.notify(inbound.record())

    async def _fail(self, error: DragomanError) -> None:
        said = failed(self._body, error)["error"]
        await self._store.end(self._id, "failed", error=said)

    async def _tick(self, task: asyncio.Task[Any] | None) -> None:
        looked = signed = monotonic()
        while True:
            await asyncio.sleep(_TICK)
            now = monotonic()
            try:
                if self._events:
                    await self._flush()
                if now - signed > _SIGN:
                    signed = now
                    await self._replace(self._body)
                elif now - looked > _LOOK:
                    looked = now
                    await self._look()
            except _GoneError:
                if task is not None:
                    task.cancel()
                return
            except DragomanError:
                continue  # the store may come back; the end of the answer tells

    async def _look(self) -> None:
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
        """The answer is there: its conversation has it before anybody is told."""
        await self._look()
        await self._creation.join(body)
        await self._replace(body)
        self._is_over = True
        await self._flush()

    # --- the sink of the answer

    @property
    def has_begun(self) -> bool:
        """Whether something of the answer is there."""
        return self._call.has_begun

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """The answer in one piece."""
        await self._finish(loads(body))
        await self._call.respond(status, headers, body)

    async def begin(self, headers: Mapping[str, str]) -> None:
        """See `Sink.begin`."""
        await self._call.begin(headers)

    async def write(self, data: bytes) -> None:
        """Events of the answer."""
        await self._take(data)
        await self._call.write(data)

    async def end(self, data: bytes = b"") -> None:
        """The last events."""
        await self._take(data)
        await self._call.end(data)

    async def _take(self, data: bytes) -> None:
        is_end = END.search(data) is not None
        self._size += len(data)
        if self._size <= _MOST_EVENTS:  # beyond that, the answer alone is kept
            self._events += data_in(data)
        if is_end:
            await self._finish(loads(data_in(data)[-1])["response"])


async def _never() -> dict[str, Any]:
    """Nobody is there who could leave."""
    await asyncio.Event().wait()
    return {}


async def _nowhere(_message: dict[str, Any]) -> None:
    """Nobody is there to be told."""
