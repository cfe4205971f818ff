"""`ChainShelf`: sends each commit to several shelves, the first of which decides.

The heads of members that are equal have equal stamps: a commit that another member has done is
compared with the same stamp. Where it isn't the same, the member gets a copy of what the primary
has, unless that would overwrite what may be the only copy of something.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic, time
from typing import NamedTuple, TypeVar

import msgspec

from dragoman.errors import ConfigError, Corrupt, DragomanError, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.heads import Head, Stored, head_of
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import Filter, Row, branches_of
from dragoman.history.storage.shelf import Change, LostReply, Record, Shelf

T = TypeVar("T")
_LOG = logging.getLogger("dragoman.history")
_KEPT = 1000
_TRIES = 50  # an attempt fails only if another writer interferes
BUSY = "the session is being written to constantly; try again"
LEFT_OVER = "it has a session that the primary does not have; it was left unchanged"
_AHEAD = "its session is ahead of the primary's; it was left unchanged"
ANOTHER = "it has another session with the same names; it was left unchanged"


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

    def __init__(self, storage: Ledger, retry_after: float) -> None:
        self.storage = storage
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

    async def run(self, ask: Callable[[Ledger], Awaitable[T]]) -> T:
        """Makes a call; any failure raises `StoreError`, or that the arguments are wrong."""
        if self._wanted and not self._is_open:
            if monotonic() < self._next_try:
                msg = "it could not be opened; another attempt follows later"
                raise StoreError(msg)
            await self.open()
        return await _explained(lambda: ask(self.storage))

    async def get(self, digest: str) -> Stored | None:
        """Its head of a session."""
        return await self.run(lambda storage: storage.shelf.get(digest))

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """Makes a commit."""
        return await self.run(lambda storage: storage.shelf.commit(before, stored, change))

    async def remove(self, digest: str) -> int | None:
        """Removes a session, whatever its stamp."""
        for _ in range(_TRIES):
            there = await self.get(digest)
            if there is None:
                return None
            which = [(digest, there.stamp)]
            [gone] = await self.run(lambda storage: storage.shelf.remove(which))  # noqa: B023
            if gone is not None:
                return gone
        raise StoreError(BUSY)


async def _explained(call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    except (StoreError, InvalidInputError, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001 - a member must not affect the others
        problem = type(error).__name__  # the message may quote stored content
    msg = f"it failed with {problem}"
    raise StoreError(msg)


class Copy(NamedTuple):
    """A session as a member has it, in one state."""

    stored: Stored
    head: Head
    rows: Sequence[Row]

    @property
    def change(self) -> Change:
        """What writes it in place of another."""
        return Change(self.head.session, self.rows, is_emptied=True)


async def copy_of(
    member: Member, digest: str, identity: SessionIdentity | None = None
) -> Copy | None:
    """A session with all rows of all branches, in one consistent state."""
    for _ in range(_TRIES):
        stored = await member.get(digest)
        if stored is None:
            return None
        head = head_of(stored, identity)
        rows: list[Row] = []
        for branch in branches_of(head.session):
            rows += await member.run(
                lambda storage: storage.shelf.rows(digest, branch, 0, None, None, False)  # noqa: B023, FBT003
            )
        after = await member.get(digest)
        if after is not None and after.stamp == stored.stamp:
            return Copy(stored, head, rows)
    raise StoreError(BUSY)


async def mend(primary: Member, member: Member, digest: str) -> bool:
    """Makes the member's session equal to the primary's; returns whether it had to change.

    Only an older state of the same session is ever overwritten. A copy that is ahead of the
    primary, or belongs to another session with the same names (created at another time), may be the
    only copy of its content: it is reported, and left for people to decide.
    """
    for _ in range(_TRIES):
        ours, theirs = await primary.get(digest), await member.get(digest)
        if ours is None:
            if theirs is None:
                return False
            raise StoreError(LEFT_OVER)
        if theirs is None:
            before, is_same = 0, False
        elif theirs.stamp == ours.stamp:
            return False
        else:
            before, is_same = theirs.stamp, _is_same_version(head_of(ours), head_of(theirs))
        if is_same:
            if await member.commit(before, ours, None):
                return True
            continue
        copy = await copy_of(primary, digest)
        if copy is None or not await member.commit(before, copy.stored, copy.change):
            continue
        if await primary.get(digest) is None:
            # Just deleted, on the members first: the copy must not be left over.
            await member.remove(digest)
        return True
    raise StoreError(BUSY)


def _is_same_version(ours: Head, theirs: Head) -> bool:
    """Whether two states differ only in what has no version; raises if ours must not replace it."""
    mine, other = ours.session, theirs.session
    if other.version > mine.version:
        raise StoreError(_AHEAD)
    if mine.created_at != other.created_at:
        raise StoreError(ANOTHER)
    if mine.version > other.version:
        return False
    if (mine.last_seq, mine.forks) != (other.last_seq, other.forks):
        raise StoreError(ANOTHER)
    return True


class ChainShelf:
    """A primary and its copies."""

    def __init__(self, storages: Sequence[Ledger], retry_after: float) -> None:
        self.members = tuple(Member(storage, retry_after) for storage in storages)
        self.primary, *self.secondaries = self.members
        self.reports = Reports()
        self.is_blocking = all(storage.is_blocking for storage in storages)
        self._unsure: set[str] = set()  # whose latest commit the primary may have done
        first = self.primary.storage.shelf
        self.watch, self.changes, self.prune = first.watch, first.changes, first.prune

    @property
    def name(self) -> str:
        """The names of its members."""
        return f"chain({', '.join(member.name for member in self.members)})"

    async def open(self) -> None:
        """Opens all members; raises if none could be opened."""
        failed: list[Report] = []
        for member in self.members:
            try:
                await member.open()
            except StoreError as error:
                failed.append(self.reports.add(member, "open", error))
        if len(failed) == len(self.members):
            msg = "no member of the chain could be opened"
            raise failure(msg, failed)

    async def close(self) -> None:
        """Closes all members."""
        await self.close_those(self.members)

    async def close_those(self, members: Sequence[Member]) -> None:
        """Closes some members."""
        for member in members:
            try:
                await member.close()
            except StoreError as error:
                self.reports.add(member, "close", error)

    # --- reading

    async def get(self, digest: str) -> Stored | None:
        """The head of the first member that has the session."""
        members = self.members[:1] if digest in self._unsure else self.members
        failed: list[Report] = []
        damaged: Stored | None = None
        is_absent = False
        for member in members:
            try:
                stored = await member.get(digest)
                if stored is None:
                    is_absent = is_absent or member is self.primary
                    continue
                try:
                    head_of(stored)
                except Corrupt:
                    damaged = damaged or stored
                    raise
            except DragomanError as error:
                if member is self.primary and not isinstance(error, StoreError):
                    raise
                failed.append(self.reports.add(member, "read", error))
                continue
            self._unsure.discard(digest)
            return stored
        if damaged is not None or is_absent:
            return damaged
        msg = "the history could not be read"
        raise failure(msg, failed)

    async def _read(self, digest: str, ask: Callable[[Shelf], Awaitable[T]]) -> T:
        """The answer of the first member that has the session, otherwise the primary's."""
        absent: list[T] = []
        failed: list[Report] = []
        for member in self.members:
            try:
                answer = await member.run(lambda storage: ask(storage.shelf))
                there = bool(answer) or await member.get(digest) is not None
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

    async def rows(
        self,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - as in `Shelf`
    ) -> list[Row]:
        """See `Shelf.rows`."""
        return await self._read(
            digest, lambda shelf: shelf.rows(digest, branch, after, upto, limit, newest)
        )

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        return await self._read(digest, lambda shelf: shelf.named(digest, ids))

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """See `Shelf.count`."""
        return await self._read(digest, lambda shelf: shelf.count(digest, branches))

    async def records(self, digest: str) -> list[Record]:
        """Those of the primary, which gets a session that only another member has."""
        await self._brought(digest)
        return await self.primary.run(lambda storage: storage.shelf.records(digest))

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`."""
        return await self.answer(lambda storage: storage.shelf.heads(which, limit, after))

    async def answer(self, ask: Callable[[Ledger], Awaitable[T]]) -> T:
        """The answer of the first member that does not fail."""
        failed: list[Report] = []
        for member in self.members:
            try:
                return await member.run(ask)
            except StoreError as error:
                failed.append(self.reports.add(member, "read", error))
        msg = "all members of the chain failed"
        raise failure(msg, failed)

    async def all(
        self, doing: str, ask: Callable[[Ledger], Awaitable[T]]
    ) -> tuple[list[tuple[str, T]], list[Report]]:
        """Every member's name and answer, the primary's last, and the failures."""
        answers: list[tuple[str, T]] = []
        failed: list[Report] = []
        for member in (*self.secondaries, self.primary):
            try:
                answers.append((member.name, await member.run(ask)))
            except StoreError as error:
                failed.append(self.reports.add(member, doing, error))
        return answers, failed

    # --- writing

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`: writes to the primary, and if it did, to the others."""
        digest = stored.digest
        try:
            done = await self.primary.commit(before, stored, change)
            if not done and before and await self._brought(digest):
                done = await self.primary.commit(before, stored, change)
        except LostReply:
            self._unsure.add(digest)
            raise
        if not done:
            there = await self.primary.get(digest)
            if there is not None:
                head_of(there)  # raises if it can't be written to
            return False
        self._unsure.discard(digest)
        if change is None or not change.is_repair:  # keys of records differ: the chain tells them
            await self.follow(digest, lambda member: member.commit(before, stored, change))
        return True

    async def follow(self, digest: str, write: Callable[[Member], Awaitable[bool]]) -> None:
        """Writes to the secondaries what the primary has; a copy, if they had something else."""
        for member in self.secondaries:
            try:
                if not await write(member):
                    await mend(self.primary, member, digest)
            except DragomanError as error:
                self.reports.add(member, "write", error)

    async def _brought(self, digest: str) -> bool:
        """Copies a session that only a secondary has to the primary."""
        if await self.primary.get(digest) is not None:
            return False
        for member in self.secondaries:
            try:
                copy = await copy_of(member, digest)
            except DragomanError as error:
                self.reports.add(member, "read", error)
                continue
            if copy is not None:
                await self.primary.commit(0, copy.stored, copy.change)
                self.reports.add(member, "write", "a session was copied from it to the primary")
                return True
        return False

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`: from the secondaries first; raises if one fails."""
        return [await self._removed(digest, stamp) for digest, stamp in which]

    async def _removed(self, digest: str, stamp: int) -> int | None:
        gone = [await self._reported(each, each.remove(digest)) for each in self.secondaries]
        which = [(digest, stamp)]
        removing = self.primary.run(lambda storage: storage.shelf.remove(which))
        [first] = await self._reported(self.primary, removing)
        if first is None:
            there = await self._reported(self.primary, self.primary.get(digest))
            if there is not None:
                return None  # with another stamp
        # Again: another process may have updated a secondary before the primary was changed.
        gone += [await self._reported(each, each.remove(digest)) for each in self.secondaries]
        found = [each for each in gone if each is not None]
        return max(found, default=None) if first is None else first

    async def _reported(self, member: Member, work: Awaitable[T]) -> T:
        try:
            return await work
        except LostReply:
            raise
        except StoreError as error:
            report = self.reports.add(member, "delete", error)
        msg = "the session could not be deleted everywhere; try again"
        raise failure(msg, [report])

    async def scrub(self, user: str) -> tuple[str, ...]:
        """See `Shelf.scrub`."""
        found, _ = await self.all("forget", lambda storage: storage.shelf.scrub(user))
        return tuple(f"{name}: {each}" for name, remains in found for each in remains)

    async def problems(self) -> list[str]:
        """See `Shelf.problems`."""
        found, _ = await self.all("verify", lambda storage: storage.shelf.problems())
        return [f"{name}: {each}" for name, problems in found for each in problems]


def failure(what: str, reports: Sequence[Report]) -> StoreError:
    """The error that lists all of these reports."""
    told = "; ".join(f"{report.member}: {report.problem}" for report in reports)
    return StoreError(f"{what} ({told})")
