"""Templates for repetitive stream frames: the first is decoded, the next are compared as bytes.

In a run of deltas the frames differ in a text, and in fields without meaning beyond the frame (a
number, padding, a time). A frame that only extended a part becomes a template: the bytes around the
text. A frame with the same bytes, and a JSON string between them, means the same with another text.
Anything else is decoded in the general way.
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
from dragoman.wire.lane.frame_columns import TEXT, Columns
from dragoman.wire.lane.runs import Run

Delta = PartDelta | ToolCallDelta
Path = tuple[str | int, ...]
Span = tuple[int, int]
Match = Callable[[bytes, int], "re.Match[bytes] | None"]

_text_in = msgspec.json.Decoder(str).decode
_RUN_BEFORE_BATCH, _MIN_BATCH = 16, 8  # frames; most recorded runs are about ten
_BACKSLASH = 0x5C
_STRING = rb'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"'
_INTEGER = rb"(?!0[0-9])[0-9]{1,15}"  # without alternatives, which take twice as long
_REST_OF_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_COUNT = re.compile(rb"(:[ \t]*)(0|[1-9][0-9]{0,14})(?=[ \t,}])")
_BLANK = b" \t"
_COUNTS = rb"\{[^{}\\]*(?:\{[^{}\\]*\}[^{}\\]*)*\}"


class Growth(NamedTuple):
    """Describes a frame that extends one part and has no other effect, however often it comes.

    The dialect's decoder must guarantee this: the next frame with the same bytes except for the
    text must mean the same event with that text.
    """

    delta: Delta
    """The event it caused, or would cause if it came again."""
    path: Path
    """The path of its text in the frame."""
    mirrors: tuple[Path, ...] = ()
    """The paths of repetitions of the text."""
    kept: tuple[list[str], ...] = ()
    """Lists in which the decoder collects the texts, besides the accumulated response."""
    counts: str | None = None
    """A field with an object of numbers that change from frame to frame; the last one counts."""
    noise: Noises = None
    """Meaningless top-level fields of the frame, besides those of the dialect."""

    @property
    def field(self) -> str:
        """The field of the event that has the text."""
        return "text" if type(self.delta) is PartDelta else "arguments_delta"

    @property
    def place(self) -> tuple[Any, ...]:
        """What must be equal in the next frame of the run."""
        return type(self.delta), self.delta.index, self.delta.choice, self.path, self.mirrors


# --- variable parts of frames


class Noise(NamedTuple):
    """A field of frames that has no meaning beyond them."""

    value: bytes
    """The pattern of its value."""
    match: Match

    @staticmethod
    def of(value: bytes) -> Noise:
        """Create one from a pattern."""
        return Noise(value, re.compile(value).match)


Noises = Mapping[str, Noise] | None
"""A dialect's meaningless top-level fields, by name; None: templates are not used."""
INTEGER = Noise.of(_INTEGER + rb"(?![0-9])")  # so that what follows can't make it shorter
ASCII_TEXT = Noise.of(rb'"[ !#-\[\]-~]*"')  # ASCII without escapes
BLANKS = Noise.of(rb"[ \t]*")
"""Padding that some servers add before the last brace of a frame."""
_MIRROR = Noise.of(b"")


class _Hole(NamedTuple):
    """A position in a frame where bytes may differ."""

    start: int
    end: int
    path: Path
    noise: Noise | None
    """None for the text itself."""


# --- templates


