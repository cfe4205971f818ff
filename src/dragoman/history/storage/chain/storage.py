"""`ChainStorage`: reads fall back along the chain, writes are replicated.

- A read goes to the primary. If it fails or does not have the session, the next member is used. An
  empty session has been cleared, so it is a valid result. If the primary fails and nobody else has
  the session, that is an error, never an empty history.
- A write goes to the primary. If it fails there, it has failed, and no other member is changed.
  Then the same commit goes to each secondary, whose heads tell whether it has done all before it. A
  secondary that fails or is behind does not make the write fail: it is reported (`reports`, and as
  a warning in the log `dragoman.history`), and updated from the primary at the next write to the
  session, or by `repair`.
- A session that only a secondary has (the primary is new, or lost it) is copied to the primary
  before it is written to.
- `delete` and `forget` go to the secondaries first, and raise if any member fails: otherwise a
  remaining copy would reappear.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dragoman.errors import Corrupt, DragomanError, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.shelf import (
    ANOTHER,
    LEFT_OVER,
    ChainShelf,
    Copy,
    Member,
    Report,
    copy_of,
    failure,
    mend,
)
from dragoman.history.storage.integrity import missing_rows, problem_with
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Erasure,
    Filter,
    Group,
    Hit,
    Row,
    Session,
    Storage,
    Total,
    expect_query,
    is_proving,
)
from dragoman.model.value import expect


class ChainStorage(Ledger):
    """Several storages as one; the first is the primary.

    >>> from dragoman.history import FileStorage, SQLiteStorage
    >>> ChainStorage(SQLiteStorage("chats.db"), FileStorage("copies")).name
    'chain(sqlite:chats.db, file:copies)'

    A member that could not be opened is tried again by a later call, after at least `retry_after`
    seconds. `close` closes the `owned` members; the default is all.
    """

    shelf: ChainShelf

    def __init__(
        self,
        primary: Storage,
        *secondaries: Storage,
        owned: Iterable[Storage] | None = None,
        retry_after: float = 5.0,
    ) -> None:
        storages = (primary, *secondaries)
        if len({id(storage) for storage in storages}) < len(storages):
            msg = "a storage can be in a chain only once"
            raise InvalidInputError(msg)
        ledgers = [storage for storage in storages if isinstance(storage, Ledger)]
        if len(ledgers) < len(storages):
            msg = "the members of a chain must be storages on shelves (`Ledger`)"
            raise InvalidInputError(msg)
        self._owned = {id(storage) for storage in (storages if owned is None else owned)}
        super().__init__(ChainShelf(ledgers, retry_after))

    @property
    def reports(self) -> tuple[Report, ...]:
        """Problems with members, oldest first; the last 1,000."""
        return self.shelf.reports.all()

    async def close(self) -> None:
        """Closes the owned members."""
        self._seen.clear()
        members = self.shelf.members
        await self.shelf.close_those([each for each in members if id(each.storage) in self._owned])

    # --- what encrypted members prove

    @property
    def is_proving(self) -> bool:
        """Whether a member is encrypted."""
        return any(is_proving(member.storage) for member in self.shelf.members)

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What an encrypted member has found to be wrong with a session as a whole."""
        storages = (member.storage for member in self.shelf.members)
        told = (each.problem_of(identity) for each in storages if is_proving(each))
        return next((problem for problem in told if problem is not None), None)

    async def expect_untouched(self, identity: SessionIdentity) -> None:
        """Raises `Corrupt` if the copy that would be read is encrypted and was tampered with.

        Another member may have an intact copy: `repair` replaces the damaged one by it.
        """
        for member in self.shelf.members:
            try:
                if await member.get(identity.digest) is None:
                    continue
            except StoreError:
                continue  # the next one is read
            if is_proving(member.storage):
                await member.storage.expect_untouched(identity)
            return

    # --- operations that every member does by itself

    async def set_aside(
        self,
        identity: SessionIdentity,
        seqs: Sequence[int],
        reason: str,
        *,
        expected: int | None = None,
    ) -> int:
        """See `Storage.set_aside`; run `repair` first if another member may have intact copies."""
        moved = await super().set_aside(identity, seqs, reason, expected=expected)

        async def follow(member: Member) -> bool:
            await member.run(lambda storage: storage.set_aside(identity, seqs, reason))
            await mend(self.shelf.primary, member, identity.digest)
            return True

        await self.shelf.follow(identity.digest, follow)
        return moved

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`; uses the first member that does not fail."""
        expect_query(which, text=text, limit=limit)
        return await self.shelf.answer(lambda storage: storage.search(text, which, limit=limit))

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`; those of the first member that does not fail."""
        expect_query(which, by=by)
        return await self.shelf.answer(lambda storage: storage.totals(by, which))

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`; tries every member, and raises if one failed."""
        expect(user, str, "the user to forget")
        self._seen.clear()
        erased, failed = await self.shelf.all("forget", lambda storage: storage.forget(user))
        if failed:
            msg = "the user could not be erased everywhere; try again"
            raise failure(msg, failed)
        return Erasure(
            # They are copies of each other: the highest number is the total.
            max(each.sessions for _, each in erased),
            max(each.messages for _, each in erased),
            tuple(f"{name}: {remains}" for name, each in erased for remains in each.remains),
        )

    async def verify(self) -> list[str]:
        """Reports the problems of all members."""
        found, failed = await self.shelf.all("verify", lambda storage: storage.verify())
        unchecked = [f"{report.member} could not be checked: {report.problem}" for report in failed]
        return [
            f"{name}: {problem}" for name, problems in found for problem in problems
        ] + unchecked

    async def repair(self, identity: SessionIdentity | None = None) -> Repair:
        """Brings one session, or all, of every secondary up to date with the primary.

        A damaged copy, also the primary's, is replaced by an intact one of the same state, if a
        member has one. Raises if the primary fails. Sessions that the primary does not have, or of
        which it has an older or different state, are reported and left unchanged: they are neither
        deleted nor overwritten, nor copied to the primary.
        """
        self._seen.clear()
        return await repair(self.shelf, identity)


