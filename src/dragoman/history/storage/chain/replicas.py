"""Reads from and writes to the members of a chain, so that they stay equal."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic, time
from typing import TypeVar

import msgspec
from msgspec import UNSET

from dragoman.errors import (
    ConfigError,
    Conflict,
    DragomanError,
    InvalidInputError,
    NotFound,
    StoreError,
)
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage, is_proving
from dragoman.history.storage.session_locks import SessionLocks

T = TypeVar("T")
_LOG = logging.getLogger("dragoman.history")
_KEPT = 1000


class Report(msgspec.Struct, frozen=True):
    """A problem with a member, without content, names or ids."""

    at: float
    member: str
    doing: str
    problem: str


class Reports:
    """The latest reports; each is also logged as a warning."""

    def __init__(self) -> None:
        self._latest: deque[Report] = deque(maxlen=_KEPT)

    def add(self, member: Member, doing: str, problem: DragomanError | str) -> Report:
        """Adds a report."""
        report = Report(time(), member.name, doing, str(problem))
        self._latest.append(report)
        _LOG.warning("history store %s, %s: %s", report.member, doing, report.problem)
        return report

    def all(self) -> tuple[Report, ...]:
        """The reports, oldest first."""
        return tuple(self._latest)


class Member:
    """One of the storages of a chain."""

    def __init__(self, storage: Storage, retry_after: float) -> None:
        self.storage = storage
        self.behind: set[str] = set()
        """The digests of sessions of which it may not have the latest state."""
        self._retry_after = retry_after
        self._wanted = False
        self._is_open = False
        self._next_try = 0.0

    @property
    def name(self) -> str:
        """The kind of backend and its location."""
        return self.storage.name

    async def open(self) -> None:
        """Opens it; if that fails, later calls try again after a while."""
        self._wanted = True
        self._next_try = monotonic() + self._retry_after
        await _explained(self.storage.open)
        self._is_open = True

    async def close(self) -> None:
        """Closes it, if it is open."""
        self._wanted = False
        if self._is_open:
            self._is_open = False
            await _explained(self.storage.close)

    async def run(self, ask: Callable[[Storage], Awaitable[T]]) -> T:
        """Makes a call; any failure raises `StoreError`."""
        if self._wanted and not self._is_open:
            if monotonic() < self._next_try:
                msg = "it could not be opened; another attempt follows later"
                raise StoreError(msg)
            await self.open()
        return await _explained(lambda: ask(self.storage))

    async def has(self, identity: SessionIdentity) -> bool:
        """Whether it has the session."""
        return await self.run(lambda storage: storage.session(identity)) is not None


async def _explained(call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    except (StoreError, InvalidInputError, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001 - a member must not affect the others
        problem = type(error).__name__  # the message may quote stored content
    msg = f"it failed with {problem}"
    raise StoreError(msg)


# --- catching up
#
# Only an older state of the same session is ever overwritten. A copy that is ahead of the primary,
# or belongs to another session with the same names (created at another time), may be the only copy
# of its content: it is reported, and left for people to decide.


_TRIES = 50  # an attempt fails only if another writer interferes
_BUSY = "the session is being written to constantly; try again"
LEFT_OVER = "it has a session that the primary does not have; it was left unchanged"
_AHEAD = "its session is ahead of the primary's; it was left unchanged"
ANOTHER = "it has another session with the same names; it was left unchanged"


async def mend(primary: Member, member: Member, identity: SessionIdentity) -> bool:
    """Makes the member's session equal to the primary's; returns whether it had to change."""
    for _ in range(_TRIES):
        ours = await primary.run(lambda storage: storage.session(identity))
        theirs = await member.run(lambda storage: storage.session(identity))
        if theirs is None or (ours is not None and ours.version > theirs.version):
            if await _copied(primary, member, ours, theirs):
                return True
        elif ours is None:
            raise StoreError(LEFT_OVER)
        elif ours.version == theirs.version:
            return await _aligned(member, ours, theirs)
        elif await primary.run(lambda storage: storage.session(identity)) == ours:
            if not await _is_ahead_in_versions_only(primary, member, identity):
                raise StoreError(_AHEAD)
            await member.run(lambda storage: storage.delete(identity))
    raise StoreError(_BUSY)


async def _copied(
    primary: Member, member: Member, ours: Session | None, theirs: Session | None
) -> bool:
    """Replaces a missing or older copy; returns whether it is equal now."""
    if ours is None:
        return theirs is None
    if theirs is not None and theirs.created_at != ours.created_at:
        raise StoreError(ANOTHER)
    copy = await primary.run(lambda storage: snapshot(storage, ours.identity))
    if copy is None or not await member.run(lambda storage: storage.restore(*copy)):
        return False
    if not await primary.has(ours.identity):
        # Just deleted, on the members first: the copy must not be left over.
        await member.run(lambda storage: storage.delete(ours.identity))
    return True


async def _is_ahead_in_versions_only(
    primary: Member, member: Member, identity: SessionIdentity
) -> bool:
    """Whether an encrypted copy is ahead only in version numbers, as encryption adds versions."""
    if not is_proving(member.storage):
        return False
    ours = await primary.run(lambda storage: snapshot(storage, identity))
    theirs = await member.run(lambda storage: snapshot(storage, identity))
    if ours is None or theirs is None or ours[0].created_at != theirs[0].created_at:
        return False
    return [_content_of(row) for row in ours[1]] == [_content_of(row) for row in theirs[1]]


def _content_of(row: Row) -> Row:
    return msgspec.structs.replace(row, checksum=None, chain=None)


async def _aligned(member: Member, ours: Session, theirs: Session) -> bool:
    """Aligns what has no version, for sessions that are otherwise equal."""
    alike = (theirs.created_at, theirs.last_seq, theirs.forks)
    if alike != (ours.created_at, ours.last_seq, ours.forks):
        raise StoreError(ANOTHER)
    if (ours.active, ours.seal) != (theirs.active, theirs.seal):
        seal = UNSET if ours.seal == theirs.seal else ours.seal
        await member.run(lambda storage: storage.activate(ours.identity, ours.active, seal=seal))
    if ours.windows != theirs.windows:
        await member.run(lambda storage: storage.keep_windows(ours.identity, ours.windows))
    return (ours.active, ours.seal, ours.windows) != (theirs.active, theirs.seal, theirs.windows)


async def snapshot(
    storage: Storage, identity: SessionIdentity
) -> tuple[Session, Sequence[Row]] | None:
    """A session with all rows of all branches, in one consistent state."""
    for _ in range(_TRIES):
        head = await storage.session(identity)
        if head is None:
            return None
        rows: list[Row] = []
        for branch in (MAIN, *(fork.number for fork in head.forks)):
            rows += await storage.rows(identity, branch=branch)
        after = await storage.session(identity)
        if after is not None and after.version == head.version:
            return after, rows
    raise StoreError(_BUSY)


# --- reading and writing


Ask = Callable[[Storage], Awaitable[T]]
_KNOWN = 10_000  # digests, 100 bytes each


class Replicas:
    """A primary and its copies."""

    def __init__(self, storages: Sequence[Storage], retry_after: float) -> None:
        self.members = tuple(Member(storage, retry_after) for storage in storages)
        self.primary, *self.secondaries = self.members
        self.reports = Reports()
        self._locks = SessionLocks(blocking=all(storage.is_blocking for storage in storages))
        self._known: set[str] = set()  # sessions that the primary has had

    # --- reading

    async def read(self, ask: Ask[T], identity: SessionIdentity) -> T:
        """The response of the first member that has the session, otherwise the primary's."""
        absent: list[T] = []
        failed: list[Report] = []
        for member in self.members:
            try:
                answer = await member.run(ask)
                there = bool(answer) or await member.has(identity)
            except StoreError as error:
                failed.append(self.reports.add(member, "read", error))
                continue
            if there:
                return answer
            if member is self.primary:
                absent.append(answer)
        if not absent:  # nobody has it, but the primary did not respond
            msg = "the history could not be read"
            raise failure(msg, failed)
        return absent[0]

    async def answer(self, ask: Ask[T]) -> T:
        """The response of the first member that does not fail."""
        failed: list[Report] = []
        for member in self.members:
            try:
                return await member.run(ask)
            except StoreError as error:
                failed.append(self.reports.add(member, "read", error))
        msg = "all members of the chain failed"
        raise failure(msg, failed)

    async def all(self, doing: str, ask: Ask[T]) -> tuple[list[tuple[str, T]], list[Report]]:
        """Every member's name and response, the primary's last, and the failures."""
        answers: list[tuple[str, T]] = []
        failed: list[Report] = []
        for member in (*self.secondaries, self.primary):
            try:
                answers.append((member.name, await member.run(ask)))
            except StoreError as error:
                failed.append(self.reports.add(member, doing, error))
        return answers, failed

    # --- writing

    async def write(
        self,
        identity: SessionIdentity,
        lead: Ask[T],
        follow: Callable[[Storage, T], Awaitable[object]],
    ) -> T:
        """Writes to the primary, then writes the result to the others."""
        async with self.locked(identity):
            try:
                await self._adopt(identity)
                made = await self.primary.run(lead)
            except Exception:
                self.lost(identity)
                raise
            await self.copy(identity, lambda storage: follow(storage, made))
        return made

    @asynccontextmanager
    async def locked(self, identity: SessionIdentity) -> AsyncGenerator[None]:
        """Serialises writes to the session within this process."""
        async with self._locks.of(identity.digest):
            try:
                yield
            except Exception:
                raise
            except BaseException:  # cancelled: the progress is unknown
                for member in self.secondaries:
                    member.behind.add(identity.digest)
                raise

    async def copy(self, identity: SessionIdentity, write: Ask[object]) -> None:
        """Writes to the secondaries what the primary has; remembers those that fail."""
        for member in self.secondaries:
            try:
                await self._follow(member, identity, write)
            except DragomanError as error:
                self.reports.add(member, "write", error)
                member.behind.add(identity.digest)
            else:
                member.behind.discard(identity.digest)

    async def _follow(self, member: Member, identity: SessionIdentity, write: Ask[object]) -> None:
        if identity.digest not in member.behind:
            try:
                done = await member.run(write)
            except (Conflict, NotFound):
                done = False  # it is behind, changed by others, or already has this write
            if done is not False:
                return
        await mend(self.primary, member, identity)

    async def _adopt(self, identity: SessionIdentity) -> None:
        """Copies a session that only a secondary has to the primary, once."""
        if identity.digest in self._known:
            return
        if not await self.primary.has(identity):
            await self._bring(identity)
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known.add(identity.digest)

    async def _bring(self, identity: SessionIdentity) -> None:
        for member in self.secondaries:
            try:
                found = await member.run(lambda storage: snapshot(storage, identity))
            except DragomanError as error:
                self.reports.add(member, "read", error)
                continue
            if found is not None:
                await self.primary.run(partial(_restored, found))
                self.reports.add(member, "write", "a session was copied from it to the primary")
                return

    def lost(self, identity: SessionIdentity | None = None) -> None:
        """Forgets that the primary has the session, or any session."""
        if identity is None:
            self._known.clear()
        else:
            self._known.discard(identity.digest)


async def _restored(copy: tuple[Session, Sequence[Row]], storage: Storage) -> bool:
    return await storage.restore(*copy)


def failure(what: str, reports: Sequence[Report]) -> StoreError:
    """The error that lists all of these reports."""
    told = "; ".join(f"{report.member}: {report.problem}" for report in reports)
    return StoreError(f"{what} ({told})")
