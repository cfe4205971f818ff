"""Reads a session and compares it with the state that its owner sealed, and with later ones."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from threading import Lock

import msgspec

from dragoman.errors import ConfigError, Corrupt, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage, touched
from dragoman.history.storage.sealed.records import GONE, Records, has_place
from dragoman.history.storage.sealed.state import State

_MAX_SESSIONS = 10_000  # sessions, about 1 kB each


class _Known:
    """A session: its latest state, and whether a write may rely on it without checking."""

    __slots__ = ("is_current", "is_deleted", "mismatch", "newest", "problem")

    def __init__(self) -> None:
        self.newest: State | None = None
        self.is_current = False
        self.is_deleted = False
        self.problem: str | None = None  # of its seal
        self.mismatch: str | None = None  # between its messages and its seal


class Known:
    """The most recently seen sessions, by digest."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: dict[str, _Known] = {}

    def newest(self, digest: str) -> State | None:
        """The latest state seen."""
        known = self._sessions.get(digest)
        return None if known is None else known.newest

    def current(self, digest: str) -> State | None:
        """The state that a write may rely on; `None` if it has to check first."""
        known = self._sessions.get(digest)
        return known.newest if known is not None and known.is_current else None

    def problem(self, digest: str) -> str | None:
        """What reading has found to be wrong with the session as a whole."""
        known = self._sessions.get(digest)
        return None if known is None else known.problem or known.mismatch

    def is_replay(self, digest: str, state: State, before: State | None) -> bool:
        """Whether a state is older than the one known `before` it was read, or was deleted."""
        if before is None:
            return False
        known = self._sessions.get(digest)
        was_deleted = known is not None and known.is_deleted and state.made == before.made
        return was_deleted or state.is_older_than(before)

    def saw(self, digest: str, state: State) -> None:
        """Remembers an authentic, valid state."""
        with self._lock:
            known = self._touched(digest)
            if known.newest is not None and state.is_older_than(known.newest):
                return
            if state != known.newest:
                known.mismatch = None
            known.newest, known.is_current, known.is_deleted = state, True, False
            known.problem = None

    def tell(self, digest: str, problem: str) -> bool:
        """Remembers what is wrong with a seal; returns whether it is new."""
        with self._lock:
            known = self._touched(digest)
            is_news = problem != known.problem
            known.problem, known.is_current = problem, False
            return is_news

    def tell_rows(self, digest: str, problem: str | None) -> bool:
        """Remembers what is wrong with all messages together, or that nothing is."""
        with self._lock:
            known = self._touched(digest)
            is_news = problem is not None and problem != known.mismatch
            known.mismatch = problem
            return is_news

    def unsure(self, digest: str) -> None:
        """Makes the next write check first."""
        known = self._sessions.get(digest)
        if known is not None:
            known.is_current = False

    def deleted(self, digest: str) -> None:
        """Remembers a deletion: the states seen so far must not come back."""
        known = self._sessions.get(digest)
        if known is not None:
            known.is_current, known.is_deleted = False, True
            known.problem = known.mismatch = None

    def _touched(self, digest: str) -> _Known:
        known = self._sessions.pop(digest, None) or _Known()
        self._sessions[digest] = known  # moves it to the end: least recently used first
        if len(self._sessions) > _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return known


# --- examining


_LOG = logging.getLogger("dragoman.history")
_TRIES = 50
REPLAYED = (
    "it is older than this program has seen it, or was deleted: an earlier state was restored"
)
_WINDOW = "its windows can't be decrypted: they were altered without the keys"
_PUT_BACK = "messages were reverted to an earlier state, or exchanged for others"


class Look(msgspec.Struct, frozen=True):
    """A session as found, its sealed state, and what is wrong with it."""

    session: Session
    state: State | None
    problem: str | None
    misses_key: bool = False

    def expect_sound(self) -> None:
        """Raises unless it is safe to write to."""
        if self.problem is None:
            return
        if self.misses_key:
            raise ConfigError(self.problem)
        raise refusal(self.session.identity, self.problem)


