"""The connections to one server: one per event loop, opened when needed.

A connection is tied to its loop, and so are the user's callbacks. Blocking calls share the
connection of the background loop.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context
from copy import copy
from random import uniform
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, finalize

from dragoman.errors import ConnectError, DragomanError
from dragoman.mcp.connection import Connection
from dragoman.mcp.transports import Transport
from dragoman.model import portal

_ATTEMPTS = 3
_BACKOFF = 0.5  # seconds, doubled each time
_COOL_DOWN = 10.0  # seconds without further attempts
_AT_EXIT = 10.0

_log = logging.getLogger("dragoman.mcp")
for _name in ("mcp", "client"):
    # The SDK's log messages may quote anything, and would go to the terminal of programs without
    # logging configuration. Programs with one still get them.
    logging.getLogger(_name).addHandler(logging.NullHandler())


class _Place:
    """The state of a server on one loop."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.opening: asyncio.Task[Connection] | None = None
        self.was_open = False
        self.not_before = 0.0
        self.problem: DragomanError | None = None

    async def close(self) -> None:
        """End the connection, and any attempt to open one."""
        if self.opening is not None and not self.opening.done():
            self.opening.cancel()
            await asyncio.wait({self.opening})
        if self.connection is not None:
            await self.connection.close()
        self.connection, self.not_before = None, 0.0


_Places = WeakKeyDictionary[asyncio.AbstractEventLoop, _Place]
_open: WeakSet[Connections] = WeakSet()


class Connections:
    """The connections to a server."""

    def __init__(
        self,
        name: str,
        transport: Transport,
        options: Callable[[Connection], Mapping[str, Any]],
        start_timeout: float,
    ) -> None:
        self.name = name
        self._transport = transport
        self._options = options
        self._start_timeout = start_timeout
        self._lock = Lock()  # loops run on different threads
        self._places: _Places = WeakKeyDictionary()

    def close_with(self, owner: object) -> None:
        """Close all connections when the owner is collected."""
        finalize(owner, _let_go, self._places).atexit = False

    async def current(self) -> Connection:
        """The connection of the running loop, opened or reopened if necessary.

        A lost connection is retried several times, with exponential backoff and jitter. After that
        comes a pause, during which callers get the error at once.
        """
        place = self._place()
        if place.connection is not None and place.connection.is_open:
            return place.connection
        if place.opening is None or place.opening.done():
            if asyncio.get_running_loop().time() < place.not_before and place.problem is not None:
                raise copy(place.problem)
            place.opening = asyncio.create_task(self._opened(place), context=Context())
            place.opening.add_done_callback(_retrieve)
        # A caller that stops waiting must not cancel it for the others.
        return await asyncio.shield(place.opening)

    @property
    def in_flight(self) -> int:
        """Number of pending requests, on all loops."""
        with self._lock:
            places = [*self._places.values()]
        return sum(each.connection.in_flight for each in places if each.connection is not None)

    async def close(self) -> None:
        """Close all connections; those of other loops close asynchronously."""
        here = asyncio.get_running_loop()
        with self._lock:
            places = dict(self._places)
        for loop, place in places.items():
            if loop is not here:
                _drop(loop, place)
        if here in places:
            await places[here].close()

    def _place(self) -> _Place:
        loop = asyncio.get_running_loop()
        with self._lock:
            place = self._places.get(loop)
            if place is None:
                place = self._places[loop] = _Place()
                _open.add(self)
        return place

    async def _opened(self, place: _Place) -> Connection:
        attempts = _ATTEMPTS if place.was_open else 1
        for attempt in range(1, attempts + 1):
            connection = Connection(self.name, self._transport, self._options)
            try:
                await connection.open(self._start_timeout)
            except DragomanError as error:
                is_hopeless = not isinstance(error, ConnectError) or not error.retryable
                if is_hopeless or attempt == attempts:
                    place.problem = copy(error)
                    if place.was_open:
                        loop = asyncio.get_running_loop()
                        place.not_before = loop.time() + _COOL_DOWN
                    raise
            else:
                place.connection, place.was_open, place.problem = connection, True, None
                return connection
            _log.warning("reconnecting to an MCP server failed (attempt %d)", attempt)
            await asyncio.sleep(_BACKOFF * 2 ** (attempt - 1) * uniform(0.5, 1.5))  # noqa: S311 - jitter
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def close_at_exit(self) -> None:
        """Stop what runs on background loops: processes must not outlive the program."""
        with self._lock:
            places = dict(self._places)
        for loop, place in places.items():
            if loop.is_running() and place.connection is not None:
                with suppress(Exception):
                    asyncio.run_coroutine_threadsafe(place.close(), loop).result(_AT_EXIT)


def _let_go(places: _Places) -> None:
    for loop, place in [*places.items()]:
        _drop(loop, place)


def _drop(loop: asyncio.AbstractEventLoop, place: _Place) -> None:
    connection, place.connection = place.connection, None
    if connection is not None and not loop.is_closed():
        with suppress(RuntimeError):  # it was closed at this moment
            loop.call_soon_threadsafe(connection.drop)


def _retrieve(task: asyncio.Task[Connection]) -> None:
    """Retrieve the exception, so that asyncio doesn't complain if nobody waits."""
    if not task.cancelled():
        task.exception()


def _close_all() -> None:
    for each in [*_open]:
        each.close_at_exit()


atexit.register(_close_all)
del portal  # imported first, so that the background loop ends after this
