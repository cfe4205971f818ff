"""What a session remembers of its window, and the messages that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.keeping import Keeper
from dragoman.history.paths import is_on, read_path
from dragoman.history.pending import Pending
from dragoman.history.storage.protocol import Session
from dragoman.history.truncation import NOTHING_CUT, Cut, notes
from dragoman.history.truncation.groups import grouped, is_instruction
from dragoman.model import document
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class StoredWindow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A cut, and the branch that was cut.

    The model and the limit it was cut for are for "Windows", which has one for each, eight at
    most: reserved in the stored form, and kept where it is found (`Session.windows`).
    """

    branch: int
    cut: Cut
    model: str | None = None
    limit: int | None = None


document.register("Window", StoredWindow)
document.register("Windows", Annotated[list[StoredWindow], msgspec.Meta(max_length=8)])


def written(branch: int, cut: Cut) -> bytes:
    """The stored form of a cut."""
    cut.settle()
    return document.write("Window", StoredWindow(branch, cut))


def read(session: Session | None, branch: int) -> Cut:
    """The cut of a branch; nothing where none was made or it can't be read."""
    if session is None or session.window is None:
        return NOTHING_CUT
    try:
        stored = document.read(session.window, "Window")
    except InvalidInputError:
        return NOTHING_CUT  # it can be made anew from the messages
    if not isinstance(stored, StoredWindow) or stored.branch != branch:
        return NOTHING_CUT
    cut = stored.cut
    is_sound = cut.left_out >= 0 and isfinite(cut.ratio) and cut.ratio > 0
    return cut if is_sound else NOTHING_CUT


async def uncut(keeper: Keeper, session: Session | None, pending: Pending, cut: Cut) -> Messages:
    """The messages that a window is made of: all, or where most are cut, only the others."""
    if not cut.first or keeper.is_current(session) or pending.cleared:
        return pending.over(await keeper.stored(session))
    path = await keeper.path()
    first = await keeper.storage.row(keeper.identity, cut.first)
    if first is None or not is_on(path, first):
        return pending.over(await keeper.stored(session))
    rows = [await keeper.storage.row(keeper.identity, id) for id in cut.kept]
    kept = [row for row in rows if row is not None and row.seq < first.seq and is_on(path, row)]
    kept += await read_path(keeper.storage, keeper.identity, path, after=first.seq - 1)
    return pending.over(keeper.decoded(kept))


def with_pinned(cut: Cut, messages: Sequence[Message]) -> Cut:
    """The cut of a whole history, with what has been pinned of what was left out."""
    place = cut.place_in(messages)
    if place is None:
        return cut
    kept = frozenset(cut.kept)
    staying = tuple(
        message.id
        for group in grouped(messages)
        for message in messages[group.start : min(group.stop, place)]
        if group.stays or is_instruction(message) or message.id in kept
    )
    came_back = len(frozenset(staying) - kept)
    if not came_back:
        return cut
    left_out = max(cut.left_out - came_back, 0)
    return cut.replace(kept=staying, left_out=left_out, notes=_counted(cut.notes, left_out))


def _counted(present: Sequence[Message], left_out: int) -> tuple[Message, ...]:
    """The notes, with a marker that says how many are left out now."""
    return tuple(
        notes.marker(left_out) if notes.kind_of(note) == "marker" else note for note in present
    )
