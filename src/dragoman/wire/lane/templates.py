"""Frames of a stream that repeat: read once in the general way, then compared as bytes.

In a run of deltas the frames differ in a text, and in fields that mean nothing beyond the frame
(a number, padding, a time). From a frame that did nothing but let a part grow, a template is made:
the bytes around the text. A frame that has the same bytes, and a JSON string between them, says
the same with another text. Anything else is read in the general way.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.events import Event, PartDelta
from dragoman.model.jsontext import loads
from dragoman.model.tools import ToolCallDelta
from dragoman.model.value import shallow_copy
from dragoman.wire.framing import MAX_FRAME
from dragoman.wire.lane.columns import TEXT, Columns

Delta = PartDelta | ToolCallDelta
Path = tuple[str | int, ...]
Span = tuple[int, int]
Match = Callable[[bytes, int], "re.Match[bytes] | None"]

_text_in = msgspec.json.Decoder(str).decode
_FEW, _MANY = 16, 8  # frames; most recorded runs are about ten
_BACKSLASH = 0x5C
_STRING = rb'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"'
_INTEGER = rb"(?:0|[1-9][0-9]{0,14}+)"
_REST_OF_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_COUNT = re.compile(rb"(:[ \t]*)(0|[1-9][0-9]{0,14})(?=[ \t,}])")
_BLANK = b" \t"
_COUNTS = rb"\{[^{}\\]*(?:\{[^{}\\]*\}[^{}\\]*)*\}"


class Growth(NamedTuple):
    """What a frame says that lets one part grow and changes nothing else, however often it comes.

    That is for the dialect's decoder to know: the next frame with the same bytes but for the text
    must say the same event with that text.
    """

    delta: Delta
    """What it said, or would say if it came again."""
    path: Path
    """Where in the frame its text is."""
    mirrors: tuple[Path, ...] = ()
    """Where the same text is once more."""
    kept: tuple[list[str], ...] = ()
    """Where the decoder keeps the texts, beside the response so far."""
    counts: str | None = None
    """A field with an object whose numbers change from frame to frame; the last one counts."""
    noise: Noises = None
    """Fields at the top of the frame that mean nothing in it, beside those of the dialect."""

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
BLANKS = Noise.of(rb"[ \t]*")
"""What some servers pad frames with, before their last brace."""
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

    __slots__ = ("_after", "_before", "_columns", "_counts", "_delta", "_field", "_frame", "_head",
                 "_holes", "_kept", "_many", "_tail", "counts")  # fmt: skip

    def __init__(
        self,
        frame: bytes,
        holes: list[_Hole],
        growth: Growth,
        counts: Noise | None,
        kept: tuple[list[str], ...],
    ) -> None:
        place = next(n for n, hole in enumerate(holes) if hole.noise is None)
        ends = [*(hole.start for hole in holes[1:]), len(frame)]
        fixed = [frame[hole.end : end] for hole, end in zip(holes, ends, strict=True)]
        head = frame[: holes[0].start]
        steps = [(None if noise is None or noise is _MIRROR else noise.match, literal)
                 for (*_, noise), literal in zip(holes, fixed, strict=True)]  # fmt: skip
        # The quotes of the text are fixed as well.
        self._head = head if place else head + b'"'
        self._before = steps[:place]
        if place:
            match, literal = steps[place - 1]
            self._before[-1] = match, literal + b'"'
        self._tail = b'"' + fixed[place]
        self._after = steps[place + 1 :]
        self._frame, self._holes = frame, holes
        self._columns: Columns | None = None  # made when there are many frames
        # How many bytes are worth a look at many frames at once; none where they have counts.
        self._many = _MANY * len(frame) if counts is None else MAX_FRAME
        self._counts = None if counts is None else counts.match
        self.counts: bytes | None = None
        """The counts of the last frame."""
        self._delta = growth.delta
        self._field = growth.field
        self._kept = kept

    def run(self, data: bytes, position: int, told: list[Event]) -> int:
        """Read the frames from there on; returns where the first one is that is none of these."""
        if len(data) - position <= self._many:
            return self._run_one_by_one(data, position, told, len(data))
        # Most runs are short: the way of the many is taken once there were some.
        while True:
            count = len(told)
            position = self._run_one_by_one(data, position, told, _FEW)
            if len(told) - count < _FEW:
                return position
            end = self._run_many(data, position, told)
            while end > position:
                position, end = end, self._run_many(data, end, told)

    def _run_one_by_one(self, data: bytes, position: int, told: list[Event], most: int) -> int:
        head, size, tail, after = self._head, len(self._head), self._tail, self._after
        delta, field, before, texts = self._delta, self._field, self._before, list[str]()
        while data.startswith(head, position) and len(texts) < most:
            start = position + size
            for match, literal in before:
                found = match(data, start) if match is not None else None
                start = -1 if found is None else found.end()
                if start < 0 or not data.startswith(literal, start):
                    start = -1
                    break
                start += len(literal)
            end = data.find(b'"', start) if start >= 0 else -1
            if end > start and data[end - 1] == _BACKSLASH:
                end = _end_of_string(data, start)
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
        self._keep(texts)
        return position

    def _run_many(self, data: bytes, position: int, told: list[Event]) -> int:
        """Read many frames at once; whatever is not like them is left, and may be more of them."""
        if self._columns is None:
            self._columns = _columns_of(self._frame, self._holes)
        texts, end = self._columns.texts(data, position)
        made: list[Delta] = list(map(shallow_copy, repeat(self._delta, len(texts))))
        deque(map(force_setattr, made, repeat(self._field), texts), maxlen=0)
        told += made
        self._keep(texts)
        return end

    def _keep(self, texts: list[str]) -> None:
        """Whatever holds the texts is fed once for all of a run."""
        for kept in self._kept:
            kept.extend(texts)

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


def _columns_of(frame: bytes, holes: list[_Hole]) -> Columns:
    """How frames like this one are taken apart; the quotes around texts are in all of them."""
    fixed, values, end = list[bytes](), list[bytes | None](), 0
    for hole in holes:
        is_text = hole.noise is None or hole.noise is _MIRROR
        fixed.append(frame[end : hole.start + is_text])
        end = hole.end - is_text
        values.append(TEXT if hole.noise is None else None if is_text else hole.noise.value)
    return Columns([*fixed, frame[end:]], tuple(values))


def _end_of_string(data: bytes, start: int) -> int:
    """Where a string ends that has a quote in it; below zero where it does not."""
    found = _REST_OF_STRING.match(data, start)
    return -1 if found is None else found.end()


def template_of(
    frame: bytes, body: Span, growth: Growth, noise: Noises, texts: tuple[list[str], ...]
) -> Template | None:
    """The template of a frame, whose JSON is there; None where there can't be one.

    `texts` is where the response so far has the texts.

    Whether the bytes found are those of the text is tried out: with another text in their place,
    the JSON must say that text where the decoder looks, and all else as before.
    """
    frame = bytes(frame)  # or it was a bytearray
    start, end = body
    counts = None
    holes: list[_Hole] = []
    for path in (growth.path, *growth.mirrors):
        spans = _spans(frame, body, path[-1], _STRING)
        if len(spans) != 1:
            return None
        holes.append(_Hole(*spans[0], path, _MIRROR))
    # Whichever of the texts comes first is the one that is read.
    holes.sort()
    holes[0] = _Hole(*holes[0][:3], None)
    for key, each in (*(noise or {}).items(), *(growth.noise or {}).items()):
        if spans := _spans(frame, body, key, each.value):
            holes.append(_Hole(*spans[0], (key,), each))
            if len(spans) > 1:
                return None
    if growth.counts is not None and (spans := _spans(frame, body, growth.counts, _COUNTS)):
        at = spans[0]
        counts = _counts_like(frame[slice(*at)])
        if len(spans) > 1 or counts is None:
            return None
        holes.append(_Hole(*at, (growth.counts,), counts))
    brace = frame.rfind(b"}", start, end)
    if brace > start and frame[brace - 1] in _BLANK:
        holes.append(_Hole(len(frame[:brace].rstrip(_BLANK)), brace, (), BLANKS))
    holes.sort()
    if not _is_as_read(frame, body, holes):
        return None
    return Template(frame, holes, growth, counts, texts + growth.kept)


def _spans(frame: bytes, body: Span, key: str | int, value: bytes) -> list[Span]:
    return [found.span(1) for found in _field_like(str(key), value).finditer(frame, *body)]


@lru_cache(maxsize=256)
def _field_like(key: str, value: bytes) -> re.Pattern[bytes]:
    return re.compile(b'"' + re.escape(key.encode()) + rb'"[ \t]*:[ \t]*(' + value + b")")


def _counts_like(counts: bytes) -> Noise | None:
    """The same counts with other numbers."""
    found = list(_COUNT.finditer(counts))
    edges = [0, *(edge for each in found for edge in each.span(2)), len(counts)]
    fixed = [re.escape(counts[edges[n] : edges[n + 1]]) for n in range(0, len(edges), 2)]
    return Noise.of(_INTEGER.join(fixed)) if found else None


def _is_as_read(frame: bytes, body: Span, holes: list[_Hole]) -> bool:
    """Whether other values in the holes change just what is read there."""
    last, whole = body
    pieces: list[bytes] = []
    try:
        read = loads(frame[last:whole])
        for start, end, path, noise in holes:
            pieces += [frame[last:start], _other(frame[start:end])]
            last = end
            if noise is not BLANKS:
                _change(read, path)
        return bool(read == loads(b"".join([*pieces, frame[last:whole]])))
    except (InvalidInputError, LookupError, TypeError):
        return False


def _other(value: bytes) -> bytes:
    """Another value that looks like it, and is the one that `_change` makes of it."""
    if value[:1] == b'"':
        return value[:-1] + b'+"'
    if value[:1] == b"{":
        return _COUNT.sub(lambda found: found[1] + b"%d" % (int(found[2]) + 1), value)
    return value + b" " if value[:1] in (b" ", b"\t") else b"%d" % (int(value) + 1)


def _change(read: Any, path: Path) -> None:
    """Put another value where one is."""
    *outer, last = path
    for step in outer:
        read = read[step]
    read[last] = _changed(read[last])


def _changed(value: Any) -> Any:
    if type(value) is dict:
        return {key: _changed(one) if type(one) in (int, dict, list) else one
                for key, one in value.items()}  # fmt: skip
    if type(value) is list:  # not the numbers in it: they have no names
        return [_changed(one) if type(one) is dict else one for one in value]
    return value + "+" if type(value) is str else value + 1
