"""Which conversations there are, the latest first: what the page remembers of the store.

Stores list sessions by their digests. Their order by time is kept here, brought up to date with
what was written since whenever somebody asks; what was deleted is noticed when it is to be shown.
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
from dragoman.history.storage.protocol import NO_SESSION, Filter, Session, Storage
from dragoman.history.transfer import every_session

OWN = "dragoman.page"
"""The scope of what the page itself keeps: the pins."""
_HIDDEN = (OWN, "gateway.responses", "gateway.items")
_PAGE = 2000
_MOST = 100_000  # conversations that are remembered
_MOST_SUMMARIES = 5000
_AT_ONCE = 16
_SLACK = 1.0  # seconds between the time that a write says, and its end
_LONG_SLACK, _RARELY = 300.0, 30.0  # clocks of several writers differ: looked for now and then
_DIGEST = re.compile(r"[0-9a-f]{40}")
_BAD_CURSOR = "this cursor is none of ours"


class Place(NamedTuple):
    """Where a conversation stands in the list: the latest first."""

    age: float
    """The time of its last write, negated."""
    digest: str


class Listing:
    """The conversations of one store."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = asyncio.Lock()
        self._known: dict[str, Session] = {}
        self._order: list[Place] | None = None
        self._latest: float | None = None
        self._looked_far = monotonic()
        self._summaries: dict[str, tuple[tuple[int, float], Listed]] = {}

    # --- one

    async def session(self, id: str) -> Session:
        """The conversation of that id; raises `NotFound`, whatever the id is."""
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

    def forget(self, id: str) -> None:
        """It is not there any more."""
        self._summaries.pop(id, None)
        if self._known.pop(id, None) is not None:
            self._order = None

    # --- all

    async def total(self) -> int:
        """How many there are."""
        await self._catch_up()
        return len(self._known)

    async def latest(
        self, limit: int, cursor: str, left_out: Collection[str] = ()
    ) -> tuple[list[Session], str | None]:
        """A page of conversations, and where the next begins; None: there are no more."""
        await self._catch_up()
        order = self._in_order()
        start = bisect_right(order, _place(cursor)) if cursor else 0
        found: list[Session] = []
        place: Place | None = None
        for place in order[start:]:
            if len(found) == limit:
                break
            if place.digest not in left_out:
                found.append(self._known[place.digest])
        else:
            return found, None
        last = found[-1] if found else None
        return found, None if last is None else _cursor(_of(last))

    def _in_order(self) -> list[Place]:
        if self._order is None:
            self._order = sorted(map(_of, self._known.values()))
            for place in self._order[_MOST:]:
                del self._known[place.digest]
            del self._order[_MOST:]
        return self._order

    async def _catch_up(self) -> None:
        """Learn what was written since."""
        async with self._lock:
            now = monotonic()
            which = Filter() if self._latest is None else Filter(since=self._since(now))
            latest = self._latest or 0.0
            async for session in every_session(self._storage, which, page=_PAGE):
                self._take(session)
                latest = max(latest, session.updated_at)
            # A clock that is ahead must not hide what all the others write.
            self._latest = min(latest, time())

    def _since(self, now: float) -> float:
        is_long = now - self._looked_far >= _RARELY
        if is_long:
            self._looked_far = now
        return (self._latest or 0.0) - (_LONG_SLACK if is_long else _SLACK)

    def _take(self, session: Session) -> None:
        digest = session.identity.digest
        known = self._known.get(digest)
        if not is_shown(session.identity) or known == session:
            return
        self._known[digest] = session
        if known is None or known.updated_at != session.updated_at:
            self._order = None

    # --- what tells which is which

    async def summaries(self, sessions: Sequence[Session]) -> list[Listed]:
        """What there is to say of each; those that are gone are left out."""
        there: list[Session] = []
        for start in range(0, len(sessions), _AT_ONCE):
            some = sessions[start : start + _AT_ONCE]
            now = await asyncio.gather(*(self._storage.session(each.identity) for each in some))
            for each, found in zip(some, now, strict=True):
                if found is None:
                    self.forget(each.identity.digest)
                else:
                    there.append(found)
        unknown = [each for each in there if self._summary(each) is None]
        for listed in await looked_at(self._storage, unknown):
            self._remember(listed)
        summaries = (self._summary(each) for each in there)
        return [each for each in summaries if each is not None]

    def _summary(self, session: Session) -> Listed | None:
        found = self._summaries.get(session.identity.digest)
        return None if found is None or found[0] != _state(session) else found[1]

    def _remember(self, listed: Listed) -> None:
        while len(self._summaries) >= _MOST_SUMMARIES:
            del self._summaries[next(iter(self._summaries))]
        session = listed.session
        self._summaries[session.identity.digest] = _state(session), listed


def is_shown(identity: SessionIdentity) -> bool:
    """Whether a session is a conversation of people's, and nothing that the gateway keeps."""
    return identity.scope is None or not identity.scope.startswith(_HIDDEN)


def _state(session: Session) -> tuple[int, float]:
    return session.version, session.created_at + session.active


def _of(session: Session) -> Place:
    return Place(-session.updated_at, session.identity.digest)


def _cursor(place: Place) -> str:
    return urlsafe_b64encode(f"{place.age!r}|{place.digest}".encode()).decode()


def _place(cursor: str) -> Place:
    try:
        age, _, digest = urlsafe_b64decode(cursor.encode()).decode("ascii").partition("|")
        return Place(float(age), digest)
    except ValueError:
        pass
    raise InvalidRequest(_BAD_CURSOR, status=400)
