"""Chunks of a stream: parsing and writing them, and merging what comes in pieces.

A chunk is a response by itself. Two things are merged with those of earlier chunks: the arguments
of a call, and the metadata of a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

from dragoman.errors import WireError
from dragoman.model.jsontext import dumps
from dragoman.wire.framing import CR, LF, MAX_FRAME, JsonArrayParser, SseEvent, SseParser, sse
from dragoman.wire.gemini.dialect import NAME
from dragoman.wire.gemini.response import decode_finish
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.stream_decoding import DONE

Form = Literal["sse", "array"]
"""Events with `alt=sse` in the URL, otherwise an array (W120)."""

_BEFORE = b" \t\r\n\xef\xbb\xbf"  # whitespace and the byte order mark
# Google's SDK also splits lines at these, in the middle of a text; Google escapes them.
_SEPARATORS = (
    (b"\xc2\x85", rb"\u0085"),
    (b"\xe2\x80\xa8", rb"\u2028"),
    (b"\xe2\x80\xa9", rb"\u2029"),
)
_END = b"\r\n\r\n"  # the end of an event as sent by Google
_SHORT_END = b"\n\n"  # as sent by others
_NONE = b"\x00"  # never occurs in JSON
_SSE = SseParser()


class ChunkReader:
    """Splits a stream into chunks; the first byte determines the form."""

    __slots__ = ("_array", "_events", "_has_begun", "_is_between")

    def __init__(self) -> None:
        self._array: JsonArrayParser | None = None
        self._events: SseParser | None = None
        self._has_begun = False
        self._is_between = True  # between two events

    @property
    def is_closed(self) -> bool:
        """Whether the stream may end here: an array needs its closing bracket, events nothing."""
        return self._array is None or self._array.is_whole

    @property
    def is_between(self) -> bool:
        """Whether the stream consists of events and is between two of them."""
        return self._has_begun and self._array is None and self._is_between

    def single(self, data: bytes) -> str | bytes | None:
        """The chunk, if these bytes are exactly one event."""
        found = _whole_events(data) if self.is_between else None
        return found[0] if found is not None and len(found) == 1 else None

    def mark(self, data: bytes) -> bytes:
        """The last bytes of an event; empty for an array."""
        return _NONE if self._array is not None else _SSE.mark(data)

    def body(self, frame: bytes) -> tuple[int, int] | None:
        """The start and end of the chunk in a whole event."""
        return _SSE.body(frame)

    def feed(self, data: bytes) -> list[str | bytes]:
        """The chunks completed by these bytes."""
        if not self._has_begun:
            data = data.lstrip(_BEFORE)
            if not data:
                return []
            self._has_begun = True
            if data[:1] in {b"[", b"{"}:
                self._array = JsonArrayParser()
        return self._read_events(data) if self._array is None else [*self._array.feed(data)]

    def close(self) -> list[str | bytes]:
        """The last chunk, if only its final blank line is missing."""
        if self._events is None or self._is_between:
            return []
        return _data_of(self._events.close())

    def _read_events(self, data: bytes) -> list[str | bytes]:
        if self._is_between and (found := _whole_events(data)) is not None:
            return found
        if self._events is None:
            self._events = SseParser()
            self._events.feed(b"\n")  # a byte order mark can't follow any more
        self._is_between = data.endswith((_SHORT_END, _END))
        return _data_of(self._events.feed(data))


def _whole_events(data: bytes) -> list[str | bytes] | None:
    """The chunks of complete one-line events, as servers send them; None for any other.

    `SseParser` gives the same result in three times the time, because it has to look for all
    kinds of line ends.
    """
    *events, rest = data.split(_END if CR in data else _SHORT_END)
    if rest or len(data) > MAX_FRAME:
        return None
    found: list[str | bytes] = []
    for event in events:
        if event[:6] != b"data: " or LF in event or CR in event:
            return None
        chunk = event[6:].decode("utf-8", "replace")
        if chunk and chunk != DONE:
            found.append(chunk)
    return found


def _data_of(events: list[SseEvent]) -> list[str | bytes]:
    return [event.data for event in events if event.data and event.data != DONE]


def escape_separators(chunk: bytes) -> bytes:
    """Escape characters that are line ends for some clients but not in JSON."""
    for separator, escape in _SEPARATORS:
        chunk = chunk.replace(separator, escape)
    return chunk


class ChunkWriter:
    """Writes chunks in the form of the stream."""

    __slots__ = ("_before", "_form")

    def __init__(self, form: Form) -> None:
        self._form = form
        self._before = b"["

    def write(self, chunk: bytes) -> bytes:
        """Encode a chunk."""
        if not chunk.isascii():
            chunk = escape_separators(chunk)
        if self._form == "sse":
            return sse(chunk)
        before, self._before = self._before, b",\r\n"
        return before + chunk

    def end(self) -> bytes:
        """The bytes after the last chunk."""
        return b"" if self._form == "sse" else b"]"


# --- streamed call arguments, optional in Vertex AI (W87)
#
# The first chunk has the function name, the next ones `partialArgs`: a path into the arguments
# and a value; a long string comes in several pieces. The last one lacks `willContinue`.

Container = dict[str, Any] | list[Any]
_PIECEWISE = frozenset({"partialArgs", "partial_args", "willContinue", "will_continue"})
_PIECES = _PIECEWISE | {"args"}
_VALUES = ("numberValue", "boolValue", "nullValue",
           "number_value", "bool_value", "null_value")  # fmt: skip
_STEP = re.compile(
    r"""\.([^.\[\]]+) | \[(\d{1,6})\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\]""",
    re.VERBOSE,
)
_NOWHERE = ""
"""The name of a value without a path that does not continue another."""
_ESCAPED = re.compile(r"\\(.)")


def call_in(wire: Any) -> dict[str, Any] | None:
    """The function call of a part, if it has one."""
    if not is_object(wire) or type(wire.get("text")) is str:
        return None
    call = wire.get("functionCall", wire.get("function_call"))
    return call if is_object(call) else None


def is_piece(call: dict[str, Any]) -> bool:
    """Whether a call is streamed: more follows, or it has partial arguments."""
    if _PIECEWISE.isdisjoint(call):  # nearly all are complete
        return False
    return _continues(call) or is_list(call.get("partialArgs", call.get("partial_args")))


def call_head(wire: dict[str, Any]) -> dict[str, Any]:
    """The part in the first chunk of a call, without argument fields."""
    call = call_in(wire) or {}
    head = {key: value for key, value in call.items() if key not in _PIECES}
    rest = {
        key: value for key, value in wire.items() if key not in {"functionCall", "function_call"}
    }
    return {**rest, "functionCall": head}


class GrowingCall:
    """The arguments of a call that is still being streamed."""

    __slots__ = ("_args", "_path", "_place", "_texts", "is_whole")

    def __init__(self) -> None:
        self.is_whole = False
        self._args: dict[str, Any] = {}
        self._path: str | None = None  # of an incomplete string
        self._place: tuple[Container, Any] = (self._args, "")
        self._texts: list[str] = []

    def grow(self, call: dict[str, Any]) -> None:
        """Add the argument pieces of a chunk."""
        args = call.get("args")
        if is_object(args):
            self._args.update(args)
        pieces = call.get("partialArgs", call.get("partial_args"))
        for piece in pieces if is_list(pieces) else ():
            self._add(piece)
        self.is_whole = not _continues(call)

    def rest(self) -> str:
        """The arguments as JSON after the opening brace; not closed if they were interrupted."""
        self._settle()
        written = dumps(self._args).decode()[1:]
        return written if self.is_whole else written[:-1]

    def _add(self, piece: Any) -> None:
        if not is_object(piece):
            raise _malformed()
        path = piece.get("jsonPath", piece.get("json_path"))
        if type(path) is not str:
            path = self._path or _NOWHERE
        if path != self._path:
            self._settle()
            self._place = self._reach(path)
        text = piece.get("stringValue", piece.get("string_value"))
        if type(text) is str:
            self._path = path
            self._texts.append(text)
            if not _continues(piece):
                self._settle()
            return
        key = next((key for key in _VALUES if key in piece), None)
        if key is not None:
            container, step = self._place
            container[step] = None if key.startswith("null") else piece[key]

    def _settle(self) -> None:
        """Store a string once it is complete."""
        if self._path is not None:
            container, step = self._place
            container[step] = "".join(self._texts)
            self._path, self._texts = None, []

    def _reach(self, path: str) -> tuple[Container, Any]:
        """The container that a path leads to, created if missing, and the last step."""
        if path == _NOWHERE:
            return self._args, path
        steps = _steps(path)
        container: Container = self._args
        for step, following in pairwise(steps):
            inner = _held(container, step)
            if inner is None:
                inner = [] if type(following) is int else {}
                container[step] = inner  # type: ignore[index]  # `_held` has checked the step
            if not isinstance(inner, (dict, list)):
                raise _malformed()
            container = inner
        _held(container, steps[-1])
        return container, steps[-1]


def _held(container: Container, step: str | int) -> Any:
    """The existing value at a step; a list may grow by one."""
    if isinstance(container, list) and type(step) is int and step <= len(container):
        if step == len(container):
            container.append(None)
        return container[step]
    if isinstance(container, dict) and type(step) is str:
        return container.get(step)
    raise _malformed()


def _steps(path: str) -> list[str | int]:
    """The keys and indexes of a path: `$.a.b[0]['c d']`."""
    steps: list[str | int] = []
    position = 1
    while position < len(path) and (found := _STEP.match(path, position)):
        name, number, single, double = found.groups()
        if number is not None:
            steps.append(int(number))
        else:
            quoted = single if single is not None else double
            steps.append(name if name is not None else _ESCAPED.sub(r"\1", quoted))
        position = found.end()
    if not path.startswith("$") or position < len(path) or not steps:
        raise _malformed()
    return steps


def _continues(wire: dict[str, Any]) -> bool:
    return wire.get("willContinue", wire.get("will_continue")) is True


def _malformed() -> WireError:
    msg = "a piece of a call's arguments has an invalid path"
    return WireError(msg, dialect=NAME, path="$.candidates.content.parts.functionCall.partialArgs")


# --- metadata of a candidate
#
# Recordings show: grounding sources are complete, mostly at the end, with empty objects before;
# quoted passages come as they are found and grow from chunk to chunk; log probabilities are those
# of the chunk's own tokens. For any other field the last value counts.

Fields = dict[str, Any]
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"


def _is_finish(fields: Fields) -> bool:
    """Whether a chunk has a finish reason other than "unspecified"."""
    reason = fields.get("finishReason", fields.get("finish_reason"))
    if reason is None:
        return False
    finish, word = decode_finish(reason, False)  # noqa: FBT003 - whether there are calls
    return finish is not None and word != _UNSPECIFIED


class Metadata:
    """The merged fields of a candidate except its content."""

    __slots__ = ("_places", "fields")

    def __init__(self) -> None:
        self.fields: Fields = {}
        self._places: dict[tuple[Any, ...], int] = {}  # indexes of passages in their list

    def update(self, fields: Fields) -> bool:
        """Merge the fields of a chunk; returns whether it has the finish reason."""
        for key, value in fields.items():
            if key == "content":
                continue
            known = self.fields.get(key)
            merge = _MERGES.get(key)
            if merge is not None and is_object(value):
                if not is_object(known):
                    self.fields[key] = known = {}
                merge(self, known, value)
            elif value is not None or key not in self.fields:
                self.fields[key] = value
        return _is_finish(fields)

    def replace(self, known: Fields, fields: Fields) -> None:
        """Replace fields by their latest values."""
        known.update({key: value for key, value in fields.items() if value or key not in known})

    def lengthen(self, known: Fields, fields: Fields) -> None:
        """Extend lists."""
        for key, value in fields.items():
            old = known.get(key)
            if is_list(old) and is_list(value):
                old.extend(value)
            elif value is not None or key not in known:
                known[key] = value

    def find(self, known: Fields, fields: Fields) -> None:
        """Merge passages; one with the same start as a known one replaces it."""
        for key, value in fields.items():
            listed = known.setdefault(key, [] if is_list(value) else value)
            if is_list(listed) and is_list(value):
                self._add(listed, value, key)

    def _add(self, listed: list[Any], sources: list[Any], key: str) -> None:
        before = len(listed)
        for source in sources:
            place = (key, *_place(source))
            number = self._places.setdefault(place, len(listed))
            if number < before and is_object(source):
                listed[number] = source
            else:
                listed.append(source)


def _place(source: Any) -> tuple[Any, ...]:
    """The key of a passage: its start and its source."""
    if not is_object(source):
        return ()
    start, uri = source.get("startIndex"), source.get("uri")
    return (start if type(start) is int else 0, uri if type(uri) is str else None)


_MERGES: dict[str, Callable[[Metadata, Fields, Fields], None]] = {
    "groundingMetadata": Metadata.replace,
    "grounding_metadata": Metadata.replace,
    "urlContextMetadata": Metadata.replace,
    "url_context_metadata": Metadata.replace,
    "citationMetadata": Metadata.find,
    "citation_metadata": Metadata.find,
    "logprobsResult": Metadata.lengthen,
    "logprobs_result": Metadata.lengthen,
}
