"""`ToolExecutor`: runs the calls of an answer, and makes a result of whatever comes of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from time import perf_counter
from typing import Any

from dragoman.agent.batches import Batch
from dragoman.agent.context import RunContext
from dragoman.agent.events import ToolFinished, ToolStarted
from dragoman.agent.jobs import Jobs
from dragoman.errors import InvalidInputError
from dragoman.model.functions.tool import Tool
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import expect, expect_number


class ToolExecutor:
    """Runs tools: up to `limit` at a time (1: one after the other), each for `timeout` seconds.

    Async functions run on the loop, others on threads. Nothing that a tool does is raised here:
    exceptions, unknown tools and arguments that don't fit become error results, which tell the
    model what to do. Only what ends the program (`KeyboardInterrupt`, `SystemExit`) gets out, when
    the other tools have been cancelled and have ended.

    Who waits no longer than `timeout`, or is cancelled, leaves a thread behind that goes on until
    its function returns: Python has no way to stop it. It does not keep the program from exiting.
    """

    def __init__(self, *, limit: int | None = 8, timeout: float | None = None) -> None:
        _check_options(limit, timeout)
        self.limit = limit
        """How many tools run at a time; None: as many as there are calls."""
        self.timeout = timeout
        """Seconds that a tool may take which has no `timeout` of its own; None: any."""

    def runs_at_once(self, count: int) -> bool:
        """Whether that many calls would all be begun at once."""
        return self.limit is None or count <= self.limit

    def execute(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[ToolStarted | ToolFinished]:
        """Run the calls; the events come as they happen.

        A tool begins when its `ToolStarted` has been taken and the next event is asked for. A call
        that can't be run has a `ToolFinished` only. Closing the generator cancels what runs and
        waits for its end.
        """
        _check(calls, tools, context)
        jobs = Jobs(tools, context, self.timeout)
        if self._is_sequential(calls):
            return _one_by_one(calls, jobs)
        return Batch(calls, jobs, self.limit).events()

    async def execute_batch(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None = None,
    ) -> list[ToolResult]:
        """Run the calls; the results are in the order of the calls."""
        _check(calls, tools, context)
        jobs = Jobs(tools, context, self.timeout)
        if self._is_sequential(calls):
            return [await jobs.result(call) for call in calls]
        return await Batch(calls, jobs, self.limit).results()

    def _is_sequential(self, calls: Sequence[ToolCall]) -> bool:
        return self.limit == 1 or len(calls) == 1

    def __repr__(self) -> str:
        return f"ToolExecutor(limit={self.limit}, timeout={self.timeout})"


async def _one_by_one(
    calls: Sequence[ToolCall], jobs: Jobs
) -> AsyncGenerator[ToolStarted | ToolFinished]:
    for call in calls:
        job = jobs.prepared(call)
        if isinstance(job, ToolResult):
            yield ToolFinished(call, job)
            continue
        yield ToolStarted(call)
        begun = perf_counter()
        result = await jobs.run(job)
        yield ToolFinished(call, result, perf_counter() - begun)


def _check(calls: object, tools: object, context: object) -> None:
    if not isinstance(calls, (list, tuple)):
        expect(calls, Sequence, "the calls to execute")
    for call in calls:  # type: ignore[attr-defined]  # it is a sequence
        if not isinstance(call, ToolCall):
            expect(call, ToolCall, "a call to execute")
        if type(tools) is not dict:
            expect(tools, Mapping, "the tools to execute")
        tool = tools.get(call.name)  # type: ignore[attr-defined]  # it is a mapping
        if tool is not None and not isinstance(tool, Tool):
            expect(tool, Tool, f"the tool `{call.name}` (a function becomes one by @tool)")
    if context is not None and not isinstance(context, RunContext):
        expect(context, RunContext, "the context of a run")


def _check_options(limit: object, timeout: object) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        msg = "the limit of tools that run at a time must be a whole number from 1 on, or None"
        raise InvalidInputError(msg)
    expect_number(timeout, "the timeout of tools")
    if timeout is not None and not timeout > 0:  # type: ignore[operator]  # it is a number
        msg = "the timeout of tools must be more than 0 seconds"
        raise InvalidInputError(msg)
