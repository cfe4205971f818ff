"""Remembers translated conversations, so that one that has grown costs only the new turns.

This is off unless enabled with `remember_conversations`, since content stays in memory, up to a
number of bytes. A known beginning is found by its exact bytes, with the same head and target.
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
_KEY_BYTES = 256
"""The number of leading bytes by which a conversation is looked up."""
_MAX_ALIKE = 8
"""Maximum number of conversations with the same beginning."""


class Known(NamedTuple):
    """A conversation up to some point, and its translation."""

    raw: bytes
    """As received, without the closing bracket of the list."""
    items: bytes
    """As written, the whole list."""
    shape: int
    """Everything but how it ends."""
    names: Names
    leading: Turns
    marks: Marks
    turns: int
    """The number of turns."""

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return len(self.raw) + len(self.items) + 100 * (len(self.names) + len(self.marks))

    def messages(self, lane: Lane) -> int:
        """The number of messages."""
        return len(_elements(self.raw + b"]")) if lane.groups_results else self.turns


_Key = tuple[Hashable, Hashable, bytes]


class Conversations:
    """The most recently used conversations, bounded in bytes. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[_Key, tuple[bytes, list[Known]]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The number of bytes held."""
        return self._size

    def find(self, asked: Hashable, fields: bytes, raw: bytes) -> Known | None:
        """The longest known beginning of a conversation, with the same head."""
        key = (asked, sample_of(fields), raw[:_KEY_BYTES])
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[0] != fields:
                return None
            self._kept.move_to_end(key)
            alike = tuple(kept[1])
        found = [each for each in alike if raw.startswith(each.raw)]
        return max(found, key=lambda each: len(each.raw), default=None)

    def keep(self, asked: Hashable, fields: bytes, known: Known, grown: Known | None) -> None:
        """Remember a conversation, replacing the one that it has grown from."""
        if known.size + len(fields) > self._max_bytes // 2 or len(known.raw) < _KEY_BYTES:
            return
        key = (asked, sample_of(fields), known.raw[:_KEY_BYTES])
        with self._lock:
            held, alike = self._kept.pop(key, (fields, []))
            if held != fields:
                self._size -= len(held) + sum(each.size for each in alike)
                held, alike = fields, []
            if not alike:
                self._size += len(fields)
            left = [each for each in alike if each is not grown and each.raw != known.raw]
            left = [known, *left][:_MAX_ALIKE]
            self._size += sum(each.size for each in left) - sum(each.size for each in alike)
            self._kept[key] = (held, left)
            while self._size > self._max_bytes:
                _, (dropped, gone) = self._kept.popitem(last=False)
                self._size -= len(dropped) + sum(each.size for each in gone)


class Growth(NamedTuple):
    """What was added to a known conversation."""

    before: Known
    turns: Turns
    shape: int
    """Of the whole conversation."""
    names: Names
    """Of the whole conversation."""
    fresh: Names
    """Only the new ones."""
    marks: Marks

    def known(self, raw: bytes, items: bytes) -> Known:
        """The whole conversation to remember, given the list as received and as written."""
        count = self.before.turns + len(self.turns)
        shape = self.shape & ~ENDINGS
        return Known(raw, items, shape, self.names, self.before.leading, self.marks, count)


def growth(raw: bytes, before: Known, lane: Lane) -> Growth | None:
    """What was added to a conversation; None if nothing was, or not starting with a response."""
    more = raw[len(before.raw) :].lstrip()
    if not more.startswith(b","):
        return None
    try:
        turns, added = lane.read(b"[" + more[1:])
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
    __slots__ = ("conversations",)

    def __init__(self) -> None:
        self.conversations: Conversations | None = None


MEMORY = _Memory()
"""The conversations that this process remembers; None if this is off."""


def remember_conversations(max_bytes: int = 64 * 1024 * 1024) -> None:
    """Remember plain conversations that this process translates, up to a number of bytes.

    When a conversation comes again with further messages, only these are translated. Useful for a
    gateway, whose clients send the whole conversation each time.
    """
    expect(max_bytes, int, "max_bytes")
    MEMORY.conversations = Conversations(max_bytes)


def forget_conversations() -> None:
    """Stop remembering conversations, and free those in memory."""
    MEMORY.conversations = None


def conversations() -> Conversations | None:
    """The remembered conversations; None if this is off."""
    return MEMORY.conversations
