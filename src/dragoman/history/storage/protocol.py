"""`Storage`: the protocol of backends, and its data types.

A session is a log of messages. Each message gets the next sequence number (`seq`) of its session
when it is appended; every write increments the session's `version`. Numbering is deterministic: the
same writes give the same numbers on every backend, which keeps the members of a chain identical.

A branch is an alternative continuation from an earlier message: it has a number, and its path is
its parent's up to `at`, followed by its own messages. A linear conversation is branch 0 and stores
no branches.

`None` for a session means that it does not exist; a session without messages has been cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeGuard, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import Conflict, Corrupt, InvalidInputError, StoreError
from dragoman.history.identity import FIELDS, SessionIdentity, escaped
from dragoman.history.storage.integrity import checksum_of, place_of
from dragoman.model.usage import Usage
from dragoman.model.value import expect, expect_number

if TYPE_CHECKING:
    from dragoman.history.storage.heads import Lease

MAIN = 0
Group = Literal["session", "user", "model", "day"]


class _Discreet(msgspec.Struct, frozen=True, gc=False):
    """A struct whose repr shows sizes and kinds, never content or names."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> Iterator[Any]:  # type: ignore[override]  # rich accepts any iterable
        return iter(())


class Entry(_Discreet, frozen=True, gc=False):
    """A message to be stored: its body, and the fields that a backend needs."""

    id: str
    body: bytes
    """The message as canonical JSON, possibly encrypted. Backends only look inside to search."""
    at: float
    """When it was stored; Unix time, in seconds."""
    model: str | None = None
    usage: Usage | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.body)} bytes)"  # sizes, never content


class Row(Entry, frozen=True, gc=False, kw_only=True):
    """A stored message and its position."""

    seq: int
    branch: int = MAIN
    checksum: str | None = None
    """Covers the content; `chain` repeats the position. See `history.storage.integrity`."""
    chain: str | None = None


class Fork(msgspec.Struct, frozen=True, gc=False):
    """Where a branch leaves its parent: after the message numbered `at`; 0 means at the start."""

    number: int
    parent: int
    at: int


class Session(_Discreet, frozen=True, gc=False):
    """A session without its messages."""

    identity: SessionIdentity
    version: int
    last_seq: int
    created_at: float
    updated_at: float
    active: int = MAIN
    """The branch that histories open on."""
    forks: tuple[Fork, ...] = ()
    window: bytes | None = None
    """The cut of earlier releases; see `dragoman.history.truncation`."""
    windows: bytes | None = None
    """The cuts by branch, model and limit, as a document."""
    chain: str | None = None
    """A copy of its counters, and its number of rows; see `dragoman.history.storage.integrity`."""
    seal: bytes | None = None
    """A document that proves the session's state with encryption; backends only store it."""

    def __repr__(self) -> str:
        return f"Session({self.identity!r}, version {self.version})"


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The result of an append: the session's version, and the number of its last message."""

    version: int
    last_seq: int


class Filter(_Discreet, frozen=True, kw_only=True):
    """Selects sessions by name (`None` means without that name) and by their last write."""

    agent: str | UnsetType | None = UNSET
    chat: str | UnsetType | None = UNSET
    user: str | UnsetType | None = UNSET
    group: str | UnsetType | None = UNSET
    scope: str | UnsetType | None = UNSET
    since: float | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        for name in self.names().values():
            if name is not None:
                escaped(name)
        expect_number(self.since, "Filter.since")
        expect_number(self.until, "Filter.until")

    def names(self) -> dict[str, str | None]:
        """The names to filter by."""
        given = {field: getattr(self, field) for field in FIELDS}
        return {field: name for field, name in given.items() if name is not UNSET}

    def takes(self, session: Session) -> bool:
        """Whether a session matches; for backends that scan all sessions."""
        if self.since is not None and session.updated_at < self.since:
            return False
        if self.until is not None and session.updated_at >= self.until:
            return False
        return all(getattr(session.identity, field) == n for field, n in self.names().items())


EVERYTHING = Filter()


class Hit(_Discreet, frozen=True):
    """A search result."""

    identity: SessionIdentity
    row: Row


class Total(_Discreet, frozen=True):
    """The usage of one session, user, model or day; `key` is `None` if unknown."""

    key: str | None
    usage: Usage
    messages: int


