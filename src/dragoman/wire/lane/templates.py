"""Frames of a stream that repeat: read once in the general way, then compared as bytes.

In a run of deltas the frames differ in a text, and in fields that mean nothing beyond the frame
(a number, padding, a time). From a frame that did nothing but let a part grow, a template is made:
the bytes around the text. A frame that has the same bytes, and a JSON string between them, says
the same with another text. Anything else is read in the general way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.events import Event, PartDelta
from dragoman.model.jsontext import loads
from dragoman.model.tools import ToolCallDelta
from dragoman.model.value import shallow_copy

Path = tuple[str | int, ...]
Match = Callable[[bytes, int], "re.Match[bytes] | None"]

_text_in = msgspec.json.Decoder(str).decode
_BACKSLASH = 0x5C
_STRING = rb'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"'
_INTEGER = rb"(?:0|[1-9][0-9]{0,14})"
_REST_OF_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_COUNT = re.compile(rb"(:[ \t]*)(0|[1-9][0-9]{0,14})(?=[ \t,}])")
_COUNTS = rb"\{[^{}\\]*(?:\{[^{}\\]*\}[^{}\\]*)*\}"


class Growth(NamedTuple):
    """What a frame says that lets one part grow and changes nothing else, however often it comes.

    That is for the dialect's decoder to know: the next frame with the same bytes but for the text
    must say the same event with that text.
    """

    delta: PartDelta | ToolCallDelta
    """What it said, or would say if it came again."""
    path: Path
    """Where in the frame its text is."""
    mirrors: tuple[Path, ...] = ()
    """Where the same text is once more."""
    kept: tuple[list[str], ...] = ()
    """Where the decoder keeps the texts, beside the response so far."""
    counts: str | None = None
    """A field with an object whose numbers change from frame to frame; the last one counts."""

    @property
    def field(self) -> str:
        """The field of the event that has the text."""
        return "text" if type(self.delta) is PartDelta else "arguments_delta"

    @property
    def place(self) -> tuple[Any, ...]:
        """What is the same in the frame after it, if that is another one of the run."""
        return type(self.delta), self.delta.index, self.delta.choice, self.path, self.mirrors


# --- what may stand between the bytes that are fixed


class Noise(NamedTuple):
    """A field of frames that means nothing beyond them."""

    value: bytes
    """What it looks like: a pattern."""
    match: Match

    @staticmethod
    def of(value: bytes) -> Noise:
        """One that looks so."""
        return Noise(value, re.compile(value).match)


Noises = Mapping[str, Noise] | None
"""Those of a dialect, by their names at the top of a frame; None: no frame is a repetition."""
INTEGER = Noise.of(_INTEGER)
ASCII_TEXT = Noise.of(rb'"[ !#-\[\]-~]*"')  # ASCII without escapes
_MIRROR = Noise.of(b"")


class _Hole(NamedTuple):
    """A place in a frame where its bytes may differ."""

    start: int
    end: int
    path: Path
    noise: Noise | None
    """None where the text is."""


# --- templates


class Template:
    """Frames that differ in one text."""

    __slots__ = ("_after", "_before", "_counts", "_delta", "_field", "_head", "_kept", "_tail",
                 "counts")  # fmt: skip

    def __init__(
        self, frame: bytes, holes: list[_Hole], growth: Growth, counts: Noise | None
    ) -> None:
        edges = [0, *(edge for hole in holes for edge in (hole.start, hole.end)), len(frame)]
        fixed = [frame[edges[n] : edges[n + 1]] for n in range(0, len(edges), 2)]
        place = next(n for n, hole in enumerate(holes) if hole.noise is None)
        steps = [(hole.noise, literal) for hole, literal in zip(holes, fixed[1:], strict=True)]
        # The quotes of the text are fixed as well.
        self._head = fixed[0] if place else fixed[0] + b'"'
        self._before = tuple(
            (noise.match, literal + b'"' if n == place - 1 else literal)
            for n, (noise, literal) in enumerate(steps[:place])
            if noise is not None
        )
        self._tail = b'"' + steps[place][1]
        self._after = tuple(
            (None if noise is _MIRROR else noise.match, literal)
            for noise, literal in steps[place + 1 :]
            if noise is not None
        )
        self._counts = None if counts is None else counts.match
        self.counts: bytes | None = None
        """The counts of the last frame."""
        self._delta = growth.delta
        self._field = growth.field
        self._kept = growth.kept

    def run(self, data: bytes, position: int, told: list[Event]) -> int:
        """Read the frames from there on; returns where the first one is that is none of these."""
        head, size, tail, after = self._head, len(self._head), self._tail, self._after
        delta, field, before, texts = self._delta, self._field, self._before, list[str]()
        while data.startswith(head, position):
            start = position + size
            for match, literal in before:
                found = match(data, start)
                start = -1 if found is None else found.end()
                if start < 0 or not data.startswith(literal, start):
                    start = -1
                    break
                start += len(literal)
            end = data.find(b'"', start) if start >= 0 else -1
            if end > start and data[end - 1] == _BACKSLASH:
                found = _REST_OF_STRING.match(data, start)
                end = -1 if found is None else found.end()
            if end <= start or not data.startswith(tail, end):  # an empty text may say more
                break
            written = data[start - 1 : end + 1]
            end += len(tail)
            try:
                text = _text_in(written)
            except (msgspec.DecodeError, UnicodeError):
                break  # half a character, say
            if after and (end := self._rest(data, end, written)) < 0:
                break
            made = shallow_copy(delta)
            force_setattr(made, field, text)
            told.append(made)
            texts.append(text)
            position = end
        if texts:  # whatever holds them is fed once for all of a run
            for kept in self._kept:
                kept.extend(texts)
        return position

    def _rest(self, data: bytes, position: int, written: bytes) -> int:
        """Where the frame ends whose text was there; below zero where it is another one."""
        counts = None
        for match, literal in self._after:
            if match is None:
                end = position + len(written) if data.startswith(written, position) else -1
            else:
                found = match(data, position)
                end = -1 if found is None else found.end()
                if match is self._counts:
                    counts = data[position:end]
            if end < 0 or not data.startswith(literal, end):
                return -1
            position = end + len(literal)
        self.counts = counts or self.counts
        return position


def template_of(
    frame: bytes, body: tuple[int, int], growth: Growth, noise: Noises
) -> Template | None:
    """The template of a frame, whose JSON is there; None where there can't be one.

    Whether the bytes found are those of the text is tried out: with another text in their place,
    the JSON must say that text where the decoder looks, and all else as before.
    """
    start, end = body
    frame = bytes(frame)  # or it was a bytearray
    raw = frame[start:end]
    counts = None
    sought: list[tuple[Path, bytes, Noise | None]] = [(growth.path, _STRING, None)]
    sought += [((key,), each.value, each) for key, each in (noise or {}).items()]
    sought += [(path, _STRING, _MIRROR) for path in growth.mirrors]
    holes: list[_Hole] = []
    for path, value, kind in sought:
        spans = _spans(raw, path[-1], value)
        if not spans and kind is not None and kind is not _MIRROR:
            continue
        if len(spans) != 1:
            return None
        holes.append(_Hole(*spans[0], path, kind))
    if growth.counts is not None and (spans := _spans(raw, growth.counts, _COUNTS)):
        at = spans[0]
        counts = _counts_like(raw[slice(*at)])
        if len(spans) > 1 or counts is None:
            return None
        holes.append(_Hole(*at, (growth.counts,), counts))
    holes.sort()
    if not _is_as_read(raw, holes):
        return None
    placed = [hole._replace(start=hole.start + start, end=hole.end + start) for hole in holes]
    return Template(frame, placed, growth, counts)


def _spans(raw: bytes, key: str | int, value: bytes) -> list[tuple[int, int]]:
    return [found.span(1) for found in _field_like(str(key), value).finditer(raw)]


@lru_cache(maxsize=256)
def _field_like(key: str, value: bytes) -> re.Pattern[bytes]:
    return re.compile(b'"' + re.escape(key.encode()) + rb'"[ \t]*:[ \t]*(' + value + b")")


def _counts_like(counts: bytes) -> Noise | None:
    """The same counts with other numbers."""
    found = list(_COUNT.finditer(counts))
    edges = [0, *(edge for each in found for edge in each.span(2)), len(counts)]
    fixed = [re.escape(counts[edges[n] : edges[n + 1]]) for n in range(0, len(edges), 2)]
    return Noise.of(_INTEGER.join(fixed)) if found else None


def _is_as_read(raw: bytes, holes: list[_Hole]) -> bool:
    """Whether other values in the holes change just what is read there."""
    pieces, last = [], 0
    changed: list[tuple[Path, Any]] = []
    try:
        read = loads(raw)
        mirrored = _other(next(raw[h.start : h.end] for h in holes if h.noise is None))
        for hole in holes:
            known = raw[hole.start : hole.end]
            other = mirrored if hole.noise in (None, _MIRROR) else _other(known)
            pieces += [raw[last : hole.start], other]
            last = hole.end
            changed.append((hole.path, loads(other)))
        again = loads(b"".join([*pieces, raw[last:]]))
        for path, value in changed:
            if _replaced(read, path, value) == value:
                return False  # nothing was tried
    except (InvalidInputError, LookupError, TypeError):
        return False
    return bool(read == again)


def _other(value: bytes) -> bytes:
    """Another value that looks like it."""
    if value[:1] == b"{":
        return _COUNT.sub(lambda found: found[1] + b"%d" % (int(found[2]) + 1), value)
    return value[:-1] + b'+"' if value[:1] == b'"' else b"%d" % (int(value) + 1)


def _replaced(read: Any, path: Path, value: Any) -> Any:
    """Put a value in its place; returns what was there."""
    *outer, last = path
    for step in outer:
        read = read[step]
    known, read[last] = read[last], value
    return known
