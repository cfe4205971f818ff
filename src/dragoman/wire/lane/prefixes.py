"""Conversations that were translated before: one that has grown by a turn costs the turn.

Nothing is remembered unless somebody asks for it (`remember_conversations`): what is said in them
stays in memory, up to a number of bytes. A beginning is found by its exact bytes, behind the same
head and for the same target.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from itertools import islice
from threading import Lock
from typing import NamedTuple

from msgspec import Raw
from msgspec.json import Decoder

from dragoman.model.value import expect
from dragoman.wire.lane.heads import sample_of
from dragoman.wire.lane.plain import Lane, Marks, Names, NotPlain, Turns
from dragoman.wire.lane.survey import ENDINGS, surveyed_more

_elements = Decoder(list[Raw]).decode
_OPENING = 256
"""By so many bytes of its beginning a conversation is looked up."""
_ALIKE = 8
"""So many conversations that begin alike are kept."""


class Known(NamedTuple):
    """A conversation up to some point, and what became of it."""

    raw: bytes
    """As it came, without the end of the list."""
    items: bytes
    """As it was written, the whole list."""
    shape: int
    """All but how it ended."""
    names: Names
    leading: Turns
    marks: Marks
    turns: int
    """How many turns it has."""

    @property
    def size(self) -> int:
        """In bytes, about."""
        return len(self.raw) + len(self.items) + 100 * (len(self.names) + len(self.marks))

    def messages(self, lane: Lane) -> int:
        """How many messages it has."""
        return len(_elements(self.raw + b"]")) if lane.groups_results else self.turns


_Key = tuple[Hashable, Hashable, bytes]


class Conversations:
    """Those that were used last, bounded in bytes. Safe to share among threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[_Key, tuple[bytes, list[Known]]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """How many bytes are held."""
        return self._size

    def find(self, asked: Hashable, fields: bytes, raw: bytes) -> Known | None:
        """The longest beginning of a conversation that is known, behind the same head."""
        key = (asked, sample_of(fields), raw[:_OPENING])
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[0] != fields:
                return None
            self._kept.move_to_end(key)
            alike = tuple(kept[1])
        found = [each for each in alike if raw.startswith(each.raw)]
        return max(found, key=lambda each: len(each.raw), default=None)

    def keep(self, asked: Hashable, fields: bytes, known: Known, grown: Known | None) -> None:
        """Remember a conversation, in the place of the one that it has grown out of."""
        if known.size + len(fields) > self._max_bytes // 2 or len(known.raw) < _OPENING:
            return
        key = (asked, sample_of(fields), known.raw[:_OPENING])
        with self._lock:
            held, alike = self._kept.pop(key, (fields, []))
            if held != fields:
                self._size -= len(held) + sum(each.size for each in alike)
                held, alike = fields, []
            if not alike:
                self._size += len(fields)
            left = [each for each in alike if each is not grown and each.raw != known.raw]
            left = [known, *left][:_ALIKE]
            self._size += sum(each.size for each in left) - sum(each.size for each in alike)
            self._kept[key] = (held, left)
            while self._size > self._max_bytes:
                _, (dropped, gone) = self._kept.popitem(last=False)
                self._size -= len(dropped) + sum(each.size for each in gone)


class Growth(NamedTuple):
    """What a conversation has grown by since it was known."""

    before: Known
    turns: Turns
    shape: int
    """Of all of it."""
    names: Names
    """Of all of it."""
    fresh: Names
    """Those that are new."""
    marks: Marks

    def known(self, raw: bytes, items: bytes) -> Known:
        """The whole, to be remembered: the list as it came, and its items."""
        count = self.before.turns + len(self.turns)
        shape = self.shape & ~ENDINGS
        return Known(raw, items, shape, self.names, self.before.leading, self.marks, count)


def growth(raw: bytes, before: Known, lane: Lane) -> Growth | None:
    """What a conversation has grown by; None where it has not, or not by answers."""
    more = raw[len(before.raw) :].lstrip()
    if not more.startswith(b","):
        return None
    try:
        turns, added = lane.read(Raw(b"[" + more[1:]))
        names = dict(before.names)
        shape = before.shape | surveyed_more(turns, names)
    except NotPlain:
        return None
    marks = before.marks
    if added:
        first = before.messages(lane)
        marks = (*marks, *((kind, number + first, part) for kind, number, part in added))
    fresh = dict(islice(names.items(), len(before.names), None))
    return Growth(before, turns, shape, names, fresh, marks)


class _Memory:
    conversations: Conversations | None = None


def remember_conversations(max_bytes: int = 64 * 1024 * 1024) -> None:
    """Keep plain conversations that are translated in this process, up to so many bytes.

    One that comes again with more behind it is translated from there on: for a gateway, whose
    clients send the whole conversation each time.
    """
    expect(max_bytes, int, "max_bytes")
    _Memory.conversations = Conversations(max_bytes)


def forget_conversations() -> None:
    """Keep none any longer, and let go of those that were kept."""
    _Memory.conversations = None


def conversations() -> Conversations | None:
    """Those that are kept; None: nobody asked for it."""
    return _Memory.conversations
