"""What a request continues, put into its input: earlier responses, a conversation, references.

Responses of ours are a chain, each with its own input and output; what a model is sent is all of
it. Chains are bounded, in number and in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dragoman.gateway.responses import refusals
from dragoman.gateway.responses.items import reference_in, size_of
from dragoman.gateway.responses.store import ENDED, ResponseStore

if TYPE_CHECKING:
    from dragoman.gateway.responses.connections import Connection, Turn
    from dragoman.gateway.responses.conversations import ConversationStore

MOST_LINKS = 1000
"""Responses that a request may continue, one after the other."""
_GOES_ON = frozenset({"completed", "incomplete"})


class Wanted(Struct, kw_only=True):
    """The state that a request names."""

    previous: str | None = None
    conversation: str | None = None
    items: list[dict[str, Any]]
    """The request's own input."""

    @property
    def references(self) -> list[str]:
        """The ids of items that stand elsewhere."""
        found = [reference_in(item) for item in self.items]
        return [id for id in found if id is not None]


class Found(Struct, kw_only=True):
    """The same, looked up."""

    before: list[Any]
    """Items that come before the request's own."""
    own: list[dict[str, Any]]
    """The request's own items, without references."""
    link: Turn | None = None
    """The last of the turns of the WebSocket that it continues."""

    @property
    def whole(self) -> list[Any]:
        """All that the model is sent."""
        return [*self.before, *self.own]


class Finder:
    """Looks up what requests continue, for one key; without a store, on a connection alone."""

    def __init__(
        self,
        responses: ResponseStore | None,
        conversations: ConversationStore | None,
        connection: Connection | None,
        most_bytes: int,
    ) -> None:
        self._responses = responses
        self._conversations = conversations
        self._connection = connection
        self._most_bytes = most_bytes

    async def find(self, wanted: Wanted) -> Found:
        """All that is named; raises where something is not there."""
        link = None
        before: list[Any] = []
        if wanted.previous is not None:
            link = None if self._connection is None else self._connection.turn(wanted.previous)
            before = link.items if link is not None else await self._chain(wanted.previous)
        elif wanted.conversation is not None:
            before = await self._conversation(wanted.conversation)
        own = await self._resolved(wanted.items, before)
        return Found(before=before, own=own, link=link)

    async def _chain(self, id: str) -> list[Any]:
        links: list[list[Any]] = []
        seen: set[str] = set()
        size, at = 0, id
        while True:
            if at in seen or len(links) >= MOST_LINKS:
                msg = f"More than {MOST_LINKS:,} responses follow one another: send the input anew."
                raise refusals.too_long(msg, "previous_response_id")
            seen.add(at)
            items, previous = await self._link(at)
            size += size_of(items)
            self._expect_size(size)
            links.append(items)
            if previous is None:
                return [item for link in reversed(links) for item in link]
            at = previous

    async def _link(self, id: str) -> tuple[list[Any], str | None]:
        """The items of one response, and what it continues itself."""
        found = None if self._responses is None else await self._responses.load(id)
        if found is None:
            raise refusals.no_previous(id)
        if found.status not in _GOES_ON:
            status = found.status if found.status in ENDED else "in_progress"
            raise refusals.unfinished(id, status)
        asked = found.asked
        if asked.conversation is not None:  # its items are the conversation's
            before = await self._conversation(asked.conversation, upto=found.answer.get("output"))
            return before, None
        return [*asked.input, *found.answer.get("output", ())], asked.previous

    async def _conversation(self, id: str, upto: Any = None) -> list[Any]:
        if self._conversations is None:
            raise refusals.no_conversation(id)
        items: list[Any] = await self._conversations.items(id)
        self._expect_size(size_of(items))
        return items[: _end(items, upto)]

    async def _resolved(self, items: Iterable[dict[str, Any]], before: list[Any]) -> list[Any]:
        """Items with what they refer to in place of references."""
        at_hand = {item.get("id"): item for item in before if isinstance(item, dict)}
        found: list[Any] = []
        for item in items:
            id = reference_in(item)
            if id is None:
                found.append(item)
                continue
            meant = at_hand.get(id)
            if meant is None and self._responses is not None:
                meant = await self._responses.item(id)
            if meant is None:
                raise refusals.no_item(id, "input")
            found.append(meant)
        return found

    def _expect_size(self, size: int) -> None:
        if size > self._most_bytes:
            msg = f"What the request continues has more than {self._most_bytes:,} bytes."
            raise refusals.too_long(msg, "previous_response_id")


def _end(items: list[Any], output: Any) -> int:
    """Where a conversation ends that has gone on after an answer: behind the answer's items."""
    ids = {each.get("id") for each in output or () if isinstance(each, dict)}
    places = [number for number, item in enumerate(items) if item.get("id") in ids]
    return places[-1] + 1 if places else len(items)
