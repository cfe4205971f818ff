"""Stored conversations. Each is a session that belongs to one key; its rows are the items."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time
from typing import Any

from dragoman.errors import Conflict, NotFound, Overloaded
from dragoman.gateway.histories import CONVERSATIONS, Histories
from dragoman.gateway.large_bodies import aside
from dragoman.gateway.responses.documents import document, entry
from dragoman.gateway.responses.ids import is_own, is_plain, new_conversation_id, new_item_id
from dragoman.gateway.responses.state_errors import no_conversation, no_item, too_long
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import DuplicateIds, Entry, Row, Storage

_HEAD = "conversation"
_MAX_ITEMS = 20_000
_FULL = f"A conversation can have at most {_MAX_ITEMS:,} items."
_LARGE = "The conversation has too many bytes to read all of its items: read or delete single ones."
_FIRST_ROWS, _FEW_BYTES = 16, 256 * 1024
"""How many rows are read at first; four times as many if these have few bytes."""
_ATTEMPTS = 100
_PAUSE = 0.002


class ConversationStore:
    """The conversations of one key; None if the gateway has no keys."""

    most_bytes = 64 * 1024 * 1024
    """Of the items that are read at once."""

    def __init__(self, histories: Histories, key: str | None) -> None:
        self._histories = histories
        self._key = key

    def _identity(self, id: str) -> SessionIdentity:
        return SessionIdentity(chat=id, user=self._key, scope=CONVERSATIONS)

    async def _storage(self) -> Storage:
        return await self._histories.storage()

    # --- conversations

    async def create(self, metadata: dict[str, Any], items: Sequence[Any]) -> dict[str, Any]:
        """Creates a conversation; returns it in the API's format."""
        id = new_conversation_id()
        head = {"id": id, "object": "conversation", "created_at": int(time()), "metadata": metadata}
        entries = [entry(_HEAD, head), *await aside(_entries, items)]
        await (await self._storage()).append(self._identity(id), entries, expected=0)
        return head

    async def head(self, id: str) -> dict[str, Any]:
        """Returns a conversation in the API's format; raises if it is missing or another key's."""
        row = None
        if is_own(id):
            row = await (await self._storage()).row(self._identity(id), _HEAD)
        if row is None:
            raise no_conversation(id)
        found: dict[str, Any] = document(row)
        return found

    async def update(self, id: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Replaces the metadata of a conversation."""
        changed = {**await self.head(id), "metadata": metadata}
        storage = await self._storage()
        try:
            await storage.rewrite(self._identity(id), replaced=[entry(_HEAD, changed)])
        except NotFound:
            raise no_conversation(id) from None
        return changed

    async def delete(self, id: str) -> None:
        """Deletes a conversation and its items."""
        await self.head(id)
        await (await self._storage()).delete(self._identity(id))

    # --- items

    async def add(self, id: str, items: Sequence[Any]) -> list[dict[str, Any]]:
        """Appends items, all or none; returns them with their ids."""
        storage, identity = await self._storage(), self._identity(id)
        for _ in range(_ATTEMPTS):
            await self.head(id)
            session = await storage.session(identity)
            if session is None:
                raise no_conversation(id)
            if session.last_seq + len(items) > _MAX_ITEMS:
                raise too_long(_FULL, "conversation")
            named = _named(items)
            if not named:
                return []
            entries = await aside(_entries_of, named)
            try:  # by version: an append must not recreate a deleted conversation
                await storage.append(identity, entries, expected=session.version)
            except DuplicateIds as error:
                items = [_without_id(each, error.ids) for each in named]
            except Conflict:
                await asyncio.sleep(_PAUSE)
            else:
                return named
        msg = "too many requests are writing to the conversation at once; try again"
        raise Overloaded(msg, status=503, retry_after=1.0)

    async def items(self, id: str) -> list[dict[str, Any]]:
        """Returns all items in order."""
        rows = await self._rows(id) if is_own(id) else ()
        if not rows:
            raise no_conversation(id)
        return await aside(lambda: [document(row) for row in rows if row.id != _HEAD])

    async def _rows(self, id: str) -> Sequence[Row]:
        """All rows; raises before more of them are in memory than a conversation may have."""
        storage, identity = await self._storage(), self._identity(id)
        found: list[Row] = []
        size, number = 0, _FIRST_ROWS
        while True:
            after = found[-1].seq if found else 0
            rows = await storage.rows(identity, after=after, limit=number)
            found += rows
            some = sum(len(row.body) for row in rows)
            size += some
            if size > self.most_bytes:
                raise too_long(_LARGE, "conversation")
            if len(rows) < number:
                return found
            if some < _FEW_BYTES:
                number *= 4

    async def item(self, id: str, item: str) -> dict[str, Any]:
        """Returns one item."""
        await self.head(id)
        row = None
        if is_plain(item) and item != _HEAD:
            row = await (await self._storage()).row(self._identity(id), item)
        if row is None:
            raise no_item(item)
        found: dict[str, Any] = document(row)
        return found

    async def remove(self, id: str, item: str) -> None:
        """Deletes one item."""
        await self.item(id, item)
        try:
            await (await self._storage()).rewrite(self._identity(id), removed=[item])
        except NotFound:
            raise no_item(item) from None


def _entries(items: Sequence[Any]) -> list[Entry]:
    return _entries_of(_named(items))


def _entries_of(named: Sequence[Any]) -> list[Entry]:
    return [entry(each["id"], each) for each in named]


def _named(items: Sequence[Any]) -> list[dict[str, Any]]:
    """Returns the items with unique ids; generates missing ones."""
    taken: set[str] = {_HEAD}
    named: list[dict[str, Any]] = []
    for item in items:
        own = item.get("id")
        if not is_plain(own) or own in taken:
            own = new_item_id(item.get("type"))
        taken.add(own)
        named.append({**item, "id": own})
    return named


def _without_id(item: dict[str, Any], taken: Sequence[str]) -> dict[str, Any]:
    return {**item, "id": None} if item["id"] in taken else item
