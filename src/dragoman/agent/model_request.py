"""Sends one request to the model, and emits its response as events."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from itertools import chain
from typing import Any

from dragoman.agent.events import PartialOutput, RetryRequested, TextDelta, ThinkingDelta
from dragoman.agent.runs import Run
from dragoman.errors import ProviderError
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta, PartStart, PartStop, ResponseStart
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.value import expect
from dragoman.tracing.spans import UNTRACED, AgentCall, Untraced
from dragoman.tracing.switch import meter
from dragoman.transport.fallback import FallbackStream
from dragoman.transport.model import expect_awaitable, expect_stream
from dragoman.transport.streaming import ResponseStream

Piece = TextDelta | ThinkingDelta | PartialOutput | RetryRequested


async def answered(run: Run, request: Request) -> Response:
    """Send a request and return the response, emitting its parts as they arrive.

    If the provider stores earlier responses, only new messages are sent. If it has forgotten them,
    everything is sent.
    """
    links = run.setup.links
    short = request if links is None else links.linked(request, run.target)
    if links is None or short is request:
        return await _asked(run, request)
    try:
        return await _asked(run, short)
    except ProviderError as error:
        if not links.is_forgotten(short, error):
            raise
    links.forget(short)
    return await _asked(run, request)


def _asked(run: Run, request: Request) -> Coroutine[Any, Any, Response]:
    run.begin_answer()
    return _streamed(run, request) if run.streams else _sent(run, request)


def _traced(run: Run, request: Request) -> AgentCall | Untraced:
    # Not a coroutine around the call: each one would cost time for every event.
    is_traced = run.span is not None or meter() is not None
    return AgentCall(request, run.setup.model.name) if is_traced else UNTRACED


async def _streamed(run: Run, request: Request) -> Response:
    with _traced(run, request) as call:
        stream = run.setup.model.stream(request)
        expect_stream(stream, run.setup.model)
        listening = _Listening(run)
        try:
            if isinstance(stream, (ResponseStream, FallbackStream)):
                aiter(stream)
                while events := await stream.batch():  # together: each coroutine costs time
                    await run.emit_all(chain.from_iterable(map(listening.pieces, events)))
            else:
                async for event in stream:
                    await run.emit_all(listening.pieces(event))
            await run.emit_all(_shown(None if run.watch is None else run.watch.close()))
        finally:
            await stream.close()
        response = stream.response
        call.ended(response)
    return response


async def _sent(run: Run, request: Request) -> Response:
    with _traced(run, request) as call:
        answer = run.setup.model.send(request)
        expect_awaitable(answer, run.setup.model)
        response = await answer
        expect(response, Response, "the return value of a model's send")
        call.ended(response)
    if response.choices:
        message = response.message
        if thinking := message.thinking:
            await run.emit_thinking(thinking)
        if text := message.text:
            await run.emit_text(text)
    return response


class _Listening:
    """Turns stream events into agent events."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._parts: dict[int, _Told] = {}
        self._names: dict[int | None, str] = {}
        self._name = ""

    def pieces(self, event: Event) -> Sequence[Piece]:  # noqa: PLR0911 - one for each kind
        """The agent events for a stream event; only the first choice counts."""
        if getattr(event, "choice", 0):
            return ()
        if isinstance(event, PartDelta):
            return self._delta(event) if event.text else ()
        if isinstance(event, ResponseStart):
            return self._restarted() if event.restarts else ()
        if isinstance(event, ToolCallDelta):
            return self._arguments(event)
        if isinstance(event, PartStart):
            told = self._parts[event.index] = _Told(event.part)
            return told.more(self._run, _text_of(event.part))
        if isinstance(event, PartStop) and event.part is not None:
            told = self._parts.setdefault(event.index, _Told(event.part))
            return told.last(self._run, event.part)
        return ()

    def _restarted(self) -> Sequence[Piece]:
        self._parts, self._names, self._name = {}, {}, ""
        self._run.restart_answer()
        return (RetryRequested("the stream broke off, and another model takes over"),)

    def _delta(self, event: PartDelta) -> Sequence[Piece]:
        told = self._parts.get(event.index)
        if told is None:  # never announced: treated as text, as accumulators do
            told = self._parts[event.index] = _Told(Text(""))
        return told.more(self._run, event.text or "")

    def _arguments(self, event: ToolCallDelta) -> Sequence[Piece]:
        """More of a call's arguments; not all deltas name their call (W7, W8)."""
        if event.name:
            self._names[event.index] = event.name
        self._name = self._names.get(event.index, self._name)
        return _watched(self._run, self._name, event.arguments_delta or "")


def _watched(run: Run, name: str | None, text: str) -> Sequence[PartialOutput]:
    return _shown(None if run.watch is None or not text else run.watch.feed(name, text))


def _shown(found: PartialOutput | None) -> Sequence[PartialOutput]:
    return () if found is None else (found,)


class _Told:
    """The streamed state of one part."""

    __slots__ = ("is_speech", "is_thought", "name", "said")

    def __init__(self, part: AnyPart) -> None:
        self.is_speech = isinstance(part, (Text, Refusal))
        self.is_thought = isinstance(part, Thinking)
        self.name = part.name if isinstance(part, ToolCall) else None
        self.said: list[str] = []

    def more(self, run: Run, text: str) -> Sequence[Piece]:
        """The events for its next piece."""
        if not text:
            return ()
        is_first = not self.said
        self.said.append(text)
        if self.is_thought:
            return (run.thought(text, is_new=is_first),)
        if self.is_speech:
            return (run.said(text), *_watched(run, self.name, text))
        return () if self.name is None else _watched(run, self.name, text)

    def last(self, run: Run, part: AnyPart) -> Sequence[Piece]:
        """The events for what the final part adds to the streamed text (W26)."""
        whole, said = _text_of(part), "".join(self.said)
        is_longer = len(whole) > len(said) and whole.startswith(said)
        return self.more(run, whole[len(said) :]) if is_longer else ()


def _text_of(part: AnyPart) -> str:
    if isinstance(part, ToolCall):
        return part.raw or (part.raw_arguments if part.input else "")
    return part.text if isinstance(part, (Text, Refusal, Thinking)) else ""
