"""Keeps what a run needs beyond its process: its branch, the part that came, and other workers.

Each run has a temporary session in the store, whose lease makes it the only run of its branch. The
first message names the run; now and then it becomes the part of the answer that has come. If the
process is killed, whoever opens the conversation next finds the lease free, and stores that part.

With several workers, a decision (approve, refuse, stop) or a reader may reach a worker that doesn't
own the run: other workers append decisions to that session, and the owner polls for them. Once
another worker has a reader, the owner also writes the run's events, to a second session. Both are
deleted when the run ends.
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
from dragoman.history.branches import last_id
from dragoman.history.identity import SessionIdentity
from dragoman.history.owners import this_process
from dragoman.history.records import body_of, message_of
from dragoman.history.storage.ledger import Fenced
from dragoman.history.storage.protocol import Entry, Row, Session, Storage, leases_of
from dragoman.model.ids import new_id
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message
from dragoman.model.roles import Role

AFTER = "dragoman.after"
"""The metadata key of a part of an answer: the id of the message that it follows."""
_RUN = re.compile(r"([0-9a-f]{40})-(\d{1,9})-[0-9a-f]{32}")
_POLL_INTERVAL = 0.2  # seconds
_LEASE = 30.0  # seconds without a sign of life until a run of another machine is taken for dead
_BEAT = 5.0  # seconds between two signs of life
_DRAFT = 1.0  # seconds between two writes of the part that came
_SHARE = 20  # times as long as a write takes, at least
_TRIES = 8
_RECOVERING = "recovering"
BUSY = "a response is still streaming on this branch; stop it or wait until it ends"
_NO_RUN = "there is no such run; it may have ended"


class ControlledRun(Protocol):
    """The part of a run that is used here."""

    id: str
    identity: SessionIdentity
    """The conversation's."""

    def draft(self) -> Message | None:
        """The part of the answer that has come; None: nothing that would be kept."""
        ...

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Approves or refuses a pending tool call."""

    async def stop(self) -> None:
        """Stops the run."""

    def events(self, pause: float) -> AsyncIterator[dict[str, Any] | None]:
        """Yields all events from the first one; None after each `pause` seconds without one."""
        ...


class Relay:
    """Holds the branch of one of this worker's runs, inside `async with`."""

    def __init__(self, storage: Storage, run: ControlledRun, *, has_others: bool) -> None:
        """`has_others`: other workers may have its readers."""
        self._storage, self._run, self._has_others = storage, run, has_others
        self._identity = _identity(run.id)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_shared = self._is_lost = False

    async def __aenter__(self) -> None:
        await self._claim()
        self._start(self._beat())
        self._start(self._keep_drafts())
        if self._has_others:
            self._start(self._listen())

    async def _claim(self) -> None:
        """Makes this the only run of its branch; raises `Conflict` if there is another."""
        conversation, branch, _ = self._run.id.split("-")
        for _ in range(_TRIES):
            with suppress(Conflict, NotFound):  # another is claiming it too, or has just ended
                is_new = await self._storage.session(self._identity) is None
                if is_new:
                    await self._append(self._entry(Message.user("run")), expected=0)
                owner = f"{this_process()} {self._run.id}"
                lease = await leases_of(self._storage).lease(self._identity, owner, _LEASE)
                if lease is not None:
                    self._lease = lease
                    if not is_new:
                        await _adopt(self._storage, self._run.identity, int(branch))
                        await self._storage.clear(self._identity, at=time())
                        await self._append(self._entry(Message.user("run")))
                    return
                if await running(self._storage, conversation, branch) is not None:
                    break
            await asyncio.sleep(_POLL_INTERVAL)
        raise Conflict(BUSY)

    async def _append(self, entry: Entry, *, expected: int | None = None) -> None:
        await self._storage.append(self._identity, [entry], expected=expected)

    def _entry(self, message: Message) -> Entry:
        return Entry(self._run.id, body_of(message.with_id(self._run.id)), time())

    def _start(self, work: Any) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        for identity in (self._identity, _events(self._run.id)):
            with suppress(DragomanError):
                if not self._is_lost:
                    await self._storage.delete(identity)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            try:
                self._lease = await leases_of(self._storage).renew(self._identity, self._lease)
            except Fenced:  # this process stood still for so long that it was taken for dead
                self._is_lost = True
                self._start(self._run.stop())
                return
            except DragomanError:
                pass  # the store may be temporarily unavailable

    async def _keep_drafts(self) -> None:
        """Stores the part of the answer that has come, in a small part of the time at most."""
        last: object = None
        pause = _DRAFT
        while True:
            await asyncio.sleep(pause)
            draft = self._run.draft()
            if draft is None or draft.parts == last or self._is_lost:
                continue
            begun = monotonic()
            with suppress(DragomanError):  # as above
                await self._storage.rewrite(self._identity, replaced=[self._entry(draft)])
                last = draft.parts
            pause = max(_DRAFT, _SHARE * (monotonic() - begun))

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
                if row.id != self._run.id:  # that one holds what the model said
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


# --- what a killed process left behind


async def recover(storage: Storage, session: Session, branch: int) -> Session:
    """Stores the part of an answer whose process is gone; returns the conversation as it is now."""
    identity, place = session.identity, _identity_of(session.identity.digest, branch)
    if await storage.session(place) is None:
        return session
    with suppress(NotFound):  # it has just ended
        owner = f"{this_process()} {_RECOVERING}"
        if await leases_of(storage).lease(place, owner, _LEASE) is not None:
            await _adopt(storage, identity, branch)
            await storage.delete(place)
    return await storage.session(identity) or session


async def _adopt(storage: Storage, identity: SessionIdentity, branch: int) -> None:
    rows = await storage.rows(_identity_of(identity.digest, branch), limit=1)
    draft = message_of(rows[0].body) if rows else None
    if draft is None or draft.role is not Role.ASSISTANT:
        return
    metadata = dict(draft.metadata)
    after = metadata.pop(AFTER, None)
    made = draft.replace(metadata=metadata).with_id(new_id())
    for _ in range(_TRIES):
        session = await storage.session(identity)
        if session is None or await last_id(storage, identity, session, branch) != after:
            return  # the whole answer was stored, or the conversation went on
        with suppress(Conflict):
            entry = Entry(made.id, body_of(made), time())
            await storage.append(identity, [entry], branch=branch, expected=session.version)
            return


# --- of other workers


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
    lease = await leases_of(storage).holder(_identity_of(conversation, branch))
    run = "" if lease is None else lease.owner.partition(" ")[2]
    return run if _RUN.fullmatch(run) else None


async def stop_elsewhere(storage: Storage, conversation: str, branch: int) -> None:
    """Stops the run of another worker on a branch; on return, it has ended or is taken for dead."""
    run = await running(storage, conversation, branch)
    if run is None:
        return
    with suppress(NotFound, TimeoutError):
        await tell(storage, run, {"stop": True})
        async with asyncio.timeout(_LEASE):
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
