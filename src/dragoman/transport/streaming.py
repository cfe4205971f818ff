"""`ResponseStream`: the events of a streamed response, with retries."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import NamedTuple, Self

from dragoman.errors import DragomanError, InvalidInputError, InvalidRequest, ProviderError
from dragoman.model.content import AnyPart
from dragoman.model.events import Event
from dragoman.model.messages import Message
from dragoman.model.parts import Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.tracing.spans import ModelCall
from dragoman.transport.protocol import within
from dragoman.transport.retries import Retries
from dragoman.transport.stream_attempt import Incoming

_CODES = frozenset({"invalid_encrypted_content", "invalid_thinking_signature"})
_NOT_FOUND = 404


def verified(request: Request, error: ProviderError) -> Request:
    """The request to send after an error: unchanged, or without the rejected reasoning."""
    return without_sealed_thinking(request) if is_unverified(error) else request


def is_unverified(error: ProviderError) -> bool:
    """Whether the provider rejected reasoning that it can't verify or find.

    OpenAI stores nothing for some customers, whatever they request: W25's 404.
    """
    is_lost = error.status == _NOT_FOUND and error.param == "input"
    return error.code in _CODES or (is_lost and isinstance(error, InvalidRequest))


def without_sealed_thinking(request: Request) -> Request:
    """The request without thinking and its signatures; unchanged if it has none."""
    messages = tuple([_spoken(message) for message in request.messages])
    is_same = all(new is old for new, old in zip(messages, request.messages, strict=True))
    return request if is_same else request.replace(messages=messages)


def _spoken(message: Message) -> Message:
    if not any(isinstance(part, Thinking) or part.signature for part in message.parts):
        return message
    parts = [part for part in message.parts if not isinstance(part, Thinking)]
    return message.replace_unchecked(parts=tuple(map(_unsealed, parts)))


def _unsealed(part: AnyPart) -> AnyPart:
    # The results of thinking refer to it by ids, so they are sent as new items (W24). Gemini signs
    # the parts themselves (W86).
    changes = {name: None for name in ("item_id", "signature") if getattr(part, name)}
    return part.replace_unchecked(**changes) if changes else part


class EventStream(ABC):
    """A stream of events, usable once. Subclasses read it (`_advance`) and close it.

    A class, not nested generators: most events are already here, and a dropped stream leaves
    nothing for the loop to finalise.
    """

    def __init__(self) -> None:
        self._ready: deque[Event] = deque()
        self._is_taken = self._is_over = False

    @property
    @abstractmethod
    def response(self) -> Response:
        """The response so far."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether the model has marked the response as complete."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, for whatever reason."""
        return self._is_over

    @abstractmethod
    async def _advance(self) -> None:
        """Read what comes next into `_ready`, or set `_is_over`."""

    @abstractmethod
    async def close(self) -> None:
        """Stop reading; the connection is closed. Calling it again has no effect."""

    async def aclose(self) -> None:
        """The same as `close`, for `contextlib.aclosing`."""
        await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def collect(self) -> Response:
        """Read to the end, and return the whole response."""
        aiter(self)  # raises if it is already being iterated
        async with self:
            while await self.batch():
                pass
        return self.response

    def __aiter__(self) -> Self:
        if self._is_taken:
            msg = "a stream can be iterated only once; `response` has what arrived"
            raise InvalidInputError(msg)
        self._is_taken = True
        return self

    async def batch(self) -> list[Event]:
        """The next event and those that came with it; empty at the end."""
        while not self._ready and not self._is_over:
            await self._advance()
        events = list(self._ready)
        self._ready.clear()
        return events

    async def __anext__(self) -> Event:
        ready = self._ready
        while not ready:
            if self._is_over:
                raise StopAsyncIteration
            await self._advance()
        return ready.popleft()


class Source(NamedTuple):
    """Where streams come from, and how failures are handled."""

    locate: Callable[[DragomanError, str | None], None]
    """Adds provider, host and model to an error."""
    open: Callable[[Request], Awaitable[Incoming]]
    """Makes one attempt."""
    retries: Retries
    total: float | None
    """Maximum seconds for a whole stream."""
    sleep: Callable[[float], Awaitable[None]]
    trace: Callable[[Request], ModelCall | None]
    """The span of a request; None without tracing."""
    cost: Callable[[Response], Decimal | None]


class ResponseStream(EventStream):
    """A response stream, usable once; `response` is the response so far.

    Leaving it early closes the connection at once. If the stream breaks off, it raises
    `StreamInterrupted`, whose `partial` is the response so far.
    """

    def __init__(self, source: Source, request: Request) -> None:
        super().__init__()
        self._source = source
        self._request = request
        self._incoming: Incoming | None = None
        self._live: Incoming | None = None  # the same, until its failure has been handled
        self._attempts = 0
        self._deadline: float | None = None
        self._call: ModelCall | None = None
        self._final: Response | None = None  # built once, when nothing more can come
        self._is_waiting = self._has_begun = False

    @property
    def response(self) -> Response:
        """The response so far."""
        if self._final is not None:
            return self._final
        return Response() if self._incoming is None else self._incoming.response

    @property
    def is_complete(self) -> bool:
        """Whether the provider has marked the response as complete."""
        return self._incoming is not None and self._incoming.is_complete

    @property
    def has_started(self) -> bool:
        """Whether a request was sent."""
        return self._attempts > 0

    async def close(self) -> None:
        """Stop reading; the connection is closed. Calling it again has no effect."""
        self._is_taken = self._is_over = True
        self._ready.clear()
        if self._call is not None and self._call.is_open:
            self._call.answered(self.response, self._source.cost)
        if self._incoming is not None:
            await self._incoming.close()

    # --- one step: read a chunk, open a connection, or handle a failure

    async def _advance(self) -> None:
        if self._is_waiting:
            msg = "a stream can have only one reader, and another task is reading it"
            raise InvalidInputError(msg)
        self._is_waiting = True
        try:
            live = self._live
            if live is None or live.is_over or self._source.total is not None:
                await within(self._left(), self._step())
            else:  # nearly always, with few coroutines: each one costs time for every chunk
                self._take(await live.read())
        except BaseException as error:
            if self._call is not None:
                self._call.failed(error, self.response)
            await self.close()
            if isinstance(error, DragomanError):
                self._source.locate(error, self._request.model)
            raise
        finally:
            self._is_waiting = False

    def _left(self) -> float | None:
        """Seconds left of the total."""
        total = self._source.total
        if total is None:
            return None
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + total
        return max(self._deadline - now, 0.0)

    async def _step(self) -> None:
        try:
            await self._go_on()
        except DragomanError as error:
            failure = error
        else:
            return
        await self._recover(failure)

    async def _go_on(self) -> None:
        live = self._live
        if live is None:
            await self._open()
        elif live.is_over:
            self._live = None
            if live.failure is not None:
                raise live.failure
            self._is_over = True
            self._final = live.response
            if self._call is not None:
                self._call.answered(self._final, self._source.cost)
        else:
            self._take(await live.read())

    def _take(self, events: list[Event]) -> None:
        if events:
            self._ready.extend(events)
            if self._call is not None and not self._has_begun:
                self._call.begun()
            self._has_begun = True

    async def _open(self) -> None:
        self._attempts += 1
        incoming = await self._opened()
        if self._is_over:  # another task closed it meanwhile
            await incoming.close()
        else:
            self._live = self._incoming = incoming

    async def _opened(self) -> Incoming:
        if self._attempts == 1:
            self._call = self._source.trace(self._request)
            if self._call is not None:
                self._call.end_if_dropped()
        if self._call is None:
            return await self._source.open(self._request)
        with self._call.active():
            return await self._source.open(self._request)

    async def _recover(self, error: DragomanError) -> None:
        """Wait before another attempt; raises if there is none."""
        if isinstance(error, ProviderError):
            plain = self._request if self._has_begun else verified(self._request, error)
            if plain is not self._request:
                self._request = plain
                return
        retries = self._source.retries
        if self._has_begun and not retries.interrupted:
            raise error
        wait = retries.wait(self._attempts, error)
        if wait is None:
            raise error
        await self._source.sleep(wait)
