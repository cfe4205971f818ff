"""What a backend does, and the values that go in and out of it.

A session is a log of messages. Each gets the next number (`seq`) of its session when it is
appended; every write raises the session's `version` by one. Given the same session, the same
write makes the same numbers on any backend: that is how a chain keeps its members alike.

A branch is a second way on from an earlier message: it has a number, and its path is its parent's
up to `at`, then its own messages. A linear conversation is branch 0 and has no branch to store.

`None` for a session means that it is absent; one without messages has been cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeGuard, get_args

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import Conflict, InvalidInputError
from dragoman.history.identity import FIELDS, SessionIdentity, escaped
from dragoman.history.storage.integrity import checksum_of, place_of
from dragoman.model.usage import Usage
from dragoman.model.value import expect, expect_number

MAIN = 0
Seal = bytes | UnsetType | None
Group = Literal["session", "user", "model", "day"]


class _Discreet(msgspec.Struct, frozen=True, gc=False):
    """Shows sizes and kinds when printed, never what people say or are called."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> Iterator[Any]:  # type: ignore[override]  # rich takes any iterable
        return iter(())


class Entry(_Discreet, frozen=True, gc=False):
    """A message as it is stored: what a backend needs to know of it, and its body."""

    id: str
    body: bytes
    """The message in canonical JSON, or that under encryption: a backend does not look inside,
    but to search."""
    at: float
    """When it was stored, in seconds since 1970."""
    model: str | None = None
    usage: Usage | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.body)} bytes)"  # sizes, never content


class Row(Entry, frozen=True, gc=False, kw_only=True):
    """A stored message and its place."""

    seq: int
    branch: int = MAIN
    checksum: str | None = None
    """Of its content; `chain` repeats its place. See `dragoman.history.storage.integrity`."""
    chain: str | None = None


class Fork(msgspec.Struct, frozen=True, gc=False):
    """Where a branch leaves its parent: after the message numbered `at`; 0 is before the first."""

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
    """The branch that a history opens on."""
    forks: tuple[Fork, ...] = ()
    window: bytes | None = None
    """What was cut from what is sent; see `dragoman.history.truncation`."""
    windows: bytes | None = None
    """The same by branch, model and limit: a document."""
    chain: str | None = None
    """Its numbers again, and how many rows it has; see `dragoman.history.storage.integrity`."""
    seal: bytes | None = None
    """A document that proves the session's state under encryption; a backend only keeps it."""

    def __repr__(self) -> str:
        return f"Session({self.identity!r}, version {self.version})"


class Appended(msgspec.Struct, frozen=True, gc=False):
    """What an append made: the session's version, and the number of its last message."""

    version: int
    last_seq: int


class Filter(_Discreet, frozen=True, kw_only=True):
    """Which sessions: by names (`None` asks for those without one), and by their last write."""

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
        """The names that are asked for."""
        given = {field: getattr(self, field) for field in FIELDS}
        return {field: name for field, name in given.items() if name is not UNSET}

    def takes(self, session: Session) -> bool:
        """Whether a session is meant; for backends that have to look at each."""
        if self.since is not None and session.updated_at < self.since:
            return False
        if self.until is not None and session.updated_at >= self.until:
            return False
        return all(getattr(session.identity, field) == n for field, n in self.names().items())


EVERYTHING = Filter()


class Hit(_Discreet, frozen=True):
    """A message that a search found."""

    identity: SessionIdentity
    row: Row


class Total(_Discreet, frozen=True):
    """What the messages of one session, user, model or day used; `key` is None for "unknown"."""

    key: str | None
    usage: Usage
    messages: int


class Erasure(msgspec.Struct, frozen=True):
    """What `forget` erased, and in `remains`, in plain words, where copies may be left."""

    sessions: int
    messages: int
    remains: tuple[str, ...] = ()