class Erasure(msgspec.Struct, frozen=True):
    """What `forget` erased; `remains` lists where copies may be left."""

    sessions: int
    messages: int
    remains: tuple[str, ...] = ()


class Storage(Protocol):
    """A backend. Every method is atomic, and raises `StoreError` if the backend fails.

    Stored data may be damaged. Unreadable counters of a session raise `Corrupt`; an unreadable row
    is returned as a `Row` whose damage can be detected (`integrity.damage_to`, or a body that is
    not a message). No other exception is raised, and nothing is dropped silently.
    """

    @property
    def name(self) -> str:
        """The kind of backend and its location, without passwords."""
        ...

    @property
    def is_blocking(self) -> bool:
        """Whether its methods never await anything, so that blocking code can run them."""
        ...

    async def open(self) -> None:
        """Connects, and creates or migrates the schema. Idempotent."""
        ...

    async def close(self) -> None:
        """Releases all resources. Idempotent."""
        ...

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session, or `None`."""
        ...

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
    ) -> Appended:
        """Appends one or more messages to a branch; creates the session if necessary.

        Raises `Conflict` if the session's version is not the `expected` one (0: the session must
        not exist), `DuplicateIds` if one of the ids is in use, and `NotFound` if the branch does
        not exist.
        """
        ...

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
        """A branch's own messages with numbers above `after` and up to `upto`, in order.

        With a `limit`, the oldest ones, or the `newest`; the order is the same.
        """
        ...

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """A message by id, on any branch."""
        ...

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """The number of messages in the session, or in a branch without its parents."""
        ...

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
    ) -> int:
        """Replaces and removes messages by id; returns the version.

        Raises `NotFound` if one does not exist. Sequence numbers are never reused.
        """
        ...

    async def clear(
        self,
        identity: SessionIdentity,
        *,
        at: float,
        expected: int | None = None,
    ) -> int:
        """Removes all messages and branches; creates the session if necessary. Returns the version.

        Sequence numbers continue.
        """
        ...

    async def fork(
        self,
        identity: SessionIdentity,
        *,
        parent: int,
        at: int,
        expected: int | None = None,
    ) -> int:
        """Creates a branch and makes it the active one; returns its number."""
        ...

    async def activate(
        self,
        identity: SessionIdentity,
        branch: int,
        *,
        expected: int | None = None,
    ) -> None:
        """Makes another branch the active one."""
        ...

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """Stores the cuts, and replaces the `window` of earlier releases.

        Neither this nor `activate` changes the version.
        """
        ...

    async def delete(self, identity: SessionIdentity) -> bool:
        """Deletes the session; returns whether it existed."""
        ...

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """Stores a copy of a session, unless an existing one is as new or newer (by version).

        Returns whether it did. Rows without a checksum get one (`integrity.protected`), and a
        session without a tally gets one. Existing ones are kept, so that earlier damage stays
        visible.
        """
        ...

    async def set_aside(
        self,
        identity: SessionIdentity,
        seqs: Sequence[int],
        reason: str,
        *,
        expected: int | None = None,
    ) -> int:
        """Moves damaged records out of the session to a separate place; returns how many.

        The session's counters and tally are then recomputed from the remaining rows, even if they
        were unreadable. Without `seqs`, only that is done.
        """
        ...

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """Sessions in the order of their digests, starting after `after`."""
        ...

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """Messages that contain all words, latest first."""
        ...

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """The total usage of stored messages, by key. Days are in UTC, such as `2026-11-16`.

        The key of a session is its digest.
        """
        ...

    async def forget(self, user: str) -> Erasure:
        """Erases all sessions of a user, as thoroughly as the backend can."""
        ...

    async def verify(self) -> list[str]:
        """Checks the store; returns descriptions of structural problems and damaged records."""
        ...


class Proving(Protocol):
    """A storage that can detect tampering with a session as a whole."""

    @property
    def is_proving(self) -> bool:
        """Whether it can: a chain can, if a member can."""
        ...

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What the last read found to be wrong, or `None`."""
        ...

    async def expect_untouched(self, identity: SessionIdentity) -> None:
        """Raises `Corrupt` unless the session has all messages, as they were written."""
        ...


def is_proving(storage: object) -> TypeGuard[Proving]:
    """Whether a storage is a `Proving`; called for every history that is opened."""
    return getattr(storage, "is_proving", False) is True  # `isinstance` is thirty times as slow


