"""Stream decoder: chunks of `/chat/completions` to canonical events."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import filterfalse, pairwise
from typing import Any, ClassVar

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.frozen import FrozenDict
from dragoman.model.parts import Origin
from dragoman.wire.framing import SseEvent, SseParser
from dragoman.wire.json_values import is_integer, is_object
from dragoman.wire.lane.templates import ASCII_TEXT, Growth, Noises
from dragoman.wire.openai_chat.dialect import NAME, absent
from dragoman.wire.openai_chat.layout import part_order
from dragoman.wire.openai_chat.response import decode_usage
from dragoman.wire.openai_chat.stream_choices import ChoiceDecoder
from dragoman.wire.openai_chat.stream_deltas import UnknownFields
from dragoman.wire.overlay import extras_of
from dragoman.wire.stream_decoding import DONE, FrameDecoder, Passing, object_in, stream_error

_SAFE_INTEGER = 2**53  # up to which a float is exact
# `object` names the chunk, not the response; a null `usage` means that it comes later (W9).
_KNOWN = frozenset({"id", "object", "created", "model", "usage", "error"})
_HEAD: dict[str, Any] = {"id": str, "model": str, "created": int}
_PADDING = ("obfuscation", "p")  # different in each chunk (W18); the short one is Mistral's


class StreamDecoder(FrameDecoder[SseEvent]):
    """Decodes chunks, with a separate decoder for each choice.

    The stream is complete after `[DONE]`. For a server that never sends it
    (`ends_with_done=False`), it is complete if it ends after every choice had its finish reason.
    """

    _dialect = NAME
    _noise: ClassVar[Noises] = dict.fromkeys(_PADDING, ASCII_TEXT)
    PASSING = Passing(
        (rb'"finish_reason"\s*:\s*"', rb'"error"', rb"\[DONE\]"), rb'"usage"\s*:\s*\{'
    )

    def __init__(self, *, ends_with_done: bool = True) -> None:
        super().__init__(SseParser())
        self._ends_with_done = ends_with_done
        self._choices: dict[int, ChoiceDecoder] = {}
        self._head: dict[str, Any] = {}
        self._has_head = False
        self._repeated: dict[str, Any] | None = None
        self._unknown = UnknownFields()
        self._started: tuple[dict[str, Any], FrozenDict] | None = None
        self._usage: Any = None
        self._has_failed = self._is_over = False

    def _take(self, frame: SseEvent) -> None:
        data = frame.data
        if self._is_over or not data or data.isspace():
            return  # after the end, or a keep-alive
        if data == DONE or (data[0] == "[" and data.strip() == DONE):
            self._finish(is_done=not self._has_failed)
        else:
            self._take_chunk(object_in(data), frame.event)

    def _end(self) -> None:
        if not self._is_over and self._started is not None:
            finished = [choice.is_finished for choice in self._choices.values()]
            is_done = not self._ends_with_done and bool(finished) and all(finished)
            self._finish(is_done=is_done and not self._is_closed)

    def _finish(self, *, is_done: bool) -> None:
        """End the stream; without a finish reason, `[DONE]` may follow half a call (I7)."""
        self._is_over = True
        is_done = is_done and not self._folded.ends_within_part
        for choice in self._choices.values():
            choice.end()
        if self._started is not None:
            self._start(absent(self._head, "id", "created", "model"))
        if is_done:
            self._emit(events.ResponseEnd())

    def _in_order(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        places = [part_order(part) for part in parts]
        if all(one <= other for one, other in pairwise(places)):
            return parts
        return tuple([parts[n] for n in sorted(range(len(parts)), key=places.__getitem__)])

    # --- chunks

    def _take_chunk(self, chunk: dict[str, Any], name: str | None) -> None:
        choices = chunk.pop("choices", None)
        if choices is None and name is not None and _is_no_chunk(chunk, name):
            if name == "error":
                self._take_error(chunk.get("error") or chunk)
            else:
                self._emit(events.OpaqueEvent(NAME, {"event": name, "data": chunk}))
            return
        for key in _PADDING:
            chunk.pop(key, None)
        is_repeated = chunk == self._repeated  # most chunks repeat everything but a piece of text
        if not is_repeated:
            self._read_rest(chunk)
            if choices and self._started is not None:
                self._start()  # includes what is new in this chunk
        if type(choices) is list:
            for position, wire in enumerate(choices):
                choice = self._choice_of(wire, position)
                growth = None if choice is None else choice.take(wire)
                if growth is not None and is_repeated and len(choices) == 1:
                    place = ("choices", 0, "delta")
                    path, mirrors = (*place, *growth.path), [(*place, *m) for m in growth.mirrors]
                    self._growth = Growth(growth.delta, path, tuple(mirrors))
        if not is_repeated:
            self._repeated = chunk
            self._take_usage(chunk)

    def _read_rest(self, chunk: dict[str, Any]) -> None:
        for key in filterfalse(_KNOWN.__contains__, chunk):
            self._unknown.keep(key, chunk[key])
        if not self._has_head:
            self._read_head(chunk)
        if chunk.get("error"):
            self._take_error(chunk["error"])

    def _take_usage(self, chunk: dict[str, Any]) -> None:
        usage = chunk.get("usage")
        if usage is None:
            x_groq = chunk.get("x_groq")
            usage = x_groq.get("usage") if type(x_groq) is dict else None  # only here (W113)
        if type(usage) is dict and usage != self._usage:
            self._usage = usage
            self._emit(events.UsageUpdate(decode_usage(usage)))

    def _read_head(self, chunk: dict[str, Any]) -> None:
        """Read the fields that every chunk repeats; they are empty in Azure's first chunk (W10)."""
        head, is_new = self._head, self._started is None
        for key, kind in _HEAD.items():
            value: Any = chunk.get(key)
            known = head.get(key)
            is_valid = type(value) is kind and (kind is str or abs(value) < _SAFE_INTEGER)
            if is_valid and not known and value != known:
                head[key] = value
                is_new = True
        self._has_head = len(head) == len(_HEAD) and all(head.values())
        if is_new:
            self._start()

    def _start(self, words: Iterable[str] = ()) -> None:
        """Emit a start event if more is known of the response than before."""
        head = self._head
        extras = self._unknown.extras(words)
        if self._started == (head, extras):
            return
        self._started = (dict(head), extras)
        model, response_id, created = head.get("model"), head.get("id"), head.get("created")
        self._emit(
            events.ResponseStart(
                id=response_id,
                model=model,
                created_at=None if created is None else float(created),
                origin=Origin(dialect=NAME, model=model, response_id=response_id),
                extras=extras,
            )
        )

    def _choice_of(self, wire: Any, position: int) -> ChoiceDecoder | None:
        """The decoder for a choice of a chunk; None if it is not an object."""
        if type(wire) is not dict:
            self._emit(events.OpaqueEvent(NAME, {"event": "message", "data": {"choices": [wire]}}))
            return None
        index = wire.get("index")
        number = index if is_integer(index) else position
        choice = self._choices.get(number)
        if choice is None:
            emit, resolve = self._emit, self._folded.resolved
            choice = self._choices[number] = ChoiceDecoder(number, emit, resolve)
        return choice

    def _take_error(self, error: Any) -> None:
        """Decode a mid-stream error (W112); its fields are kept in the extras."""
        self._has_failed = True
        for choice in self._choices.values():
            choice.settle()
        fields = error if is_object(error) else {"message": error}
        code = fields.get("code")
        numbers = (fields.get("status_code"), fields.get("status"), code)
        status = next((number for number in numbers if is_integer(number)), None)
        word = code if isinstance(code, str) else fields.get("type")
        self._emit(stream_error(fields.get("message"), word, status, extras_of(fields, NAME)))


def _is_no_chunk(chunk: dict[str, Any], name: str) -> bool:
    return name != "message" and "usage" not in chunk
