"""Windows of an open history: what it sends, cached between requests, and its other state."""

from __future__ import annotations

from threading import Lock
from typing import Any

from dragoman.history import remembered_cuts
from dragoman.history.remembered_cuts import Key
from dragoman.history.storage.protocol import Session
from dragoman.history.stored_session import Change, Keeper
from dragoman.history.tokens import Measured, Sizes, place_of
from dragoman.history.truncation import Cut
from dragoman.history.truncation.cut import Room
from dragoman.history.truncation.window import counted, cover_of, reported_since
from dragoman.history.unsaved_changes import Pending
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Window(Messages):
    """The messages to send to a model, and how many of the history's are omitted.

    ```python
    window = await history.window("anthropic:claude-sonnet-4-5")
    if window.omitted:
        print(f"{window.omitted} earlier messages are not sent")
    ```

    Slices and modified copies are plain `Messages`.
    """

    __slots__ = ("_omitted", "_omitted_at")

    _omitted: int
    _omitted_at: int

    @classmethod
    def showing(cls, messages: Messages, *, omitted: int = 0, omitted_at: int = 0) -> Window:
        """Wraps messages without copying them."""
        made = cls.__new__(cls)
        made._shared, made._length = messages._shared, messages._length
        made._omitted, made._omitted_at = omitted, omitted_at
        return made

    @property
    def omitted(self) -> int:
        """The number of omitted messages."""
        return self._omitted

    @property
    def omitted_at(self) -> int:
        """The index before which messages are missing; those before it were kept.

        If a marker or a summary replaces them, it is at this index.
        """
        return self._omitted_at

    def __init__(self, *messages: Message) -> None:
        super().__init__(*messages)
        self._omitted = self._omitted_at = 0

    @classmethod
    def _view(cls, shared: list[Message], length: int | None = None) -> Any:
        return Messages._view(shared, length)

    def __reduce__(self) -> tuple[Any, ...]:
        return _window, (tuple(self), self._omitted, self._omitted_at)


def _window(messages: tuple[Message, ...], omitted: int, omitted_at: int) -> Window:
    return Window.showing(Messages(*messages), omitted=omitted, omitted_at=omitted_at)


# --- windows cached between requests


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


# --- the state of an open history


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
