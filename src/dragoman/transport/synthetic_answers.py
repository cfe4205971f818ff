"""Responses made locally, and streams of them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from dragoman.errors import InvalidInputError, StreamInterrupted
from dragoman.interop.reader import read_request
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, PartDelta, PartStart
from dragoman.model.messages import Message
from dragoman.model.parts import Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall
from dragoman.model.usage import Usage
from dragoman.tracing.spans import ModelCall
from dragoman.transport.answers import events_of

_WORDS = re.compile(r"\s*\S+|\s+")

Source = Callable[[MessageAccumulator], AsyncIterator[Event]]


def request_of(request: Request | Any, model: str, *, stream: bool) -> Request:
    """The request for whatever input was given."""
    asked = read_request(request)
    return asked.replace(model=asked.model or model, stream=stream)


def words(text: str) -> list[str]:
    """Split a text into words, each with the whitespace before it.

    >>> words("Two  words. ")
    ['Two', '  words.', ' ']
    """
    return _WORDS.findall(text)


def estimated_usage(request: Request, answer: Message) -> Usage:
    """Estimated usage, one token per word; marked as estimated in its extras."""
    told = [part.text for part in request.system if isinstance(part, Text)]
    told += [m.text for m in request.messages]
    told += [result.text for m in request.messages for result in m.tool_results]
    said = [answer.text, *(call.raw_arguments for call in answer.tool_calls)]
    return Usage(
        input=sum(map(_length, told)),
        output=sum(map(_length, said)),
        thinking=_length(answer.thinking),
        extras={"dragoman": {"estimated": True}},
    )


def _length(text: str) -> int:
    return len(text.split())


def spoken(response: Response) -> Iterator[Event]:
    """The events of a response, streamed word by word."""
    for event in events_of(response):
        if not isinstance(event, PartStart):
            yield event
            continue
        start, pieces = _begun(event)
        yield start
        yield from (PartDelta(start.index, piece, choice=start.choice) for piece in pieces)


def _begun(event: PartStart) -> tuple[PartStart, list[str]]:
    """A part before its first word, and its words."""
    part = event.part
    if isinstance(part, (Text, Thinking)) and part.text:
        return event.replace(part=part.replace(text="")), words(part.text)
    if isinstance(part, ToolCall) and part.raw:
        return event.replace(part=part.replace_unchecked(raw="")), words(part.raw)
    return event, []


class PlayedStream:
    """A stream of events from any source, with the interface of a network stream.

    `source` gets the accumulator of the events, and is called when iteration starts. `trace` starts
    the span.
    """

    def __init__(
        self, source: Source, trace: Callable[[], ModelCall | None] = lambda: None
    ) -> None:
        self._source, self._trace = source, trace
        self._heard = MessageAccumulator()
        self._events: AsyncGenerator[Event] | None = None
        self._is_closed = False

    @property
    def response(self) -> Response:
        """The response so far."""
        return self._heard.response

    @property
    def is_complete(self) -> bool:
        """Whether the model has marked the response as complete."""
        return self._heard.is_complete

    @property
    def has_started(self) -> bool:
        """Whether iteration has started."""
        return self._events is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, for whatever reason."""
        return self._is_closed

    async def batch(self) -> list[Event]:
        """The next event; empty at the end."""
        events = self._events or aiter(self)
        try:
            return [await anext(events)]
        except StopAsyncIteration:
            return []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        await self.close()

    async def close(self) -> None:
        """Stop reading. Calling it again has no effect."""
        self._is_closed = True
        if self._events is not None:
            with suppress(RuntimeError):  # another task is waiting for it
                await self._events.aclose()

    aclose = close  # for `contextlib.aclosing`

    async def collect(self) -> Response:
        """Read to the end, and return the whole response."""
        async with self:
            async for _ in self:
                pass
        return self.response

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._events is not None or self._is_closed:
            msg = "a stream can be iterated only once; `response` has what arrived"
            raise InvalidInputError(msg)
        self._events = self._told()
        return self._events

    async def _told(self) -> AsyncGenerator[Event]:
        heard = self._heard
        events = self._source(heard)
        call = self._trace()
        try:
            async for event in events:
                heard.add(event)
                if call is not None:
                    call.begun()
                yield event
            _expect_complete(heard)
        except GeneratorExit:  # the consumer has left
            raise
        except BaseException as error:
            if call is not None:
                call.failed(error, heard.response)
            raise
        finally:
            if call is not None:
                call.answered(heard.response)
            if isinstance(events, AsyncGenerator):  # or the loop would have to finalise it
                await events.aclose()


def _expect_complete(heard: MessageAccumulator) -> None:
    if not heard.is_complete:
        msg = "the stream ended before the response was complete"
        raise StreamInterrupted(msg, partial=heard.response)
