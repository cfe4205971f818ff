"""Between messages and a backend: encoding, loading, what is broken, what is uncertain."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from time import time

import msgspec

from dragoman.errors import Corrupt, NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.paths import Stretch, read_path, read_tail, stretches
from dragoman.history.records import body_of, message_of
from dragoman.history.storage.protocol import (
    MAIN,
    NO_MESSAGE,
    DuplicateIds,
    Entry,
    Row,
    Session,
    Storage,
)
from dragoman.model.collection import Messages
from dragoman.model.ids import new_id
from dragoman.model.messages import Message
from dragoman.model.usage import Usage

_log = logging.getLogger("dragoman.history")
PINNED = "pinned"


class Damaged(msgspec.Struct, frozen=True):
    """A stored message that can't be read. It stays where it is; the rest loads without it."""

    seq: int
    id: str
    where: str
    """The store and the session, by its digest."""
    reason: str


class _Loaded(msgspec.Struct):
    """A path as it was read, at a version of its session."""

    version: int
    branch: int
    messages: Messages


class Keeper:
    """One session in one backend, on one branch."""

    def __init__(self, identity: SessionIdentity, storage: Storage, *, store_meta: bool) -> None:
        self.identity = identity
        self.storage = storage
        self.branch = MAIN
        self.version = 0
        self.damaged: dict[int, Damaged] = {}
        self._store_meta = store_meta
        self._loaded: _Loaded | None = None
        # Ids of writes that failed in a way that leaves open whether they happened.
        self._uncertain: set[str] = set()

    # --- reading

    async def session(self) -> Session | None:
        """The session now."""
        session = await self.storage.session(self.identity)
        self.version = 0 if session is None else session.version
        return session

    def is_current(self, session: Session | None) -> bool:
        """Whether what was loaded is what is stored."""
        held = self._loaded
        return (
            held is not None
            and session is not None
            and (held.version, held.branch) == (session.version, self.branch)
        )

    async def stored(self, session: Session | None) -> Messages:
        """All messages of the branch, read anew where somebody wrote in the meantime."""
        if session is None:
            return Messages()
        held = self._loaded
        if held is None or not self.is_current(session):
            rows = await read_path(self.storage, self.identity, stretches(session, self.branch))
            # Messages that came in while reading belong to a later version: not remembered.
            rows = [row for row in rows if row.seq <= session.last_seq]
            messages = Messages.wrapping(self.decoded(rows))
            held = self._loaded = _Loaded(session.version, self.branch, messages)
        return held.messages

    async def tail(self, count: int) -> list[Message]:
        """The last messages of the branch."""
        return self.decoded(await read_tail(self.storage, self.identity, await self.path(), count))

    async def after(self, seq: int) -> list[Row]:
        """The rows of the branch numbered above `seq`."""
        return await read_path(self.storage, self.identity, await self.path(), after=seq)

    async def path(self) -> list[Stretch]:
        """The way to the branch's end. The first branch is its own: nobody need be asked."""
        if self.branch == MAIN:
            return [Stretch(MAIN, None)]
        return stretches(await self.session(), self.branch)

    async def row(self, id: str) -> Row:
        """One stored message's row; raises `NotFound`."""
        row = await self.storage.row(self.identity, id)
        if row is None:
            raise NotFound(NO_MESSAGE)
        return row

    def decoded(self, rows: Iterable[Row]) -> list[Message]:
        """The messages in rows; those that can't be read are reported and left out."""
        messages: list[Message] = []
        for row in rows:
            try:
                messages.append(message_of(row.body))
            except Corrupt as error:
                self._report(row, str(error))
        return messages

    def _report(self, row: Row, reason: str) -> None:
        if row.seq in self.damaged:
            return
        where = f"{self.storage.name}, session {self.identity.digest}"
        self.damaged[row.seq] = Damaged(row.seq, row.id, where, reason)
        _log.warning("message %d of %s is damaged and was left out: %s", row.seq, where, reason)

    # --- writing

    async def append(self, messages: Sequence[Message], expected: int | None) -> list[Message]:
        """Store messages at the end of the branch; returns them as stored.

        One whose id the session holds already is stored under a new id: saying the same again is
        saying it twice. But not where an earlier attempt to store it ended in doubt: then it is
        there, and that is all that was wanted.
        """
        messages = _with_ids_of_their_own(messages)
        while True:
            try:
                await self._append(messages, expected)
            except DuplicateIds as duplicates:
                known = set(duplicates.ids)
            else:
                return messages
            if known <= self._uncertain:
                self._uncertain -= known
                return messages
            messages = [m.with_id(new_id()) if m.id in known else m for m in messages]

    async def _append(self, messages: Sequence[Message], expected: int | None) -> None:
        entries = [self._entry(message) for message in messages]
        try:
            appended = await self.storage.append(
                self.identity, entries, branch=self.branch, expected=expected
            )
        except DuplicateIds:
            raise
        except BaseException:  # cancelled as well: the write may have happened
            self._uncertain.update(entry.id for entry in entries)
            raise
        held = self._loaded
        if held is not None and held.version == appended.version - 1 == self.version:
            held.version, held.messages = appended.version, held.messages.extend(messages)
        self.version = appended.version

    def doubt(self, messages: Iterable[Message]) -> None:
        """Adding these again must not store them twice: the caller was told of a failure."""
        self._uncertain.update(message.id for message in messages)

    async def rewrite(
        self, replaced: Iterable[Message], removed: Iterable[str], expected: int | None
    ) -> None:
        """Replace and remove stored messages by id."""
        self.version = await self.storage.rewrite(
            self.identity,
            replaced=[self._entry(message) for message in replaced],
            removed=tuple(removed),
            expected=expected,
        )

    async def clear(self, expected: int | None) -> None:
        """Remove all messages, of all branches."""
        self.version = await self.storage.clear(self.identity, at=time(), expected=expected)
        self.branch = MAIN

    def _entry(self, message: Message) -> Entry:
        usage = message.usage
        if message.metadata:
            message, usage = self._without_metadata(message), usage or reported_usage(message)
        model = message.origin.model if message.origin is not None else None
        counts = None if usage is None else usage.counts
        return Entry(message.id, body_of(message), time(), model, counts)

    def _without_metadata(self, message: Message) -> Message:
        """The message as it is stored: usage is kept in any case, and so is that it is pinned."""
        usage = message.usage or reported_usage(message)
        if self._store_meta:
            return message
        kept = {PINNED: True} if message.metadata.get(PINNED) else {}
        return message.replace(metadata=kept, usage=usage)


def reported_usage(message: Message) -> Usage | None:
    """The usage that seed 001 keeps in `metadata["usage"]["total_tokens"]`."""
    usage = message.metadata.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return Usage(reported_total=total) if type(total) is int and total >= 0 else None


def _with_ids_of_their_own(messages: Sequence[Message]) -> list[Message]:
    """The messages, each under an id that no other of them has."""
    seen: set[str] = set()
    own: list[Message] = []
    for message in messages:
        own.append(message.with_id(new_id()) if message.id in seen else message)
        seen.add(own[-1].id)
    return own
