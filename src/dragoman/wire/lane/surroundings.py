"""Surroundings: the bytes before and after a conversation, found again without parsing them.

Clients send the same fields around every conversation. Between bytes that are known to surround
one, whatever decodes as exactly one JSON value is the conversation: so a request with a known head
is not split into its fields first.
"""

from __future__ import annotations

from threading import Lock

import msgspec
from msgspec import Raw, Struct

from dragoman.wire.lane.heads import OBJECT, Asked, Given, given_in
from dragoman.wire.lane.plain import Json, Lane

_END = 32
"""The number of bytes at the end of a body by which it is looked up."""
_LARGE = 8 * 1024
_MAX_ALIKE = 16
"""Maximum number of surroundings with the same end."""
_CLOSING = {ord("["): ord("]"), ord('"'): ord('"')}
"""How a conversation begins and ends: whitespace is not part of it, nor are further fields."""
_PROBE = b"0"
"""Takes the place of the conversation, which is never a number."""
_split = msgspec.json.Decoder(dict[str, Raw]).decode
_Key = tuple[object, bytes]


class Surrounding(Struct, frozen=True, gc=False):
    """What surrounds a conversation, and the fields that it has."""

    before: bytes
    after: bytes
    given: Given
    between: slice
    """Selects the conversation from a body."""

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return 3 * (len(self.before) + len(self.after)) + OBJECT * len(self.given.fields)

    def is_like(self, other: Surrounding) -> bool:
        """Whether another one has the same bytes."""
        return self.before == other.before and self.after == other.after


class Surroundings:
    """A cache of surroundings, bounded in number and bytes. Thread-safe."""

    def __init__(self, max_kept: int = 256, max_bytes: int = 16 * 1024 * 1024) -> None:
        self._max_kept = max_kept
        self._max_bytes = max_bytes
        self._kept: dict[_Key, tuple[Surrounding, ...]] = {}
        self._count = self._size = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """The number of bytes held."""
        return self._size

    def find(self, body: bytes, source: Lane) -> tuple[Given, Json] | None:
        """The fields of a body, and what must be its conversation if it is a whole JSON value."""
        kept = self._kept
        whole = body if len(body) < _LARGE else memoryview(body)  # a copy would be large too
        for end in (body[-_END:], b""):
            for each in kept.get((source, end), ()):
                if body.startswith(each.before) and body.endswith(each.after):
                    raw = whole[each.between]
                    if raw and _CLOSING.get(raw[0]) == raw[-1]:
                        return each.given, raw
        return None

    def keep(self, body: bytes, raw: Json, asked: Asked) -> None:
        """Remember what surrounds the conversation in a body."""
        made = _surrounding(body, bytes(raw), asked)
        if made is None or made.size > self._max_bytes // 4:
            return
        end = made.after[-_END:] if len(made.after) >= _END else b""
        key = (asked.source, end)
        with self._lock:
            before = self._kept.pop(key, ())
            others = [each for each in before if not each.is_like(made)][: _MAX_ALIKE - 1]
            # The longest ending first: a shorter one may be its end.
            alike = sorted((made, *others), key=lambda each: -len(each.after))
            self._add(alike, before)
            self._kept[key] = tuple(alike)
            while self._count > self._max_kept or self._size > self._max_bytes:
                self._add((), self._kept.pop(next(iter(self._kept))))

    def _add(self, added: list[Surrounding] | tuple[()], dropped: tuple[Surrounding, ...]) -> None:
        self._count += len(added) - len(dropped)
        self._size += sum(each.size for each in added) - sum(each.size for each in dropped)

    def clear(self) -> None:
        """Remove all surroundings."""
        with self._lock:
            self._kept.clear()
            self._count = self._size = 0


def _surrounding(body: bytes, raw: bytes, asked: Asked) -> Surrounding | None:
    """What surrounds a conversation; None if its field is not the first of that name.

    A probe shows which value is the conversation: the name may also occur further inside, or twice.
    """
    place = body.find(asked.opening)
    start = body.find(raw, place)
    before, after = body[:start], body[start + len(raw) :]
    if place < 0 or before[place:].rstrip() != asked.opening:
        return None
    fields = _split(before + _PROBE + after)
    if bytes(fields.pop(asked.source.field)) != _PROBE:
        return None
    given = given_in(fields, asked.source)
    return Surrounding(before, after, given, slice(len(before), -len(after)))
