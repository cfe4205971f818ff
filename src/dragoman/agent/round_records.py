"""Records the calls and results of a tool round in the conversation.

Whenever the program stops, the record is correct, and no call that was started is started again.

- `AtTheEnd`: the conversation is not kept. One message is added when the round ends.
- `OneMessage`: a short round of a conversation that is kept. Its message is written before the
  tools run, and says of each call that its outcome is unknown; results take that place.
- `Journal`: a long round of a conversation that is kept. Nothing that was written is written
  again: each message holds the results that are new, and the ids of the calls that begin next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from dragoman.agent.conversations import Conversation, with_begun
from dragoman.model.messages import Message, make_message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

UNKNOWN = (
    "The outcome of this call is not known: the program was stopped while the tool was running. "
    "It may or may not have taken effect."
)
_MAX_REWRITTEN = 8
"""Maximum calls in a round that is one message, which is rewritten for each of them."""

Results = dict[int, ToolResult]
"""Results by the index of their call in the round."""


def unknown(call: ToolCall) -> ToolResult:
    """The result of a call that was started, and whose outcome is unknown."""
    return ToolResult.error(call.id, UNKNOWN, tool_name=call.name)


def record_of(conversation: Conversation, calls: Sequence[ToolCall], known: Results) -> RoundRecord:
    """The record of a round; some results may be known before it starts."""
    if not conversation.keeps_rounds:
        return AtTheEnd(conversation, calls, known)
    kind = OneMessage if len(calls) <= _MAX_REWRITTEN else Journal
    return kind(conversation, calls, known)


class RoundRecord(ABC):
    """The results of one round so far, and the messages that hold them."""

    def __init__(
        self, conversation: Conversation, calls: Sequence[ToolCall], known: Results
    ) -> None:
        self.messages: list[Message] = []
        """The written messages, as stored."""
        self._conversation = conversation
        self._calls = calls
        self._results = known
        self._announced: set[int] = set()
        self._is_unwritten = False  # whether a result is not written yet

    @property
    def results(self) -> list[tuple[ToolCall, ToolResult]]:
        """Each call that has a result, in order."""
        return [(self._calls[place], self._results[place]) for place in sorted(self._results)]

    def settle(self, place: int, result: ToolResult) -> None:
        """Set the result of a call; `write` makes it durable."""
        self._results[place] = result
        self._is_unwritten = True

    def is_announced(self, place: int) -> bool:
        """Whether a call may start: its start has been recorded, if required."""
        return place in self._announced

    def announce(self, places: Iterable[int]) -> None:
        """Note which calls are about to start; `write` makes it durable."""
        self._announced.update(places)

    @abstractmethod
    async def write(self) -> None:
        """Write what is new."""

    @abstractmethod
    async def leave(self, begun: Iterable[int]) -> None:
        """Write the outcome of the started calls: the round ends early."""

    async def complete(self) -> None:
        """The round has ended: write what is not written yet."""
        if not self.messages:
            await self.write()

    def _mark_unknown(self, places: Iterable[int]) -> None:
        for place in places:  # calls that can't be run already have a result
            self._results.setdefault(place, unknown(self._calls[place]))

    def _parts(self, places: Iterable[int]) -> tuple[ToolResult, ...]:
        return tuple(self._results[place] for place in sorted(places))


class AtTheEnd(RoundRecord):
    """One message, written when the round ends."""

    def is_announced(self, place: int) -> bool:  # noqa: ARG002 - nothing need be written for any
        """Always true: nothing is written before tools start."""
        return True

    async def write(self) -> None:
        """Add the message."""
        message = make_message(Role.TOOL, self._parts(self._results))
        self.messages = [await self._conversation.add(message)]

    async def leave(self, begun: Iterable[int]) -> None:
        """Add a message with the results so far, if a tool was started."""
        places = [*begun]
        if places:
            self._mark_unknown(places)
            await self.write()


class OneMessage(RoundRecord):
    """One message, written before the tools start and again as they end.

    Each write replaces the whole message, so there is one write at a time: results and starts that
    come meanwhile are part of the next one.
    """

    def announce(self, places: Iterable[int]) -> None:
        """Their outcome is unknown until they end."""
        new = [*places]
        super().announce(new)
        self._mark_unknown(new)

    async def write(self) -> None:
        """Add the message, or replace the earlier version."""
        self._is_unwritten = False  # a failed write is not repeated when the round is left
        parts = self._parts(self._results)
        if self.messages:
            message = self.messages[0].replace_unchecked(parts=parts)
            self.messages = [await self._conversation.replace(message)]
        else:
            self.messages = [await self._conversation.add(make_message(Role.TOOL, parts))]

    async def leave(self, begun: Iterable[int]) -> None:  # noqa: ARG002 - they were announced
        """Write the results since the last write."""
        if self.messages and self._is_unwritten:
            await self.write()


class Journal(RoundRecord):
    """One message per write; each result and each start of a call is in exactly one of them.

    A round of a thousand calls writes a thousand results in total, in any store.
    """

    def __init__(
        self, conversation: Conversation, calls: Sequence[ToolCall], known: Results
    ) -> None:
        super().__init__(conversation, calls, known)
        self._new = set(known)  # indexes of results not written yet
        self._beginning: list[int] = []  # indexes of calls whose start is not written yet
        self._has_failed = False

    def settle(self, place: int, result: ToolResult) -> None:
        """Set the result of a call."""
        super().settle(place, result)
        self._new.add(place)

    def announce(self, places: Iterable[int]) -> None:
        """Their ids are written with the next message."""
        new = [place for place in places if place not in self._announced]
        super().announce(new)
        self._beginning += [place for place in new if place not in self._results]

    async def write(self) -> None:
        """Add a message with what is new."""
        message = make_message(Role.TOOL, self._parts(self._new))
        if self._beginning:
            message = with_begun(message, [self._calls[place].id for place in self._beginning])
        self._new.clear()
        self._beginning.clear()
        self._has_failed = True  # until it succeeds
        self.messages.append(await self._conversation.add(message))
        self._has_failed = False

    async def leave(self, begun: Iterable[int]) -> None:  # noqa: ARG002 - they were announced
        """Write the results since, and that the outcome of the other calls is unknown.

        A failed write may have succeeded in the store: the next run will find out.
        """
        if not self.messages or self._has_failed:
            return
        unclear = self._announced - self._results.keys()
        self._mark_unknown(unclear)
        self._new |= unclear
        if self._new:
            await self.write()

    async def complete(self) -> None:
        """Write what is not written yet: results of calls that could not be run."""
        if self._new:
            await self.write()
