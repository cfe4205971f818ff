"""Loads the messages that a window is made from."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.history.branch_paths import is_on, read_path, stretches
from dragoman.history.remembered_cuts import Key, counted
from dragoman.history.storage.protocol import Session
from dragoman.history.stored_session import Keeper
from dragoman.history.truncation import Cut
from dragoman.history.truncation.groups import grouped, is_instruction
from dragoman.history.unsaved_changes import Pending
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


async def uncut(keeper: Keeper, session: Session | None, pending: Pending, cut: Cut) -> Messages:
    """The messages of a window: all of them, or only those that the cut keeps."""
    if not cut.first or keeper.is_current(session) or pending.cleared:
        return pending.over(await keeper.stored(session))
    path = await keeper.path()
    first = await keeper.storage.row(keeper.identity, cut.first)
    if first is None or not is_on(path, first):
        return pending.over(await keeper.stored(session))
    rows = [await keeper.storage.row(keeper.identity, id) for id in cut.kept]
    kept = [row for row in rows if row is not None and row.seq < first.seq and is_on(path, row)]
    rest = await read_path(keeper.storage, keeper.identity, path, after=first.seq - 1)
    # Messages that arrived while reading belong to a later version.
    last = 0 if session is None else session.last_seq
    kept += [row for row in rest if row.seq <= last]
    return pending.over(keeper.decoded(kept))


async def hides(
    keeper: Keeper, session: Session | None, pending: Pending, key: Key, cut: Cut, id: str
) -> bool:
    """Whether a cut omits a message that is stored, or that will be."""
    if not cut.first or id in cut.kept:
        return False
    unsaved = list(pending.added) if key.branch == keeper.branch else []
    if id in unsaved:
        return cut.first in unsaved[unsaved.index(id) + 1 :]
    row = await keeper.storage.row(keeper.identity, id)
    path = stretches(session, key.branch)
    if pending.knows(id) or row is None or not is_on(path, row):
        return False
    if cut.first in unsaved:
        return True
    first = await keeper.storage.row(keeper.identity, cut.first)
    return first is not None and is_on(path, first) and row.seq < first.seq


def without_one(cut: Cut) -> Cut:
    """The cut after one of the messages that it omits has been removed."""
    left_out = max(cut.left_out - 1, 0)
    return cut.replace(left_out=left_out, notes=counted(cut.notes, left_out))


def with_pinned(cut: Cut, messages: Sequence[Message]) -> Cut:
    """The cut, adjusted to keep messages that have been pinned since."""
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
    return cut.replace(kept=staying, left_out=left_out, notes=counted(cut.notes, left_out))
