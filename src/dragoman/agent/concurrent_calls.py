"""Runs several tool calls, sequentially or concurrently, and reports their progress."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from time import perf_counter
from typing import NamedTuple, Protocol

from dragoman.agent import failures
from dragoman.agent.events import AgentEvent, ToolFinished, ToolStarted
from dragoman.agent.tool_job import Job, Jobs
from dragoman.model.tools import ToolCall, ToolResult


class Listener(Protocol):
    """Receives the progress of calls. Nothing else starts until its methods return."""

    async def starting(self, started: ToolStarted, batch: Iterable[ToolCall]) -> None:
        """A tool starts when this returns; `batch` is it and all calls that start with it."""

    async def finished(self, events: Sequence[ToolFinished], batch: Iterable[ToolCall]) -> None:
        """Tools have ended, or could not be run; `batch` starts next."""


class Inbox:
    """Passes events of agents called by tools into the run; usable from any task or thread."""

    def __init__(self, emit: Callable[[AgentEvent], Awaitable[None]]) -> None:
        self._emit = emit
        self.wake: Callable[[], None] | None = None
        """Called on the run's event loop when there are new events."""
        self._loop = asyncio.get_running_loop()
        self._events: deque[AgentEvent] = deque()

    def put(self, event: AgentEvent) -> None:
        """Add an event; it is emitted once the consumer of the run has taken the earlier ones."""
        self._events.append(event)
        with suppress(RuntimeError):  # an abandoned thread: the loop has ended
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if self.wake is not None:
            self.wake()

    async def emit(self) -> None:
        """Emit all pending events in order; to be awaited by the run itself."""
        while self._events:
            await self._emit(self._events.popleft())


async def one_by_one(calls: Sequence[ToolCall], jobs: Jobs, listener: Listener) -> None:
    """Run calls one after the other, in the current task."""
    for place, call in enumerate(calls):
        job, seconds = jobs.prepared(call), 0.0
        if isinstance(job, ToolResult):
            result = job
        else:
            await listener.starting(ToolStarted(call), (call,))
            begun = perf_counter()
            result = await jobs.run(job)
            seconds = perf_counter() - begun
        following = calls[place + 1 : place + 2]
        await listener.finished((ToolFinished(call, result, seconds),), following)


class _Exit(NamedTuple):
    """An exception that ends the program. In a task, it would end the loop before cleanup."""

    error: BaseException


class _Running(NamedTuple):
    call: ToolCall
    begun: float


class Batch:
    """Calls that run concurrently, up to a limit."""

    def __init__(
        self,
        calls: Sequence[ToolCall],
        jobs: Jobs,
        limit: int | None,
        listener: Listener,
        inbox: Inbox | None = None,
    ) -> None:
        self._jobs = jobs
        self._limit = len(calls) if limit is None else limit
        self._listener = listener
        self._waiting = OrderedDict(enumerate(calls))
        self._busy: Counter[str] = Counter()  # running calls, by tool name
        self._is_free = all(jobs.concurrency(call) is None for call in calls)
        self._running: dict[asyncio.Task[ToolResult | _Exit], _Running] = {}
        self._finished: list[ToolFinished] = []
        self._fatal: BaseException | None = None
        self._news: asyncio.Future[None] | None = None
        self._inbox = inbox
        if inbox is not None:
            inbox.wake = self._wake

    async def run(self) -> None:
        """Run all calls. Those that end while the listener is busy are reported together."""
        try:
            while True:
                if self._inbox is not None:
                    await self._inbox.emit()
                if self._finished:
                    events, self._finished = self._finished, []
                    await self._listener.finished(events, self._next())
                elif self._fatal is not None:
                    raise self._fatal
                elif (place := next(self._startable(), None)) is not None:
                    await self._begin(place)
                elif self._running:
                    await self._wait()
                else:
                    return
        finally:
            await self._stop()

    def _next(self) -> Iterable[ToolCall]:
        """The calls that can start now."""
        return (self._waiting[place] for place in self._startable())

    def _startable(self) -> Iterator[int]:
        """The indexes of the calls that can start, within the total limit and their tool's."""
        room = self._limit - len(self._running)
        places = self._waiting if self._is_free else self._places_by_tool()
        return islice(places, room)

    def _places_by_tool(self) -> Iterator[int]:
        busy = self._busy.copy()
        for place, call in self._waiting.items():
            most = self._jobs.concurrency(call)
            if most is None or busy[call.name] < most:
                busy[call.name] += 1
                yield place

    async def _begin(self, place: int) -> None:
        call = self._waiting[place]
        job = self._jobs.prepared(call)
        if isinstance(job, ToolResult):
            self._finished.append(ToolFinished(call, job))
        else:
            await self._listener.starting(ToolStarted(call), self._next())
            self._start(job)
        del self._waiting[place]

    def _start(self, job: Job) -> None:
        task = asyncio.create_task(self._run(job))
        self._running[task] = _Running(job.call, perf_counter())
        self._busy[job.call.name] += 1
        task.add_done_callback(self._ended)

    async def _run(self, job: Job) -> ToolResult | _Exit:
        try:
            return await self._jobs.run(job)
        except (KeyboardInterrupt, SystemExit) as error:
            return _Exit(error)

    def _ended(self, task: asyncio.Task[ToolResult | _Exit]) -> None:
        call, begun = self._running.pop(task)
        self._busy[call.name] -= 1
        if task.cancelled():  # by the tool itself, by other code, or by `_stop`
            outcome: ToolResult | _Exit = failures.cancelled(call)
        else:
            error = task.exception()
            outcome = task.result() if error is None else _Exit(error)
        if isinstance(outcome, _Exit):
            self._fatal = outcome.error
        else:
            self._finished.append(ToolFinished(call, outcome, perf_counter() - begun))
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _wait(self) -> None:
        """Wait until a task has ended, or there are new events in the inbox."""
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    async def _stop(self) -> None:
        """Cancel the running tasks and wait for them, however often we are cancelled meanwhile."""
        cancelled: asyncio.CancelledError | None = None
        self._cancel()
        while self._running:
            try:
                await self._wait()
            except asyncio.CancelledError as error:
                cancelled = error
                self._cancel()
        if cancelled is not None:
            raise cancelled

    def _cancel(self) -> None:
        for task in self._running:
            task.cancel()
