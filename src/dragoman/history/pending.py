"""What was changed and not yet saved (`autosave=False`)."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import NotFound
from dragoman.history.storage.protocol import NO_MESSAGE
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Pending:
    """Changes on top of what is stored."""

    def __init__(self) -> None:
        self.cleared = False
        self.added: dict[str, Message] = {}
        self.replaced: dict[str, Message] = {}
        self.removed: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.cleared or self.added or self.replaced or self.removed)

    def clear(self) -> None:
        """Everything is to go, also what was never saved."""
        self.__init__()  # type: ignore[misc]  # its own, not a subclass's
        self.cleared = True

    def replace(self, message: Message) -> None:
        """Another message is to stand in the place of the one with its id."""
        if message.id in self.added:
            self.added[message.id] = message
        elif self.cleared or message.id in self.removed:
            raise NotFound(NO_MESSAGE)
        else:
            self.replaced[message.id] = message

    def remove(self, id: str) -> None:
        """A message is to go."""
        if id in self.added:
            del self.added[id]
        elif self.cleared or id in self.removed:
            raise NotFound(NO_MESSAGE)
        else:
            self.replaced.pop(id, None)
            self.removed.add(id)

    def over(self, stored: Sequence[Message]) -> Messages:
        """What is stored, with the changes made."""
        if not self:
            return stored if isinstance(stored, Messages) else Messages.wrapping(stored)
        kept = () if self.cleared else (m for m in stored if m.id not in self.removed)
        changed = (self.replaced.get(message.id, message) for message in kept)
        return Messages.wrapping((*changed, *self.added.values()))
