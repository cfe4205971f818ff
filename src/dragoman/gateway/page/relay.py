"""Forwards decisions about a run (approve, refuse, stop) between workers.

With several workers, a decision may reach a worker that doesn't own the run. Each run therefore has
a temporary session in the store. Other workers append decisions to it, and the run's worker polls
it. The session holds ids, decisions and the user's reasons; it is deleted when the run ends.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from time import time
from typing import Any, Protocol

from dragoman.errors import Conflict, Corrupt, DragomanError, InvalidInputError, NotFound
from dragoman.gateway.page.listing import OWN
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.storage.protocol import Entry, Row, Storage
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message

_RUN = re.compile(r"[0-9a-f]{32}")
_POLL_INTERVAL = 0.2  # seconds
_TRIES = 8
NO_RUN = "there is no such run; it may have ended"


class ControlledRun(Protocol):
    """The part of a run that decisions apply to."""

    id: str

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Approves or refuses a pending tool call."""

    async def stop(self) -> None:
        """Stops the run."""


class Relay:
    """Receives decisions from other workers for one of this worker's runs, inside `async with`."""

    def __init__(self, storage: Storage, run: ControlledRun) -> None:
        self._storage, self._run = storage, run
        self._identity = _identity(run.id)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        await self._storage.clear(self._identity, at=time())
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def __aexit__(self, *_error: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        with suppress(DragomanError):
            await self._storage.delete(self._identity)

    async def _listen(self) -> None:
        last = 0
        while True:
            await asyncio.sleep(_POLL_INTERVAL)
            rows: list[Row] = []
            with suppress(DragomanError):  # the store may be temporarily unavailable
                rows = await self._storage.rows(self._identity, after=last, limit=100)
            for row in rows:
                last = row.seq
                await self._take(row)

    async def _take(self, row: Row) -> None:
        try:
            decision = loads(message_of(row.body).text)
        except (Corrupt, InvalidInputError):
            return
        match decision:
            case {"stop": True}:
                await self._run.stop()
            case {"call_id": str() as id, "allow": bool() as allow, "reason": str() as reason}:
                with suppress(NotFound):  # decided already
                    self._run.decide(id, allow=allow, reason=reason)
            case _:
                return


async def tell(storage: Storage, run: str, decision: dict[str, Any]) -> None:
    """Sends a decision to a run of another worker; raises `NotFound` if no worker has it."""
    if _RUN.fullmatch(run) is None:
        raise NotFound(NO_RUN)
    message = Message.user(dumps(decision).decode())
    entry = Entry(message.id, body_of(message), time())
    for _ in range(_TRIES):
        session = await storage.session(_identity(run))
        if session is None:
            break
        with suppress(Conflict):  # by version, so that an ended run is not recreated
            await storage.append(_identity(run), [entry], expected=session.version)
            return
    raise NotFound(NO_RUN)


def _identity(run: str) -> SessionIdentity:
    return SessionIdentity(chat=f"run {run}", scope=OWN)