# --- repairs the members of a chain from each other


_NO_COPY = "its copy of a session is damaged, and no member has an intact one of the same state"
_CHANGED = "its session was changed in the meantime; try again"
_PAGE = 200


class Repair(msgspec.Struct, frozen=True):
    """The number of sessions checked and copies updated, and the remaining problems."""

    sessions: int
    mended: int
    problems: tuple[Report, ...] = ()
    healed: tuple[Report, ...] = ()
    """Damaged copies that were replaced by intact ones."""


async def repair(shelf: ChainShelf, identity: SessionIdentity | None) -> Repair:
    """See `ChainStorage.repair`."""
    work = _Work(shelf)
    if identity is not None:
        await work.mend(identity)
    else:
        seen: set[str] = set()
        async for session in _everything(shelf.primary):
            await work.mend(session.identity)
            seen.add(session.identity.digest)
        for member in shelf.secondaries:
            await work.look_for_more(member, seen)
    return Repair(work.sessions, work.mended, tuple(work.problems), tuple(work.healed))


class _Found(NamedTuple):
    """What a member has of a session, and what is wrong with it."""

    member: Member
    copy: Copy | None
    """`None` if its head is unreadable."""
    rows: Sequence[Row]
    problem: str | None


class _Work:
    """A repair in progress."""

    def __init__(self, shelf: ChainShelf) -> None:
        self._shelf = shelf
        self.sessions = 0
        self.mended = 0
        self.problems: list[Report] = []
        self.healed: list[Report] = []

    async def mend(self, identity: SessionIdentity) -> None:
        """Replaces damaged copies, and updates the others."""
        self.sessions += 1
        primary, digest = self._shelf.primary, identity.digest
        await self._heal(identity)
        # A failing primary is not a member's fault, and nothing can be repaired from it.
        await primary.get(digest)
        for member in self._shelf.secondaries:
            try:
                self.mended += await mend(primary, member, digest)
                await _expect_as_many(primary, member, digest)
            except DragomanError as error:
                self._tell(member, error)

    def _tell(self, member: Member, problem: DragomanError | str) -> None:
        self.problems.append(self._shelf.reports.add(member, "repair", problem))

    async def look_for_more(self, member: Member, seen: set[str]) -> None:
        """Reports sessions that only this member has."""
        try:
            async for session in _everything(member):
                if session.identity.digest in seen:
                    continue
                seen.add(session.identity.digest)
                if await self._shelf.primary.get(session.identity.digest) is None:
                    self._tell(member, LEFT_OVER)
                else:  # unreadable, so it was not in the listing
                    await self.mend(session.identity)
        except DragomanError as error:
            self._tell(member, error)

    # --- damaged copies
    #
    # The intact copy must have the same state: the same version, and everything that is still
    # readable in the damaged one. If its head is unreadable, only its messages are compared.

    async def _heal(self, identity: SessionIdentity) -> None:
        found = [await _found(member, identity) for member in self._shelf.members]
        there = [each for each in found if each is not None]
        sound = [each for each in there if each.problem is None and each.copy is not None]
        for bad in there:
            if bad.problem is None:
                continue
            good = next((each for each in sound if _is_of_same_state(each, bad)), None)
            if good is None or good.copy is None:
                self._tell(bad.member, _NO_COPY)
                continue
            try:
                await self._replace(bad.member, good.copy)
            except DragomanError as error:
                self._tell(bad.member, error)
            else:
                told = f"its damaged copy of a session was replaced by that of {good.member.name}"
                self.healed.append(self._shelf.reports.add(bad.member, "repair", told))

    async def _replace(self, member: Member, copy: Copy) -> None:
        there = await member.get(copy.stored.digest)
        before = 0 if there is None else there.stamp
        change = copy.change._replace(is_repair=True)
        if not await member.commit(before, copy.stored, change):
            raise StoreError(_CHANGED)


