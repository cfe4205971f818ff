"""`SealedShelf`: encrypts what a `Ledger` commits, on any shelf, and decrypts what it reads.

Every commit has the head that proves the session: it is computed from the one before, which the
comparison of stamps guarantees to be the one that is replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple

from msgspec.structs import replace

from dragoman.errors import ConfigError, Corrupt, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.heads import (
    Head,
    Stored,
    head_of,
    identity_of,
    readable_in,
    stored_of,
    without_checksum,
)
from dragoman.history.storage.protocol import MAIN, Filter, Row, Session, branches_of
from dragoman.history.storage.sealed.records import (
    GONE,
    PLAIN,
    Records,
    State,
    has_place,
    life_of,
    new_state,
    refuse_plain,
)
from dragoman.history.storage.shelf import Change, Shelf
from dragoman.history.storage.threaded import ThreadedShelf

_LOG = logging.getLogger("dragoman.history")
_MAX_SESSIONS = 10_000  # sessions, about 1 kB each
_TRIES = 50
REPLAYED = (
    "it is older than this program has seen it, or was deleted: an earlier state was restored"
)
_PUT_BACK = "messages were reverted to an earlier state, or exchanged for others"


class Look(NamedTuple):
    """A session as it is stored, its sealed state, and what is wrong with it."""

    stamp: int
    head: Head
    state: State | None
    windows: bytes | None
    """Its windows, decrypted."""
    problem: str | None
    misses_key: bool = False

    @property
    def has_broken_windows(self) -> bool:
        """Whether they can't be decrypted."""
        return self.windows is None and self.head.session.windows is not None

    def expect_fresh(self) -> None:
        """Raises if it is older than it was before."""
        if self.problem is REPLAYED:
            msg = f"session {self.head.session.identity.digest}: {REPLAYED}"
            raise Corrupt(msg)

    def expect_sound(self) -> None:
        """Raises unless it is safe to write to."""
        if self.problem is None:
            return
        if self.misses_key:
            raise ConfigError(self.problem)
        raise _refusal(self.head.session.identity.digest, self.problem)


class _Known:
    """A session: its latest state, and what it looked like after the last read or write."""

    __slots__ = ("is_deleted", "look", "mismatch", "newest", "problem")

    def __init__(self) -> None:
        self.newest: State | None = None
        self.look: Look | None = None  # a write may rely on it
        self.is_deleted = False
        self.problem: str | None = None  # of its seal
        self.mismatch: str | None = None  # between its messages and its seal


