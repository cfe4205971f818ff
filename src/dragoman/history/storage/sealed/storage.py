"""A storage around another, which sees nothing but sealed content."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Never, TypeVar

import msgspec

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
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
    Session,
    Storage,
    Total,
    expect_query,
)
from dragoman.history.storage.sealed.keyring import Keyring, is_sealed_as
from dragoman.history.storage.sealed.rotation import Rotating, Rotation, bound_to
from dragoman.model import document
from dragoman.model.value import expect

_LOG = logging.getLogger("dragoman.history")
_REFUSED = document.write("SealedMessage", None)
Each = TypeVar("Each", bound=Entry)


class SealedStorage:
    """Keeps the content of messages under encryption, on any storage.

    >>> from dragoman.history import MemoryStorage
    >>> SealedStorage(MemoryStorage(), keys={"2026": bytes(32)}, current="2026").name
    'memory, encrypted'

    Sealed are the bodies of messages and the windows (what was cut, with its summaries). In plain
    stay the names of the session, ids, times, models' names and token counts: they are no content,
    and the store finds and sums up by them. So `totals` work, and `search` is refused: nothing is
    ever indexed in plain text.

    A record is bound to its session and its id: who alters one, or swaps two, makes them
    unreadable (`message_of` raises `Corrupt`), as if they were damaged. A key that is missing or
    wrong is a `ConfigError` that names its id.

    Messages from before the encryption are read as they are, until `rotate` has sealed them; then
    say `accept_plain=False`, so that nobody who can write to the store can put words into it.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        keys: Mapping[str, bytes],
        current: str,
        accept_plain: bool = True,
    ) -> None:
        self._storage = storage
        self._keyring = Keyring(keys, current)
        self._accept_plain = accept_plain

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
        """Seal what is not under the current key anew: under an older one, or in plain text.

        Others may write meanwhile; it may be broken off and run again. First give all processes
        the new key, then make it current everywhere, then rotate, then take the old one away.
        A session that has something to seal gets a new version and time. What was set aside stays
        under its old key, and so do backups; a database may hold what was plain in free pages,
        logs and a search index until it is vacuumed.
        """
        return await Rotating(self._storage, self._keyring).run()

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where there is none."""
        found = await self._storage.session(identity)
        return None if found is None else self._opened_session(found)

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
    ) -> Appended:
        """See `Storage.append`."""
        sealed = self._sealed(identity, entries)
        return await self._storage.append(identity, sealed, branch=branch, expected=expected)

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
        """See `Storage.rows`; those that can't be opened are returned sealed."""
        found = await self._storage.rows(
            identity, branch=branch, after=after, upto=upto, limit=limit, newest=newest
        )
        return [self._opened(identity, row) for row in found]

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """One message, on any branch."""
        found = await self._storage.row(identity, id)
        return None if found is None else self._opened(identity, found)

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
    ) -> int:
        """See `Storage.rewrite`."""
        sealed = self._sealed(identity, replaced)
        return await self._storage.rewrite(
            identity, replaced=sealed, removed=removed, expected=expected
        )

    async def clear(
        self, identity: SessionIdentity, *, at: float, expected: int | None = None
    ) -> int:
        """See `Storage.clear`."""
        return await self._storage.clear(identity, at=at, expected=expected)

    async def fork(
        self, identity: SessionIdentity, *, parent: int, at: int, expected: int | None = None
    ) -> int:
        """See `Storage.fork`."""
        return await self._storage.fork(identity, parent=parent, at=at, expected=expected)

    async def activate(self, identity: SessionIdentity, branch: int) -> None:
        """See `Storage.activate`."""
        await self._storage.activate(identity, branch)

    async def keep_window(self, identity: SessionIdentity, window: bytes | None) -> None:
        """See `Storage.keep_window`."""
        await self._storage.keep_window(identity, self._sealed_window(identity, window))

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        return await self._storage.delete(identity)

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        window = self._sealed_window(session.identity, session.window)
        windows = self._sealed_window(session.identity, session.windows)
        sealed = self._sealed(session.identity, rows)
        copy = msgspec.structs.replace(session, window=window, windows=windows)
        return await self._storage.restore(copy, sealed)

    async def set_aside(self, identity: SessionIdentity, seqs: Sequence[int], reason: str) -> int:
        """See `Storage.set_aside`; they stay sealed."""
        return await self._storage.set_aside(identity, seqs, reason)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`."""
        expect_query(which, limit=limit)
        found = await self._storage.sessions(which, limit=limit, after=after)
        return [self._opened_session(session) for session in found]

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

    async def verify(self) -> list[str]:
        """See `Storage.verify`."""
        return await self._storage.verify()

    # --- sealing and opening

    def _sealed(self, identity: SessionIdentity, entries: Sequence[Each]) -> list[Each]:
        return [self._sealed_entry(identity, entry) for entry in entries]

    def _sealed_entry(self, identity: SessionIdentity, entry: Each) -> Each:
        if is_sealed(entry.body):  # a copy of one that can't be opened here
            return entry
        body = self._keyring.seal("SealedMessage", entry.body, bound_to(identity, entry.id))
        return msgspec.structs.replace(entry, body=body)

    def _sealed_window(self, identity: SessionIdentity, window: bytes | None) -> bytes | None:
        if window is None or is_sealed_as("SealedWindow", window):
            return window
        return self._keyring.seal("SealedWindow", window, bound_to(identity))

    def _opened(self, identity: SessionIdentity, row: Row) -> Row:
        if is_sealed(row.body):
            body = self._keyring.open("SealedMessage", row.body, bound_to(identity, row.id))
        else:
            body = row.body if self._accept_plain else _REFUSED
        # One that can't be opened stays as it is: `message_of` says so, and the others can be read.
        return row if body is None else msgspec.structs.replace(row, body=body)

    def _opened_session(self, session: Session) -> Session:
        if session.window is None and session.windows is None:
            return session
        window = self._opened_window(session.identity, session.window)
        windows = self._opened_window(session.identity, session.windows)
        return msgspec.structs.replace(session, window=window, windows=windows)

    def _opened_window(self, identity: SessionIdentity, raw: bytes | None) -> bytes | None:
        if raw is None:
            return None
        opened = raw if self._accept_plain else None
        if is_sealed_as("SealedWindow", raw):
            opened = self._keyring.open("SealedWindow", raw, bound_to(identity))
        if opened is None:  # it can be made again, from the messages
            _LOG.warning("history store %s: a window can't be opened; it is left out", self.name)
        return opened
