"""Resolves the state that a request refers to: earlier responses, a conversation, item references.

Stored responses form a chain, each with its own input and output. The model is sent the whole
chain. Chains are limited in length and in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dragoman.gateway.large_bodies import LARGE, aside, aside_if_large
from dragoman.gateway.responses import state_errors
from dragoman.gateway.responses.items import reference_in, size_of
from dragoman.gateway.responses.state_errors import NOT_KEPT
from dragoman.gateway.responses.store import ENDED, ResponseStore

if TYPE_CHECKING:
    from dragoman.gateway.responses.connections import Connection, Turn
    from dragoman.gateway.responses.conversations import ConversationStore

MAX_LINKS = 1000
"""Maximum length of a chain of responses."""
_CONTINUABLE = frozenset({"completed", "incomplete"})


class StateReferences(Struct, kw_only=True):
    """The state that a request refers to."""

    previous: str | None = None
    conversation: str | None = None
    items: list[dict[str, Any]]
    """The request's own input."""

    @property
    def references(self) -> list[str]:
        """The ids of referenced items."""
        found = [reference_in(item) for item in self.items]
        return [id for id in found if id is not None]


class ResolvedState(Struct, kw_only=True):
    """The resolved state."""

    before: list[Any]
    """The items before the request's own."""
    own: list[dict[str, Any]]
    """The request's own items, with references resolved."""
    link: Turn | None = None
    """The turn of the WebSocket connection that it continues."""

    @property
    def whole(self) -> list[Any]:
        """The full input for the model."""
        return [*self.before, *self.own]


class StateResolver:
    """Resolves state for one key; without a store, only from the connection."""

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

    async def resolve(self, wanted: StateReferences) -> ResolvedState:
        """Resolves everything that a request refers to; raises if something is missing."""
        link = None
        before: list[Any] = []
        if wanted.previous is not None:
            link = None if self._connection is None else self._connection.turn(wanted.previous)
            before = link.items if link is not None else await self._chain(wanted.previous)
        elif wanted.conversation is not None:
            before = await self._conversation(wanted.conversation)
        own = await self._resolved(wanted.items, before)
        return ResolvedState(before=before, own=own, link=link)

    async def _chain(self, id: str) -> list[Any]:
        links: list[list[Any]] = []
        seen: set[str] = set()
        size, at = 0, id
        while True:
            if at in seen or len(links) >= MAX_LINKS:
                msg = f"The chain has more than {MAX_LINKS:,} responses: send the full input."
                raise state_errors.too_long(msg, "previous_response_id")
            seen.add(at)
            items, previous, stored = await self._link(at)
            size += await aside_if_large(stored, size_of, items)
            self._expect_size(size)
            links.append(items)
            if previous is None:
                return [item for link in reversed(links) for item in link]
            at = previous

    async def _link(self, id: str) -> tuple[list[Any], str | None, int]:
        """Returns the items of one response, the id of its predecessor, and its stored size."""
        found = None if self._responses is None else await self._responses.load(id)
        if found is None:
            kept = NOT_KEPT if self._responses is None else self._responses.retention
            raise state_errors.no_previous(id, kept)
        if found.status not in _CONTINUABLE:
            status = found.status if found.status in ENDED else "in_progress"
            raise state_errors.unfinished(id, status)
        request = found.request
        if request.conversation is not None:  # its items are in the conversation
            before = await self._conversation(request.conversation, upto=found.answer.get("output"))
            return before, None, LARGE + 1
        items = [*request.input, *found.answer.get("output", ())]
        return items, request.previous, found.size

    async def _conversation(self, id: str, upto: Any = None) -> list[Any]:
        if self._conversations is None:
            raise state_errors.no_conversation(id)
        items: list[Any] = await self._conversations.items(id)
        self._expect_size(await aside(size_of, items))
        return items[: _end(items, upto)]

    async def _resolved(self, items: Iterable[dict[str, Any]], before: list[Any]) -> list[Any]:
        """Returns the items, with references replaced by the items that they name."""
        known = {item.get("id"): item for item in before if isinstance(item, dict)}
        found: list[Any] = []
        for item in items:
            id = reference_in(item)
            if id is None:
                found.append(item)
                continue
            target = known.get(id)
            if target is None and self._responses is not None:
                target = await self._responses.item(id)
            if target is None:
                raise state_errors.no_item(id, "input")
            found.append(target)
        return found

    def _expect_size(self, size: int) -> None:
        if size > self._most_bytes:
            msg = f"The request continues more than {self._most_bytes:,} bytes of earlier items."
            raise state_errors.too_long(msg, "previous_response_id")


def _end(items: list[Any], output: Any) -> int:
    """Returns the end of a conversation as of a response: after the response's items."""
    ids = {each.get("id") for each in output or () if isinstance(each, dict)}
    indexes = [number for number, item in enumerate(items) if item.get("id") in ids]
    return indexes[-1] + 1 if indexes else len(items)
