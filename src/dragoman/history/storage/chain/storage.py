"""`ChainStorage`: reads fall back along the chain, writes are replicated.

- A read goes to the primary. If it fails or does not have the session, the next member is used. An
  empty session has been cleared, so it is a valid result. If the primary fails and nobody else has
  the session, that is an error, never an empty history.
- A write goes to the primary. If it fails there, it has failed, and no other member is changed.
  Then it goes to each secondary, for the same version: numbering is deterministic, so the copies
  stay equal. A secondary that fails or is behind does not make the write fail: it is reported
  (`reports`, and as a warning in the log `dragoman.history`), and updated from the primary at the
  next write to the session, or by `repair`.
- A session that only a secondary has (the primary is new, or lost it) is copied to the primary
  before it is written to.
- `delete` and `forget` go to the secondaries first, and raise if any member fails: otherwise a
  remaining copy would reappear.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, TypeVar

from msgspec import UNSET

from dragoman.errors import Conflict, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.repairing import Repair, repair
from dragoman.history.storage.chain.replicas import Member, Replicas, Report, failure
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Appended,
    Entry,
    Erasure,
    Filter,
    Group,
    Hit,
    Row,
    Seal,
    Session,
    Storage,
    Total,
    expect_query,
    is_proving,
)
from dragoman.model.value import expect

T = TypeVar("T")


class ChainStorage:
    """Several storages as one; the first is the primary.

    >>> from dragoman.history import FileStorage, SQLiteStorage
    >>> ChainStorage(SQLiteStorage("chats.db"), FileStorage("copies")).name
    'chain(sqlite:chats.db, file:copies)'

    A member that could not be opened is tried again by a later call, after at least `retry_after`
    seconds. `close` closes the `owned` members; the default is all.
    """

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
        self._replicas = Replicas(storages, retry_after)
        self._owned = {id(storage) for storage in (storages if owned is None else owned)}
        self._blocking = all(storage.is_blocking for storage in storages)

    @property
    def name(self) -> str:
        """The names of its members."""
        return f"chain({', '.join(member.name for member in self._replicas.members)})"

    @property
    def is_blocking(self) -> bool:
        """Whether all members are blocking."""
        return self._blocking

    @property
    def reports(self) -> tuple[Report, ...]:
        """Problems with members, oldest first; the last 1,000."""
        return self._replicas.reports.all()

    async def open(self) -> None:
        """Opens all members; raises if none could be opened."""
        failed = [await self._failed("open", each) for each in self._replicas.members]
        reports = [report for report in failed if report is not None]
        if len(reports) == len(failed):
            msg = "no member of the chain could be opened"
            raise failure(msg, reports)

    async def close(self) -> None:
        """Closes the owned members."""
        for member in self._replicas.members:
            if id(member.storage) in self._owned:
                await self._failed("close", member)

    async def _failed(self, doing: Literal["open", "close"], member: Member) -> Report | None:
        try:
            await (member.open() if doing == "open" else member.close())
        except StoreError as error:
            return self._replicas.reports.add(member, doing, error)
        return None

    # --- one session

    @property
    def is_proving(self) -> bool:
        """Whether a member is encrypted."""
        return any(is_proving(member.storage) for member in self._replicas.members)

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What an encrypted member has found to be wrong with a session as a whole."""
        storages = (member.storage for member in self._replicas.members)
        told = (each.problem_of(identity) for each in storages if is_proving(each))
        return next((problem for problem in told if problem is not None), None)

    async def expect_untouched(self, identity: SessionIdentity) -> None:
        """Raises `Corrupt` if the copy that would be read is encrypted and was tampered with.

        Another member may have an intact copy: `repair` replaces the damaged one by it.
        """
        for member in self._replicas.members:
            try:
                if not await member.has(identity):
                    continue
            except StoreError:
                continue  # the next one is read
            if is_proving(member.storage):
                await member.storage.expect_untouched(identity)
            return

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session, or `None` if the primary confirms that there is none, and nobody has it."""
        return await self._replicas.read(lambda storage: storage.session(identity), identity)

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> Appended:
        """See `Storage.append`."""

        def write(storage: Storage, expected: int | None) -> Awaitable[Appended]:
            return storage.append(identity, entries, branch=branch, expected=expected, seal=seal)

        return await self._replicas.write(
            identity,
            lambda storage: write(storage, expected),
            lambda storage, made: write(storage, made.version - 1),
        )

    async def rows(
        self,
        identity: SessionIdentity,
        *,
        branch: int = MAIN,
        after: int = 0,
        upto: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[Row]:
        """See `Storage.rows`."""

        def ask(storage: Storage) -> Awaitable[list[Row]]:
            return storage.rows(
                identity, branch=branch, after=after, upto=upto, limit=limit, newest=newest
            )

        return await self._replicas.read(ask, identity)

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """A message by id, on any branch."""
        return await self._replicas.read(lambda storage: storage.row(identity, id), identity)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        return await self._replicas.read(lambda storage: storage.count(identity, branch), identity)

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.rewrite`."""

        def write(storage: Storage, expected: int | None) -> Awaitable[int]:
            return storage.rewrite(
                identity, replaced=replaced, removed=removed, expected=expected, seal=seal
            )

        return await self._write(identity, expected, write)

    async def _write(
        self,
        identity: SessionIdentity,
        expected: int | None,
        write: Callable[[Storage, int | None], Awaitable[int]],
    ) -> int:
        """Makes a write that creates a version; on the secondaries, the same version."""
        return await self._replicas.write(
            identity,
            lambda storage: write(storage, expected),
            lambda storage, version: write(storage, version - 1),
        )

    async def clear(
        self,
        identity: SessionIdentity,
        *,
        at: float,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.clear`."""

        def write(storage: Storage, expected: int | None) -> Awaitable[int]:
            return storage.clear(identity, at=at, expected=expected, seal=seal)

        return await self._write(identity, expected, write)

    async def fork(
        self,
        identity: SessionIdentity,
        *,
        parent: int,
        at: int,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.fork`."""

        def write(storage: Storage, expected: int | None) -> Awaitable[int]:
            return storage.fork(identity, parent=parent, at=at, expected=expected, seal=seal)

        number, _ = await self._replicas.write(
            identity,
            lambda storage: _known(storage, identity, expected, write),
            lambda storage, made: write(storage, made[1]),
        )
        return number

    async def activate(
        self,
        identity: SessionIdentity,
        branch: int,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> None:
        """See `Storage.activate`."""

        def write(storage: Storage) -> Awaitable[None]:
            return storage.activate(identity, branch, expected=expected, seal=seal)

        async def follow(storage: Storage, _: None) -> bool:
            await write(storage)
            return not is_proving(storage)  # encryption adds a version: compare afterwards

        await self._replicas.write(identity, write, follow)

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`."""
        await self._replicas.write(
            identity,
            lambda storage: storage.keep_windows(identity, windows),
            lambda storage, _: storage.keep_windows(identity, windows),
        )

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`; deletes from the secondaries first, and raises if one fails."""
        replicas = self._replicas
        # Twice: another process may have updated a secondary before the primary was changed.
        order = (*replicas.secondaries, replicas.primary, *replicas.secondaries)
        async with replicas.locked(identity):
            replicas.lost(identity)
            return any([await self._deleted(member, identity) for member in order])

    async def _deleted(self, member: Member, identity: SessionIdentity) -> bool:
        try:
            deleted = await member.run(lambda storage: storage.delete(identity))
        except StoreError as error:
            report = self._replicas.reports.add(member, "delete", error)
        else:
            member.behind.discard(identity.digest)
            return deleted
        msg = "the session could not be deleted everywhere; try again"
        raise failure(msg, [report])

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`; compares with the version of the primary."""
        replicas = self._replicas
        async with replicas.locked(session.identity):
            restored = await replicas.primary.run(lambda storage: storage.restore(session, rows))
            if restored:
                await replicas.copy(session.identity, lambda each: each.restore(session, rows))
        return restored

    async def set_aside(
        self,
        identity: SessionIdentity,
        seqs: Sequence[int],
        reason: str,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.set_aside`; run `repair` first if another member may have intact copies."""

        async def follow(storage: Storage, _: int) -> Literal[False]:
            await storage.set_aside(identity, seqs, reason, seal=seal)
            return False  # without an expected version: compare afterwards

        return await self._replicas.write(
            identity,
            lambda storage: storage.set_aside(identity, seqs, reason, expected=expected, seal=seal),
            follow,
        )

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`; those of the first member that does not fail."""
        expect_query(which, limit=limit)
        return await self._replicas.answer(
            lambda storage: storage.sessions(which, limit=limit, after=after)
        )

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`; uses the first member that does not fail."""
        expect_query(which, text=text, limit=limit)
        return await self._replicas.answer(lambda storage: storage.search(text, which, limit=limit))

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`; those of the first member that does not fail."""
        expect_query(which, by=by)
        return await self._replicas.answer(lambda storage: storage.totals(by, which))

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`; tries every member, and raises if one failed."""
        expect(user, str, "the user to forget")
        replicas = self._replicas
        erased, failed = await replicas.all("forget", lambda storage: storage.forget(user))
        replicas.lost()
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
        found, failed = await self._replicas.all("verify", lambda storage: storage.verify())
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
        return await repair(self._replicas, identity)


async def _known(
    storage: Storage,
    identity: SessionIdentity,
    expected: int | None,
    write: Callable[[Storage, int | None], Awaitable[T]],
) -> tuple[T, int]:
    """Makes a write; returns its result, and the session's version before it."""
    while True:
        session = None if expected is not None else await storage.session(identity)
        before = expected if session is None else session.version
        try:
            made = await write(storage, before)
        except Conflict:
            if expected is not None:
                raise
        else:
            return made, before or 0
