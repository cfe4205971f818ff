"""The store's conversations, latest first.

SQLite lists sessions by time. Other stores list them by digest: for those, an in-memory list keeps
them ordered by time, and each call first loads the sessions that changed since the last one. A
deleted session is noticed when it is about to be shown.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Collection, Sequence
from time import monotonic, time
from typing import NamedTuple

from dragoman.errors import InvalidRequest, NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.session_summaries import Listed, looked_at, sessions_with_digest
from dragoman.history.storage.protocol import (
    NO_SESSION,
    Filter,
    Ordering,
    Session,
    Storage,
    is_ordering,
)
from dragoman.history.transfer import every_session

OWN = "dragoman.page"
"""The scope of the page's own sessions, such as the pins."""
_HIDDEN = (OWN, "gateway.responses", "gateway.items")
_PAGE = 2000
_MAX_LISTED = 100_000
_MAX_SUMMARIES = 5000
_CONCURRENT = 16
_OVERLAP = 1.0  # seconds between a write's timestamp and its end
_LONG_OVERLAP, _LONG_EVERY = 300.0, 30.0  # now and then, allow for clock skew between writers
_DIGEST = re.compile(r"[0-9a-f]{40}")
_BAD_CURSOR = "invalid cursor"


class Position(NamedTuple):
    """The sort key of a conversation in the list, latest first."""

    age: float
    """The negated time of the last write."""
    digest: str


