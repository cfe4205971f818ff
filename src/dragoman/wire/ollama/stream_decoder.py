"""Streams of `/api/chat`, read: lines of JSON become events (W101)."""

from __future__ import annotations

from typing import Any

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, response_identity
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.frozen import FrozenDict, freeze_mapping
from dragoman.model.jsontext import loads
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall
from dragoman.wire.call_ids import CallIds
from dragoman.wire.framing import NdjsonParser
from dragoman.wire.ollama.calls import decode_call
from dragoman.wire.ollama.exchange import Incoming
from dragoman.wire.ollama.finish import decode_finish
from dragoman.wire.ollama.media import decode_images
from dragoman.wire.ollama.response import note_time
from dragoman.wire.ollama.spelling import NAME, is_integer, is_list, is_object, kept
from dragoman.wire.ollama.times import decode_time
from dragoman.wire.ollama.usage import METRICS, decode_usage
from dragoman.wire.overlay import overlay
from dragoman.wire.tolerance import plain_text

_KNOWN = frozenset({"model", "created_at", "message", "done", "done_reason", "logprobs", *METRICS})
_SAID = frozenset({"role", "content", "thinking", "tool_calls"})


class StreamDecoder:
    """Turns the bytes of a stream into events, and folds these into `response`.

    The stream is complete when a line said `done`. Thinking, text and calls are pieces of one
    message, as the plain body has it: thinking ends where the text begins, the text with the
    stream. Each line has a time of its own; the first one's is the response's.
    """

    def __init__(self) -> None:
        self._frames = NdjsonParser()
        self._folded = MessageAccumulator()
        self._incoming = Incoming(None, CallIds(UNKNOWN_RESPONSE))
        self._events: list[Event] = []
        self._count = 0
        self._text: int | None = None
        self._thinking: int | None = None
        self._has_calls = False
        self._start: ResponseStart | None = None
        self._left: dict[str, Any] = {}
        self._left_of_message: dict[str, Any] = {}
        self._logprobs: list[Any] | None = None
        self._is_over = False

    @property
    def response(self) -> Response:
        """What has arrived so far, its parts in the order in which a plain body has them."""
        response = self._folded.response
        if self._count < 2:  # noqa: PLR2004 - nothing could be out of order
            return response
        choices = tuple(
            choice.replace(
                message=choice.message.replace_unchecked(parts=_arranged(choice.message.parts))
            )
            for choice in response.choices
        )
        return response.replace(choices=choices)

    @property
    def is_complete(self) -> bool:
        """Whether the server said that it was done."""
        return self._folded.is_complete

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete; raises `WireError` where they are no lines."""
        try:
            lines = self._frames.feed(data)
        except WireError as error:
            problem = str(error)
        else:
            for line in lines:
                self._take(line)
            return self._taken()
        raise self._broken(problem)

    def close(self) -> list[Event]:
        """The last events, when the stream has ended."""
        for line in self._frames.close():
            if line.endswith(b"}") and _is_whole(line):
                self._take(line)
        if not self._is_over:
            self._is_over = True
            self._stop_parts()
        return self._taken()

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _emit(self, event: Event) -> None:
        self._folded.add(event)
        self._events.append(event)

    # --- lines

    def _take(self, line: bytes) -> None:
        if self._is_over:
            return
        try:
            chunk = loads(line)
            if is_object(chunk):
                self._take_chunk(chunk)
                return
            problem = "a line of the stream is no JSON object"
        except (InvalidInputError, WireError) as error:
            problem = str(error)
        # Outside the handler: the model's error, which says the same, is not its context.
        raise self._broken(problem)

    def _broken(self, problem: str) -> WireError:
        self._is_over = True
        return WireError(problem, dialect=NAME, path="$")

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        if "error" in chunk and not is_object(chunk.get("message")):
            self._take_error(chunk)
            return
        if not _KNOWN.issuperset(chunk):
            self._left.update((key, value) for key, value in chunk.items() if key not in _KNOWN)
        if self._start is None:
            self._begin(chunk)
        message = chunk.get("message")
        if is_object(message):
            self._take_message(message)
        elif message is not None:
            self._emit(OpaqueEvent(NAME, {"message": message}))
        if is_list(logprobs := chunk.get("logprobs")):
            self._logprobs = self._logprobs or []
            self._logprobs += logprobs
        if chunk.get("done") is True:
            self._end(chunk)

    def _begin(self, chunk: dict[str, Any]) -> None:
        model = chunk.get("model")
        model = model if isinstance(model, str) else None
        created = decode_time(chunk.get("created_at"))
        written: dict[str, Any] = {}
        note_time(chunk, created, set(), written)
        known = _KNOWN - {"created_at"} if written else _KNOWN
        self._start = ResponseStart(
            model=model,
            created_at=created,
            origin=Origin(dialect=NAME, model=model),
            extras=kept(chunk, known, written),
        )
        self._emit(self._start)
        self._incoming.calls.identity = response_identity(None, created, model)

    def _take_error(self, chunk: dict[str, Any]) -> None:
        """An error in mid-stream, which ends it: what it says is for people (G1)."""
        said, status = chunk["error"], chunk.get("status")
        self._is_over = True
        self._stop_parts()
        self._emit(
            StreamError(
                said if isinstance(said, str) else "",
                None,
                status if is_integer(status) else None,
                freeze_mapping({NAME: chunk}, "the wire"),
            )
        )

    # --- the message

    def _take_message(self, message: dict[str, Any]) -> None:
        if thinking := _piece(message, "thinking"):
            self._thinking = self._grow(self._thinking, Thinking(""), thinking)
        if content := _piece(message, "content"):
            self._stop_thinking()
            self._text = self._grow(self._text, Text(""), content)
        if not _SAID.issuperset(message):
            self._take_rest(message)
        calls = message.get("tool_calls")
        if is_list(calls):
            for call in calls:
                self._stop_thinking()
                part = decode_call(call, self._incoming)
                self._has_calls = self._has_calls or isinstance(part, ToolCall)
                self._whole(part)

    def _take_rest(self, message: dict[str, Any]) -> None:
        images = decode_images(message.get("images"))
        for image in images or ():
            self._whole(image)
        said = _SAID | {"images"} if images else _SAID
        self._left_of_message.update((k, v) for k, v in message.items() if k not in said)

    def _grow(self, index: int | None, part: AnyPart, piece: str) -> int:
        if index is None:
            index, self._count = self._count, self._count + 1
            self._emit(PartStart(index, part))
        self._emit(PartDelta(index, piece))
        return index

    def _whole(self, part: AnyPart) -> None:
        index, self._count = self._count, self._count + 1
        self._emit(PartStart(index, part))
        self._emit(PartStop(index))

    def _stop_thinking(self) -> None:
        if self._thinking is not None:
            self._emit(PartStop(self._thinking))
            self._thinking = None

    def _stop_parts(self) -> None:
        self._stop_thinking()
        if self._text is not None:
            self._emit(PartStop(self._text))
            self._text = None

    # --- the end

    def _end(self, chunk: dict[str, Any]) -> None:
        self._is_over = True
        self._stop_parts()
        start = self._start
        usage = decode_usage(chunk, set())
        if usage is None:  # then durations are nobody's but the answer's own
            self._left |= {key: chunk[key] for key in METRICS if key in chunk}
        if start is not None and not self._left.items() <= overlay(start.extras, NAME).items():
            self._emit(start.replace(extras={**start.extras, NAME: self._left}))
        if usage is not None:
            self._emit(UsageUpdate(usage))
        raw = chunk.get("done_reason")
        raw = raw if isinstance(raw, str) and raw else None
        finish = decode_finish(raw, is_done=True, has_calls=self._has_calls)
        assert finish is not None  # noqa: S101 - it is done
        left: FrozenDict = kept(self._left_of_message, ())
        self._emit(ChoiceFinish(finish, raw, 0, self._logprobs, message_extras=left))
        self._emit(ResponseEnd())


def _piece(message: dict[str, Any], key: str) -> str:
    return plain_text(message.get(key))


def _arranged(parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """Thinking first, then text, media and calls: each joined, where it came in several pieces."""
    thinking = [part for part in parts if isinstance(part, Thinking)]
    texts = [part for part in parts if isinstance(part, Text)]
    if len(thinking) > 1:
        thinking = [thinking[0].replace(text="".join(part.text for part in thinking))]
    rest = [part for part in parts if not isinstance(part, (Thinking, Text))]
    return (*thinking, *texts, *rest)


def _is_whole(line: bytes) -> bool:
    """Whether the last line, which lacks its newline, was not cut off in the middle."""
    try:
        loads(line)
    except InvalidInputError:
        return False
    return True
