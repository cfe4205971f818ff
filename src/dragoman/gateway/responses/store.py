"""Stored responses. Each is a session that belongs to the key that created it.

The first row is the request (`StoredRequest`), the second the response body as the client receives
it. A streamed background response has its events in further rows. The key is part of the session's
identity, so other keys can't find it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from time import time
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.errors import Conflict, Corrupt, NotFound
from dragoman.gateway.histories import ITEMS, RESPONSES, Histories
from dragoman.gateway.large_bodies import LARGE, aside_if_large
from dragoman.gateway.responses.documents import document, entry
from dragoman.gateway.responses.ids import is_own, is_plain, response_of
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import DuplicateIds, Entry, Row, Storage

ASKED, ANSWER = "asked", "answer"
ENDED: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
_FIRST_ROWS = 2
_UNKNOWN: Final = LARGE + 1  # bytes
_ABANDONED = 60.0
"""Seconds without a heartbeat after which a background response counts as abandoned."""
_ATTEMPTS = 8


class StoredRequest(Struct, kw_only=True):
    """The stored part of a request."""

    created_at: float
    input: list[Any]
    """The request's own items, without those of earlier responses."""
    ids: list[str]
    """The ids of these items in lists."""
    previous: str | None = None
    conversation: str | None = None
    background: bool = False
    stream: bool = False


class StoredResponse(Struct, kw_only=True):
    """A stored response."""

    id: str
    request: StoredRequest
    answer: dict[str, Any]
    seen_at: float
    """The time of the last write; a response in progress is rewritten as a heartbeat."""
    size: int = 0
    """Bytes in the store."""

    @property
    def status(self) -> str:
        """The status, such as `queued` or `completed`."""
        return str(self.answer.get("status"))

    @property
    def is_over(self) -> bool:
        """Whether the response has reached a final status."""
        return self.status in ENDED

    @property
    def is_abandoned(self) -> bool:
        """Whether the worker that was generating it is gone."""
        return not self.is_over and time() - self.seen_at > _ABANDONED


