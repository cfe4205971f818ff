"""Moves what the client's dialect carries in added fields to where the target's dialect has it.

This is translation, not repair: it also happens with `repair=False`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from dragoman.model.requests import Request
from dragoman.wire.carried import readers_for
from dragoman.wire.fitting.steps import Contents
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

Origins = Mapping[int, tuple[int | None, ...]]
"""For each changed message, where its parts were before; None if in a field of the message."""
N = TypeVar("N", Loss, Repair, Note)
_PATH = re.compile(r"messages\[(\d+)\]\.parts\[(\d+)\]", re.ASCII)


def with_carried_content(
    request: Request, target: Target, seen: Contents
) -> tuple[Request, Origins]:
    """Read the fields that carry other dialects' content.

    `seen` is the summary of its messages. Also returns where the parts of changed messages were.
    """
    origins: dict[int, tuple[int | None, ...]] = {}
    # Signatures, addresses and ids need no extras.
    if not (seen.extended or seen.has_extra_fields or seen.has_media or seen.calls):
        return request, origins
    messages = list(request.messages)
    for read in readers_for(target.dialect):
        for index, message in enumerate(messages):
            if message.origin is not None and message.origin.dialect == target.dialect:
                continue
            carried = read(message)
            if carried is not None:
                messages[index] = carried.message
                before = origins.get(index)
                places = carried.places
                origins[index] = places if before is None else _through(places, before)
    if not origins:
        return request, origins
    return request.replace_trusted(messages=tuple(messages)), origins


def _through(
    places: Iterable[int | None], before: tuple[int | None, ...]
) -> tuple[int | None, ...]:
    return tuple([None if place is None else before[place] for place in places])


def told_of(notes: Iterable[N], origins: Origins) -> tuple[N, ...]:
    """Map losses and repairs to the messages as given."""
    return tuple([_told_of(note, origins) for note in notes])


def _told_of(note: N, origins: Origins) -> N:
    found = _PATH.match(note.path)
    places = origins.get(int(found[1]), ()) if found is not None else ()
    if found is None or int(found[2]) >= len(places):
        return note
    place = places[int(found[2])]
    if place is None:
        return note.replace(path=f"messages[{found[1]}].extras")
    return note.replace(path=f"messages[{found[1]}].parts[{place}]{note.path[found.end() :]}")
