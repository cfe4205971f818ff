"""Streams of `/chat/completions`, read: chunks out of server-sent events become events."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from operator import is_
from typing import Any

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import (
    Event,
    OpaqueEvent,
    PartDelta,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.frozen import FrozenDict
from dragoman.model.jsontext import loads
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.wire.framing import SseEvent, SseParser
from dragoman.wire.openai_chat.assistant import place_of
from dragoman.wire.openai_chat.choice_decoder import ChoiceDecoder
from dragoman.wire.openai_chat.leftovers import Leftovers
from dragoman.wire.openai_chat.spelling import (
    NAME,
    absent,
    extras_of,
    is_integer,
    is_object,
)
from dragoman.wire.openai_chat.usage import decode_usage

DONE = "[DONE]"
_SAFE_INTEGER = 2**53  # what a float holds exactly
# `object` names the chunk, not the response; a null `usage` only says that it comes later (W9);
# `p` is Mistral's padding.
_KNOWN = frozenset({"id", "object", "created", "model", "usage", "error", "p"})


class StreamDecoder:
    """Turns the bytes of a stream into events, and folds these into `response`.

    The stream is complete when its `[DONE]` came; for a server that never sends it
    (`ends_with_done=False`), when it ended after every choice had its finish reason.
    """

    def __init__(self, *, ends_with_done: bool = True) -> None:
        self._frames = SseParser()
        self._folded = MessageAccumulator()
        self._ends_with_done = ends_with_done
        self._events: list[Event] = []
        self._choices: dict[int, ChoiceDecoder] = {}
        self._head: dict[str, Any] = {}
        self._has_head = False
        self._repeated: dict[str, Any] | None = None
        self._left = Leftovers()
        self._started: tuple[dict[str, Any], FrozenDict] | None = None
        self._usage: Any = None
        self._is_over = False

    @property
    def response(self) -> Response:
        """What has arrived so far, its parts in the order in which a plain body has them."""
        response = self._folded.response
        choices = tuple([_arranged(choice) for choice in response.choices])
        is_same = all(map(is_, choices, response.choices))
        return response if is_same else response.replace(choices=choices)

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it was done, and reported no error."""
        return self._folded.is_complete

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete; raises `WireError` where they are no chunks."""
        for frame in self._parsed(data):
            self._take(frame)
        return self._taken()

    def close(self) -> list[Event]:
        """The last events, when the stream has ended."""
        for frame in self._frames.close():
            if frame.data.strip() == DONE or _is_whole(frame.data):
                self._take(frame)
        if not self._is_over and self._started is not None:
            finished = [choice.is_finished for choice in self._choices.values()]
            is_done = not self._ends_with_done and bool(finished) and all(finished)
            self._end(is_done=is_done)
        return self._taken()

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _emit(self, event: Event) -> None:
        self._folded.add(event)
        self._events.append(event)

    def _emit_growth(self, event: PartDelta) -> None:
        self._folded.grow(event)
        self._events.append(event)

    # --- frames

    def _parsed(self, data: bytes) -> list[SseEvent]:
        try:
            return self._frames.feed(data)
        except WireError as error:
            problem = str(error)
        raise self._broken(problem)

    def _take(self, frame: SseEvent) -> None:
        data = frame.data
        if self._is_over or not data or data.isspace():
            return  # after the end, or a keep-alive
        if data[0] == "[" and data.strip() == DONE:
            self._end(is_done=not self._folded.errors)
            return
        try:
            chunk = loads(data)
            if type(chunk) is dict:
                self._take_chunk(chunk, frame.event)
                return
            problem = "a frame of the stream is no JSON object"
        except (InvalidInputError, WireError) as error:
            problem = str(error)
        # Outside the handler: the model's error, which says the same, is not its context.
        raise self._broken(problem)

    def _broken(self, problem: str) -> WireError:
        self._is_over = True
        return WireError(problem, dialect=NAME, path="$")

    # --- chunks

    def _take_chunk(self, chunk: dict[str, Any], name: str | None) -> None:
        choices = chunk.pop("choices", None)
        if choices is None and name is not None and _is_no_chunk(chunk, name):
            if name == "error":
                self._take_error(chunk.get("error") or chunk)
            else:
                self._emit(OpaqueEvent(NAME, {"event": name, "data": chunk}))
            return
        chunk.pop("obfuscation", None)  # padding, different in each (W18)
        is_repeated = chunk == self._repeated  # what most chunks say besides a piece of text
        if not is_repeated:
            self._read_rest(chunk)
            if choices and self._started is not None:
                self._start()  # what is new in this chunk goes out with it
        if type(choices) is list:
            for position, choice in enumerate(choices):
                self._take_choice(choice, position)
        if not is_repeated:
            self._repeated = chunk
            self._take_usage(chunk)

    def _read_rest(self, chunk: dict[str, Any]) -> None:
        for key, value in chunk.items():
            if key not in _KNOWN:
                self._left.keep(key, value)
        if not self._has_head:
            self._read_head(chunk)
        if chunk.get("error"):
            self._take_error(chunk["error"])

    def _take_usage(self, chunk: dict[str, Any]) -> None:
        usage = chunk.get("usage")
        if usage is None and is_object(x_groq := chunk.get("x_groq")):
            usage = x_groq.get("usage")  # it may be only there (W113)
        if is_object(usage) and usage != self._usage:
            self._usage = usage
            self._emit(UsageUpdate(decode_usage(usage)))

    def _read_head(self, chunk: dict[str, Any]) -> None:
        """What every chunk repeats; Azure's first one, about its filter, has it empty (W10)."""
        head = self._head
        known = dict(head)
        for key in ("id", "model"):
            value = chunk.get(key)
            if isinstance(value, str) and not head.get(key):
                head[key] = value
        created = chunk.get("created")
        if is_integer(created) and abs(created) < _SAFE_INTEGER and not head.get("created"):
            head["created"] = created
        self._has_head = bool(head.get("id") and head.get("model") and head.get("created"))
        if self._started is None or head != known:
            self._start()

    def _start(self, words: Iterable[str] = ()) -> None:
        """Say what is known of the response, if that is more than was said before."""
        head = self._head
        extras = self._left.extras(words)
        if self._started == (head, extras):
            return
        self._started = (dict(head), extras)
        model, response_id, created = head.get("model"), head.get("id"), head.get("created")
        self._emit(
            ResponseStart(
                id=response_id,
                model=model,
                created_at=None if created is None else float(created),
                origin=Origin(dialect=NAME, model=model, response_id=response_id),
                extras=extras,
            )
        )

    def _take_choice(self, wire: Any, position: int) -> None:
        if type(wire) is not dict:
            self._emit(OpaqueEvent(NAME, {"event": "message", "data": {"choices": [wire]}}))
            return
        index = wire.get("index")
        choice = self._choices.get(index) if type(index) is int else None
        if choice is None:
            choice = self._choice(index if is_integer(index) else position)
        choice.take(wire)

    def _choice(self, number: int) -> ChoiceDecoder:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = ChoiceDecoder(
                number, self._emit, self._emit_growth, self._folded.resolved
            )
        return choice

    def _take_error(self, error: Any) -> None:
        """An error in mid-stream (W112): what it says is for people, what it is, for the extras."""
        fields = error if is_object(error) else {"message": error}
        message, code = fields.get("message"), fields.get("code")
        status = next(
            (s for s in (fields.get("status_code"), fields.get("status"), code) if is_integer(s)),
            None,
        )
        word = code if isinstance(code, str) else fields.get("type")
        self._emit(
            StreamError(
                message if isinstance(message, str) else "",
                word if isinstance(word, str) else None,
                status,
                extras_of(fields),
            )
        )

    def _end(self, *, is_done: bool) -> None:
        self._is_over = True
        for choice in self._choices.values():
            choice.end()
        if self._started is not None:
            self._start(absent(self._head, "id", "created", "model"))
        if is_done:
            self._emit(ResponseEnd())


def _arranged(choice: Choice) -> Choice:
    parts = choice.message.parts
    places = [place_of(part) for part in parts]
    if all(one <= other for one, other in pairwise(places)):
        return choice
    order = sorted(range(len(parts)), key=places.__getitem__)
    arranged = tuple([parts[index] for index in order])
    return choice.replace(message=choice.message.replace_unchecked(parts=arranged))


def _is_no_chunk(chunk: dict[str, Any], name: str) -> bool:
    return name != "message" and "usage" not in chunk


def _is_whole(data: str) -> bool:
    """Whether the last frame, which lacks its blank line, was not cut off in the middle."""
    try:
        loads(data)
    except InvalidInputError:
        return False
    return True
