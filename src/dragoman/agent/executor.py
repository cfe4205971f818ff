"""`ToolExecutor`: runs the calls of an answer, and makes a result of whatever comes of them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from dragoman.agent.concurrent_calls import Batch, Inbox, Listener, one_by_one
from dragoman.agent.context import RunContext
from dragoman.agent.emitting import emitted, events_of
from dragoman.agent.events import ToolFinished, ToolStarted
from dragoman.agent.result_size import bounded
from dragoman.agent.tool_job import Jobs
from dragoman.errors import InvalidInputError
from dragoman.model.functions.tool import Tool
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import expect, expect_number

_Bounded = Callable[[ToolCall, ToolResult], ToolResult]

MAX_CHARS = 400_000
"""About 100,000 tokens: more leaves no room for the conversation in most models."""
MAX_MEDIA_BYTES = 32 * 1024 * 1024
"""About what the largest request has room for that any provider takes."""


class ToolExecutor:
    """Runs tools: up to `limit` at a time (1: one after the other), each for `timeout` seconds.

    A result of more than `max_chars` characters (of text, or of data as JSON), or of more than
    `max_media_bytes`, is not shown, nor cut: the model is told how large it is, and what it may be.

    Async functions run on the loop, others on threads. Nothing that a tool does is raised here:
    exceptions, unknown tools and arguments that don't fit become error results, which tell the
    model what to do. Only what ends the program (`KeyboardInterrupt`, `SystemExit`) gets out, when
    the other tools have been cancelled and have ended.

    Who waits no longer than `timeout`, or is cancelled, leaves a thread behind that goes on until
    its function returns: Python has no way to stop it. It does not keep the program from exiting.
    """

    def __init__(
        self,
        *,
        limit: int | None = 8,
        timeout: float | None = None,
        max_chars: int | None = MAX_CHARS,
        max_media_bytes: int | None = MAX_MEDIA_BYTES,
    ) -> None:
        _check_options(limit, timeout)
        _check_size(max_chars, "max_chars")
        _check_size(max_media_bytes, "max_media_bytes")
        self.limit = limit
        """How many tools run at a time; None: as many as there are calls."""
        self.timeout = timeout
        """Seconds that a tool may take which has no `timeout` of its own; None: any."""
        self.max_chars = max_chars
        """Characters that a result may have of a tool with no `max_chars` of its own; None: any."""
        self.max_media_bytes = max_media_bytes
        """Bytes that the pictures and other media of a result may have together; None: any."""

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
        run = self._run if self._is_executed_elsewhere else self.run
        telling = _Telling(partial(self.bounded, tools=tools))
        return events_of(lambda: run(calls, tools, context, telling))

    async def execute_batch(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None = None,
    ) -> list[ToolResult]:
        """Run the calls; the results are in the order of the calls."""
        _check(calls, tools, context)
        collecting = _Collecting(partial(self.bounded, tools=tools))
        await self.run(calls, tools, context, collecting)
        return [collecting.results[id(call)].popleft() for call in calls]

    async def run(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None,
        listener: Listener,
    ) -> None:
        """Run the calls; the listener is told what happens. It is what agents call.

        Results are as they are: `bounded` is for who has looked at them. An executor of one's own
        overrides this, or `execute`.
        """
        if self._is_executed_elsewhere:
            await _listened(self.execute(calls, tools, context), listener)
        else:
            await self._run(calls, tools, context, listener)

    @property
    def _is_executed_elsewhere(self) -> bool:
        """Whether somebody has written an `execute` of their own, which agents are to use."""
        return type(self).execute is not ToolExecutor.execute

    async def _run(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None,
        listener: Listener,
    ) -> None:
        jobs = Jobs(tools, context, self.timeout)
        inbox: Inbox | None = getattr(listener, "inbox", None)  # of a run: tools may ask agents
        if inbox is None and (self.limit == 1 or len(calls) == 1):
            await one_by_one(calls, jobs, listener)
        elif calls:
            await Batch(calls, jobs, self.limit, listener, inbox).run()

    def bounded(
        self, call: ToolCall, result: ToolResult, tools: Mapping[str, Tool[..., Any]]
    ) -> ToolResult:
        """The result of a call; or an error result that says so, where it is too large."""
        tool = tools.get(call.name)
        return bounded(call, result, tool, self.max_chars, self.max_media_bytes)

    def __repr__(self) -> str:
        return f"ToolExecutor(limit={self.limit}, timeout={self.timeout})"


async def _listened(events: AsyncGenerator[ToolStarted | ToolFinished], listener: Listener) -> None:
    """Tell a listener of events, one at a time."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ToolStarted):
                await listener.starting(event, (event.call,))
            else:
                await listener.finished((event,), ())


class _Telling:
    """Tells whoever goes through the events."""

    def __init__(self, bounded: _Bounded) -> None:
        self._bounded = bounded

    async def starting(self, started: ToolStarted, batch: Iterable[ToolCall]) -> None:  # noqa: ARG002 - a listener's
        await emitted(started)

    async def finished(self, events: Sequence[ToolFinished], batch: Iterable[ToolCall]) -> None:  # noqa: ARG002 - a listener's
        for event in events:
            await emitted(replace(event, result=self._bounded(event.call, event.result)))


class _Collecting:
    """Keeps the results, by the identity of their calls; one may be there several times."""

    def __init__(self, bounded: _Bounded) -> None:
        self._bounded = bounded
        self.results: defaultdict[int, deque[ToolResult]] = defaultdict(deque)

    async def starting(self, started: ToolStarted, batch: Iterable[ToolCall]) -> None:
        pass

    async def finished(self, events: Sequence[ToolFinished], batch: Iterable[ToolCall]) -> None:  # noqa: ARG002 - a listener's
        for event in events:
            self.results[id(event.call)].append(self._bounded(event.call, event.result))


def _check_size(value: object, what: str) -> None:
    if value is not None and (type(value) is not int or value < 1):
        msg = f"{what} of results must be a whole number from 1 on, or None"
        raise InvalidInputError(msg)


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
