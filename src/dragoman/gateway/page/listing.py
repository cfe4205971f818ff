"""The list of the store's conversations: order, titles, pins and tags.

SQLite lists sessions by time. Other stores list them by digest: for those, an in-memory list keeps
them ordered by time, and each call first loads the sessions that changed since the last one. A
deleted session is noticed when it is about to be shown.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from time import monotonic, time
from typing import Any, NamedTuple

from dragoman.errors import Conflict, InvalidRequest, NotFound
from dragoman.gateway.page.calls import PageCall
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.session_summaries import (
    MAX_TAG_CHARS,
    MAX_TAGS,
    TAGS,
    TITLE,
    Listed,
    looked_at,
    sessions_with_digest,
)
from dragoman.history.storage.protocol import (
    NO_SESSION,
    DuplicateIds,
    Entry,
    Filter,
    Ordering,
    Session,
    Storage,
    is_ordering,
)
from dragoman.history.transfer import every_session
from dragoman.model.invisible import made_visible
from dragoman.model.messages import Message

# --- the list, latest first

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


# --- titles and pins
#
# A title is metadata of the conversation's first message (`session_summaries.TITLE`), so that it
# moves with the conversation. The pins must be known before any conversation is read, so they are
# a separate session that holds only conversation ids.

MAX_TITLE = 200
_TRIES = 8
_EMPTY = "a conversation without messages can't have a title or tags"


async def pins(storage: Storage) -> list[str]:
    """Returns the ids of the pinned conversations, most recently pinned first."""
    return await _PINS.ids(storage)


async def pin(storage: Storage, id: str, *, is_pinned: bool) -> None:
    """Pins or unpins a conversation."""
    await _PINS.note(storage, id, is_there=is_pinned)


class Noted(NamedTuple):
    """Ids of conversations, in a session of the page's own."""

    identity: SessionIdentity
    most: int
    too_many: str

    async def ids(self, storage: Storage) -> list[str]:
        """Returns the ids, the latest first."""
        rows = await storage.rows(self.identity, limit=self.most, newest=True)
        return [row.id for row in reversed(rows)]

    async def note(self, storage: Storage, id: str, *, is_there: bool) -> None:
        """Adds or removes an id."""
        try:
            if not is_there:
                await storage.rewrite(self.identity, removed=[id])
                return
            noted = await self.ids(storage)
            if id not in noted and len(noted) >= self.most:
                raise InvalidRequest(self.too_many, status=400)
            body = body_of(Message.user(id).with_id(id))
            await storage.append(self.identity, [Entry(id, body, time())])
        except (DuplicateIds, NotFound):
            return  # already in the requested state


_PINS = Noted(
    SessionIdentity(chat="pins", scope=OWN), 500, "no more than 500 conversations can be pinned"
)


async def entitle(storage: Storage, session: Session, title: str, *, keeps: bool = False) -> str:
    """Sets the title of a conversation, unless it `keeps` the one that it has; returns its title.

    An empty one removes it.
    """
    text = " ".join(title.split())[:MAX_TITLE]

    def entitled(message: Message) -> Message:
        if keeps and message.metadata.get(TITLE):
            return message
        return message.with_metadata(TITLE, text) if text else message.without_metadata(TITLE)

    found = (await change_first(storage, session, entitled)).metadata.get(TITLE)
    return found if isinstance(found, str) else ""


async def change_first(
    storage: Storage, session: Session, change: Callable[[Message], Message]
) -> Message:
    """Changes the metadata of a conversation's first message; returns the message."""
    identity = session.identity
    for _ in range(_TRIES):
        rows = await storage.rows(identity, limit=1)
        if not rows:
            break
        row = rows[0]
        changed = change(message_of(row.body))
        now = await storage.session(identity)
        try:
            # Checks the version, so that no concurrent change is overwritten.
            await storage.rewrite(
                identity,
                replaced=[Entry(row.id, body_of(changed), row.at, row.model, row.usage)],
                expected=None if now is None else now.version,
            )
        except Conflict:
            continue
        return changed
    raise InvalidRequest(_EMPTY, status=409)


# --- tags: names that their owner gives to conversations, to find them by
#
# As titles, they are metadata of the conversation's first message (`session_summaries.TAGS`), so
# that they move with the conversation and are deleted with it. A session of the page's own holds
# the ids of the conversations that have any, so that these are found without reading all.

_TAGGED = Noted(
    SessionIdentity(chat="tagged", scope=OWN), 2000, "no more than 2000 conversations can have tags"
)
_INVALID = f"`tags` must be a list of up to {MAX_TAGS} texts of up to {MAX_TAG_CHARS} characters"


async def set_tags(storage: Storage, session: Session, tags: Sequence[Any]) -> None:
    """Sets the tags of a conversation; an empty list removes them."""
    id, made = session.identity.digest, _tidy(tags)

    def tagged(message: Message) -> Message:
        return message.with_metadata(TAGS, made) if made else message.without_metadata(TAGS)

    # Noted for as long as there may be tags: without the note, they would not be found.
    if made:
        await note_tags(storage, id, has_tags=True)
    await change_first(storage, session, tagged)
    if not made:
        await note_tags(storage, id, has_tags=False)


async def note_tags(storage: Storage, id: str, *, has_tags: bool) -> None:
    """Notes whether a conversation has tags: one that was imported, copied or deleted."""
    await _TAGGED.note(storage, id, is_there=has_tags)


async def note_found(storage: Storage, found: Sequence[Listed]) -> None:
    """Notes tags that came another way, as by `dragoman history import`, once they are seen."""
    ids = [each.session.identity.digest for each in found if each.tags]
    noted = frozenset(await _TAGGED.ids(storage)) if ids else frozenset()
    for id in ids:
        if id not in noted:
            with suppress(InvalidRequest):  # too many have tags; the list is shown all the same
                await note_tags(storage, id, has_tags=True)


async def tagged(listing: Listing, storage: Storage) -> list[Listed]:
    """Returns the conversations that have tags, the latest first."""
    sessions = await listing.there(await _TAGGED.ids(storage))
    sessions.sort(key=lambda each: -each.updated_at)
    return [each for each in await listing.summaries(sessions) if each.tags]


async def listed(call: PageCall) -> Any:
    """Returns all tags, with the number of conversations that have each."""
    found = await tagged(await call.page.listing(), await call.page.storage())
    counts = Counter(name for each in found for name in each.tags)
    named = sorted(counts.items(), key=lambda item: item[0].casefold())
    return {"tags": [{"name": name, "conversations": count} for name, count in named]}


def _tidy(tags: Sequence[Any]) -> list[str]:
    """Each once, on one line, without invisible characters."""
    made: dict[str, str] = {}
    for each in tags:
        if not isinstance(each, str) or len(each) > MAX_TAG_CHARS:
            raise InvalidRequest(_INVALID, status=400)
        name = made_visible(" ".join(each.split()), lambda _: "")
        if name:
            made.setdefault(name.casefold(), name)
    if len(made) > MAX_TAGS:
        raise InvalidRequest(_INVALID, status=400)
    return list(made.values())
