"""`ToolExecutor`: runs tool calls, and turns every outcome into a result."""

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
"""About 100,000 tokens: more would fill the context window of most models."""
MAX_MEDIA_BYTES = 32 * 1024 * 1024
"""About the maximum size of a request at any provider."""


class ToolExecutor:
    """Runs up to `limit` tools concurrently (1: sequentially), each for up to `timeout` seconds.

    A result of more than `max_chars` characters (of text, or of data as JSON) or `max_media_bytes`
    is replaced, not truncated: the model is told its size and the limit.

    Async functions run on the event loop, others on threads. Failures of tools are not raised:
    exceptions, unknown tools and invalid arguments become error results, which tell the model what
    to do. Only `KeyboardInterrupt` and `SystemExit` propagate, after the other tools have been
    cancelled and have ended.

    After a timeout or a cancellation, a thread keeps running until its function returns, because
    Python can't stop it. It doesn't keep the program from exiting.
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
        """Maximum number of concurrent tools; None: unlimited."""
        self.timeout = timeout
        """Timeout in seconds for tools without a `timeout` of their own; None: unlimited."""
        self.max_chars = max_chars
        """Maximum characters per result, for tools without `max_chars`; None: unlimited."""
        self.max_media_bytes = max_media_bytes
        """Maximum total bytes of media per result; None: unlimited."""

    def runs_at_once(self, count: int) -> bool:
        """Whether that many calls would all start at once."""
        return self.limit is None or count <= self.limit

    def execute(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[ToolStarted | ToolFinished]:
        """Run the calls and yield events as they happen.

        A tool starts when its `ToolStarted` has been taken and the next event is requested. A call
        that can't be run only has a `ToolFinished`. Closing the generator cancels running tools and
        waits for them.
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
        """Run the calls; returns the results in the order of the calls."""
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
        """Run the calls and report to the listener. This is what agents call.

        Results are not limited in size here; `bounded` does that after hooks have seen them. A
        custom executor overrides this, or `execute`.
        """
        if self._is_executed_elsewhere:
            await _listened(self.execute(calls, tools, context), listener)
        else:
            await self._run(calls, tools, context, listener)

    @property
    def _is_executed_elsewhere(self) -> bool:
        """Whether a subclass overrides `execute`, which agents then use."""
        return type(self).execute is not ToolExecutor.execute

    async def _run(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None,
        listener: Listener,
    ) -> None:
        jobs = Jobs(tools, context, self.timeout)
        inbox: Inbox | None = getattr(listener, "inbox", None)  # of a run: tools may call agents
        if inbox is None and (self.limit == 1 or len(calls) == 1):
            await one_by_one(calls, jobs, listener)
        elif calls:
            await Batch(calls, jobs, self.limit, listener, inbox).run()

    def bounded(
        self, call: ToolCall, result: ToolResult, tools: Mapping[str, Tool[..., Any]]
    ) -> ToolResult:
        """The result of a call; an error result if it is too large."""
        tool = tools.get(call.name)
        return bounded(call, result, tool, self.max_chars, self.max_media_bytes)

    def __repr__(self) -> str:
        return f"ToolExecutor(limit={self.limit}, timeout={self.timeout})"


async def _listened(events: AsyncGenerator[ToolStarted | ToolFinished], listener: Listener) -> None:
    """Report events to a listener, one at a time."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ToolStarted):
                await listener.starting(event, (event.call,))
            else:
                await listener.finished((event,), ())


class _Telling:
    """Emits events to the code that iterates over them."""

    def __init__(self, bounded: _Bounded) -> None:
        self._bounded = bounded

    async def starting(self, started: ToolStarted, batch: Iterable[ToolCall]) -> None:  # noqa: ARG002 - a listener's
        await emitted(started)

    async def finished(self, events: Sequence[ToolFinished], batch: Iterable[ToolCall]) -> None:  # noqa: ARG002 - a listener's
        for event in events:
            await emitted(replace(event, result=self._bounded(event.call, event.result)))


class _Collecting:
    """Collects results by the identity of their calls; one call may occur several times."""

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
        msg = f"{what} of results must be a positive integer or None"
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
        msg = "the limit of concurrent tools must be a positive integer or None"
        raise InvalidInputError(msg)
    expect_number(timeout, "the timeout of tools")
    if timeout is not None and not timeout > 0:  # type: ignore[operator]  # it is a number
        msg = "the timeout of tools must be more than 0 seconds"
        raise InvalidInputError(msg)
