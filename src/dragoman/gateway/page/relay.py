"""Connects the workers of a gateway to a run that one of them owns.

With several workers, a decision (approve, refuse, stop) or a reader may reach a worker that doesn't
own the run. Each run therefore has a temporary session in the store. Its first message names the
run and is written again every few seconds, as a sign of life; other workers append decisions, and
the owner polls for them. Once another worker has a reader, the owner also writes the run's events,
to a second session. Both are deleted when the run ends.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from time import monotonic, time
from typing import Any, Protocol

from dragoman.errors import Conflict, Corrupt, DragomanError, InvalidInputError, NotFound
from dragoman.gateway.page.listing import OWN
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.storage.protocol import Entry, Row, Storage
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message

_RUN = re.compile(r"([0-9a-f]{40})-(\d{1,9})-[0-9a-f]{32}")
_POLL_INTERVAL = 0.2  # seconds
_BEAT = 5.0  # seconds between two signs of life
_DEAD = 30.0  # seconds without one
_TRIES = 8
BUSY = "a response is still streaming on this branch; stop it or wait until it ends"
_NO_RUN = "there is no such run; it may have ended"


class ControlledRun(Protocol):
    """The part of a run that other workers use."""

    id: str

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Approves or refuses a pending tool call."""

    async def stop(self) -> None:
        """Stops the run."""

    def events(self, pause: float) -> AsyncIterator[dict[str, Any] | None]:
        """Yields all events from the first one; None after each `pause` seconds without one."""
        ...


class Relay:
    """Serves other workers for one of this worker's runs, inside `async with`."""

    def __init__(self, storage: Storage, run: ControlledRun) -> None:
        self._storage, self._run = storage, run
        self._identity = _identity(run.id)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_shared = False

    async def __aenter__(self) -> None:
        await self._claim()
        self._start(self._listen())
        self._start(self._beat())

    async def _claim(self) -> None:
        """Makes this the only run of its branch; raises `Conflict` if there is another."""
        conversation, branch, _ = self._run.id.split("-")
        for _ in range(_TRIES):
            session = await self._storage.session(self._identity)
            if await running(self._storage, conversation, branch) is not None:
                break
            version = 0 if session is None else session.version
            with suppress(Conflict):  # another worker is claiming it too
                if session is not None:
                    version = await self._storage.clear(self._identity, at=time(), expected=version)
                entries = [self._sign_of_life()]
                await self._storage.append(self._identity, entries, expected=version)
                return
        raise Conflict(BUSY)

    def _start(self, work: Any) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        for identity in (self._identity, _events(self._run.id)):
            with suppress(DragomanError):
                await self._storage.delete(identity)

    def _sign_of_life(self) -> Entry:
        return Entry(self._run.id, body_of(Message.user("run").with_id(self._run.id)), time())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            with suppress(DragomanError):  # the store may be temporarily unavailable
                await self._storage.rewrite(self._identity, replaced=[self._sign_of_life()])

    async def _share(self) -> None:
        """Writes the events for other workers, several at a time."""
        batch: list[dict[str, Any]] = []
        written = monotonic()
        async for event in self._run.events(_POLL_INTERVAL):
            if event is not None:
                batch.append(event)
            if batch and (event is None or monotonic() - written >= _POLL_INTERVAL):
                message = Message.user(dumps(batch).decode())
                entry = Entry(message.id, body_of(message), time())
                with suppress(DragomanError):  # as above; written with the next ones then
                    await self._storage.append(_events(self._run.id), [entry])
                    batch, written = [], monotonic()

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
            case {"follow": True}:
                if not self._is_shared:
                    self._is_shared = True
                    self._start(self._share())
            case {"call_id": str() as id, "allow": bool() as allow, "reason": str() as reason}:
                with suppress(NotFound):  # decided already
                    self._run.decide(id, allow=allow, reason=reason)
            case _:
                return


async def tell(storage: Storage, run: str, decision: dict[str, Any]) -> None:
    """Sends a decision to a run of another worker; raises `NotFound` if no worker has it."""
    message = Message.user(dumps(decision).decode())
    entry = Entry(message.id, body_of(message), time())
    for _ in range(_TRIES):
        found = _RUN.fullmatch(run)
        session = None if found is None else await storage.session(_identity(run))
        if found is None or session is None or await running(storage, found[1], found[2]) != run:
            break
        with suppress(Conflict):  # by version, so that an ended run is not recreated
            await storage.append(_identity(run), [entry], expected=session.version)
            return
    raise NotFound(_NO_RUN)


async def running(storage: Storage, conversation: str, branch: int | str) -> str | None:
    """Returns the id of the run that any worker has on a branch of a conversation."""
    rows = await storage.rows(_identity_of(conversation, branch), limit=1)
    return rows[0].id if rows and time() - rows[0].at < _DEAD else None


async def stop_elsewhere(storage: Storage, conversation: str, branch: int) -> None:
    """Stops the run of another worker on a branch; on return, it has ended or is taken for dead."""
    run = await running(storage, conversation, branch)
    if run is None:
        return
    with suppress(NotFound, TimeoutError):
        await tell(storage, run, {"stop": True})
        async with asyncio.timeout(_DEAD):
            while await running(storage, conversation, branch) == run:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(_POLL_INTERVAL)


async def events_elsewhere(
    storage: Storage, run: str, pause: float
) -> AsyncIterator[dict[str, Any] | None]:
    """Yields the events of another worker's run, which was told to share them.

    Yields None after each `pause` seconds without one. The last events may be missing: when the run
    has ended, its messages are stored.
    """
    last, heard, seen = 0, monotonic(), monotonic()
    while True:
        rows = await storage.rows(_events(run), after=last, limit=100)
        for row in rows:
            last, heard = row.seq, monotonic()
            for event in loads(message_of(row.body).text):
                yield event
        if monotonic() - heard >= pause:
            heard = monotonic()
            yield None
        if monotonic() - seen >= 1:
            seen = monotonic()
            conversation, branch, _ = run.split("-")
            if await running(storage, conversation, branch) != run:
                return
        await asyncio.sleep(_POLL_INTERVAL)


def _identity(run: str) -> SessionIdentity:
    conversation, branch, _ = run.split("-")
    return _identity_of(conversation, branch)


def _identity_of(conversation: str, branch: int | str) -> SessionIdentity:
    return SessionIdentity(chat=f"run {conversation} {branch}", scope=OWN)


def _events(run: str) -> SessionIdentity:
    return SessionIdentity(chat=f"events {run}", scope=OWN)