class Template:
    """Decodes frames that differ in one text."""

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
        # The quotes of the text are fixed too.
        self._head = head if place else head + b'"'
        self._before = steps[:place]
        if place:
            match, literal = steps[place - 1]
            self._before[-1] = match, literal + b'"'
        self._tail = b'"' + fixed[place]
        self._after = steps[place + 1 :]
        self._frame, self._holes = frame, holes
        self._columns: Columns | None = None  # created when there are many frames
        # The number of bytes from which batches pay off; none if the frames have counts.
        self._many = _MIN_BATCH * len(frame) if counts is None else MAX_FRAME
        self._counts = None if counts is None else counts.match
        self.counts: bytes | None = None
        """The counts of the last frame."""
        self._delta = growth.delta
        self._field = growth.field
        self._kept = kept

    def run(self, data: bytes, position: int, told: list[Event], runs: list[Run]) -> int:
        """Decode matching frames from there on; returns the position of the first other frame.

        Their events are added to `told`, and if there are many, a run to `runs`.
        """
        texts: list[str] = []
        if len(data) - position <= self._many:
            position = self._run_singly(data, position, told, texts, len(data))
        else:
            start = len(told)
            position = self._run_many(data, position, told, texts)
            if len(texts) > _RUN_BEFORE_BATCH:
                runs.append(Run(start, told[start:], texts))
        if len(texts) > _RUN_BEFORE_BATCH:
            texts = ["".join(texts)]  # small pieces take much more memory than their text
        for kept in self._kept:
            kept.extend(texts)
        return position

    def _run_many(self, data: bytes, position: int, told: list[Event], texts: list[str]) -> int:
        # Most runs are short: batches are used only after some frames.
        while True:
            most = len(texts) + _RUN_BEFORE_BATCH
            position = self._run_singly(data, position, told, texts, most)
            if len(texts) < most:
                return position
            end = self._run_batch(data, position, told, texts)
            while end > position:
                position, end = end, self._run_batch(data, end, told, texts)

    def _run_singly(
        self, data: bytes, position: int, told: list[Event], texts: list[str], most: int
    ) -> int:
        head, size, tail, after = self._head, len(self._head), self._tail, self._after
        delta, field, before = self._delta, self._field, self._before
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
            if end <= start or not data.startswith(tail, end):  # an empty text may mean more
                break
            written = data[start - 1 : end + 1]
            end += len(tail)
            try:
                text = _text_in(written)
            except (msgspec.DecodeError, UnicodeError):
                break  # such as a lone surrogate
            if after and (end := self._rest(data, end, written)) < 0:
                break
            made = shallow_copy(delta)
            force_setattr(made, field, text)
            told.append(made)
            texts.append(text)
            position = end
        return position

    def _run_batch(self, data: bytes, position: int, told: list[Event], texts: list[str]) -> int:
        """Decode a batch of frames; what follows it is left, and may match as well."""
        if self._columns is None:
            self._columns = _columns_of(self._frame, self._holes)
        found, end = self._columns.texts(data, position)
        made: list[Delta] = list(map(shallow_copy, repeat(self._delta, len(found))))
        deque(map(force_setattr, made, repeat(self._field), found), maxlen=0)
        told += made
        texts += found
        return end

    def _rest(self, data: bytes, position: int, written: bytes) -> int:
        """The end of the frame after its text; negative if the frame doesn't match."""
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
    """How to split frames like this one; the quotes around texts are fixed."""
    fixed, values, end = list[bytes](), list[bytes | None](), 0
    for hole in holes:
        is_text = hole.noise is None or hole.noise is _MIRROR
        fixed.append(frame[end : hole.start + is_text])
        end = hole.end - is_text
        values.append(TEXT if hole.noise is None else None if is_text else hole.noise.value)
    return Columns([*fixed, frame[end:]], tuple(values))


def _end_of_string(data: bytes, start: int) -> int:
    """The end of a string that contains a quote; negative if it has none."""
    found = _REST_OF_STRING.match(data, start)
    return -1 if found is None else found.end()


def template_of(
    frame: bytes, body: Span, growth: Growth, noise: Noises, texts: tuple[list[str], ...]
) -> Template | None:
    """The template of a frame whose JSON is at `body`; None if there can't be one.

    `texts` are the lists in which the accumulated response has the texts.

    The text's position is verified: with another text there, the JSON must have that text where
    the decoder reads it, and everything else as before.
    """
    frame = bytes(frame)  # it may be a bytearray
    start, end = body
    counts = None
    holes: list[_Hole] = []
    for path in (growth.path, *growth.mirrors):
        spans = _spans(frame, body, path[-1], _STRING)
        if len(spans) != 1:
            return None
        holes.append(_Hole(*spans[0], path, _MIRROR))
    # The first occurrence of the text is the one that is decoded.
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
        if len(spans) > 1 or counts is None or at[0] < holes[0].start:
            return None  # counts before the text are rare, and not read
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
    """A pattern for the same counts with other numbers."""
    found = list(_COUNT.finditer(counts))
    edges = [0, *(edge for each in found for edge in each.span(2)), len(counts)]
    fixed = [re.escape(counts[edges[n] : edges[n + 1]]) for n in range(0, len(edges), 2)]
    return Noise.of(_INTEGER.join(fixed)) if found else None


def _is_as_read(frame: bytes, body: Span, holes: list[_Hole]) -> bool:
    """Whether other values at these positions change only what is read there."""
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
    """A different value of the same form: the same one that `_change` makes."""
    if value[:1] == b'"':
        return value[:-1] + b'+"'
    if value[:1] == b"{":
        return _COUNT.sub(lambda found: found[1] + b"%d" % (int(found[2]) + 1), value)
    return value + b" " if value[:1] in (b" ", b"\t") else b"%d" % (int(value) + 1)


def _change(read: Any, path: Path) -> None:
    """Change the value at a path."""
    *outer, last = path
    for step in outer:
        read = read[step]
    read[last] = _changed(read[last])


def _changed(value: Any) -> Any:
    if type(value) is dict:
        return {key: _changed(one) if type(one) in (int, dict, list) else one
                for key, one in value.items()}  # fmt: skip
    if type(value) is list:  # numbers directly in it are not changed: they have no names
        return [_changed(one) if type(one) is dict else one for one in value]
    return value + "+" if type(value) is str else value + 1
