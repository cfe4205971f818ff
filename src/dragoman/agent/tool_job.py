"""Runs one tool call: validates arguments, calls the function, converts its result."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple

from dragoman.agent import failures
from dragoman.agent.context import Context, RunContext
from dragoman.agent.thread_pool import in_thread
from dragoman.agent.tool_results import result_of
from dragoman.errors import InvalidInputError, ToolTimeout
from dragoman.model.functions.tool import Tool
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.tracing.spans import ToolRun
from dragoman.tracing.switch import tracer
from dragoman.wire.cut_calls import is_unfinished
from dragoman.wire.text_tools import TEXT_ARGUMENT


class Job(NamedTuple):
    """A call that can be run."""

    call: ToolCall
    tool: Tool[..., Any]
    arguments: dict[str, Any]


class Jobs(NamedTuple):
    """The tools and options for running calls."""

    tools: Mapping[str, Tool[..., Any]]
    context: RunContext[Any] | None
    timeout: float | None

    def prepared(self, call: ToolCall) -> Job | ToolResult:
        """The call, ready to run; or an error result that says why it can't be."""
        tool = self.tools.get(call.name)
        if tool is None:
            return failures.unknown(call, self.tools)
        is_custom = tool.definition.kind == "custom"
        given = None if is_custom else call.object_arguments()
        # A text that came as the argument of a function may be cut off (I7).
        if is_unfinished(call) if is_custom else given is None:
            return failures.unreadable(call)
        try:
            arguments = _text_argument(call, tool) if given is None else tool.validate(given)
        except Exception as error:  # noqa: BLE001 - types of the user's read the arguments
            return failures.unfit(call, error)
        if tool.injected:
            context = self.context or RunContext(deps=None)
            arguments.update(dict.fromkeys(tool.injected, context.for_call(call)))
        return Job(call, tool, arguments)

    def concurrency(self, call: ToolCall) -> int | None:
        """Maximum concurrent calls of the same tool; None: unlimited."""
        tool = self.tools.get(call.name)
        return None if tool is None else tool.concurrency

    async def run(self, job: Job) -> ToolResult:
        """Run a job, and return its result.

        Raises only if we are cancelled or closed, or the program is to end.
        """
        task = asyncio.current_task()
        cancels = task.cancelling() if task else 0
        making = tracer()
        if making is None:
            result = await self._outcome(job, task)
        else:
            with ToolRun(making, job.call, job.tool.definition) as traced:
                result = await self._outcome(job, task)
                traced.ended(result)
        if task is not None and task.cancelling() > cancels:
            raise asyncio.CancelledError  # it was meant for us, and the tool swallowed it
        return result

    async def _outcome(self, job: Job, task: asyncio.Task[Any] | None) -> ToolResult:
        seconds = self.timeout if job.tool.timeout is None else job.tool.timeout
        timer: asyncio.Timeout | None = None
        try:
            if seconds is None:
                return await _returned(job)
            async with asyncio.timeout(seconds) as timer:
                return await _returned(job)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            is_cancelled = task is None or task.cancelling() > 0
            if is_cancelled and isinstance(error, asyncio.CancelledError):
                raise  # it came from outside, through the tool
            if timer is not None and timer.expired():
                return failures.late(job.call, seconds or 0)
            return failures.failed(job.call, error)


async def returned(tool: Tool[..., Any, Any], arguments: dict[str, Any], run: Context) -> Any:
    """Call a function with valid arguments, and return its result; it may raise anything."""
    given = {**arguments, **dict.fromkeys(tool.injected, run)}
    timer = asyncio.timeout(tool.timeout)
    try:
        async with timer:
            value = tool(**given) if tool.is_async else await in_thread(tool, **given)
            return await value if inspect.isawaitable(value) else value
    except TimeoutError:
        if not timer.expired():  # another timeout
            raise
    msg = f"the output function `{tool.name}` timed out after {tool.timeout:g} seconds"
    raise ToolTimeout(msg)


async def _returned(job: Job) -> ToolResult:
    call, tool, arguments = job
    if tool.is_async:
        return result_of(call, await tool(**arguments))
    returned = await in_thread(_called, job)
    return returned if isinstance(returned, ToolResult) else result_of(call, await returned)


def _called(job: Job) -> ToolResult | Awaitable[Any]:
    """The result, converted on the same thread: the value may be tied to it, or slow to read."""
    value = job.tool(**job.arguments)
    return value if inspect.isawaitable(value) else result_of(job.call, value)


def _text_argument(call: ToolCall, tool: Tool[..., Any]) -> dict[str, Any]:
    """The text of a free-text call, as the one parameter that takes it."""
    text = call.raw_arguments
    given = None if call.kind == "custom" else call.object_arguments()
    if given is not None and given.keys() == {TEXT_ARGUMENT}:
        # If a dialect has no free-text tools, the model was told to put the text there.
        text = str(given[TEXT_ARGUMENT])
    return {_text_parameter(tool): text}


def _text_parameter(tool: Tool[..., Any]) -> str:
    parameters = inspect.signature(tool.function).parameters.values()
    open_ones = [each for each in parameters if each.name not in tool.injected]
    required = [each for each in open_ones if each.default is each.empty]
    if not open_ones:
        msg = f"the function of the free-text tool `{tool.name}` has no parameter for the text"
        raise InvalidInputError(msg)
    return (required or open_ones)[0].name
