"""Tags of conversations: names that their owner gives them, to find them by.

As titles, they are metadata of the conversation's first message (`session_summaries.TAGS`), so that
they move with the conversation and are deleted with it. A session of the page's own holds the ids
of the conversations that have any, so that these are found without reading all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dragoman.errors import InvalidRequest
from dragoman.gateway.page.calls import PageCall
from dragoman.gateway.page.listing import OWN, Listing
from dragoman.gateway.page.titles_and_pins import Noted, change_first
from dragoman.history.identity import SessionIdentity
from dragoman.history.session_summaries import MAX_TAG_CHARS, MAX_TAGS, TAGS, Listed
from dragoman.history.storage.protocol import Session, Storage
from dragoman.model.invisible import made_visible
from dragoman.model.messages import Message

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