class Examiner:
    """Examines sessions in a storage, and remembers what it has seen."""

    def __init__(self, storage: Storage, records: Records, known: Known) -> None:
        self._storage = storage
        self._records = records
        self._known = known

    async def look(self, identity: SessionIdentity) -> Look | None:
        """The current session; raises `Corrupt` if it is older than before."""
        digest = identity.digest
        before = self._known.newest(digest)  # others may see later states while we wait
        session = await self._storage.session(identity)
        if session is None:
            self._known.unsure(digest)
            return None
        look = self.judged(session, before)
        if look.problem is REPLAYED:
            self._known.unsure(digest)
            msg = f"session {digest}: {REPLAYED}"
            raise Corrupt(msg)
        return look

    def judged(self, session: Session, before: State | None) -> Look:
        """Judges a session that was read."""
        digest = session.identity.digest
        try:
            state, problem = self._records.state_in(session)
        except ConfigError as error:  # the messages raise it too, unless it is forged
            self.tell(digest, str(error))
            return Look(session, None, str(error), misses_key=True)
        had_one = state is None and problem is None and before is not None
        if had_one or (state is not None and self._known.is_replay(digest, state, before)):
            problem = REPLAYED
        if problem is not None:
            self.tell(digest, problem)
        elif state is not None:
            self._known.saw(digest, state)
        return Look(session, state, problem)

    def tell(self, digest: str, problem: str) -> None:
        """Remembers what is wrong with a session, and logs it once."""
        if self._known.tell(digest, problem):
            _LOG.warning("history store %s, session %s: %s", self._storage.name, digest, problem)

    # --- whole sessions

    async def rows(self, session: Session) -> list[Row]:
        """All rows of all branches."""
        rows: list[Row] = []
        for branch in (MAIN, *(fork.number for fork in session.forks)):
            rows += await self._storage.rows(session.identity, branch=branch)
        return rows

    async def whole(self, identity: SessionIdentity) -> tuple[Look, list[Row], int] | None:
        """A session with all its rows and its row count, in one consistent state."""
        look = await self.judged_now(identity)
        for _ in range(_TRIES):
            if look is None:
                return None
            rows = await self.rows(look.session)
            held = await self._storage.count(identity)
            after = await self.judged_now(identity)
            if after is not None and after.session == look.session:
                return look, rows, held
            look = after
        msg = "a session is being written to constantly; try again"
        raise StoreError(msg)

    async def judged_now(self, identity: SessionIdentity) -> Look | None:
        """Like `look`, but returns an older state too, with that as its problem."""
        before = self._known.newest(identity.digest)
        session = await self._storage.session(identity)
        return None if session is None else self.judged(session, before)

    async def expect_untouched(self, identity: SessionIdentity) -> None:
        """Raises `Corrupt` unless the session has all messages, as they were written."""
        look = await self.look(identity)
        if look is None or await self._is_proved(look):
            return
        found = await self.whole(identity)
        if found is None:
            return
        if found[0].misses_key:
            raise ConfigError(found[0].problem)
        problem = next(self._wrong_with_messages(*found), None)
        if problem is not None:
            raise touched(identity, problem)

    async def _is_proved(self, look: Look) -> bool:
        """Whether the head proves all messages together: then none has to be decrypted."""
        identity, state = look.session.identity, look.state
        if state is None or look.problem is not None:
            return False
        rows = await self.rows(look.session)
        return (
            len(rows) == state.rows == await self._storage.count(identity)
            and state.sum_of(rows) == state.total
        )

    async def problems(self, identity: SessionIdentity) -> list[str]:
        """All problems of a session, without content."""
        try:
            found = await self.whole(identity)
            if found is None:
                return []
            is_broken = self._records.has_broken_window(found[0].session, found[0].state)
            return [*([_WINDOW] if is_broken else ()), *self._wrong_with_messages(*found)]
        except (ConfigError, StoreError) as error:
            return [str(error)]

    def _wrong_with_messages(self, look: Look, rows: Sequence[Row], held: int) -> Iterator[str]:
        session, state = look.session, look.state
        if look.problem is not None:
            yield look.problem
        elif state is None and any(map(has_place, rows)):
            yield GONE
        sound = 0
        for row in rows:
            problem = self._records.opened(session.identity, row, state).problem
            sound += problem is None
            if problem is not None:
                yield f"message {row.seq}: {problem}"
        if state is not None and look.problem is None:
            yield from _mismatch(state, rows, held, are_sound=sound == len(rows))


def _mismatch(state: State, rows: Sequence[Row], held: int, *, are_sound: bool) -> Iterator[str]:
    """Problems with the number and the sum of rows, apart from damaged rows."""
    if held != state.rows:
        yield (
            f"{state.rows - held} of its {state.rows} messages are missing"
            if held < state.rows
            else f"it has {held - state.rows} messages more than were written to it"
        )
    elif are_sound and state.sum_of(rows) != state.total:
        yield _PUT_BACK


def refusal(identity: SessionIdentity, problem: str) -> Corrupt:
    """The error for a write to a session that its owner did not leave like this."""
    return Corrupt(
        f"session {identity.digest}: {problem}; nothing was written. Run `verify` for details, and"
        " `dragoman history repair` to create a new seal for what is left"
    )
