"""Reads from and writes to the members of a chain, so that they stay equal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from dragoman.errors import Conflict, DragomanError, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.catching_up import mend, snapshot
from dragoman.history.storage.chain.members import Member, Report, Reports
from dragoman.history.storage.protocol import Row, Session, Storage
from dragoman.history.storage.session_locks import SessionLocks

T = TypeVar("T")
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
