"""Windows cached between requests: they grow with the history instead of being rebuilt."""

from __future__ import annotations

from threading import Lock

from dragoman.history.counted_tokens import Measured, Sizes, place_of
from dragoman.history.sent_window import Window
from dragoman.history.storage.protocol import Session
from dragoman.history.stored_session import Change, Keeper
from dragoman.history.truncation import Cut
from dragoman.history.truncation.counting import counted, cover_of, reported_since
from dragoman.history.truncation.strategy import Room
from dragoman.model.collection import Messages


class Live:
    """A window over stored messages, at a version of the session."""

    def __init__(
        self, cut: Cut, shown: Messages, at: int, session: Session, life: int, sizes: Sizes
    ) -> None:
        self.cut = cut
        self.windows = session.windows
        """The session's stored windows at that version: if they are unchanged, so is the cut."""
        self._shown = shown
        self._at = at
        self._measured = Measured(shown, sizes)
        self._since = reported_since(cut, shown)
        self._version = session.version
        self._life = life
        self._lock = Lock()  # a blocking history may be used from several threads

    def follow(self, keeper: Keeper, session: Session) -> bool:
        """Applies changes since the last version; returns `False` if they are unknown."""
        with self._lock:
            if self._life != keeper.life:
                return False
            changes = keeper.changes(self._version, session.version)
            if changes is None or not all(self._takes(change, keeper.branch) for change in changes):
                return False
            self._version = session.version
            return True

    def fitting(self, room: Room) -> Window | None:
        """The window if it fits, otherwise `None`."""
        with self._lock:
            found = counted(self._measured, self.cut, room, cover_of(self.cut, room, self._since))
            return self._window if found.total <= room.limit else None

    @property
    def rest(self) -> Messages:
        """The messages of the window, without its notes."""
        with self._lock:
            if not self.cut.notes:
                return self._shown
            after = self._at + len(self.cut.notes)
            return Messages.wrapping((*self._shown[: self._at], *self._shown[after:]))

    @property
    def _window(self) -> Window:
        return shown(self._shown, self.cut, self._at)

    def _takes(self, change: Change, branch: int) -> bool:
        if change.is_removal:
            return False
        for message in change.replaced:
            place = place_of(message.id, self._measured.messages)
            if place is not None:
                self._measured.replace(place, message)
                self._shown = Messages.wrapping(self._measured.messages)
        if change.branch == branch:
            self._measured.extend(change.added)
            self._shown = self._shown.extend(change.added)
        return True


def shown(window: Messages, cut: Cut, at: int) -> Window:
    """A `Window`, with the number and position of omitted messages."""
    return Window.showing(window, omitted=cut.left_out, omitted_at=at if cut.left_out else 0)