def touched(identity: SessionIdentity, problem: str) -> Corrupt:
    """The error for an encrypted session that its owner did not leave like this."""
    return Corrupt(
        f"session {identity.digest}: {problem}. Messages were altered or removed without its keys,"
        " so it is not opened. `dragoman history verify` says which, `dragoman history export`"
        " writes those that are intact, `dragoman history repair` moves the others aside; or open"
        " it as it is, with `accept_damaged` in the config"
    )


class Dated(NamedTuple):
    """A session in a list by time. The time of a damaged session is not in `session`."""

    at: float
    """When it was last written to."""
    session: Session


class Ordering(Protocol):
    """A storage that lists sessions by the time of their last write, without reading them all."""

    async def sessions_by_time(
        self, *, limit: int, before: tuple[float, str] | None = None, without: Sequence[str] = ()
    ) -> list[Dated]:
        """The sessions last written to, latest first, starting after a time and digest.

        Omits sessions whose scope starts with one of `without`.
        """
        ...

    async def number_of_sessions(self, without: Sequence[str] = ()) -> int:
        """The number of sessions that `sessions_by_time` lists."""
        ...


def is_ordering(storage: object) -> TypeGuard[Ordering]:
    """Whether a storage is an `Ordering`."""
    return hasattr(storage, "sessions_by_time")


class Leasing(Protocol):
    """A storage whose sessions have leases; see `Ledger`, on which all of ours are."""

    async def lease(self, identity: SessionIdentity, owner: str, seconds: float) -> Lease | None:
        """Takes a lease; None if another has it."""
        ...

    async def renew(self, identity: SessionIdentity, lease: Lease) -> Lease:
        """Keeps a lease for as long again."""
        ...

    async def holder(self, identity: SessionIdentity) -> Lease | None:
        """The lease that somebody has."""
        ...


def leases_of(storage: object) -> Leasing:
    """The storage, if its sessions have leases; raises `StoreError` otherwise."""
    if not hasattr(storage, "lease"):
        msg = "this kind of store has no leases"
        raise StoreError(msg)
    return cast("Leasing", storage)


class DuplicateIds(Conflict):
    """The session already has a message with one of these ids."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__("the session already has a message with the same id")
        self.ids = tuple(ids)


def expect_query(
    which: Filter, *, by: str | None = None, text: str = "", limit: int | None = None
) -> None:
    """Validates the arguments of a query; called by every backend."""
    expect(which, Filter, "the filter for sessions")
    expect(text, str, "the text of a search")
    if by is not None and by not in get_args(Group):
        msg = f"totals must be grouped by one of {', '.join(get_args(Group))}"
        raise InvalidInputError(msg)
    if limit is not None and (type(limit) is not int or limit < 0):
        msg = "limit must be an integer of at least 0"
        raise InvalidInputError(msg)


CLEARED: dict[str, Any] = {
    "active": MAIN, "forks": (), "window": None, "windows": None, "chain": None, "seal": None,
}  # fmt: skip
"""The other fields of a session after its messages have been cleared."""
NO_SESSION = "the session does not exist"
NO_BRANCH = "the session has no such branch"
NO_MESSAGE = "the session has no message with this id"


def placed(entry: Entry, seq: int, branch: int) -> Row:
    """A row: an entry with a position."""
    return Row(
        entry.id, entry.body, entry.at, entry.model, entry.usage, seq=seq, branch=branch,
        checksum=checksum_of(entry), chain=place_of(branch, seq),
    )  # fmt: skip


def unreadable_row(seq: int, branch: int, body: bytes = b"", id: str = "") -> Row:
    """A placeholder for an unreadable record; its damage can be detected."""
    return Row(id, body, 0.0, seq=seq, branch=branch, checksum=_UNREADABLE)


_UNREADABLE = "c1-"  # a checksum that never matches


def branches_of(session: Session) -> tuple[int, ...]:
    """The numbers of a session's branches."""
    return (MAIN, *[fork.number for fork in session.forks])


def conflict(expected: int, actual: int) -> Conflict:
    """The error for a session that was changed by another writer."""
    msg = (
        f"the session is at version {actual}, not {expected} as expected: another writer changed"
        " it; reload it and try again"
    )
    return Conflict(msg, expected=expected, actual=actual)


def columns_of(which: Filter) -> Mapping[str, str | None]:
    """The names to filter by, escaped as in stores."""
    return {field: None if name is None else escaped(name) for field, name in which.names().items()}
