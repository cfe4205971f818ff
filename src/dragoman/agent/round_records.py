"""Where the results of a round of tools are written down, and when.

Whenever the program stops, what is written is true, and no call that was begun is begun again.

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
_MOST_IN_ONE = 8
"""Calls of a round that is one message: written again for each of them, it is still cheap."""

Results = dict[int, ToolResult]
"""By the place of the call in its round."""


def unknown(call: ToolCall) -> ToolResult:
    """The result of a call that was begun, and of which nothing more is known."""
    return ToolResult.error(call.id, UNKNOWN, tool_name=call.name)


def record_of(conversation: Conversation, calls: Sequence[ToolCall], known: Results) -> RoundRecord:
    """The record of a round; some results may be known before it begins."""
    if not conversation.keeps_rounds:
        return AtTheEnd(conversation, calls, known)
    kind = OneMessage if len(calls) <= _MOST_IN_ONE else Journal
    return kind(conversation, calls, known)


class RoundRecord(ABC):
    """The results of one round so far, and the messages that hold them."""

    def __init__(
        self, conversation: Conversation, calls: Sequence[ToolCall], known: Results
    ) -> None:
        self.messages: list[Message] = []
        """What was written, as it is kept."""
        self._conversation = conversation
        self._calls = calls
        self._results = known
        self._announced: set[int] = set()
        self._is_unwritten = False  # whether there is a result that is not in what is written

    @property
    def results(self) -> list[tuple[ToolCall, ToolResult]]:
        """Each call that has a result, in order."""
        return [(self._calls[place], self._results[place]) for place in sorted(self._results)]

    def settle(self, place: int, result: ToolResult) -> None:
        """Note the result of a call; `write` makes it durable."""
        self._results[place] = result
        self._is_unwritten = True

    def is_announced(self, place: int) -> bool:
        """Whether a call may begin: it is written down that it does, where that is needed."""
        return place in self._announced

    def announce(self, places: Iterable[int]) -> None:
        """Note which calls are about to begin; `write` makes it durable."""
        self._announced.update(places)

    @abstractmethod
    async def write(self) -> None:
        """Write down what is new."""

    @abstractmethod
    async def leave(self, begun: Iterable[int]) -> None:
        """Write down what has come of the calls that were begun: the round ends early."""

    async def complete(self) -> None:
        """The round has ended: write down what is not written yet."""
        if not self.messages:
            await self.write()

    def _mark_unknown(self, places: Iterable[int]) -> None:
        for place in places:  # one that can't be run has its result already
            self._results.setdefault(place, unknown(self._calls[place]))

    def _parts(self, places: Iterable[int]) -> tuple[ToolResult, ...]:
        return tuple(self._results[place] for place in sorted(places))


class AtTheEnd(RoundRecord):
    """One message, when the round ends."""

    def is_announced(self, place: int) -> bool:  # noqa: ARG002 - nothing need be written for any
        """Always: nothing is written before tools begin."""
        return True

    async def write(self) -> None:
        """Add the message."""
        message = make_message(Role.TOOL, self._parts(self._results))
        self.messages = [await self._conversation.add(message)]

    async def leave(self, begun: Iterable[int]) -> None:
        """Add a message with what has come so far, if a tool was begun."""
        places = [*begun]
        if places:
            self._mark_unknown(places)
            await self.write()


class OneMessage(RoundRecord):
    """One message, written before the tools begin and again as they end.

    Each writing is of the whole message. So there is one at a time: what ends meanwhile, and what
    begins next, is written with the next one.
    """

    def announce(self, places: Iterable[int]) -> None:
        """Their outcome is unknown until they end."""
        new = [*places]
        super().announce(new)
        self._mark_unknown(new)

    async def write(self) -> None:
        """Add the message, or put it in the place of what was written before."""
        self._is_unwritten = False  # what fails is not tried again when the round is left
        parts = self._parts(self._results)
        if self.messages:
            message = self.messages[0].replace_unchecked(parts=parts)
            self.messages = [await self._conversation.replace(message)]
        else:
            self.messages = [await self._conversation.add(make_message(Role.TOOL, parts))]

    async def leave(self, begun: Iterable[int]) -> None:  # noqa: ARG002 - they were announced
        """Write what came since the last writing."""
        if self.messages and self._is_unwritten:
            await self.write()


class Journal(RoundRecord):
    """As many messages as there are writings; a result, and that a call begins, is in one of them.

    A round of a thousand calls costs a thousand results to write, whatever the store.
    """

    def __init__(
        self, conversation: Conversation, calls: Sequence[ToolCall], known: Results
    ) -> None:
        super().__init__(conversation, calls, known)
        self._new = set(known)  # the places of results that are not written
        self._beginning: list[int] = []  # the places of calls of which it is not written
        self._has_failed = False

    def settle(self, place: int, result: ToolResult) -> None:
        """Note the result of a call."""
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
        self._has_failed = True  # unless it goes well
        self.messages.append(await self._conversation.add(message))
        self._has_failed = False

    async def leave(self, begun: Iterable[int]) -> None:  # noqa: ARG002 - they were announced
        """Write what came since, and that the outcome of the others is unknown.

        A writing that has failed may have happened: then it is for who resumes the run to say.
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