class ResponseStore:
    """The stored responses of one key; None if the gateway has no keys."""

    def __init__(self, histories: Histories, key: str | None) -> None:
        self._histories = histories
        self._key = key

    @property
    def retention(self) -> str:
        """See `Histories.retention`."""
        return self._histories.retention

    def identity(self, id: str) -> SessionIdentity:
        """Returns the session of a response. Ids never become paths: stores use a digest."""
        return SessionIdentity(chat=id, user=self._key, scope=RESPONSES)

    async def storage(self) -> Storage:
        """Returns the open store."""
        return await self._histories.storage()

    # --- responses that are stored once complete

    @contextmanager
    def awaiting(self, id: str) -> Generator[None]:
        """Allows the response to be deleted while it is generated: the client knows its id."""
        name, histories = (self._key, id), self._histories
        histories.under_way.add(name)
        try:
            yield
        finally:
            histories.under_way.discard(name)
            histories.deleted.discard(name)

    def is_deleted(self, id: str) -> bool:
        """Whether it was deleted while it was generated."""
        return (self._key, id) in self._histories.deleted

    def _mark_deleted(self, id: str) -> bool:
        name = (self._key, id)
        if name not in self._histories.under_way or name in self._histories.deleted:
            return False
        self._histories.deleted.add(name)
        return True

    # --- one response

    async def load(self, id: str) -> StoredResponse | None:
        """Returns a response; None if it is missing, expired or another key's."""
        if not is_own(id):
            return None
        storage = await self.storage()
        rows = await storage.rows(self.identity(id), limit=_FIRST_ROWS)
        if len(rows) < _FIRST_ROWS:
            return None
        size = sum(len(row.body) for row in rows)
        found = await aside_if_large(size, _read, id, rows)
        found.size = size
        if time() - found.request.created_at > self._histories.response_ttl:
            await storage.delete(self.identity(id))
            return None
        return found

    async def add(
        self, id: str, request: StoredRequest, answer: dict[str, Any], *, size: int = _UNKNOWN
    ) -> int:
        """Stores a response; returns the version of its session. `size`: of both, in bytes."""
        storage = await self.storage()
        entries = await aside_if_large(size, _entries, request, answer)
        await self._point_to(storage, id, answer)
        return (await storage.append(self.identity(id), entries, expected=0)).version

    async def replace(self, id: str, answer: dict[str, Any], *, expected: int) -> int:
        """Replaces the response body; raises `Conflict` after a concurrent write."""
        storage = await self.storage()
        if answer.get("status") in ENDED:
            await self._point_to(storage, id, answer)
        made = entry(ANSWER, answer)
        return await storage.rewrite(self.identity(id), replaced=[made], expected=expected)

    async def version(self, id: str) -> int:
        """Returns the version of a response's session; 0 if there is none."""
        session = await (await self.storage()).session(self.identity(id))
        return 0 if session is None else session.version

    async def end(self, id: str, status: str, **fields: Any) -> StoredResponse | None:
        """Ends a response in progress, on any worker; returns its new state."""
        for _ in range(_ATTEMPTS):
            expected = await self.version(id)
            found = await self.load(id)
            if found is None or found.is_over:
                return found
            found.answer = {**found.answer, "status": status, **fields}
            try:
                await self.replace(id, found.answer, expected=expected)
            except (Conflict, NotFound):
                continue
            return found
        msg = "the response could not be ended because of concurrent changes"
        raise Conflict(msg)

    async def delete(self, id: str) -> bool:
        """Deletes a response; returns whether there was one."""
        if await self.load(id) is None:
            return self._mark_deleted(id)
        return await (await self.storage()).delete(self.identity(id))

    # --- the events of a stream

    async def add_events(self, id: str, first: int, events: Sequence[str], *, expected: int) -> int:
        """Stores stream events, numbered from `first`; returns the session's version."""
        made = entry(f"events{first}", list(events))
        storage = await self.storage()
        return (await storage.append(self.identity(id), [made], expected=expected)).version

    async def events(self, id: str, after: int) -> tuple[list[str], int]:
        """Returns the events in rows after a row number (0: all), and the last row's number."""
        storage = await self.storage()
        rows = await storage.rows(self.identity(id), after=max(after, _FIRST_ROWS))
        found = [text for row in rows for text in document(row)]
        return found, rows[-1].seq if rows else after

    # --- items

    async def item(self, id: str) -> Any | None:
        """Returns an item of any response of this key; None if there is none."""
        response = response_of(id) or await self._pointed(id)
        found = None if response is None else await self.load(response)
        if found is None:
            return None
        request = found.request
        for item, own in zip(request.input, request.ids, strict=True):
            if own == id:
                return item
        output = [each for each in found.answer.get("output", ()) if isinstance(each, dict)]
        return next((each for each in output if each.get("id") == id), None)

    def _pointer(self, id: str) -> SessionIdentity:
        return SessionIdentity(chat=id, user=self._key, scope=ITEMS)

    async def _point_to(self, storage: Storage, id: str, answer: dict[str, Any]) -> None:
        """Stores which response has an item whose id doesn't tell: ids of other servers."""
        for item in answer.get("output", ()):
            own = item.get("id") if isinstance(item, dict) else None
            if not isinstance(own, str) or not is_plain(own) or response_of(own) == id:
                continue
            try:
                await storage.append(self._pointer(own), [entry(id, {"response": id})])
            except DuplicateIds:
                continue

    async def _pointed(self, id: str) -> str | None:
        if not is_plain(id):
            return None
        rows = await (await self.storage()).rows(self._pointer(id), limit=1, newest=True)
        found = document(rows[0]) if rows else None
        return found.get("response") if isinstance(found, dict) else None


def _entries(request: StoredRequest, answer: dict[str, Any]) -> list[Entry]:
    return [entry(ASKED, msgspec.to_builtins(request)), entry(ANSWER, answer)]


def _read(id: str, rows: Sequence[Row]) -> StoredResponse:
    try:
        request = msgspec.convert(document(rows[0]), StoredRequest)
    except msgspec.ValidationError:
        problem = "the stored response can't be read"
    else:
        answer = document(rows[1])
        if isinstance(answer, dict) and len(request.ids) == len(request.input):
            return StoredResponse(id=id, request=request, answer=answer, seen_at=rows[1].at)
        problem = "the stored response body can't be read"
    raise Corrupt(problem)
