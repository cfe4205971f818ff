"""The chain: reads fall through it, writes go down it.

- A read asks the primary. Where that has no such session, or fails, the next member is asked. An
  empty session has been cleared: it is an answer. Where the primary fails and nobody else has the
  session, that is an error, never an empty history.
- A write goes to the primary. If it fails there, it has failed, and no other member is touched.
  Then it goes to each secondary, for the same version: numbers are given out alike, so the copies
  stay alike. A secondary that fails, or is behind, fails no write: it is reported (`reports`, and
  as a warning in the log `dragoman.history`), and mended from the primary at the next write to
  the session, or by `repair`.
- A session that only a secondary has (the primary is new, or lost it) is brought to the primary
  before it is written to.
- `delete` and `forget` go to the secondaries first, and raise where any member fails: what is
  left on one would come back to life.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, TypeVar

from msgspec import UNSET

from dragoman.errors import Conflict, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.members import Member, Report
from dragoman.history.storage.chain.repairing import Repair, repair
from dragoman.history.storage.chain.replicas import Replicas, failure
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

    A member that could not be opened is tried again with a later call, `retry_after` seconds
    later at the earliest. `close` closes the members that are `owned`: all, if it is left out.
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
        """Its members."""
        return f"chain({', '.join(member.name for member in self._replicas.members)})"

    @property
    def is_blocking(self) -> bool:
        """Whether all members are."""
        return self._blocking

    @property
    def reports(self) -> tuple[Report, ...]:
        """What went wrong with members, the oldest first; the last 1,000."""
        return self._replicas.reports.all()

    async def open(self) -> None:
        """Open all members; raises where none could be."""
        failed = [await self._failed("open", each) for each in self._replicas.members]
        reports = [report for report in failed if report is not None]
        if len(reports) == len(failed):
            msg = "no member of the chain could be opened"
            raise failure(msg, reports)

    async def close(self) -> None:
        """Close the members that are its own."""
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

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What an encrypted member has found to be wrong with a session as a whole."""
        storages = (member.storage for member in self._replicas.members)
        told = (each.problem_of(identity) for each in storages if is_proving(each))
        return next((problem for problem in told if problem is not None), None)

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where the primary says that there is none, and nobody has it."""
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
        """One message, on any branch."""
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
        """Write what makes a version: on the secondaries, that same one."""
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
            return not is_proving(storage)  # that makes a version of it: compare

        await self._replicas.write(identity, write, follow)

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`."""
        await self._replicas.write(
            identity,
            lambda storage: storage.keep_windows(identity, windows),
            lambda storage, _: storage.keep_windows(identity, windows),
        )

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`: from the secondaries first; raises where one fails."""
        replicas = self._replicas
        # Twice: another process may have mended a secondary before the primary's turn came.
        order = (*replicas.secondaries, replicas.primary, *replicas.secondaries)
        async with replicas.turn(identity):
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
        msg = "the session is not deleted everywhere; try again"
        raise failure(msg, [report])

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`; it is the primary's session that has to be older."""
        replicas = self._replicas
        async with replicas.turn(session.identity):
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
        """See `Storage.set_aside`; `repair` first, where another member may have sound copies."""

        async def follow(storage: Storage, _: int) -> Literal[False]:
            await storage.set_aside(identity, seqs, reason, seal=seal)
            return False  # the version was not asked for, so let it be compared after

        return await self._replicas.write(
            identity,
            lambda storage: storage.set_aside(identity, seqs, reason, expected=expected, seal=seal),
            follow,
        )

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`: those of the first member that answers."""
        expect_query(which, limit=limit)
        return await self._replicas.answer(
            lambda storage: storage.sessions(which, limit=limit, after=after)
        )

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`: what the first member that answers finds."""
        expect_query(which, text=text, limit=limit)
        return await self._replicas.answer(lambda storage: storage.search(text, which, limit=limit))

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`: those of the first member that answers."""
        expect_query(which, by=by)
        return await self._replicas.answer(lambda storage: storage.totals(by, which))

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`: on every member; raises, after trying all, where one failed."""
        expect(user, str, "the user to forget")
        replicas = self._replicas
        erased, failed = await replicas.all("forget", lambda storage: storage.forget(user))
        replicas.lost()
        if failed:
            msg = "the user is not forgotten everywhere; try again"
            raise failure(msg, failed)
        return Erasure(
            # They are copies of each other: who had the most had them all.
            max(each.sessions for _, each in erased),
            max(each.messages for _, each in erased),
            tuple(f"{name}: {remains}" for name, each in erased for remains in each.remains),
        )

    async def verify(self) -> list[str]:
        """What is wrong with any member."""
        found, failed = await self._replicas.all("verify", lambda storage: storage.verify())
        unchecked = [f"{report.member} could not be checked: {report.problem}" for report in failed]
        return [
            f"{name}: {problem}" for name, problems in found for problem in problems
        ] + unchecked

    async def repair(self, identity: SessionIdentity | None = None) -> Repair:
        """Bring one session, or all, of every secondary up to the primary's.

        A copy that is damaged, also the primary's, is replaced by a sound one of the same state,
        if a member has one. Raises where the primary fails. What a secondary has and the primary
        has not, or has an older or another state of, is told and left as it is: neither deleted
        nor overwritten, nor brought to the primary.
        """
        return await repair(self._replicas, identity)


async def _known(
    storage: Storage,
    identity: SessionIdentity,
    expected: int | None,
    write: Callable[[Storage, int | None], Awaitable[T]],
) -> tuple[T, int]:
    """Write; what that made, and the version that the session had before."""
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
