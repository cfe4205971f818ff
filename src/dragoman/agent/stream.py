"""Streams of an agent's run: as chunks, or as events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Generic, Self, cast
from typing import TypeVar as PlainTypeVar

from dragoman.agent.emitting import events_of
from dragoman.agent.events import (
    AgentEvent,
    MessageAdded,
    PartialOutput,
    RunFinished,
    TextDelta,
    ThinkingDelta,
)
from dragoman.agent.results import Chunk, Result
from dragoman.agent.runs import Run
from dragoman.errors import InvalidInputError, LimitExceeded
from dragoman.model import portal
from dragoman.model.collection import Messages
from dragoman.model.type_parameters import TypeVar

T = PlainTypeVar("T")
OutT_co = TypeVar("OutT_co", default=Any, covariant=True)


class AgentStream(Generic[OutT_co]):
    """The stream of an agent's call: an async iterator of `Chunk`s, usable once.

    ```python
    async with agent.stream("Tell me more.") as stream:
        async for chunk in stream:
            print(chunk.output, end="")
    result = stream.result
    ```

    Every chunk holds something new, which may be a completed message. `texts()` iterates over the
    pieces of text alone, `events()` over events: tools that start and end, and the rest. Leaving
    the loop or the `with` block early stops the run at once.
    """

    def __init__(self, run: Run, play: Callable[[], Coroutine[Any, Any, Result[Any]]]) -> None:
        self._run = run
        self._play = play
        self._events: AsyncGenerator[AgentEvent] | None = None
        self._deadline: float | None = None
        self._is_taken = self._is_complete = self._is_closed = False
        self._reader: asyncio.Task[Any] | None = None  # the task that waits for the next event
        self._has_left: asyncio.Event | None = None  # set when the reader has been sent away
        self._result: Result[OutT_co] | None = None

    @property
    def result(self) -> Result[OutT_co]:
        """The result so far; at the end, the same as the return value of `send`."""
        return cast("Result[OutT_co]", self._run.result) if self._result is None else self._result

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended normally."""
        return self._is_complete

    def __repr__(self) -> str:
        return f"AgentStream({self._run.setup.model.name}, {self._stage})"

    @property
    def _stage(self) -> str:
        if self._is_complete:
            return "complete"
        if self._is_closed:
            return "closed"
        return "started" if self._is_taken else "not started: use `async for` or `await collect()`"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop everything, including another task's wait. Calling it again has no effect."""
        self._is_taken = self._is_closed = True
        if self._reader is None and self._events is not None:
            with suppress(RuntimeError):  # another task is closing it
                await self._events.aclose()
        if self._reader is not None and self._reader is not asyncio.current_task():
            await self._send_away(self._reader)  # else: a tool of the run, which ends with the tool

    aclose = close  # for `contextlib.aclosing`

    async def _send_away(self, reader: asyncio.Task[Any]) -> None:
        """End another task's wait; for that task the run is simply over."""
        if self._has_left is None:
            self._has_left = asyncio.Event()
            reader.cancel()
        await self._has_left.wait()

    async def collect(self) -> Result[OutT_co]:
        """Run to the end, and return the result."""
        self._take()
        async with self:
            result = await self._read(self._play)
            if result is not None:
                self._result, self._is_complete = result, True
        return self.result

    def __aiter__(self) -> Self:
        self._take()
        return self

    async def __anext__(self) -> Chunk:
        while True:
            chunk = self._chunk_of(await self._next())
            if chunk is not None:
                return chunk

    async def texts(self) -> AsyncIterator[str]:
        """Iterate over the pieces of text instead of chunks; none of them is empty."""
        async for chunk in self:
            if chunk.output:
                yield chunk.output

    def events(self) -> AsyncIterator[AgentEvent]:
        """Iterate over events instead of chunks."""
        self._take()
        return _Events(self._next)

    def _take(self) -> None:
        if self._is_taken:
            msg = "a stream can be iterated only once; see `result` for its outcome"
            raise InvalidInputError(msg)
        self._is_taken = True

    def _chunk_of(self, event: AgentEvent) -> Chunk | None:
        id = self._run.id
        if isinstance(event, TextDelta):
            return Chunk(output=event.text, id=id)
        if isinstance(event, ThinkingDelta):
            return Chunk(metadata={"thinking": event.text}, id=id)
        if isinstance(event, MessageAdded):
            return Chunk(messages=Messages(event.message), id=id)
        if isinstance(event, PartialOutput):
            return Chunk(partial=event.value, partial_json=event.json, id=id)
        if isinstance(event, RunFinished):
            usage, finish = event.result.usage, event.result.finish
            if usage is not None or finish is not None:
                return Chunk(usage=usage, finish=finish, id=id)
        return None

    async def _next(self) -> AgentEvent:
        if self._is_closed:
            raise StopAsyncIteration
        if self._events is None:
            self._run.is_followed = True
            self._events = events_of(self._play)
        event = await self._read(self._events.__anext__)
        if event is None or self._is_closed:
            await self._events.aclose()
            raise StopAsyncIteration
        if isinstance(event, RunFinished):
            self._result, self._is_complete = event.result, True
        return event

    async def _read(self, goes_on: Callable[[], Awaitable[T]]) -> T | None:
        """The next step of the run; None if `close` ended the wait."""
        if self._reader is not None:
            msg = "a stream can have only one reader, and another task is reading it"
            raise InvalidInputError(msg)
        task = self._reader = asyncio.current_task()
        cancels = task.cancelling() if task else 0
        try:
            seconds = self._run.setup.limits.seconds
            found = await (goes_on() if seconds is None else self._in_time(goes_on, seconds))
        except asyncio.CancelledError:
            if not self._leaves(task, cancels):
                raise
            return None
        except BaseException as error:
            self._leaves(task, cancels)
            if isinstance(error, LimitExceeded):
                error.partial = self._run.result
            raise
        finally:
            self._reader = None
        if self._has_left is not None:
            self._leaves(task, cancels)
        return found

    def _leaves(self, task: asyncio.Task[Any] | None, cancels: int) -> bool:
        """Whether only `close` cancelled the reader."""
        if self._has_left is None or task is None:
            return False
        self._has_left.set()
        return task.uncancel() <= cancels

    async def _in_time(self, goes_on: Callable[[], Awaitable[T]], seconds: float) -> T:
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + seconds
        timer = asyncio.timeout_at(self._deadline)
        try:
            async with timer:
                return await goes_on()
        except TimeoutError:
            if not timer.expired():  # another timeout
                raise
        msg = f"the run exceeded its time limit of {seconds:g} seconds"
        raise LimitExceeded(msg)


