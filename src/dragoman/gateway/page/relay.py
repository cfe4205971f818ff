"""Between workers: an answer comes in at one of them, and what its user decides may reach another.

Where there are several, a run has a session of the page's own in the store while it lasts. What
another worker is told is written there, and the run's worker reads it within moments. It holds ids
and decisions, and the reason that somebody gave; with the run it is gone.
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
_PAUSE = 0.2  # seconds between two looks
_TRIES = 8
_NO_RUN = "there is no such run: it may be over"


class Decided(Protocol):
    """A run, as far as others may decide about it."""

    id: str

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Allow a call that waits, or refuse it."""

    async def stop(self) -> None:
        """End it."""


class Relay:
    """The way to runs of other workers; `async with` keeps one of this worker's within reach."""

    def __init__(self, storage: Storage, run: Decided) -> None:
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
            await asyncio.sleep(_PAUSE)
            rows: list[Row] = []
            with suppress(DragomanError):  # a store that is away for a moment comes back
                rows = await self._storage.rows(self._identity, after=last, limit=100)
            for row in rows:
                last = row.seq
                await self._take(row)

    async def _take(self, row: Row) -> None:
        try:
            told = loads(message_of(row.body).text.encode())
        except (Corrupt, InvalidInputError):
            return
        match told:
            case {"stop": True}:
                await self._run.stop()
            case {"call_id": str() as id, "allow": bool() as allow, "reason": str() as reason}:
                with suppress(NotFound):  # decided already
                    self._run.decide(id, allow=allow, reason=reason)
            case _:
                return


async def tell(storage: Storage, run: str, decision: dict[str, Any]) -> None:
    """Tell a run of another worker; raises `NotFound` where no worker has it."""
    if _RUN.fullmatch(run) is None:
        raise NotFound(_NO_RUN)
    message = Message.user(dumps(decision).decode())
    entry = Entry(message.id, body_of(message), time())
    for _ in range(_TRIES):
        session = await storage.session(_identity(run))
        if session is None:
            break
        with suppress(Conflict):  # by version: a run that ends meanwhile must not come back
            await storage.append(_identity(run), [entry], expected=session.version)
            return
    raise NotFound(_NO_RUN)


def _identity(run: str) -> SessionIdentity:
    return SessionIdentity(chat=f"run {run}", scope=OWN)
