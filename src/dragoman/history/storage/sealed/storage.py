"""`SealedStorage`: wraps another storage, which sees only encrypted content."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Never

import msgspec
from msgspec import UNSET

from dragoman.errors import ConfigError, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
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
)
from dragoman.history.storage.sealed.examining import Examiner, Known
from dragoman.history.storage.sealed.keyring import Keyring
from dragoman.history.storage.sealed.reading import Reader, checked, checkpoint
from dragoman.history.storage.sealed.records import Records
from dragoman.history.storage.sealed.repairing import Repairer, Rotating, Rotation
from dragoman.history.storage.sealed.state import State
from dragoman.history.storage.sealed.writing import Writer
from dragoman.history.transfer import every_session
from dragoman.model.value import expect

_LOG = logging.getLogger("dragoman.history")


class SealedStorage:
    """Encrypts the content of messages, on any storage.

    >>> from dragoman.history import MemoryStorage
    >>> SealedStorage(MemoryStorage(), keys={"2026": bytes(32)}, current="2026").name
    'memory, encrypted'

    Encrypted are the bodies of messages and the windows (cuts with their summaries). In plain text
    are the names of the session, ids, times, model names and token counts: they are not content,
    and the store uses them for lookup and aggregation. So `totals` work, but `search` raises,
    because nothing is ever indexed in plain text.

    Somebody who can write to the store but has no key can't forge content: a message is bound to
    its session, branch, number, and everything stored next to it. A message that was altered, moved
    or swapped is reported as damaged (`Corrupt`). Each session has a sealed head with the number of
    its messages and their checksum: `verify` and `ChatHistory.damaged` report messages that are
    missing, added or reverted. An open storage remembers the sessions it has seen, and raises
    `Corrupt` for an older state. To detect what happened before it was opened, keep a `checkpoint`
    elsewhere and pass it to `verify`.

    All writes need the keys. A missing or wrong key raises a `ConfigError` that names its id.
    Messages in plain text are rejected, unless `accept_plain` is set because the store was not
    encrypted before; then call `rotate` once, and omit `accept_plain` from then on.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        keys: Mapping[str, bytes],
        current: str,
        accept_plain: bool = False,
    ) -> None:
        if isinstance(storage, SealedStorage):
            msg = "the storage is already a SealedStorage; it can't be encrypted twice"
            raise InvalidInputError(msg)
        self._storage = storage
        self._records = Records(Keyring(keys, current), accept_plain=accept_plain)
        self._known = Known()
        self._examiner = Examiner(storage, self._records, self._known)
        self._reader = Reader(storage, self._records, self._known, self._examiner)
        self._writer = Writer(storage, self._records, self._known, self._examiner)
        self._repairer = Repairer(storage, self._records, self._known, self._examiner, self._writer)

    def __reduce__(self) -> Never:
        msg = "a storage with keys can't be pickled or copied"
        raise TypeError(msg)

    @property
    def name(self) -> str:
        """The name of the underlying storage, marked as encrypted."""
        return f"{self._storage.name}, encrypted"

    @property
    def is_blocking(self) -> bool:
        """Whether the underlying storage is blocking."""
        return self._storage.is_blocking

    async def open(self) -> None:
        """Opens the underlying storage."""
        await self._storage.open()

    async def close(self) -> None:
        """Closes the underlying storage."""
        await self._storage.close()

    async def rotate(self) -> Rotation:
        """Re-encrypts what does not use the current key, or is not bound to its position.

        Messages in plain text are encrypted only with `accept_plain`. What can't be decrypted is
        left unchanged. Both are counted. Sessions that were tampered with are skipped; `verify`
        reports them. Others may write at the same time. It may be interrupted and run again.

        To replace a key: give all processes the new key, make it current everywhere, rotate, then
        remove the old key. Every session that is changed gets a new version and time. Records set
        aside and backups keep their old key. A database may hold old plain text in free pages, logs
        and a search index until it is vacuumed.
        """
        rotating = Rotating(self._storage, self._records, self._known, self._examiner, self._writer)
        return await rotating.run()

    async def checkpoint(self) -> bytes:
        """The latest state of the store, encrypted; keep it elsewhere for `verify(since=…)`.

        Takes about 150 bytes per session. Raises `Corrupt` if a session is not valid.
        """
        return await checkpoint(self._storage, self._records, self._examiner)

    # --- one session

    @property
    def is_proving(self) -> bool:
        """Always: heads prove what their sessions hold."""
        return True

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What reading has found to be wrong with a session as a whole, or `None`."""
        return self._known.problem(identity.digest)

    async def expect_untouched(self, identity: SessionIdentity) -> None:
        """Raises `Corrupt` unless the session has all messages, as they were written.

        Reads all of them, without decrypting those that are in order.
        """
        await self._examiner.expect_untouched(identity)

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session, or `None`. Raises `Corrupt` if it is older than seen before."""
        look = await self._examiner.look(identity)
        if look is None:
            return None
        found = look.session
        if look.state is not None and look.problem is None:
            found = msgspec.structs.replace(found, active=look.state.active)
        return self._handed_out(found, look.state)

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
        _refuse(seal)
        return await self._writer.append(identity, entries, branch, expected)

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
        """See `Storage.rows`; rows that can't be decrypted are returned as damaged."""
        found = await self._reader.rows(
            identity, branch=branch, after=after, upto=upto, limit=limit, newest=newest
        )
        return [each.row for each in found]

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """A message by id, on any branch."""
        return await self._reader.row(identity, id)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        return await self._storage.count(identity, branch)

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
        _refuse(seal)
        return await self._writer.rewrite(identity, replaced, removed, expected)

    async def clear(
        self,
        identity: SessionIdentity,
        *,
        at: float,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.clear`; also works if the session is damaged."""
        _refuse(seal)
        return await self._writer.clear(identity, at, expected)

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
        _refuse(seal)
        return await self._writer.fork(identity, parent, at, expected)

    async def activate(
        self,
        identity: SessionIdentity,
        branch: int,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> None:
        """See `Storage.activate`; increments the version, like all sealed changes."""
        _refuse(seal)
        await self._writer.activate(identity, branch, expected)

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`."""
        await self._writer.keep_windows(identity, windows)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        async with self._writer.locks.of(identity.digest):
            was_there = await self._storage.delete(identity)
            self._known.deleted(identity.digest)
            return was_there

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`; the rows are encrypted, as in an append."""
        return await self._repairer.restore(session, rows)

    async def set_aside(
        self,
        identity: SessionIdentity,
        seqs: Sequence[int],
        reason: str,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.set_aside`; the records stay encrypted, and the rest gets a new head."""
        _refuse(seal)
        return await self._repairer.set_aside(identity, seqs, reason, expected)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`. Damage is not reported here, but by `verify`."""
        expect_query(which, limit=limit)
        found = await self._storage.sessions(which, limit=limit, after=after)
        return [self._listed(session) for session in found]

    async def search(
        self,
        text: str,
        which: Filter = EVERYTHING,
        *,
        limit: int = 50,
    ) -> list[Hit]:
        """Always raises: a search would need an index in plain text."""
        expect_query(which, text=text, limit=limit)
        msg = (
            f"the store {self._storage.name} is encrypted and can't be searched:"
            " nothing is indexed in plain text"
        )
        raise StoreError(msg)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`; token counts are not encrypted."""
        expect_query(which, by=by)
        return await self._storage.totals(by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`."""
        expect(user, str, "the user to forget")
        return await self._storage.forget(user)

    async def verify(self, *, since: bytes | None = None) -> list[str]:
        """See `Storage.verify`; also reports everything done to sessions without the keys.

        With a `checkpoint` in `since`, it also reports sessions that were reverted to an earlier
        state or deleted since then. It can't tell whether their owner or somebody else deleted
        them.
        """
        newest = None if since is None else checked(self._records, since)
        problems = await self._storage.verify()
        async for session in every_session(self._storage):
            for problem in await self._examiner.problems(session.identity):
                problems.append(f"session {session.identity.digest}: {problem}")
        if newest is not None:
            problems += await newest.problems(self._storage, self._records)
        return list(dict.fromkeys(problems))

    # --- output

    def _handed_out(self, session: Session, state: State | None) -> Session:
        if self._records.has_broken_window(session, state):  # it can be recomputed
            _LOG.warning("history store %s: ignoring a window that can't be decrypted", self.name)
        return msgspec.structs.replace(
            session,
            window=self._records.window_in(session, "window", state),
            windows=self._records.window_in(session, "windows", state),
            seal=None,
        )

    def _listed(self, session: Session) -> Session:
        try:
            state, _ = self._records.state_in(session)
            return self._handed_out(session, state)
        except ConfigError:  # one session must not abort a listing
            return msgspec.structs.replace(session, window=None, windows=None, seal=None)


def _refuse(seal: Seal) -> None:
    if seal is not UNSET:
        msg = "seal can't be passed: an encrypted store creates seals itself"
        raise InvalidInputError(msg)
