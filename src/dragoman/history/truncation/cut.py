"""`Cut`: where a history is truncated; `Strategy` and `Room`: how strategies choose it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol

import msgspec

from dragoman.history.tokens import Sizes
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
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


# --- splits a history into turns and rounds of tool calls, which must stay together
#
# A turn is a user message and everything up to the next one. If a tool result arrives after the
# next user message, the turns from its call to the result are joined.


_ASSISTANT, _TOOL, _USER = Role.ASSISTANT, Role.TOOL, Role.USER
_CALLING = frozenset({ToolCall, ToolResult})


class Group(NamedTuple):
    """A turn, as a range of message indexes."""

    start: int
    stop: int
    stays: bool
    """Whether it is pinned."""


def is_instruction(message: Message) -> bool:
    """Whether it is a system or developer message; these always stay."""
    return message.role.is_system


def grouped(messages: Sequence[Message]) -> list[Group]:
    """The turns of a history. The first may contain messages before any user message."""
    opened = (place for place, message in enumerate(messages) if place and _opens(message))
    starts = [0, *_untied(messages, opened)] if messages else []
    spans = list(pairwise([*starts, len(messages)]))
    pinned = [any(map(_is_pinned, messages[start:stop])) for start, stop in spans]
    staying = extended(messages, spans, pinned)
    return [Group(*span, stays) for span, stays in zip(spans, staying, strict=True)]


def rounds(messages: Sequence[Message], group: Group) -> list[int]:
    """The starts of rounds within a turn: where the model continues after tool results.

    The messages before the first of them opened the turn.
    """
    own = messages[group.start : group.stop]
    return [group.start + place for place in _untied(own, _resumed(own))]


def extended(
    messages: Sequence[Message], spans: Sequence[tuple[int, int]], staying: Sequence[bool]
) -> list[bool]:
    """Extends the turns that stay: a turn that ends within tool calls needs the next one too.

    Without it, the next user message would become part of that turn (W51).
    """
    done: list[bool] = []
    for (start, _), stays in zip(spans, staying, strict=True):
        is_end = bool(done) and done[-1] and _ends_amid_calls(messages, start)
        done.append(stays or is_end)
    return done


def pairs(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """The indexes of calls and their results, for calls that have one.

    A call id that is reused ends the earlier call, as it does on every wire.
    """
    waiting: dict[str, list[int]] = {}
    for place, message in enumerate(messages):
        for part in message.parts:
            if type(part) is ToolCall:
                calls = waiting.setdefault(part.id, [])
                if calls and calls[-1] != place:
                    calls.clear()
                calls.append(place)
            elif type(part) is ToolResult:
                calls = waiting.get(part.call_id, [])
                if calls and calls[-1] != place:
                    yield calls.pop(), place


def _untied(messages: Sequence[Message], starts: Iterable[int]) -> Iterator[int]:
    """The starts that are not between a call and its result."""
    ends = [-1] * len(messages)
    for call, result in pairs(messages):
        ends[call] = result  # pairs come in the order of the results
    reach = list(accumulate(ends, max))
    return (start for start in starts if not start or reach[start - 1] < start)


def _opens(message: Message) -> bool:
    """Whether the user says something, rather than only returning results."""
    if message.role is not _USER:
        return False
    parts = message.parts
    return not parts or any(type(part) is not ToolResult for part in parts)


def _resumed(messages: Sequence[Message]) -> Iterator[int]:
    """Where the model responds after others; its consecutive messages are one response."""
    was_assistant = False
    for place, message in enumerate(messages):
        is_assistant = message.role is _ASSISTANT
        if is_assistant and not was_assistant:
            yield place
        if not is_instruction(message):
            was_assistant = is_assistant


def _ends_amid_calls(messages: Sequence[Message], stop: int) -> bool:
    spoken = (messages[place] for place in range(stop - 1, -1, -1))
    last = next((each for each in spoken if not is_instruction(each) and not _is_note(each)), None)
    return last is not None and any(type(part) in _CALLING for part in last.parts)


def _is_note(message: Message) -> bool:
    """Whether it only records which calls were started, as agents do in long rounds."""
    return message.role is _TOOL and not message.parts


def _is_pinned(message: Message) -> bool:
    return bool(message.metadata.get("pinned"))


# --- the messages that always stay, when no turn is in progress


def enduring(messages: Sequence[Message]) -> list[Message]:
    """Instructions and pinned turns, and the last turn unless the model has finished it."""
    groups = grouped(messages)
    staying = [group.stays for group in groups]
    if staying and not _is_over(messages):
        staying[-1] = True
    kept: list[Message] = []
    for group, stays in zip(groups, staying, strict=True):
        own = messages[group.start : group.stop]
        kept += own if stays else [message for message in own if is_instruction(message)]
    return kept


def _is_over(messages: Sequence[Message]) -> bool:
    """Whether the model has responded last, without pending calls."""
    last = messages[-1]
    answered = {call for call, _ in pairs(messages)}
    is_waiting = bool(last.tool_calls) and len(messages) - 1 not in answered
    return last.role is Role.ASSISTANT and not is_waiting