class Listing:
    """The ordered conversations of one store."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = asyncio.Lock()
        self._known: dict[str, Session] = {}
        self._order: list[Position] | None = None
        self._latest: float | None = None
        self._looked_far = monotonic()
        self._summaries: dict[str, tuple[tuple[int, float], Listed]] = {}

    # --- one

    async def session(self, id: str) -> Session:
        """Returns the conversation with this id; raises `NotFound`, also for malformed ids."""
        if _DIGEST.fullmatch(id) is None:
            raise NotFound(NO_SESSION)
        known = self._known.get(id)
        if known is not None:
            found = await self._storage.session(known.identity)
        else:
            some = await sessions_with_digest(self._storage, id, limit=1)
            found = some[0] if some else None
        if found is None:
            self.forget(id)
        if found is None or not is_shown(found.identity):
            raise NotFound(NO_SESSION)
        return found

    async def there(self, ids: Sequence[str]) -> list[Session]:
        """Returns the conversations with these ids; those deleted elsewhere are omitted."""
        found: list[Session] = []
        for start in range(0, len(ids), _CONCURRENT):
            some = map(self._session_or_none, ids[start : start + _CONCURRENT])
            found += [each for each in await asyncio.gather(*some) if each is not None]
        return found

    async def _session_or_none(self, id: str) -> Session | None:
        try:
            return await self.session(id)
        except NotFound:
            return None

    def forget(self, id: str) -> None:
        """Removes a deleted conversation from the list."""
        self._summaries.pop(id, None)
        if self._known.pop(id, None) is not None:
            self._order = None

    # --- all

    async def total(self) -> int:
        """Returns the number of conversations."""
        if is_ordering(self._storage):
            return await self._storage.number_of_sessions(_HIDDEN)
        await self._catch_up()
        return len(self._known)

    async def latest(
        self, limit: int, cursor: str, left_out: Collection[str] = ()
    ) -> tuple[list[Session], str | None]:
        """Returns a page of conversations and the next cursor, or None at the end."""
        place = _position(cursor) if cursor else None
        if is_ordering(self._storage):
            return await _listed_by(self._storage, limit, place, left_out)
        sessions, following = await self._in_memory(limit, place, left_out)
        return await self._existing(sessions), following

    async def _in_memory(
        self, limit: int, after: Position | None, left_out: Collection[str]
    ) -> tuple[list[Session], str | None]:
        await self._catch_up()
        order = self._in_order()
        start = bisect_right(order, after) if after else 0
        found: list[Session] = []
        place: Position | None = None
        for place in order[start:]:
            if len(found) == limit:
                break
            if place.digest not in left_out:
                found.append(self._known[place.digest])
        else:
            return found, None
        last = found[-1] if found else None
        return found, None if last is None else _cursor(_position_of(last))

    def _in_order(self) -> list[Position]:
        if self._order is None:
            self._order = sorted(map(_position_of, self._known.values()))
            for place in self._order[_MAX_LISTED:]:
                del self._known[place.digest]
            del self._order[_MAX_LISTED:]
        return self._order

    async def _catch_up(self) -> None:
        """Loads the sessions written since the last call."""
        async with self._lock:
            now = monotonic()
            which = Filter() if self._latest is None else Filter(since=self._since(now))
            latest = self._latest or 0.0
            async for session in every_session(self._storage, which, page=_PAGE):
                self._take(session)
                latest = max(latest, session.updated_at)
            # A writer whose clock is ahead must not hide the others' writes.
            self._latest = min(latest, time())

    def _since(self, now: float) -> float:
        is_long = now - self._looked_far >= _LONG_EVERY
        if is_long:
            self._looked_far = now
        return (self._latest or 0.0) - (_LONG_OVERLAP if is_long else _OVERLAP)

    def _take(self, session: Session) -> None:
        digest = session.identity.digest
        known = self._known.get(digest)
        if not is_shown(session.identity) or known == session:
            return
        self._known[digest] = session
        if known is None or known.updated_at != session.updated_at:
            self._order = None

    async def _existing(self, sessions: Sequence[Session]) -> list[Session]:
        """Returns the sessions as they are now; deleted ones are omitted."""
        there: list[Session] = []
        for start in range(0, len(sessions), _CONCURRENT):
            some = sessions[start : start + _CONCURRENT]
            now = await asyncio.gather(*(self._storage.session(each.identity) for each in some))
            for each, found in zip(some, now, strict=True):
                if found is None:
                    self.forget(each.identity.digest)
                else:
                    there.append(found)
        return there

    # --- summaries

    async def summaries(self, sessions: Sequence[Session]) -> list[Listed]:
        """Returns the summary of each conversation."""
        unknown = [each for each in sessions if self._summary(each) is None]
        for listed in await looked_at(self._storage, unknown):
            self._remember(listed)
        summaries = (self._summary(each) for each in sessions)
        return [each for each in summaries if each is not None]

    def _summary(self, session: Session) -> Listed | None:
        found = self._summaries.get(session.identity.digest)
        return None if found is None or found[0] != _state(session) else found[1]

    def _remember(self, listed: Listed) -> None:
        while len(self._summaries) >= _MAX_SUMMARIES:
            del self._summaries[next(iter(self._summaries))]
        session = listed.session
        self._summaries[session.identity.digest] = _state(session), listed


async def _listed_by(
    storage: Ordering, limit: int, after: Position | None, left_out: Collection[str]
) -> tuple[list[Session], str | None]:
    """Returns a page of conversations of a store that orders them, and the next cursor."""
    before = None if after is None else (-after.age, after.digest)
    most = limit + 1 + len(left_out)
    found = await storage.sessions_by_time(limit=most, before=before, without=_HIDDEN)
    shown = [each for each in found if each.session.identity.digest not in left_out]
    sessions = [each.session for each in shown[:limit]]
    if len(shown) <= limit:
        return sessions, None
    at, last = shown[limit - 1]
    return sessions, _cursor(Position(-at, last.identity.digest))


def is_shown(identity: SessionIdentity) -> bool:
    """Whether a session is a user's conversation rather than the gateway's internal state."""
    return identity.scope is None or not identity.scope.startswith(_HIDDEN)


def _state(session: Session) -> tuple[int, float]:
    return session.version, session.created_at + session.active


def _position_of(session: Session) -> Position:
    return Position(-session.updated_at, session.identity.digest)


def _cursor(place: Position) -> str:
    return urlsafe_b64encode(f"{place.age!r}|{place.digest}".encode()).decode()


def _position(cursor: str) -> Position:
    try:
        age, _, digest = urlsafe_b64decode(cursor.encode()).decode("ascii").partition("|")
        return Position(float(age), digest)
    except ValueError:
        pass
    raise InvalidRequest(_BAD_CURSOR, status=400)
