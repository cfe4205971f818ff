"""Changes that are not saved yet (`autosave=False`), and the lock of those that save them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from threading import Lock

from dragoman.errors import NotFound
from dragoman.history.storage.protocol import NO_MESSAGE
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Pending:
    """Changes on top of what is stored.

    More changes may be made while some are being written; each is dropped once written.
    """

    def __init__(self) -> None:
        self.cleared: object | None = None  # a new object each time, to detect another clear
        self.added: dict[str, Message] = {}
        self.replaced: dict[str, Message] = {}
        self.removed: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.cleared or self.added or self.replaced or self.removed)

    def knows(self, id: str) -> bool:
        """Whether the message's state is known without asking the store."""
        return bool(self.cleared) or id in self.added or id in self.replaced or id in self.removed

    def clear(self) -> None:
        """Removes everything, including unsaved messages."""
        self.added, self.replaced, self.removed = {}, {}, set()
        self.cleared = object()

    def replace(self, message: Message) -> None:
        """Replaces the message with the same id."""
        if message.id in self.added:
            self.added[message.id] = message
        elif self.cleared or message.id in self.removed:
            raise NotFound(NO_MESSAGE)
        else:
            self.replaced[message.id] = message

    def remove(self, id: str) -> None:
        """Removes a message."""
        if id in self.added:
            del self.added[id]
        elif self.cleared or id in self.removed:
            raise NotFound(NO_MESSAGE)
        else:
            self.replaced.pop(id, None)
            self.removed.add(id)

    def over(self, stored: Sequence[Message]) -> Messages:
        """The stored messages with the changes applied."""
        if not self:
            return stored if isinstance(stored, Messages) else Messages.wrapping(stored)
        changed = self.of_stored(stored)
        # A failed write may have happened all the same: don't add those messages again.
        there = {message.id for message in changed} if self.added else set()
        added = (message for id, message in self.added.items() if id not in there)
        return Messages.wrapping((*changed, *added))

    def of_stored(self, stored: Sequence[Message]) -> list[Message]:
        """Like `over`, without added messages."""
        kept = () if self.cleared else (m for m in stored if m.id not in self.removed)
        return [self.replaced.get(message.id, message) for message in kept]

    # --- after writing

    def did_clear(self, cleared: object) -> None:
        """Drops the clear that was written."""
        if self.cleared is cleared:
            self.cleared = None

    def did_rewrite(self, replaced: Mapping[str, Message], removed: set[str]) -> None:
        """Drops the replacements and removals that were written."""
        for id, message in replaced.items():
            if self.replaced.get(id) is message:
                del self.replaced[id]
        self.removed -= removed

    def did_append(self, added: Mapping[str, Message]) -> None:
        """Drops the additions that were written; changes made to them meanwhile stay pending."""
        for id, message in added.items():
            present = self.added.pop(id, None)
            if present is None and not self.cleared:
                self.removed.add(id)
            elif present is not None and present is not message:
                self.replaced[id] = present


# --- saves, one at a time


# The saves in progress in this context: a hook may save the history that is being saved, and must
# not wait for itself. Context variables are passed on to the tasks and threads that run hooks.
_held: ContextVar[frozenset[int]] = ContextVar("dragoman_saving", default=frozenset())


class SaveLock:
    """A lock for the saves of one history, reentrant within hooks."""

    def __init__(self) -> None:
        self.inline = False
        """Whether callers are threads, and nothing can be awaited."""
        self._thread_lock = Lock()
        self._task_lock = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Waits for the lock and holds it."""
        if id(self) in _held.get():
            yield
            return
        token = _held.set(_held.get() | {id(self)})
        try:
            if self.inline:
                with self._thread_lock:
                    yield
            else:
                async with self._task_lock:
                    yield
        finally:
            _held.reset(token)