class SealedShelf:
    """Another shelf, which sees only encrypted content."""

    def __init__(self, inner: Shelf, records: Records) -> None:
        self.inner = inner
        self.records_of = records
        self._lock = Lock()
        self._sessions: dict[str, _Known] = {}
        # Nothing in them is encrypted.
        self.open, self.close, self.count = inner.open, inner.close, inner.count
        self.records, self.scrub, self.watch = inner.records, inner.scrub, inner.watch
        self.changes, self.prune, self.problems = inner.changes, inner.prune, inner.problems
        if isinstance(inner, ThreadedShelf):
            self.run_as_a_whole = inner.run_as_a_whole

    @property
    def name(self) -> str:
        """The name of the shelf beneath, marked as encrypted."""
        return f"{self.inner.name}, encrypted"

    @property
    def is_blocking(self) -> bool:
        """See `Shelf.is_blocking`."""
        return self.inner.is_blocking

    # --- heads

    async def get(self, digest: str) -> Stored | None:
        """See `Shelf.get`. A problem of its seal is kept, and refused by the next write."""
        before = self.newest(digest)  # others may see later states while we wait
        stored = await self.inner.get(digest)
        if stored is None:
            self._unsure(digest)
            return None
        try:
            look = self._judged(stored, before)
        except Corrupt:  # the ledger tells
            self._unsure(digest)
            return stored
        if look.has_broken_windows and not look.misses_key:  # they can be computed again
            _LOG.warning("history store %s: ignoring windows that can't be decrypted", self.name)
        return _shown(look)

    async def look(self, digest: str) -> Look | None:
        """The session as it is now; raises `Corrupt` if its head is damaged."""
        before = self.newest(digest)
        stored = await self.inner.get(digest)
        return None if stored is None else self._judged(stored, before)

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`. Damage is not reported here, but by `verify`."""
        return [self._listed(each) for each in await self.inner.heads(which, limit, after)]

    def _listed(self, stored: Stored) -> Stored:
        try:
            head = head_of(stored)
        except Corrupt:
            return stored
        try:
            state, problem = self.records_of.state_in(head.session)
            windows = self.records_of.windows_in(head.session, state)
        except ConfigError:  # one session must not abort a listing
            state = windows = problem = None
        return _shown(Look(stored.stamp, head, state, windows, problem))

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`."""
        gone = await self.inner.remove(which)
        for (digest, _), done in zip(which, gone, strict=True):
            known = self._sessions.get(digest)
            if done is not None and known is not None:  # its states must not come back
                known.look, known.is_deleted = None, True
                known.problem = known.mismatch = None
        return gone

    # --- commits

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`."""
        digest = stored.digest
        is_renewed = change is not None and (change.is_emptied or change.is_repair)
        there = await self._before(digest, before, is_renewed=is_renewed) if before else None
        if there is not None and not is_renewed:
            if there.stamp != before:
                return False
            there.expect_sound()
        identity = identity_in(stored, change, there)
        try:
            head, is_damaged = head_of(stored, identity), False
        except Corrupt:  # restored as it was
            head = readable_in(stored, identity)._replace(stamp=stored.stamp)
            is_damaged = True
        if there is not None and there.state is None and change is not None and not is_renewed:
            adopted = await self._adopted(there)
            if adopted is None:
                return False
            there = there._replace(state=adopted)
        state, puts = await self._state_after(there, head.session, change)
        after = self._sealed(there, head, state)
        written = stored_of(after.head)
        if is_damaged:
            written = without_checksum(written)
        if change is not None:
            change = change._replace(head=after.head.session, puts=puts)
        self._unsure(digest)  # until it is known to be done
        if not await self.inner.commit(before, written, change):
            return False
        self._saw(digest, after)
        return True

    async def _before(self, digest: str, stamp: int, *, is_renewed: bool) -> Look | None:
        """The head with a stamp, or another that has taken its place, or `None`."""
        known = self._sessions.get(digest)
        if known is not None and known.look is not None and known.look.stamp == stamp:
            return known.look
        try:
            return await self.look(digest)
        except Corrupt:
            if not is_renewed:
                raise
        return None

    async def _state_after(
        self, there: Look | None, session: Session, change: Change | None
    ) -> tuple[State | None, Sequence[Row]]:
        """The state that a change leads to, and the rows to write, encrypted."""
        digest = session.identity.digest
        state = None if there is None else there.state
        newest = self.newest(digest)
        if change is None and state is None:
            return None, ()  # a lease on a session in plain text
        if change is None:
            return state.of(session) if state is not None else None, ()
        if change.is_repair and not change.is_emptied:
            return await self._renewed(there, session, change), ()
        if state is None or change.is_emptied:
            state = new_state(session, after=newest or state)
        puts = [self.records_of.sealed(digest, row, state.life) for row in change.puts]
        drops: Sequence[Row] = ()
        if change.drops:
            drops = await self.inner.named(digest, change.drops)
        label = None if change.is_emptied else self.records_of.keyring.label
        return state.written(puts, drops, label).of(session), puts

    async def _renewed(self, there: Look | None, session: Session, change: Change) -> State:
        """The state of what a repair leaves."""
        moved = {*change.aside}
        found = await self.inner.records(session.identity.digest)
        rows = [row for key, row in found if key not in moved]
        state = None if there is None else there.state
        if there is None or state is None or there.problem is not None:
            newest = self.newest(session.identity.digest)
            life = life_of(rows) if state is None else state.life
            bound = all(map(has_place, rows))
            state = new_state(session, after=newest or state, life=life, bound=bound)
        return replace(state.of_rows(rows).of(session), created_at=session.created_at)

    async def _adopted(self, there: Look) -> State | None:
        """A state for a session without a head: of the rows that can be read.

        Earlier alterations can't be detected. Rows that can't be read are not included, so that
        `verify` keeps reporting them. `None` if the session was changed meanwhile.
        """
        session = there.head.session
        digest = session.identity.digest
        rows = await self.all_rows(session)
        now = await self.inner.get(digest)
        if now is None or now.stamp != there.stamp:
            return None
        if any(map(has_place, rows)):
            raise _refusal(digest, GONE)
        sound = [row for row in rows if self.records_of.body_in(digest, row, None)]
        if rows and not sound and not any(is_sealed(row.body) for row in rows):
            msg = f"nothing was written to session {digest}: {PLAIN}"
            raise ConfigError(msg)
        return new_state(session, bound=not rows).of_rows(sound)

    def _sealed(self, there: Look | None, head: Head, state: State | None) -> Look:
        """The head to store, with windows and state encrypted, as far as they have changed."""
        session, records = head.session, self.records_of
        digest, plain = session.identity.digest, session.windows
        seal = windows = None
        if there is not None:
            old = there.head.session
            if state is None or (state == there.state and records.is_current_head(old.seal)):
                seal = old.seal
            is_kept = state is None or records.are_current_windows(old.windows, state.life)
            if there.has_broken_windows and state is not None and there.state is not None:
                is_kept = state.life == there.state.life  # for `verify` to tell
            if plain == there.windows and is_kept:
                windows = old.windows
        if state is not None:
            seal = seal or records.head(digest, state)
            windows = windows or records.sealed_windows(digest, plain, state.life)
        stored = head._replace(session=replace(session, windows=windows, seal=seal))
        return Look(head.stamp, stored, state, plain, None)

    # --- rows

    async def rows(
        self,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - as in `Shelf`
    ) -> list[Row]:
        """See `Shelf.rows`; rows that can't be decrypted are returned as damaged."""
        state = await self._state(digest)
        found = await self.inner.rows(digest, branch, after, upto, limit, newest)
        state, opened = await self._opened(digest, found, state)
        is_whole = (branch, after, upto, limit) == (MAIN, 0, None, None)
        if state is not None and is_whole and not state.forks:
            await self._compare(digest, state, found)
        return opened

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        state = await self._state(digest)
        found = await self.inner.named(digest, ids)
        return (await self._opened(digest, found, state))[1]

    async def _state(self, digest: str) -> State | None:
        """The state in the session's head, cached if possible; `None` if it has none."""
        known = self._sessions.get(digest)
        if known is not None and known.look is not None:
            return known.look.state
        try:
            look = await self.look(digest)
        except Corrupt:  # rows have to prove themselves
            return None
        if look is None:
            return None
        look.expect_fresh()
        return look.state

    async def _opened(
        self, digest: str, rows: Sequence[Row], state: State | None
    ) -> tuple[State | None, list[Row]]:
        """The decrypted rows, and the head they were decrypted with."""
        opened = [self.records_of.opened(digest, row, state) for row in rows]
        is_odd = state is None and any(map(has_place, rows))
        if is_odd or any(each.problem for each in opened):
            self._unsure(digest)
            now = await self._state(digest)  # another writer may have changed or cleared it
            if now != state:
                state = now
                opened = [self.records_of.opened(digest, row, state) for row in rows]
        if state is None and not any(map(has_place, rows)):
            refuse_plain(opened)
        elif state is None and self.problem(digest) is None:
            self._tell(digest, GONE)
        return state, [each.row for each in opened]

    async def _compare(self, digest: str, state: State, rows: Sequence[Row]) -> None:
        """Reports if all messages together are not those that were written."""
        rows = [row for row in rows if row.seq <= state.last_seq]
        if len(rows) == state.rows and state.sum_of(rows) == state.total:
            self._tell_rows(digest, None)
            return
        if self.problem(digest) is not None:
            return
        self._unsure(digest)
        if await self._state(digest) != state:
            return  # changed in the meantime, which proves nothing
        problems = await self.problems_of(digest)
        beyond = [each for each in problems if not each.startswith("message ")]  # rows show theirs
        if beyond and self._tell_rows(digest, beyond[-1]):
            _LOG.warning("history store %s, session %s: %s", self.inner.name, digest, beyond[-1])

    async def all_rows(self, session: Session) -> list[Row]:
        """All rows of all branches, as they are stored."""
        rows: list[Row] = []
        for branch in branches_of(session):
            rows += await self.inner.rows(session.identity.digest, branch, 0, None, None, False)  # noqa: FBT003
        return rows

    # --- judging whole sessions

    async def whole(self, digest: str) -> tuple[Look, list[Row], int] | None:
        """A session with all its rows and its row count, in one consistent state."""
        look = await self.look(digest)
        for _ in range(_TRIES):
            if look is None:
                return None
            session = look.head.session
            rows = await self.all_rows(session)
            held = await self.inner.count(digest, branches_of(session))
            after = await self.look(digest)
            if after is not None and after.stamp == look.stamp:
                return look, rows, held
            look = after
        msg = "a session is being written to constantly; try again"
        raise StoreError(msg)

    def is_proved(self, look: Look, rows: Sequence[Row], held: int) -> bool:
        """Whether the head proves all messages together: then none has to be decrypted."""
        state = look.state
        return (
            state is not None
            and look.problem is None
            and len(rows) == state.rows == held
            and state.sum_of(rows) == state.total
        )

    async def problems_of(self, digest: str) -> list[str]:
        """All problems of a session, without content."""
        try:
            found = await self.whole(digest)
            if found is None:
                return []
            windows = [_WINDOWS] if found[0].has_broken_windows else []
            return [*windows, *self.wrong_with_messages(*found)]
        except (ConfigError, StoreError) as error:
            return [str(error)]

    def wrong_with_messages(self, look: Look, rows: Sequence[Row], held: int) -> Iterator[str]:
        """What is wrong with a session's messages, and with its seal."""
        digest, state = look.head.session.identity.digest, look.state
        if look.problem is not None:
            yield look.problem
        elif state is None and any(map(has_place, rows)):
            yield GONE
        sound = 0
        for row in rows:
            problem = self.records_of.opened(digest, row, state).problem
            sound += problem is None
            if problem is not None:
                yield f"message {row.seq}: {problem}"
        if state is not None and look.problem is None:
            yield from _mismatch(state, rows, held, are_sound=sound == len(rows))

    def _judged(self, stored: Stored, before: State | None) -> Look:
        """Judges a head that was read, given the state that was known before."""
        known = self._sessions.get(stored.digest)
        seen = None if known is None else known.look
        head = head_of(stored, None if seen is None else seen.head.session.identity)
        session, digest = head.session, stored.digest
        try:
            state, problem = self.records_of.state_in(session)
            windows = self.records_of.windows_in(session, state)
        except ConfigError as error:  # the messages raise it too, unless it is forged
            self._tell(digest, str(error))
            return Look(stored.stamp, head, None, None, str(error), misses_key=True)
        had_one = state is None and problem is None and before is not None
        if had_one or (state is not None and self._is_replay(digest, state, before)):
            problem = REPLAYED
        look = Look(stored.stamp, head, state, windows, problem)
        if problem is not None:
            self._tell(digest, problem)
        elif state is not None:
            self._saw(digest, look)
        return look

    # --- the most recently seen sessions

    def newest(self, digest: str) -> State | None:
        """The latest state seen of a session."""
        known = self._sessions.get(digest)
        return None if known is None else known.newest

    def problem(self, digest: str) -> str | None:
        """What reading has found to be wrong with a session as a whole."""
        known = self._sessions.get(digest)
        return None if known is None else known.problem or known.mismatch

    def _is_replay(self, digest: str, state: State, before: State | None) -> bool:
        """Whether a state is older than the one known `before` it was read, or was deleted."""
        if before is None:
            return False
        known = self._sessions.get(digest)
        was_deleted = known is not None and known.is_deleted and state.made == before.made
        return was_deleted or state.is_older_than(before)

    def _saw(self, digest: str, look: Look) -> None:
        """Remembers an authentic, valid state."""
        state = look.state
        if state is None:
            return
        with self._lock:
            known = self._touched(digest)
            if known.newest is not None and state.is_older_than(known.newest):
                return
            if state != known.newest:
                known.mismatch = None
            known.newest, known.look, known.is_deleted = state, look, False
            known.problem = None

    def _tell(self, digest: str, problem: str) -> None:
        """Remembers what is wrong with a session, and logs it once."""
        with self._lock:
            known = self._touched(digest)
            is_news = problem != known.problem
            known.problem, known.look = problem, None
        if is_news:
            _LOG.warning("history store %s, session %s: %s", self.inner.name, digest, problem)

    def _tell_rows(self, digest: str, problem: str | None) -> bool:
        """Remembers what is wrong with all messages together; returns whether it is new."""
        with self._lock:
            known = self._touched(digest)
            is_news = problem is not None and problem != known.mismatch
            known.mismatch = problem
            return is_news

    def _unsure(self, digest: str) -> None:
        """Makes the next write check first."""
        known = self._sessions.get(digest)
        if known is not None:
            known.look = None

    def _touched(self, digest: str) -> _Known:
        known = self._sessions.pop(digest, None) or _Known()
        self._sessions[digest] = known  # moves it to the end: least recently used first
        if len(self._sessions) > _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return known


_WINDOWS = "its windows can't be decrypted: they were altered without the keys"


def identity_in(stored: Stored, change: Change | None, there: Look | None) -> SessionIdentity:
    """Whose session it is."""
    if change is not None:
        return change.head.identity
    if there is not None:
        return there.head.session.identity
    identity = identity_of(stored)
    if identity is None:
        msg = "the names of a session are damaged"
        raise Corrupt(msg)
    return identity


def _shown(look: Look) -> Stored:
    """A head as the ledger reads it."""
    session = replace(look.head.session, windows=look.windows, seal=None)
    if look.state is not None and look.problem is None:
        session = replace(session, active=look.state.active)
    return stored_of(look.head._replace(session=session))


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


def _refusal(digest: str, problem: str) -> Corrupt:
    """The error for a write to a session that its owner did not leave like this."""
    return Corrupt(
        f"session {digest}: {problem}; nothing was written. Run `verify` for details, and"
        " `dragoman history repair` to create a new seal for what is left"
    )
