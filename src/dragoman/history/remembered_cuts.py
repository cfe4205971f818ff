"""The cuts that a session remembers, by branch, model and limit.

A cut is remembered so that the beginning of a prompt stays the same between requests. It applies
only to its branch, model and limit: a larger window shows more again. Only if messages were deleted
(`delete_truncated`) is there a cut for all models, without a limit, because its notes are all that
is left of them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from math import isfinite
from typing import Annotated, Any, NamedTuple

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.branches import is_on, read_path, stretches
from dragoman.history.storage.protocol import Session
from dragoman.history.stored_session import Keeper
from dragoman.history.truncation import NOTHING_CUT, Cut, notes
from dragoman.history.truncation.cut import grouped, is_instruction
from dragoman.history.unsaved_changes import Pending
from dragoman.model import document
from dragoman.model.collection import Messages
from dragoman.model.messages import Message

_log = logging.getLogger("dragoman.history")
MAX_CUTS = 8
"""Maximum number of cuts per session; adding another drops the oldest."""
_MAX_TOKENS = 2**53  # the largest integer that every JSON reader handles
_NAME_LENGTH = 128


class StoredWindow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A cut, with the branch, model and limit it was made for."""

    branch: int
    cut: Cut
    model: str | None = None
    limit: int | None = None
    """Maximum tokens of a prompt; `None` applies to all, as the omitted messages were deleted."""


document.register("Window", StoredWindow)
document.register("Windows", Annotated[list[StoredWindow], msgspec.Meta(max_length=MAX_CUTS)])


class Key(NamedTuple):
    """What a cut applies to."""

    branch: int
    model: str | None = None
    limit: int | None = None

    @classmethod
    def of(cls, branch: int, model: Any, limit: int) -> Key:
        """The key for a model, given as a name, an object with a name, or `None`."""
        name = model if isinstance(model, str) else getattr(model, "name", None)
        return cls(branch, _kept_name(name), min(limit, _MAX_TOKENS))


def _kept_name(name: Any) -> str | None:
    if not isinstance(name, str):
        return None
    if len(name) <= _NAME_LENGTH and name.isprintable():
        return str(name)
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


Cuts = Mapping[Key, Cut]
"""The remembered cuts, oldest first."""


def read(session: Session | None) -> dict[Key, Cut]:
    """The cuts of a session; none if they can't be read, as they can be computed again."""
    if session is None:
        return {}
    for raw in (session.windows, session.window):
        found = None if raw is None else _read(raw)
        if found is not None:
            return dict(_sound(found))
    return {}


def _read(raw: bytes) -> Sequence[StoredWindow] | None:
    found = _read_document(raw)
    if not isinstance(found, str):
        return found
    _log.warning("the windows of a session can't be read and will be recomputed: %s", found)
    return None


def is_readable(raw: bytes) -> bool:
    """Whether bytes are cuts that can be read."""
    return not isinstance(_read_document(raw), str)


def _read_document(raw: bytes) -> Sequence[StoredWindow] | str:
    """The cuts in a document, or what is wrong; earlier releases stored one, for all models."""
    try:
        found = document.read(raw)
    except InvalidInputError as error:
        return str(error)
    if isinstance(found, StoredWindow):
        return [found]
    return found if isinstance(found, list) else "the document holds something else"


def _sound(stored: Sequence[StoredWindow]) -> Iterator[tuple[Key, Cut]]:
    for each in stored:
        cut = each.cut
        if cut.left_out >= 0 and isfinite(cut.ratio) and cut.ratio > 0:
            yield Key(each.branch, each.model, each.limit), cut


def written(cuts: Cuts) -> bytes | None:
    """The stored form, or `None` if there are no cuts."""
    if not cuts:
        return None
    for cut in cuts.values():
        cut.settle()
    return document.write(
        "Windows",
        [StoredWindow(key.branch, cut, key.model, key.limit) for key, cut in cuts.items()],
    )


def with_cut(cuts: Cuts, key: Key, cut: Cut) -> dict[Key, Cut]:
    """Adds a cut as the latest, and drops surplus ones."""
    others = {each: there for each, there in cuts.items() if each != key}
    if cut != NOTHING_CUT:
        others[key] = cut
    # Notes of deleted messages can't be recomputed, so they are dropped last.
    by_worth = sorted(others, key=lambda each: each.limit is None)
    surplus = frozenset(by_worth[: max(len(by_worth) - MAX_CUTS, 0)])
    return {each: there for each, there in others.items() if each not in surplus}


def of_deleted(cuts: Cuts, session: Session | None, branch: int) -> Cut | None:
    """The cut whose notes tell of deleted messages, of a branch or the one that it started from."""
    parents = {fork.number: fork.parent for fork in session.forks} if session else {}
    while (found := cuts.get(Key(branch))) is None:
        parent = parents.get(branch)
        if parent is None or parent >= branch:
            return None
        branch = parent
    return found


def uncovered(cut: Cut, messages: Sequence[Message]) -> Cut:
    """A cut that omits no stored messages, and keeps only the notes of deleted ones."""
    kept = frozenset(cut.kept)
    place = cut.place_in(messages)
    if place is None:  # removed since, or not on this branch: the notes stay after those kept
        place = next((at for at, each in enumerate(messages) if each.id not in kept), None)
        if place is None or not cut.first:
            return NOTHING_CUT
        cut = cut.replace(first=messages[place].id)
    hidden = [each for each, message in enumerate(messages[:place]) if message.id not in kept]
    deleted = cut.left_out - len(hidden)
    if deleted <= 0:
        return NOTHING_CUT
    if not hidden:
        return cut
    spoken = (each for each in hidden if not is_instruction(messages[each]))
    first = next(spoken, place)
    return cut.replace(
        first=messages[first].id,
        kept=tuple(message.id for message in messages[:first]),
        left_out=deleted,
        notes=counted(cut.notes, deleted),
    )


def after_removal(cut: Cut, messages: Sequence[Message], removed: Collection[str]) -> Cut:
    """The cut after messages were removed: those that it omitted are no longer counted."""
    place = cut.place_in(messages)
    if place is None:
        return cut
    gone = {message.id for message in messages[:place]}.intersection(removed).difference(cut.kept)
    left_out = max(cut.left_out - len(gone), 0)
    return cut.replace(left_out=left_out, notes=counted(cut.notes, left_out)) if gone else cut


def counted(present: Sequence[Message], left_out: int) -> tuple[Message, ...]:
    """The notes, with the marker updated to this number of omitted messages."""
    return tuple(
        notes.marker(left_out) if notes.kind_of(note) == "marker" else note for note in present
    )


# --- the messages that a window is made from


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