async def _found(member: Member, identity: SessionIdentity) -> _Found | None:
    try:
        copy = await copy_of(member, identity.digest, identity)
    except Corrupt as error:
        return _Found(member, None, await _readable(member, identity), str(error))
    except DragomanError:
        return None  # it is unavailable, which is reported elsewhere
    if copy is None:
        return None
    return _Found(member, copy, copy.rows, _problem(member, copy.head.session, copy.rows))


async def _readable(member: Member, identity: SessionIdentity) -> Sequence[Row]:
    """The readable rows of the main branch, if the other branches are unknown."""
    try:
        return await member.run(lambda storage: storage.rows(identity, branch=MAIN))
    except DragomanError:
        return ()


def _problem(member: Member, session: Session, rows: Sequence[Row]) -> str | None:
    for row in rows:
        problem = problem_with(row)
        if problem is not None:
            return problem
    problem = missing_rows(session, len(rows))
    if problem is None and is_proving(member.storage):
        return member.storage.problem_of(session.identity)
    return problem


def _is_of_same_state(good: _Found, bad: _Found) -> bool:
    if good.copy is None:
        return False
    mine = good.copy.head.session
    if bad.copy is not None:
        other = bad.copy.head.session
        if (other.version, other.created_at) != (mine.version, mine.created_at):
            return False
    held = {(row.branch, row.seq): _content_of(row) for row in good.rows}
    readable = [row for row in bad.rows if problem_with(row) is None]
    return all(held.get((row.branch, row.seq)) == _content_of(row) for row in readable)


def _content_of(row: Row) -> Row:
    return msgspec.structs.replace(row, checksum=None, chain=None)


# --- whole members


async def _expect_as_many(primary: Member, member: Member, digest: str) -> None:
    """Raises if two sessions of the same commit have different numbers of messages."""
    stamps: set[int | None] = set()
    counts: set[int] = set()
    for each in (primary, member):
        counts.add(await each.run(lambda storage: storage.shelf.count(digest, None)))
        stored = await each.get(digest)
        stamps.add(None if stored is None else stored.stamp)
    if len(stamps) == 1 < len(counts):
        raise StoreError(ANOTHER)


async def _everything(member: Member) -> AsyncGenerator[Session]:
    """All sessions of a member, page by page."""
    after = ""
    while page := await _page(member, after):
        for session in page:
            yield session
        after = page[-1].identity.digest


async def _page(member: Member, after: str) -> list[Session]:
    return await member.run(lambda storage: storage.sessions(limit=_PAGE, after=after))
