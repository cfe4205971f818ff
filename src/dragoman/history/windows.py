"""What a session remembers of its window, and the messages that it is made of."""

from __future__ import annotations

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.keeping import Keeper
from dragoman.history.pending import Pending
from dragoman.history.storage.protocol import Session
from dragoman.history.truncation import NOTHING_CUT, Cut
from dragoman.model import document
from dragoman.model.collection import Messages


class StoredWindow(msgspec.Struct, forbid_unknown_fields=True):
    """A cut, and the branch that was cut."""

    branch: int
    cut: Cut


document.register("Window", StoredWindow)


def written(branch: int, cut: Cut) -> bytes:
    """The stored form of a cut."""
    for note in cut.notes:
        note.settle()
    return document.write("Window", StoredWindow(branch, cut))


def read(session: Session | None, branch: int) -> Cut:
    """The cut of a branch; nothing where none was made or it can't be read."""
    if session is None or session.window is None:
        return NOTHING_CUT
    try:
        stored: StoredWindow = document.read(session.window, "Window")
    except InvalidInputError:
        return NOTHING_CUT  # it can be made anew from the messages
    return stored.cut if stored.branch == branch else NOTHING_CUT


async def uncut(keeper: Keeper, session: Session | None, pending: Pending, cut: Cut) -> Messages:
    """The messages that a window is made of: all, or where most are cut, only the others."""
    if not cut.first or keeper.is_current(session) or pending.cleared:
        return pending.over(await keeper.stored(session))
    first = await keeper.storage.row(keeper.identity, cut.first)
    if first is None:
        return pending.over(await keeper.stored(session))
    rows = [await keeper.storage.row(keeper.identity, id) for id in cut.kept]
    rows += await keeper.after(first.seq - 1)
    return pending.over(keeper.decoded(row for row in rows if row is not None))
