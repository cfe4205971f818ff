"""`Cut`: where a history is truncated; `Strategy` and `Room`: how strategies choose it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from dragoman.history.tokens import Sizes
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool
from dragoman.model.value import Value


class Rest(NamedTuple):
    """The messages that a cut keeps, without its notes."""

    messages: list[Message]
    at: int
    """The index of the first message after the cut; those before it were kept."""


class Cut(Value, frozen=True):
    """Which messages are left out of the window. A cut only ever moves forward.

    It is small and stored with the session, so that the window, and with it the prefix of the
    prompt, which providers cache, stays the same between requests.
    """

    first: str = ""
    """The id of the first message after the cut; empty if nothing is cut."""
    kept: tuple[str, ...] = ()
    """The ids of earlier messages that stay, in order: instructions and pinned turns."""
    notes: tuple[Message, ...] = ()
    """Messages that replace those left out: a marker, a summary, symbols. They follow `kept`."""
    left_out: int = 0
    """The total number of messages left out."""
    since: str = ""
    """The id of the last message when the cut was made. The usage of later messages covers this
    window; that of earlier ones covers a previous window."""
    ratio: float = 1.0
    """Actual tokens per estimated token, as far as known when the cut was made."""

    def apply(self, messages: Sequence[Message]) -> Messages:
        """The window: the kept messages, the notes, and everything after the cut.

        `messages` may be the whole history, or only the kept messages and those after the cut. If
        the first message after the cut is missing, nothing is cut.
        """
        place = self.place_in(messages)
        if place is None:
            return Messages.wrapping(messages)
        return Messages.wrapping((*self._kept_of(messages, place), *self.notes, *messages[place:]))

    def rest_of(self, messages: Sequence[Message]) -> Rest:
        """Like `apply`, without the notes."""
        place = self.place_in(messages)
        if place is None:
            return Rest(list(messages), 0)
        kept = self._kept_of(messages, place)
        return Rest([*kept, *messages[place:]], len(kept))

    def place_in(self, messages: Sequence[Message]) -> int | None:
        """The index of the first message after the cut, or `None` if it is missing."""
        if not self.first:
            return None
        # Search from the end, where it usually is.
        places = range(len(messages) - 1, -1, -1)
        return next((place for place in places if messages[place].id == self.first), None)

    def _kept_of(self, messages: Sequence[Message], place: int) -> list[Message]:
        wanted = frozenset(self.kept)
        return [message for message in messages[:place] if message.id in wanted] if wanted else []

    def settle(self) -> None:
        """Assigns the ids of the notes before they are stored."""
        for note in self.notes:
            note.settle()

    def _sizes(self) -> Iterator[str]:
        yield f"{self.left_out} left out"
        yield f"{len(self.kept)} kept"
        yield f"{len(self.notes)} notes"


NOTHING_CUT = Cut()


# --- `Strategy` and `Room`: the interface of truncation strategies


Counter = Callable[[Messages], int | Awaitable[int]]
"""Counts the tokens of messages, more precisely than our estimate."""


class Room(msgspec.Struct, frozen=True):
    """The token limit for a prompt, and what is sent besides the messages."""

    limit: int
    """Maximum tokens of the prompt, including tools and system: the context window minus what is
    reserved for the response."""
    tools: tuple[AnyTool, ...] = ()
    system: tuple[AnyPart, ...] = ()
    """Instructions outside the list of messages."""
    count: Counter | None = None
    """Counts messages without tools and system; `None` uses reported usage and estimates."""
    config: Any = None
    """The config of the history, for callbacks."""
    model: str | None = None
    """The model it is for, if known."""
    sizes: Sizes = msgspec.field(default_factory=Sizes)
    """A cache of estimated message sizes."""

    def __repr__(self) -> str:
        return f"Room({self.limit} tokens, {len(self.tools)} tools)"  # the config may hold secrets


class Strategy(Protocol):
    """Decides what is left out of the window.

    It gets the messages that the current cut keeps (or the whole history) and returns the same cut
    if nothing has to be done, otherwise one further on, never back. If the result still does not
    fit, `truncate` handles that.
    """

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """Returns the new cut."""
        ...


# --- `Chained`


class Chained:
    """Applies strategies in order, each to the result of the previous one.

    >>> Chained(LastTurns(20), FitWindow())  # doctest: +SKIP
    """

    __slots__ = ("strategies",)

    def __init__(self, *strategies: Strategy) -> None:
        self.strategies = strategies

    def __repr__(self) -> str:
        return f"Chained({', '.join(type(each).__name__ for each in self.strategies)})"

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut that the last strategy makes."""
        for strategy in self.strategies:
            cut = await strategy(messages, cut, room)
        return cut
