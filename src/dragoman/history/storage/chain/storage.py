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

from collections.abc import Iterable, Sequence

from dragoman.errors import InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.repairing import Repair, repair
from dragoman.history.storage.chain.shelf import ChainShelf, Member, Report, failure, mend
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import (
    EVERYTHING,
    Erasure,
    Filter,
    Group,
    Hit,
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
