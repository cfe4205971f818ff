"""A storage around another, which sees nothing but sealed content."""

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
from dragoman.history.storage.sealed.checkpoint import checked, checkpoint
from dragoman.history.storage.sealed.examining import Examiner
from dragoman.history.storage.sealed.keyring import Keyring
from dragoman.history.storage.sealed.reading import Reader
from dragoman.history.storage.sealed.records import Records
from dragoman.history.storage.sealed.repairing import Repairer
from dragoman.history.storage.sealed.rotation import Rotating, Rotation
from dragoman.history.storage.sealed.seen_states import Known
from dragoman.history.storage.sealed.state import State
from dragoman.history.storage.sealed.writing import Writer
from dragoman.history.transfer import every_session
from dragoman.model.value import expect

_LOG = logging.getLogger("dragoman.history")


class SealedStorage:
    """Keeps the content of messages under encryption, on any storage.

    >>> from dragoman.history import MemoryStorage
    >>> SealedStorage(MemoryStorage(), keys={"2026": bytes(32)}, current="2026").name
    'memory, encrypted'

    Sealed are the bodies of messages and the windows (what was cut, with its summaries). In plain
    stay the names of the session, ids, times, models' names and token counts: they are no content,
    and the store finds and sums up by them. So `totals` work, and `search` is refused: nothing is
    ever indexed in plain text.

    Who can write to the store, but has no key, can't put words into it: a message is bound to its
    session, its branch and number, and all that is kept beside it. One that was altered, moved or
    swapped is damaged (`message_in` raises `Corrupt`). Each session has a sealed head, which says
    how many messages it has and what they add up to: what is missing, too many or put back to an
    earlier state is told by `verify`, and by `ChatHistory.damaged`. What this storage has seen
    of a session it remembers: an older state of it is `Corrupt`. For what happened before it was
    opened, keep a `checkpoint` elsewhere, and give it to `verify`.

    Everything that writes needs the keys. A key that is missing or wrong is a `ConfigError` that
    names its id. Messages in plain text are refused, unless `accept_plain` says that the store
    was not encrypted before: then call `rotate` once, and leave it out from then on.
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
            msg = "a storage is encrypted once: there is no SealedStorage around another"
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
        """What it is and where."""
        return f"{self._storage.name}, encrypted"

    @property
    def is_blocking(self) -> bool:
        """Whether the storage beneath is."""
        return self._storage.is_blocking

    async def open(self) -> None:
        """Open the storage beneath."""
        await self._storage.open()

    async def close(self) -> None:
        """Close the storage beneath."""
        await self._storage.close()

    async def rotate(self) -> Rotation:
        """Seal what is not under the current key anew: under an older one, or not at its place.

        Messages in plain text are sealed only with `accept_plain`, and what can't be opened is
        left as it is: both are counted. A session that is not as its owner left it is passed over:
        `verify` tells of it. Others may write meanwhile; it may be broken off and run again.

        First give all processes the new key, then make it current everywhere, then rotate, then
        take the old one away. A session that has something to seal gets a new version and time.
        What was set aside stays under its old key, and so do backups; a database may hold what was
        plain in free pages, logs and a search index until it is vacuumed.
        """
        rotating = Rotating(self._storage, self._records, self._known, self._examiner, self._writer)
        return await rotating.run()

    async def checkpoint(self) -> bytes:
        """What is newest in the store now, sealed: to be kept elsewhere, for `verify(since=…)`.

        About 150 bytes for each session. Raises `Corrupt` where a session is not as it should be.
        """
        return await checkpoint(self._storage, self._records, self._examiner)

    # --- one session

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What reading has shown to be wrong with a session as a whole, in plain words."""
        return self._known.problem(identity.digest)

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where there is none. Raises `Corrupt` where it is older than it was."""
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
        """See `Storage.rows`; those that can't be opened are returned as damaged ones."""
        found = await self._reader.rows(
            identity, branch=branch, after=after, upto=upto, limit=limit, newest=newest
        )
        return [each.row for each in found]

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """One message, on any branch."""
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
        """See `Storage.clear`; also where something is wrong with what was there."""
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
        """See `Storage.activate`; a new version, as with all that is sealed."""
        _refuse(seal)
        await self._writer.activate(identity, branch, expected)

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`."""
        await self._writer.keep_windows(identity, windows)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        async with self._writer.turns.of(identity.digest):
            was_there = await self._storage.delete(identity)
            self._known.deleted(identity.digest)
            return was_there

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`: what is given is sealed, as when it is appended."""
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
        """See `Storage.set_aside`; they stay sealed, and what is left gets a new head."""
        _refuse(seal)
        return await self._repairer.set_aside(identity, seqs, reason, expected)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`. What is wrong with one is not told here, but by `verify`."""
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
        """Refused: a search would need an index in plain text."""
        expect_query(which, text=text, limit=limit)
        msg = (
            f"the store {self._storage.name} is encrypted, and can't be searched:"
            " nothing of it is indexed in plain text"
        )
        raise StoreError(msg)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`: token counts are no content, and are not sealed."""
        expect_query(which, by=by)
        return await self._storage.totals(by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`."""
        expect(user, str, "the user to forget")
        return await self._storage.forget(user)

    async def verify(self, *, since: bytes | None = None) -> list[str]:
        """See `Storage.verify`, and all that somebody without the keys did to the sessions.

        With a `checkpoint`, `since` when something must not have gone or become older, also what
        was put back to a state before it, and sessions that are gone: who deleted them, their owner
        or somebody else, can't be told.
        """
        newest = None if since is None else checked(self._records, since)
        problems = await self._storage.verify()
        async for session in every_session(self._storage):
            for problem in await self._examiner.problems(session.identity):
                problems.append(f"session {session.identity.digest}: {problem}")
        if newest is not None:
            problems += await newest.problems(self._storage, self._records)
        return list(dict.fromkeys(problems))

    # --- what is handed out

    def _handed_out(self, session: Session, state: State | None) -> Session:
        if self._records.has_broken_window(session, state):  # it can be made again
            _LOG.warning("history store %s: a window can't be opened; it is left out", self.name)
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
        except ConfigError:  # one session must not end a listing
            return msgspec.structs.replace(session, window=None, windows=None, seal=None)


def _refuse(seal: Seal) -> None:
    if seal is not UNSET:
        msg = "an encrypted store makes the seals itself"
        raise InvalidInputError(msg)
