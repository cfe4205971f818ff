"""What a history is in the middle of, apart from what is stored."""

from __future__ import annotations

from dragoman.history import remembered_cuts
from dragoman.history.counted_tokens import Sizes
from dragoman.history.live_windows import Live
from dragoman.history.remembered_cuts import Key
from dragoman.history.storage.protocol import Session
from dragoman.history.truncation import Cut
from dragoman.history.unsaved_changes import Pending


class State:
    """The changes of a history that are not stored; one for all who look at it (`with_hooks`)."""

    def __init__(self, *, owns_storage: bool) -> None:
        self.pending = Pending()
        self.has_grown = False
        """Whether something was added since the window was last cut."""
        self.cuts: dict[Key, Cut] = {}
        """Cuts that can't be stored yet, since they were made over what is not saved."""
        self.live: dict[Key, Live] = {}
        """The windows that were asked for last."""
        self.sizes = Sizes()
        """What messages were estimated at."""
        self.is_open = False
        """Whether the store was opened, for `async with`."""
        self.owns_storage = owns_storage
        """Whether the store is to be closed with the history, and has not been."""
        self.known: dict[Key, Cut] = {}
        """The cuts that are stored, as last seen."""
        self.written: bytes | None = None
        """The stored form of the cuts, as last written here."""
        self._read: tuple[bytes | None, bytes | None] = None, None

    def remembered(self, session: Session | None) -> dict[Key, Cut]:
        """The cuts that a session has stored; read when they have changed."""
        raw = (None, None) if session is None else (session.windows, session.window)
        if raw != self._read:
            self.known, self._read = remembered_cuts.read(session), raw
        return self.known