class _Events:
    """The events of a run."""

    def __init__(self, next_event: Callable[[], Awaitable[AgentEvent]]) -> None:
        self._next_event = next_event

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        return await self._next_event()


class BlockingAgentStream(Generic[OutT_co]):
    """A blocking `AgentStream`, for scripts, notebooks and threads."""

    def __init__(self, stream: AgentStream[OutT_co]) -> None:
        self._stream = stream
        self._chunks: AsyncIterator[Chunk] | None = None

    @property
    def result(self) -> Result[OutT_co]:
        """The result so far."""
        return self._stream.result

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended normally."""
        return self._stream.is_complete

    def __repr__(self) -> str:
        return f"Blocking{self._stream!r}".replace("async for", "for").replace("await ", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything. Calling it again has no effect."""
        portal.run(self._stream.close())

    def collect(self) -> Result[OutT_co]:
        """Run to the end, and return the result."""
        return portal.run(self._stream.collect())

    def texts(self) -> Iterator[str]:
        """Iterate over the pieces of text instead of chunks; none of them is empty."""
        return (chunk.output for chunk in self if chunk.output)

    def __iter__(self) -> Self:
        if self._chunks is not None:
            msg = "a stream can be iterated only once; see `result` for its outcome"
            raise InvalidInputError(msg)
        self._chunks = aiter(self._stream)
        return self

    def __next__(self) -> Chunk:
        chunk: Any = portal.run(self._next())
        if chunk is None:
            raise StopIteration
        return cast("Chunk", chunk)

    async def _next(self) -> Chunk | None:
        if self._chunks is None:
            self._chunks = aiter(self._stream)
        return await anext(self._chunks, None)
