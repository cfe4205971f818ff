"""Streams, from chunks to events.

Each chunk is a response of its own, the parts of which come after those of the chunks before it.
There is no end marker: a stream is complete when it ended and every candidate in it had said why
it finished, or the prompt was blocked; one in the form of an array has its closing bracket too.
A candidate may go on after its finish reason (recorded with code execution), and then needs
another one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, response_identity
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.model.jsontext import loads
from dragoman.model.parts import Origin
from dragoman.model.responses import Response
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.response import decode_blocked, decode_response, decode_time, encode_time
from dragoman.wire.gemini.stream_candidate import CandidateDecoder
from dragoman.wire.gemini.stream_errors import decode_stream_error
from dragoman.wire.gemini.stream_frames import ChunkReader
from dragoman.wire.gemini.trace import NAME, is_array, want_object
from dragoman.wire.gemini.usage import decode_usage

T = TypeVar("T")
_NAMED, _DATED = 2, 3  # fields: who answers, its id, and when
_NAMING = frozenset({"responseId", "modelVersion", "response_id", "model_version"})


class StreamDecoder:
    """Reads one response out of a stream's bytes, cut anywhere.

    `response` is what the plain form would be: texts that came in pieces are whole, and what the
    chunks repeat is said once. The parts come while they come; usage, finish and sources, which
    every chunk may still change, when the stream is closed.
    """

    def __init__(self) -> None:
        self._chunks = ChunkReader()
        self._folded = MessageAccumulator()
        self._events: list[Event] = []
        self._candidates: dict[int, CandidateDecoder] = {}
        self._identity = UNKNOWN_RESPONSE
        self._head: dict[str, Any] = {}  # what is known beside candidates and usage
        self._repeated: dict[str, Any] | None = None
        self._has_started = self._has_news = False
        self._usage: Any = None  # the last one
        self._is_over = False

    @property
    def response(self) -> Response:
        """What has arrived so far."""
        return self._folded.response

    @property
    def is_complete(self) -> bool:
        """Whether the answer came to its end; known when the stream has been closed."""
        return self._folded.is_complete

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete; raises `WireError` where they are no chunks."""
        if not self._is_over:
            self._guarded(partial(self._read_all, data))
        return self._taken()

    def close(self) -> list[Event]:
        """What is left when the stream ends."""
        if not self._is_over:
            try:
                for chunk in self._chunks.close():
                    self._read(chunk)
            except (WireError, InvalidInputError):
                pass  # no garbage: the stream ended in the middle of a frame
            self._guarded(self._end)
            self._is_over = True
        return self._taken()

    def _guarded(self, act: Callable[[], T]) -> T:
        """What an act gives; where it fails, the peer is at fault, and nothing more is read."""
        try:
            return act()
        except (InvalidInputError, WireError) as error:
            problem, path = str(error), getattr(error, "path", None)
        except RecursionError:
            problem, path = "the JSON nests too deeply", None
        self._is_over = True
        raise WireError(problem, dialect=NAME, path=path or "$")

    def _end(self) -> None:
        if self._has_news:
            self._start()
        self._settle_usage()
        for candidate in self._candidates.values():
            candidate.end()
        if not self._candidates:
            self._tell_blocked()
        if self._is_done():
            self._emit(ResponseEnd())

    def _tell_blocked(self) -> None:
        """There are no candidates: the prompt was blocked, if the response says so (W88)."""
        blocked = decode_blocked(self._head, Origin(dialect=NAME))
        if blocked is not None and blocked.finish is not None:
            self._emit(ChoiceFinish(blocked.finish, blocked.finish_raw, extras=blocked.extras))

    def _is_done(self) -> bool:
        if self._folded.errors or not self._chunks.is_closed:
            return False
        if not self._candidates:
            return self._folded.response.finish is not None  # the prompt was blocked
        return all(candidate.is_finished for candidate in self._candidates.values())

    def _emit(self, event: Event) -> None:
        if type(event) is PartDelta:  # most are
            self._folded.grow(event)
        else:
            self._folded.add(event)
        self._events.append(event)

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    # --- chunks

    def _read_all(self, data: bytes) -> None:
        for raw in self._chunks.feed(data):
            self._read(raw)

    def _read(self, raw: str | bytes) -> None:
        chunk = _parsed(raw)
        if type(chunk) is dict:
            self._take(chunk)
        else:
            for item in chunk if is_array(chunk) else [chunk]:
                self._take(want_object(item, "$"))

    def _take(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error") is not None:
            self._settle_usage()
            self._emit(decode_stream_error(chunk))
            return
        candidates = chunk.pop("candidates", None)
        usage = chunk.pop("usageMetadata", None)
        if usage is None and (usage := chunk.get("usage_metadata")) is not None:
            chunk["usage_metadata"] = {}  # that it was spelled so
        if chunk != self._repeated:
            self._repeated = chunk
            self._take_head(chunk)
        if usage is not None:
            self._usage = usage
        if is_array(candidates):
            for position, wire in enumerate(candidates):
                self._take_candidate(wire, position)
        elif candidates is not None:
            self._emit(OpaqueEvent(NAME, {"candidates": candidates}))

    def _settle_usage(self) -> None:
        """Tell what it has cost: every chunk says it anew, and only the last one counts (W98)."""
        usage, self._usage = decode_usage(self._usage), None
        if usage is not None:
            self._emit(UsageUpdate(usage))

    def _take_head(self, chunk: dict[str, Any]) -> None:
        """Learn what most chunks repeat: it is told once it has a name, and at the end."""
        before = len(_NAMING & self._head.keys()) if self._has_started else -1
        self._head.update({key: value for key, value in chunk.items() if value is not None})
        self._has_news = True
        if before < 0 or len(_NAMING & self._head.keys()) > before:
            self._start()

    def _start(self) -> None:
        self._has_started, self._has_news = True, False
        start = _plain_start(self._head) or _decode_start(self._head)
        self._emit(start)
        self._identity = response_identity(start.id, start.created_at, start.model)
        for candidate in self._candidates.values():
            candidate.calls.identity = self._identity

    def _take_candidate(self, wire: Any, position: int) -> None:
        if type(wire) is not dict:
            self._emit(OpaqueEvent(NAME, {"candidates": [wire]}))
            return
        index = wire.get("index")
        number = index if type(index) is int else position
        candidate = self._candidates.get(number)
        if candidate is None:
            candidate = CandidateDecoder(number, CallIds(self._identity), self._emit)
            self._candidates[number] = candidate
        candidate.take(wire)


def _plain_start(head: dict[str, Any]) -> ResponseStart | None:
    """What nearly every head says: who answers, its id, and when; None where there is more."""
    model, response_id = head.get("modelVersion"), head.get("responseId")
    if type(model) is not str or type(response_id) is not str:
        return None
    moment = head.get("createTime")
    created_at = decode_time(moment)
    if len(head) != (_NAMED if moment is None else _DATED) or encode_time(created_at) != moment:
        return None
    origin = Origin(dialect=NAME, model=model, response_id=response_id)
    return ResponseStart(id=response_id, model=model, created_at=created_at, origin=origin)


def _decode_start(head: dict[str, Any]) -> ResponseStart:
    known = decode_response(head)
    return ResponseStart(
        id=known.id,
        model=known.model,
        created_at=known.created_at,
        origin=Origin(dialect=NAME, model=known.model, response_id=known.id),
        extras=known.extras,
    )


def _parsed(raw: str | bytes) -> Any:
    """The chunk in a frame, or an error in a list; or several, if a proxy ate blank lines."""
    try:
        return loads(raw)
    except InvalidInputError:
        if isinstance(raw, bytes) or "\n" not in raw:
            raise
    return [loads(line) for line in raw.split("\n")]
