"""The state of an open history, apart from what is stored."""

from __future__ import annotations

from dragoman.history import remembered_cuts
from dragoman.history.counted_tokens import Sizes
from dragoman.history.live_windows import Live
from dragoman.history.remembered_cuts import Key
from dragoman.history.storage.protocol import Session
from dragoman.history.truncation import Cut
from dragoman.history.unsaved_changes import Pending


class State:
    """The unsaved changes and caches of a history, shared with those made by `with_hooks`."""

    def __init__(self, *, owns_storage: bool) -> None:
        self.pending = Pending()
        self.has_grown = False
        """Whether messages were added since the last truncation."""
        self.cuts: dict[Key, Cut] = {}
        """Cuts that can't be stored yet, because they cover unsaved messages."""
        self.live: dict[Key, Live] = {}
        """The most recently used windows."""
        self.sizes = Sizes()
        """The estimated sizes of messages."""
        self.is_open = False
        """Whether the store has been opened, for `async with`."""
        self.owns_storage = owns_storage
        """Whether the store has to be closed with the history, and has not been yet."""
        self.known: dict[Key, Cut] = {}
        """The stored cuts, as last read."""
        self.written: bytes | None = None
        """The stored form of the cuts, as last written by this history."""
        self._read: tuple[bytes | None, bytes | None] = None, None

    def remembered(self, session: Session | None) -> dict[Key, Cut]:
        """The cuts stored in a session; parsed again only if they have changed."""
        raw = (None, None) if session is None else (session.windows, session.window)
        if raw != self._read:
            self.known, self._read = remembered_cuts.read(session), raw
        return self.known
