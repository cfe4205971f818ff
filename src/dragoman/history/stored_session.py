"""`Keeper`: loads and stores the messages of a session; tracks damage and uncertain writes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from os import getpid
from time import time
from typing import Any

import msgspec

from dragoman.errors import ConfigError, Conflict, Corrupt, NotFound, StoreError
from dragoman.history.branches import Stretch, read_path, read_tail, stretches
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, is_sealed, message_in
from dragoman.history.reported_tokens import usage_of
from dragoman.history.storage.integrity import damage_to, missing_rows, tally_of
from dragoman.history.storage.protocol import (
    MAIN,
    NO_MESSAGE,
    DuplicateIds,
    Entry,
    Row,
    Session,
    Storage,
    is_proving,
    touched,
)
from dragoman.model.collection import Messages
from dragoman.model.ids import new_id
from dragoman.model.messages import Message
from dragoman.tracing.spans import history_step

_log = logging.getLogger("dragoman.history")
PINNED = "pinned"
BEGUN = "begun"
"""In the metadata of tool messages: the ids of calls that were started and may have no result."""
_ALWAYS_KEPT = (PINNED, BEGUN)
_MISSING = 0  # used as a sequence number; the first message has 1
_SEALED = "the conversation is encrypted; open its store through SealedStorage, with its keys"


class DamagedMessage(msgspec.Struct, frozen=True):
    """A stored message that can't be read. It stays in the store; the rest is loaded without it.

    If messages are missing altogether, `seq` is 0 and `reason` tells how many.
    """

    seq: int
    id: str
    where: str
    """The store and the digest of the session."""
    reason: str
    """What is wrong with it."""

    def __repr__(self) -> str:
        number = f"message {self.seq}: " if self.seq > 0 else ""
        return f"DamagedMessage({number}{self.reason})"  # without its id

    def __rich_repr__(self) -> Iterator[Any]:  # type: ignore[override]  # rich accepts any iterable
        return iter((self.seq, self.reason))


class _Loaded(msgspec.Struct):
    """The loaded messages of a branch, at a version of the session."""

    version: int
    branch: int
    life: int  # a session that is deleted and created again restarts its versions
    messages: Messages


_MAX_CHANGES = 256


class Change(msgspec.Struct, frozen=True):
    """What one write of this history changed."""

    branch: int
    added: Sequence[Message] = ()
    replaced: Sequence[Message] = ()
    is_removal: bool = False


class Keeper:
    """A session in a backend, on one of its branches."""

    def __init__(
        self, identity: SessionIdentity, storage: Storage, *, store_meta: bool,
        accepts_damaged: bool = True,
    ) -> None:  # fmt: skip
        self.identity = identity
        self.branch = MAIN
        self.version = 0
        self.damaged: dict[int, DamagedMessage] = {}
        self.is_closed = False
        self._storage = storage
        self._proving = storage if is_proving(storage) else None
        self._process = getpid()
        self._store_meta = store_meta
        # Whoever shows what is in a store shows its damage too; a `ChatHistory` is used further.
        self._accepts_damaged = accepts_damaged
        self._loaded: _Loaded | None = None
        self.life = 0
        """Counts the sessions that this history has seen under its name, one after the other."""
        self._created_at = 0.0
        self._witness: str | None = None  # the id of a message of this life
        # Our own latest writes, by the version they created: a cache at the previous version can be
        # updated from them without reading again.
        self._changes: dict[int, Change] = {}
        # Ids of messages whose write failed without telling whether it happened.
        self._uncertain: set[str] = set()

    @property
    def storage(self) -> Storage:
        """The backend; raises if the history is closed."""
        self.expect_usable()
        return self._storage

    def expect_usable(self) -> None:
        """Raises if the history is closed, or was opened in another process."""
        if self.is_closed:
            msg = "the history is closed; open it again"
            raise StoreError(msg)
        if not self.is_in_own_process:
            msg = (
                "the history was opened in another process before a fork, and can't share its"
                " connections; open it again in this process"
            )
            raise StoreError(msg)

    @property
    def is_in_own_process(self) -> bool:
        """Whether this is the process in which it was opened."""
        return self._process == getpid()

    # --- reading

    async def session(self) -> Session | None:
        """Reads the session. If a `clear` has removed the branch, moves to the main one."""
        session = await self.storage.session(self.identity)
        self.version = 0 if session is None else session.version
        created_at = 0.0 if session is None else session.created_at
        if created_at != self._created_at or await self._is_recreated(session):
            self._changes.clear()
            self._created_at, self._witness = created_at, None
            self.life += 1
        if self.branch != MAIN and not _has_branch(session, self.branch):
            self.branch = MAIN
        return session

    async def _is_recreated(self, session: Session | None) -> bool:
        """Whether it is another session than before, although it was created at the same time.

        That takes a clock that stands still, and then there is only one time in it.
        """
        if session is None or self._witness is None or session.created_at != session.updated_at:
            return False
        return await self.storage.row(self.identity, self._witness) is None

    async def expect_untouched(self) -> None:
        """Raises `Corrupt` if the session is encrypted, and not what its owner wrote."""
        if self._proving is not None and not self._accepts_damaged:
            await self._proving.expect_untouched(self.identity)

    def is_current(self, session: Session | None) -> bool:
        """Whether the loaded messages are up to date."""
        held = self._loaded
        return (
            held is not None
            and session is not None
            and held.version == session.version
            and held.branch == self.branch
            and held.life == self.life
        )

    @history_step("read")
    async def stored(self, session: Session | None) -> Messages:
        """All messages of the branch; read again if another writer has changed the session."""
        if session is None:
            return Messages()
        held = self._loaded
        if held is None or not self.is_current(session):
            branch = self.branch
            rows = await read_path(self.storage, self.identity, stretches(session, branch))
            # Messages that arrived while reading belong to a later version; don't cache them.
            rows = [row for row in rows if row.seq <= session.last_seq]
            await self._report_missing(session, rows)
            messages = Messages.wrapping(self.decoded(rows))
            held = _Loaded(session.version, branch, self.life, messages)
            self._loaded = held
        return held.messages

    def changes(self, version: int, now: int) -> list[Change] | None:
        """Our writes between two versions; `None` if others wrote too, or they are too old."""
        if now - version > len(self._changes):
            return None
        found = [self._changes.get(each) for each in range(version + 1, now + 1)]
        known = [change for change in found if change is not None]
        return known if len(known) == len(found) and version <= now else None

    def _changed(self, version: int, change: Change) -> None:
        self._changes[version] = change
        if len(self._changes) > _MAX_CHANGES:
            del self._changes[next(iter(self._changes))]

    @history_step("read the end")
    async def tail(self, count: int) -> list[Message]:
        """The last messages of the branch."""
        return self.decoded(await read_tail(self.storage, self.identity, await self.path(), count))

    async def path(self) -> list[Stretch]:
        """The path to the end of the branch. For the main branch, the session is not needed."""
        if self.branch == MAIN:
            return [Stretch(MAIN, None)]
        return stretches(await self.session(), self.branch)

    async def row(self, id: str) -> Row:
        """The row of a message; raises `NotFound`."""
        row = await self.storage.row(self.identity, id)
        if row is None:
            raise NotFound(NO_MESSAGE)
        return row

    def decoded(self, given: Iterable[Row]) -> list[Message]:
        """Decodes rows; reports and skips those that can't be read.

        If all of them are encrypted, the keys are missing, and this raises instead of returning an
        empty conversation. Altered rows are not taken as a sign of missing keys.
        """
        rows = list(given)
        if rows and self._witness is None:
            self._witness = rows[0].id
        messages: list[Message] = []
        for row in rows:
            try:
                messages.append(message_in(row))
            except Corrupt as error:
                self._report(row, str(error))
        if rows and not messages and all(map(_is_sealed_and_sound, rows)):
            raise ConfigError(_SEALED)
        self._report_session_damage()
        return messages

    def _report_session_damage(self) -> None:
        """Reports damage to the session as a whole."""
        reason = self._proving.problem_of(self.identity) if self._proving is not None else None
        if reason is not None:
            self._report(Row("", b"", 0.0, seq=_MISSING), reason)

    async def _report_missing(self, session: Session, rows: Sequence[Row]) -> None:
        """Reports messages that are missing although nobody removed them."""
        if tally_of(session) is None:
            return
        found = await self.storage.count(self.identity) if session.forks else len(rows)
        reason = missing_rows(session, found)
        if reason is None:
            self.damaged.pop(_MISSING, None)
            return
        now = await self.storage.session(self.identity)
        if now is not None and now.version == session.version:  # not changed in the meantime
            self._report(Row("", b"", 0.0, seq=_MISSING), reason)

    def _report(self, row: Row, reason: str) -> None:
        if row.seq in self.damaged:
            return
        if self._proving is not None and not self._accepts_damaged:
            raise touched(
                self.identity, reason if row.seq == _MISSING else f"message {row.seq}: {reason}"
            )
        where = f"{self.storage.name}, session {self.identity.digest}"
        self.damaged[row.seq] = DamagedMessage(row.seq, row.id, where, reason)
        if row.seq == _MISSING:
            _log.warning("%s is damaged: %s", where, reason)
        else:
            _log.warning("message %d of %s is damaged and was skipped: %s", row.seq, where, reason)

    # --- writing

    @history_step("append")
    async def append(self, messages: Iterable[Message], expected: int | None) -> list[Message]:
        """Stores messages at the end of the branch; returns them as stored.

        A message whose id is already in the session gets a new id, because the same message may be
        added twice. The exception is a retry after an uncertain write: then the message is already
        stored, and nothing more is needed.
        """
        wanted = _with_unique_ids(map(self.as_stored, messages))
        there: set[str] = set()
        while missing := [m for m in wanted if m.id not in there] if there else wanted:
            branch = self.branch
            entries = [self._entry(message) for message in missing]
            try:
                made = await self.storage.append(
                    self.identity, entries, branch=branch, expected=expected
                )
            except (Conflict, NotFound) as error:
                refusal = error
            except BaseException:  # also when cancelled: the write may have happened
                self.doubt(missing)
                raise
            else:
                self._take(made.version, branch, missing)
                break
            known = await self._known(missing, refusal)
            there |= known & self._uncertain
            renamed = known - there
            wanted = [m.with_id(new_id()) if m.id in renamed else m for m in wanted]
        if self._uncertain:
            self._uncertain.difference_update(message.id for message in wanted)
        return wanted

    async def _known(self, messages: list[Message], refusal: Conflict | NotFound) -> set[str]:
        """The ids that already exist, by what an append was refused with, which is raised if none.

        None, too, if the branch is gone: then it is tried again on the main branch.
        """
        if isinstance(refusal, NotFound):
            if self.branch == MAIN:
                raise refusal
            self.branch = MAIN  # another writer cleared the session
            return set()
        known: set[str] = set()
        if isinstance(refusal, DuplicateIds):
            known |= {*refusal.ids}
        elif not all(message.id in self._uncertain for message in messages):
            raise refusal  # otherwise the earlier attempt may have written exactly these messages
        known |= await self._stored_of(messages)
        if not known:
            raise Conflict(str(refusal)) if isinstance(refusal, DuplicateIds) else refusal
        return known

    async def _stored_of(self, messages: Iterable[Message]) -> set[str]:
        """The ids that are stored: backends may report only one of several duplicates."""
        ids = [message.id for message in messages]
        return {id for id in ids if await self.storage.row(self.identity, id) is not None}

    def _take(self, version: int, branch: int, messages: Sequence[Message]) -> None:
        """Takes into account that these messages were stored at the end of a branch."""
        self._changed(version, Change(branch, added=tuple(messages)))
        if self._witness is None:
            self._witness = messages[0].id
        held = self._loaded
        if (
            held is not None
            and held.version == version - 1 == self.version
            and held.branch == branch
        ):
            held.version, held.messages = version, held.messages.extend(messages)
        # With several tasks, the last reply is not always the latest version.
        self.version = max(self.version, version)

    def doubt(self, messages: Iterable[Message]) -> None:
        """Marks writes as uncertain: adding these messages again must not store them twice."""
        self._uncertain.update(message.id for message in messages)

    def doubts(self, id: str) -> bool:
        """Whether adding a message with this id again means the same message."""
        return id in self._uncertain

    @history_step("rewrite")
    async def rewrite(
        self, replaced: Mapping[str, Message], removed: Collection[str], expected: int | None
    ) -> set[str]:
        """Replaces and removes stored messages by id; returns the ids that no longer exist."""
        gone: set[str] = set()
        while wanted := {*replaced, *removed} - gone:
            try:
                self.version = await self.storage.rewrite(
                    self.identity,
                    replaced=[self._entry(replaced[id]) for id in replaced if id in wanted],
                    removed=[id for id in removed if id in wanted],
                    expected=expected,
                )
            except NotFound:
                known = gone.copy()
            else:
                self._rewrote(replaced, removed, gone)
                break
            gone |= {id for id in wanted if await self.storage.row(self.identity, id) is None}
            if gone == known:
                raise NotFound(NO_MESSAGE)
        return gone

    def _rewrote(
        self, replaced: Mapping[str, Message], removed: Collection[str], gone: set[str]
    ) -> None:
        """Updates the loaded messages, so that a round of tool calls need not load them again."""
        new = {id: message for id, message in replaced.items() if id not in gone}
        old = frozenset(removed) - gone
        change = Change(self.branch, replaced=tuple(new.values()), is_removal=bool(old))
        self._changed(self.version, change)
        held = self._loaded
        if held is not None and held.version == self.version - 1:
            left = (message for message in held.messages if message.id not in old)
            held.messages = Messages.wrapping(new.get(message.id, message) for message in left)
            held.version = self.version
        if self._witness in old:
            self._witness = held.messages[0].id if held is not None and held.messages else None

    async def clear(self, expected: int | None) -> None:
        """Removes all messages of all branches."""
        self.version = await self.storage.clear(self.identity, at=time(), expected=expected)
        self._reset()

    async def delete(self) -> bool:
        """Deletes the session; returns whether it existed."""
        was_there = await self.storage.delete(self.identity)
        self.version = 0
        self._reset()
        return was_there

    def _reset(self) -> None:
        self.branch, self._loaded, self._witness = MAIN, None, None
        self._changes.clear()
        self.damaged.clear()
        self._uncertain.clear()

    def move(self, branch: int) -> None:
        """Moves to another branch. Uncertain writes concerned the old one."""
        self.branch = branch
        self._uncertain.clear()

    def _entry(self, message: Message) -> Entry:
        usage = usage_of(message)
        model = message.origin.model if message.origin is not None else None
        counts = None if usage is None else usage.counts
        return Entry(message.id, body_of(message), time(), model, counts)

    def as_stored(self, message: Message) -> Message:
        """The message as stored: without metadata if so configured, except usage and our keys."""
        if self._store_meta or not message.metadata:
            return message
        usage = usage_of(message)
        kept = {key: value for key in _ALWAYS_KEPT if (value := message.metadata.get(key))}
        return message.replace(metadata=kept, usage=usage)


def _is_sealed_and_sound(row: Row) -> bool:
    return is_sealed(row.body) and damage_to(row) is None


def _has_branch(session: Session | None, branch: int) -> bool:
    return session is not None and any(fork.number == branch for fork in session.forks)


def _with_unique_ids(messages: Iterable[Message]) -> list[Message]:
    """The messages, with new ids for duplicates among them."""
    given = list(messages)
    if len(given) == 1:
        return given
    seen: set[str] = set()
    own: list[Message] = []
    for message in given:
        own.append(message.with_id(new_id()) if message.id in seen else message)
        seen.add(own[-1].id)
    return own
