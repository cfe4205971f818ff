"""Where a history is cut: what a session remembers of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.value import Value


class Rest(NamedTuple):
    """What a cut leaves of a history, without what stands for the rest."""

    messages: list[Message]
    at: int
    """The place of the first message after the cut: those before it were kept."""


class Cut(Value, frozen=True):
    """What of a history is left out of the window. It only ever moves forward.

    Small, and stored with the session: the window then stays the same from one request to the
    next, and so does the beginning of the prompt, which providers cache.
    """

    first: str = ""
    """The id of the first message after the cut; empty: nothing is cut."""
    kept: tuple[str, ...] = ()
    """The ids of those before it that stay, in order: instructions and pinned turns."""
    notes: tuple[Message, ...] = ()
    """What stands for those left out: a marker, a summary, symbols. They follow the kept."""
    left_out: int = 0
    """How many messages were left out, in all."""
    since: str = ""
    """The id of the last message when the cut was made: what messages after it report as their
    usage covers this window, what it and those before it report covers an earlier one."""
    ratio: float = 1.0
    """Real tokens for each estimated one, as far as was known when the cut was made."""

    def apply(self, messages: Sequence[Message]) -> Messages:
        """The window: the kept messages, the notes, and everything after the cut.

        `messages` may be the whole history, or only the kept ones and what follows the cut. If
        the first message after the cut is not among them, nothing is cut.
        """
        place = self.place_in(messages)
        if place is None:
            return Messages.wrapping(messages)
        return Messages.wrapping((*self._kept_of(messages, place), *self.notes, *messages[place:]))

    def rest_of(self, messages: Sequence[Message]) -> Rest:
        """As `apply`, without the notes."""
        place = self.place_in(messages)
        if place is None:
            return Rest(list(messages), 0)
        kept = self._kept_of(messages, place)
        return Rest([*kept, *messages[place:]], len(kept))

    def place_in(self, messages: Sequence[Message]) -> int | None:
        """The place of the first message after the cut; None where it is not there."""
        if not self.first:
            return None
        # From the end, which is near it.
        places = range(len(messages) - 1, -1, -1)
        return next((place for place in places if messages[place].id == self.first), None)

    def _kept_of(self, messages: Sequence[Message], place: int) -> list[Message]:
        wanted = frozenset(self.kept)
        return [message for message in messages[:place] if message.id in wanted] if wanted else []

    def settle(self) -> None:
        """Assign the notes' ids, before they are written down."""
        for note in self.notes:
            note.settle()

    def _sizes(self) -> Iterator[str]:
        yield f"{self.left_out} left out"
        yield f"{len(self.kept)} kept"
        yield f"{len(self.notes)} notes"


NOTHING_CUT = Cut()
