"""Several calls at once, and what happens to them, one event at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from time import perf_counter
from typing import NamedTuple

from dragoman.agent import failures
from dragoman.agent.events import ToolFinished, ToolStarted
from dragoman.agent.jobs import Job, Jobs
from dragoman.model.tools import ToolCall, ToolResult


class _Running(NamedTuple):
    place: int
    call: ToolCall
    begun: float


class _Exit(NamedTuple):
    """What ends the program. A task that raised it would end the loop before we clean up."""

    error: BaseException


class Batch:
    """Calls that run side by side, as many at a time as there may be."""

    def __init__(self, calls: Sequence[ToolCall], jobs: Jobs, limit: int | None) -> None:
        self._jobs = jobs
        self._limit = len(calls) if limit is None else limit
        self._waiting = deque(enumerate(calls))
        self._running: dict[asyncio.Task[ToolResult | _Exit], _Running] = {}
        self._results: dict[int, ToolResult] = {}
        self._finished: deque[ToolFinished] = deque()
        self._fatal: BaseException | None = None
        self._news: asyncio.Future[None] | None = None

    async def results(self) -> list[ToolResult]:
        """All results, in the order of the calls."""
        async for _ in self.events():
            pass
        return [self._results[place] for place in sorted(self._results)]

    async def events(self) -> AsyncGenerator[ToolStarted | ToolFinished]:
        """What happens, as it happens. A tool begins after its `ToolStarted` was taken note of."""
        try:
            while True:
                while self._finished:
                    yield self._finished.popleft()
                if self._fatal is not None:
                    raise self._fatal
                if self._waiting and len(self._running) < self._limit:
                    place, call = self._waiting.popleft()
                    job = self._jobs.prepared(call)
                    if isinstance(job, ToolResult):
                        self._settle(place, call, job)
                    else:
                        yield ToolStarted(call)
                        self._start(place, job)
                elif self._running:
                    await self._wait()
                else:
                    return
        finally:
            await self._stop()

    def _start(self, place: int, job: Job) -> None:
        task = asyncio.create_task(self._run(job))
        self._running[task] = _Running(place, job.call, perf_counter())
        task.add_done_callback(self._ended)

    async def _run(self, job: Job) -> ToolResult | _Exit:
        try:
            return await self._jobs.run(job)
        except (KeyboardInterrupt, SystemExit) as error:
            return _Exit(error)

    def _ended(self, task: asyncio.Task[ToolResult | _Exit]) -> None:
        place, call, begun = self._running.pop(task)
        if task.cancelled():  # by the tool itself, by a stranger, or by `_stop`
            outcome: ToolResult | _Exit = failures.cancelled(call)
        else:
            error = task.exception()
            outcome = task.result() if error is None else _Exit(error)
        if isinstance(outcome, _Exit):
            self._fatal = outcome.error
        else:
            self._settle(place, call, outcome, perf_counter() - begun)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _settle(self, place: int, call: ToolCall, result: ToolResult, seconds: float = 0.0) -> None:
        self._results[place] = result
        self._finished.append(ToolFinished(call, result, seconds))

    async def _wait(self) -> None:
        """Until a task has ended."""
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    async def _stop(self) -> None:
        """Cancel what still runs, and wait for it, however often we are cancelled meanwhile."""
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