class Storage(Protocol):
    """A backend. Every method raises `StoreError` where the backend fails, and is atomic.

    What it holds may be damaged: what can't be read of a session's numbers is `Corrupt`, what
    can't be read of a row is a `Row` that shows its damage (`integrity.damage_to`, or a body that
    is no message), never another exception and never silence. A method that takes a `seal` keeps
    it with the session, in the same step; UNSET leaves the one that is there.
    """

    @property
    def name(self) -> str:
        """What it is and where, without passwords."""
        ...

    @property
    def is_blocking(self) -> bool:
        """Whether its methods never wait for an event loop, so that blocking code can run them."""
        ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date. Calling it again does nothing."""
        ...

    async def close(self) -> None:
        """Let go of everything. Calling it again does nothing."""
        ...

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where there is none."""
        ...

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> Appended:
        """Add messages, one at least, at a branch's end; make the session if need be; all or none.

        Raises `Conflict` where the session's version is not the `expected` one (0: there must be
        no session), `DuplicateIds` where the session holds one of the ids, and `NotFound` where
        it has no such branch.
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
        """A branch's own messages numbered above `after` up to `upto`, in order.

        With a `limit`, the oldest that many, or the `newest`; the order is the same.
        """
        ...

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """One message, on any branch."""
        ...

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """How many messages the session or one branch's own part holds."""
        ...

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """Replace and remove messages by id, all or none; returns the version.

        Raises `NotFound` where one is not there. Numbers are not given out again.
        """
        ...

    async def clear(
        self,
        identity: SessionIdentity,
        *,
        at: float,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """Remove all messages and branches, make the session if need be; returns the version.

        Its numbers go on where they were. Its seal is gone, unless another is given.
        """
        ...

    async def fork(
        self,
        identity: SessionIdentity,
        *,
        parent: int,
        at: int,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """Make a branch, and make it the active one; returns its number."""
        ...

    async def activate(
        self,
        identity: SessionIdentity,
        branch: int,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> None:
        """Make another branch the active one."""
        ...

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """Remember what was cut, in the place of an earlier release's `window` too.

        Neither this nor `activate` changes the version.
        (Under encryption `activate` does: what proves a session's state goes by its version.)
        """
        ...

    async def delete(self, identity: SessionIdentity) -> bool:
        """Remove the session; whether there was one."""
        ...

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """Put a copy of a session in place of what is there, if that is older (by version).

        Returns whether it did. Rows without a checksum get one (`integrity.protected`), a session
        without a tally gets that of its rows; those that have one keep it, so that what was damaged
        before stays visible.
        """
        ...

    async def set_aside(
        self,
        identity: SessionIdentity,
        seqs: Sequence[int],
        reason: str,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """Move broken records out of the session to where they do no harm; returns how many.

        The session's numbers and tally are then made anew from the rows that are left, even where
        they could not be read (and with no `seqs`, only that is done).
        """
        ...

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """Sessions in the order of their digests, those above `after`."""
        ...

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """Messages that hold all the words, the latest first."""
        ...

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """The usage of stored messages, summed up, by key. A day is UTC's, as `2026-11-16`.

        A session's key is its digest.
        """
        ...

    async def forget(self, user: str) -> Erasure:
        """Erase all sessions of a user, as far down as the backend reaches."""
        ...

    async def verify(self) -> list[str]:
        """What is wrong with the store, in plain words: its structure, and each damaged record."""
        ...


class Proving(Protocol):
    """A storage that can tell whether a session as a whole is as its owner left it."""

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What reading has shown to be wrong, in plain words; asked after each reading."""
        ...


def is_proving(storage: object) -> TypeGuard[Proving]:
    """Whether a storage is one of these; asked with every history that is opened."""
    return hasattr(storage, "problem_of")  # `isinstance` with a protocol takes thirty times as long


class DuplicateIds(Conflict):
    """The session holds a message with one of these ids already."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__("the session already holds a message with the same id")
        self.ids = tuple(ids)


def expect_query(
    which: Filter, *, by: str | None = None, text: str = "", limit: int | None = None
) -> None:
    """Raise unless these can be asked of a store; every backend begins so."""
    expect(which, Filter, "the sessions that are meant")
    expect(text, str, "the text of a search")
    if by is not None and by not in get_args(Group):
        msg = f"usage is summed up by one of {', '.join(get_args(Group))}"
        raise InvalidInputError(msg)
    if limit is not None and (type(limit) is not int or limit < 0):
        msg = "a limit is a number of results, 0 at least"
        raise InvalidInputError(msg)


CLEARED: dict[str, Any] = {
    "active": MAIN, "forks": (), "window": None, "windows": None, "chain": None, "seal": None,
}  # fmt: skip
"""What is left of a session's other fields when its messages are gone."""
NO_SESSION = "there is no such session"
NO_BRANCH = "the session has no such branch"
NO_MESSAGE = "the session has no message with this id"


def placed(entry: Entry, seq: int, branch: int) -> Row:
    """A row: an entry that has got its place."""
    return Row(
        entry.id, entry.body, entry.at, entry.model, entry.usage, seq=seq, branch=branch,
        checksum=checksum_of(entry), chain=place_of(branch, seq),
    )  # fmt: skip


def conflict(expected: int, actual: int) -> Conflict:
    """The error for a session that somebody else wrote to."""
    msg = (
        f"the session is at version {actual}, not at {expected} as expected: somebody else wrote"
        " to it; load it again and decide anew"
    )
    return Conflict(msg, expected=expected, actual=actual)


def columns_of(which: Filter) -> Mapping[str, str | None]:
    """The names that are asked for, escaped as stores keep them."""
    return {field: None if name is None else escaped(name) for field, name in which.names().items()}
