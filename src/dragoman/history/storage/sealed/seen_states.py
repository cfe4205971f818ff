"""What an open store remembers of sessions, so that nothing older is accepted as new."""

from __future__ import annotations

from threading import Lock

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
