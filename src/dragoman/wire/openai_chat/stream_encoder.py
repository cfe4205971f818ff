"""Streams of `/chat/completions`, written: events become chunks in server-sent events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
from dragoman.model.jsontext import dumps
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import Usage
from dragoman.wire import overlay
from dragoman.wire.framing import sse
from dragoman.wire.losses import Loss, Losses, Repair
from dragoman.wire.openai_chat.choice_encoder import ChoiceEncoder
from dragoman.wire.openai_chat.spelling import NAME, is_object, is_own, laid
from dragoman.wire.openai_chat.usage import encode_usage

_OBJECT = "chat.completion.chunk"
_INTERRUPTED = {
    "message": "The stream from the model was interrupted before its end.",
    "type": "server_error",
    "param": None,
    "code": "stream_interrupted",
}


class StreamEncoder:
    """Writes events as chunks, each as soon as it comes.

    `include_usage` is what the client asked for with `stream_options` (W9).
    """

    def __init__(self, *, include_usage: bool = False) -> None:
        self._include_usage = include_usage
        self._head: dict[str, Any] = {"id": "", "object": _OBJECT, "created": 0, "model": ""}
        self._is_waiting = False
        self._start = ResponseStart()
        self._choices: dict[int, ChoiceEncoder] = {}
        self._losses = Losses()
        self._said: dict[str, Any] = {}
        self._unsaid: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._is_over = False

    @property
    def repairs(self) -> list[Repair]:
        """What was changed so that it can be said, so far."""
        return self._losses.repairs

    @property
    def losses(self) -> list[Loss]:
        """What could not be said so far."""
        return self._losses.all

    def feed(self, event: Event) -> bytes:
        """The bytes to send for an event; empty where there is nothing to send."""
        if self._is_over:
            return b""
        return _WRITERS[type(event)](self, event)

    def close(self) -> bytes:
        """The bytes to send at the end: none after a proper one, else an error (G1)."""
        if self._is_over:
            return b""
        self._is_over = True
        return sse(dumps({"error": _INTERRUPTED}))

    # --- one event each

    def write_start(self, event: Any) -> bytes:
        """The head of every chunk; the first one is sent at once, so that clients see life (G3).

        Azure's first one, about its filter, has neither id nor model yet, and clients keep those
        of the first chunk that they see: it waits (W10).
        """
        head = self._head
        head["id"] = head["id"] or event.id or ""
        head["model"] = head["model"] or event.model or ""
        if event.created_at is not None or not is_own(event.origin):
            head["created"] = head.get("created") or int(event.created_at or 0)
        elif not head.get("created"):
            head.pop("created", None)  # it came without one
        self._start = start = self._start.filled(event)
        for key, value in overlay.overlay(event.extras, NAME).items():
            if not key.startswith(":") and (key not in self._said or self._said[key] != value):
                self._said[key] = self._unsaid[key] = value
        for choice in self._choices.values():
            choice.restart(start)
        is_first = not self._choices and bool(head["id"] or head["model"] or self._is_waiting)
        self._is_waiting = True
        return self._chunk(0, {}) if is_first else b""

    def write_part_start(self, event: Any) -> bytes:
        """The beginning of a part."""
        return self._deltas(event.choice, self._choice(event.choice).start(event.index, event.part))

    def write_part_delta(self, event: Any) -> bytes:
        """More of a part."""
        return self._deltas(event.choice, self._choice(event.choice).grow(event))

    def write_part_stop(self, event: Any) -> bytes:
        """The end of a part, where something waited for it."""
        return self._deltas(event.choice, self._choice(event.choice).stop(event.index, event.part))

    def write_call(self, event: Any) -> bytes:
        """A piece of a tool call."""
        return self._deltas(event.choice, self._choice(event.choice).call(event))

    def write_usage(self, event: Any) -> bytes:
        """Nothing yet: the last count is written at the end."""
        self._usage = event.usage
        return b""

    def write_finish(self, event: Any) -> bytes:
        """The finish reason; a second one only adds what it knows more."""
        choice = self._choice(event.choice)
        written = self._deltas(event.choice, choice.stop_all(event.finish))
        body = choice.finish(event)
        return written if body is None else written + self._written([body])

    def write_error(self, event: Any) -> bytes:
        """An error is the last thing to be said."""
        self._is_over = True
        mine = overlay.overlay(event.extras, NAME)
        code = event.code if event.code is not None or event.status is None else str(event.status)
        error: dict[str, Any] = {
            "message": event.message,
            "type": "server_error",
            "param": None,
            "code": code,
        }
        return sse(dumps({"error": dict(mine) if mine else error}))

    def write_opaque(self, event: Any) -> bytes:
        """An event of this dialect that nobody knows; those of others have no place here."""
        payload = event.payload
        if event.dialect == NAME and is_object(payload) and isinstance(payload.get("event"), str):
            name, data = payload["event"], payload.get("data")
            if name.isascii() and name.isprintable() and is_object(data):
                return sse(dumps(data), name)
        self._losses.add("events", "an event of another dialect is left out")
        return b""

    def write_end(self, _event: Any) -> bytes:
        """What still waits, the usage, if the client asked for it, and the end."""
        waiting = [self._deltas(n, choice.stop_all()) for n, choice in self._choices.items()]
        written = b"".join(waiting)
        if self._include_usage and self._usage is not None:
            written += self._written([], usage=encode_usage(self._usage))
        elif self._unsaid and is_own(self._start.origin):
            if self._include_usage:
                written += self._written([])
            else:
                reason = "it came with the usage, which the client did not ask for"
                for key in self._unsaid:
                    self._losses.add(f"extras.{key}", reason)
        self._is_over = True
        return written + b"data: [DONE]\n\n"

    # --- chunks

    def _choice(self, number: int) -> ChoiceEncoder:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = ChoiceEncoder(number, self._start, self._losses)
        return choice

    def _deltas(self, number: int, deltas: list[dict[str, Any]]) -> bytes:
        if len(deltas) == 1:
            return self._chunk(number, deltas[0])
        return b"".join([self._chunk(number, delta) for delta in deltas])

    def _chunk(self, number: int, delta: Mapping[str, Any]) -> bytes:
        role = self._choice(number).greeting()
        body = {**role, **delta} if role else delta
        return self._written([{"index": number, "delta": body, "finish_reason": None}])

    def _written(self, choices: list[Any], usage: Any = None) -> bytes:
        body: dict[str, Any] = {**self._head, "choices": choices}
        if self._include_usage:
            body["usage"] = usage  # null until the last one (W9)
        if self._unsaid:
            body = laid(body, {NAME: self._unsaid})
            self._unsaid = {}
        return sse(dumps(body))


_WRITERS: dict[type, Callable[[StreamEncoder, Any], bytes]] = {
    ResponseStart: StreamEncoder.write_start,
    PartStart: StreamEncoder.write_part_start,
    PartDelta: StreamEncoder.write_part_delta,
    PartStop: StreamEncoder.write_part_stop,
    ToolCallDelta: StreamEncoder.write_call,
    UsageUpdate: StreamEncoder.write_usage,
    ChoiceFinish: StreamEncoder.write_finish,
    StreamError: StreamEncoder.write_error,
    OpaqueEvent: StreamEncoder.write_opaque,
    ResponseEnd: StreamEncoder.write_end,
}
