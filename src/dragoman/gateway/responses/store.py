"""Stored responses: each is a session of its own, which belongs to the key that made it.

The first row is what was asked (`Asked`), the second the answer as the client gets it, and those of
a streamed background response go on with its events. Whoever asks with another key asks for another
session: it is not there.
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
from dragoman.gateway.responses.documents import document, entry
from dragoman.gateway.responses.ids import is_own, is_plain, response_of
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import DuplicateIds, Row, Storage

ASKED, ANSWER = "asked", "answer"
ENDED: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
_FIRST_ROWS = 2
_ABANDONED = 60.0
"""Seconds without a sign of the worker that answers in the background."""
_ATTEMPTS = 8


class Asked(Struct, kw_only=True):
    """What a response was asked with."""

    created_at: float
    input: list[Any]
    """Its own items, without those of what it continues."""
    ids: list[str]
    """Of these items, as they are listed."""
    previous: str | None = None
    conversation: str | None = None
    background: bool = False
    stream: bool = False


class Stored(Struct, kw_only=True):
    """A response as it is stored."""

    id: str
    asked: Asked
    answer: dict[str, Any]
    seen_at: float
    """When the answer was written last: one that is under way is written again and again."""

    @property
    def status(self) -> str:
        """Where it is on its way."""
        return str(self.answer.get("status"))

    @property
    def is_over(self) -> bool:
        """Whether nothing changes any more."""
        return self.status in ENDED

    @property
    def is_abandoned(self) -> bool:
        """Whether the worker that was to answer is gone."""
        return not self.is_over and time() - self.seen_at > _ABANDONED


class ResponseStore:
    """The stored responses of one key; None is everybody, where there are no keys."""

    def __init__(self, histories: Histories, key: str | None) -> None:
        self._histories = histories
        self._key = key

    def identity(self, id: str) -> SessionIdentity:
        """The session of a response. Ids are never paths: stores know sessions by a digest."""
        return SessionIdentity(chat=id, user=self._key, scope=RESPONSES)

    async def storage(self) -> Storage:
        """The store, open."""
        return await self._histories.storage()

    # --- a response that is stored when its answer is complete

    @contextmanager
    def awaiting(self, id: str) -> Generator[None]:
        """While it is being answered, it can be deleted by its id, which the client knows."""
        name, histories = (self._key, id), self._histories
        histories.under_way.add(name)
        try:
            yield
        finally:
            histories.under_way.discard(name)
            histories.deleted.discard(name)

    def is_deleted(self, id: str) -> bool:
        """Whether it was deleted while it was being answered."""
        return (self._key, id) in self._histories.deleted

    def _forgo(self, id: str) -> bool:
        name = (self._key, id)
        if name not in self._histories.under_way or name in self._histories.deleted:
            return False
        self._histories.deleted.add(name)
        return True

    # --- one response

    async def load(self, id: str) -> Stored | None:
        """A response; None where it is not there, no longer, or another key's."""
        if not is_own(id):
            return None
        storage = await self.storage()
        rows = await storage.rows(self.identity(id), limit=_FIRST_ROWS)
        if len(rows) < _FIRST_ROWS:
            return None
        found = _read(id, rows)
        if time() - found.asked.created_at > self._histories.response_ttl:
            await storage.delete(self.identity(id))
            return None
        return found

    async def add(self, id: str, asked: Asked, answer: dict[str, Any]) -> int:
        """Store a response; returns the version of its session."""
        storage = await self.storage()
        entries = [entry(ASKED, msgspec.to_builtins(asked)), entry(ANSWER, answer)]
        await self._point_to(storage, id, answer)
        return (await storage.append(self.identity(id), entries, expected=0)).version

    async def replace(self, id: str, answer: dict[str, Any], *, expected: int) -> int:
        """Put an answer in place of the last one; raises `Conflict` where somebody else wrote."""
        storage = await self.storage()
        if answer.get("status") in ENDED:
            await self._point_to(storage, id, answer)
        made = entry(ANSWER, answer)
        return await storage.rewrite(self.identity(id), replaced=[made], expected=expected)

    async def version(self, id: str) -> int:
        """The version of a response's session; 0: there is none."""
        session = await (await self.storage()).session(self.identity(id))
        return 0 if session is None else session.version

    async def end(self, id: str, status: str, **said: Any) -> Stored | None:
        """End a response that is under way, whoever answers it; returns it as it is then."""
        for _ in range(_ATTEMPTS):
            expected = await self.version(id)
            found = await self.load(id)
            if found is None or found.is_over:
                return found
            found.answer = {**found.answer, "status": status, **said}
            try:
                await self.replace(id, found.answer, expected=expected)
            except (Conflict, NotFound):
                continue
            return found
        msg = "the response changes too fast to be ended"
        raise Conflict(msg)

    async def delete(self, id: str) -> bool:
        """Remove a response; whether there was one."""
        if await self.load(id) is None:
            return self._forgo(id)
        return await (await self.storage()).delete(self.identity(id))

    # --- the events of a stream

    async def add_events(self, id: str, first: int, events: Sequence[str], *, expected: int) -> int:
        """Store events of a stream, the first of which has that number; returns the version."""
        made = entry(f"events{first}", list(events))
        storage = await self.storage()
        return (await storage.append(self.identity(id), [made], expected=expected)).version

    async def events(self, id: str, after: int) -> tuple[list[str], int]:
        """The events in the rows behind a row's number (0: all), and the last row's number."""
        storage = await self.storage()
        rows = await storage.rows(self.identity(id), after=max(after, _FIRST_ROWS))
        found = [text for row in rows for text in document(row)]
        return found, rows[-1].seq if rows else after

    # --- items

    async def item(self, id: str) -> Any | None:
        """An item of any response of this key; None: there is none."""
        response = response_of(id) or await self._pointed(id)
        found = None if response is None else await self.load(response)
        if found is None:
            return None
        asked = found.asked
        for item, own in zip(asked.input, asked.ids, strict=True):
            if own == id:
                return item
        output = [each for each in found.answer.get("output", ()) if isinstance(each, dict)]
        return next((each for each in output if each.get("id") == id), None)

    def _pointer(self, id: str) -> SessionIdentity:
        return SessionIdentity(chat=id, user=self._key, scope=ITEMS)

    async def _point_to(self, storage: Storage, id: str, answer: dict[str, Any]) -> None:
        """Remember where items are whose ids don't say it: those that another server gave."""
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


def _read(id: str, rows: Sequence[Row]) -> Stored:
    try:
        asked = msgspec.convert(document(rows[0]), Asked)
    except msgspec.ValidationError:
        problem = "the stored response can't be read"
    else:
        answer = document(rows[1])
        if isinstance(answer, dict) and len(asked.ids) == len(asked.input):
            return Stored(id=id, asked=asked, answer=answer, seen_at=rows[1].at)
        problem = "the stored answer can't be read"
    raise Corrupt(problem)
