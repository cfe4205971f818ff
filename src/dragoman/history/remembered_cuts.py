"""What a session remembers of its windows: the cuts, by branch, model and limit.

A cut is remembered so that the beginning of a prompt stays the same from one request to the next.
It counts for the branch, model and limit that it was made for and no other: a larger window shows
more again. Only where messages were deleted (`delete_truncated`) is there a cut for everybody, with
no limit: what it has for notes is all that is left of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from math import isfinite
from typing import Annotated, Any, NamedTuple

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.storage.protocol import Session
from dragoman.history.truncation import NOTHING_CUT, Cut, notes
from dragoman.history.truncation.groups import is_instruction
from dragoman.model import document
from dragoman.model.messages import Message

_log = logging.getLogger("dragoman.history")
MOST = 8
"""How many cuts a session remembers; making another forgets the oldest."""
_MOST_TOKENS = 2**53  # as a number in JSON, whoever reads it
_NAME_LENGTH = 128


class StoredWindow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A cut, and the branch, the model and the limit it was made for."""

    branch: int
    cut: Cut
    model: str | None = None
    limit: int | None = None
    """The most tokens of a prompt; None: for all, since what it leaves out was deleted."""


document.register("Window", StoredWindow)
document.register("Windows", Annotated[list[StoredWindow], msgspec.Meta(max_length=MOST)])


class Key(NamedTuple):
    """What a cut is made for."""

    branch: int
    model: str | None = None
    limit: int | None = None

    @classmethod
    def of(cls, branch: int, model: Any, limit: int) -> Key:
        """The key of a model, as it was named, or of anything that has a name, or of none."""
        name = model if isinstance(model, str) else getattr(model, "name", None)
        return cls(branch, _kept_name(name), min(limit, _MOST_TOKENS))


def _kept_name(name: Any) -> str | None:
    if not isinstance(name, str):
        return None
    if len(name) <= _NAME_LENGTH and name.isprintable():
        return str(name)
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


Cuts = Mapping[Key, Cut]
"""What is remembered, the oldest first."""


def read(session: Session | None) -> dict[Key, Cut]:
    """The cuts of a session; none where they can't be read: they can be made anew."""
    if session is None:
        return {}
    for raw in (session.windows, session.window):
        found = None if raw is None else _read(raw)
        if found is not None:
            return dict(_sound(found))
    return {}


def _read(raw: bytes) -> Sequence[StoredWindow] | None:
    """The cuts in a document; one that is an earlier release's has a single one, for all."""
    try:
        found = document.read(raw)
    except InvalidInputError as error:
        problem = str(error)
    else:
        if isinstance(found, StoredWindow):
            return [found]
        if isinstance(found, list):
            return found
        problem = "the document holds something else"
    _log.warning("the windows of a session can't be read, and are made anew: %s", problem)
    return None


def _sound(stored: Sequence[StoredWindow]) -> Iterator[tuple[Key, Cut]]:
    for each in stored:
        cut = each.cut
        if cut.left_out >= 0 and isfinite(cut.ratio) and cut.ratio > 0:
            yield Key(each.branch, each.model, each.limit), cut


def written(cuts: Cuts) -> bytes | None:
    """The stored form; None where there is nothing to remember."""
    if not cuts:
        return None
    for cut in cuts.values():
        cut.settle()
    return document.write(
        "Windows",
        [StoredWindow(key.branch, cut, key.model, key.limit) for key, cut in cuts.items()],
    )


def with_cut(cuts: Cuts, key: Key, cut: Cut) -> dict[Key, Cut]:
    """With a cut as the latest of its kind, and without those that are too many then."""
    others = {each: there for each, there in cuts.items() if each != key}
    if cut != NOTHING_CUT:
        others[key] = cut
    # What is left of deleted messages can't be made anew: it goes last.
    by_worth = sorted(others, key=lambda each: each.limit is None)
    surplus = frozenset(by_worth[: max(len(by_worth) - MOST, 0)])
    return {each: there for each, there in others.items() if each not in surplus}


def smaller(cuts: Cuts, key: Key) -> list[Cut]:
    """The cuts of the same branch for other models and limits that are no larger, or for all."""
    limit = key.limit or 0
    return [
        cut
        for each, cut in cuts.items()
        if each != key and each.branch == key.branch and (each.limit or 0) <= limit
    ]


def uncovered(cut: Cut, messages: Sequence[Message]) -> Cut:
    """A cut that leaves out nothing that is stored: only what was deleted has its notes here."""
    place = cut.place_in(messages)
    if place is None:
        return NOTHING_CUT
    kept = frozenset(cut.kept)
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


def counted(present: Sequence[Message], left_out: int) -> tuple[Message, ...]:
    """The notes, with a marker that says how many are left out now."""
    return tuple(
        notes.marker(left_out) if notes.kind_of(note) == "marker" else note for note in present
    )
