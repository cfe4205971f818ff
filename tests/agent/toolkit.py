"""Tools and calls for the tests of the executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import pytest

from dragoman.agent.events import ToolFinished, ToolStarted
from dragoman.agent.executor import ToolExecutor
from dragoman.model.functions.tool import Tool, tool
from dragoman.model.tools import ToolCall, ToolResult

T = TypeVar("T")
Tools = dict[str, Tool[..., Any]]


def tools_of(*functions: Any) -> Tools:
    """Tools by name."""
    made = [each if isinstance(each, Tool) else tool_of(each) for each in functions]
    return {each.name: each for each in made}


def tool_of(function: Callable[..., Any], **options: Any) -> Tool[..., Any]:
    """A tool of a function without a docstring."""
    return tool(description="Does it.", **options)(function)


def call_of(name: str, id: str = "c1", **arguments: Any) -> ToolCall:
    """A call with these arguments."""
    return ToolCall.create(id, name, arguments)


def results_of(calls: Sequence[ToolCall], tools: Tools, **options: Any) -> list[ToolResult]:
    """The results of these calls in an executor with these options."""
    return asyncio.run(ToolExecutor(**options).execute_batch(calls, tools))


def result_of_one(function: Any, **options: Any) -> ToolResult:
    """The result of calling a function without arguments."""
    tools = tools_of(function)
    (result,) = results_of([call_of(next(iter(tools)))], tools, **options)
    return result


async def events_of(
    calls: Sequence[ToolCall], tools: Tools, **options: Any
) -> list[ToolStarted | ToolFinished]:
    """All events."""
    return [each async for each in ToolExecutor(**options).execute(calls, tools)]


def is_alone() -> bool:
    """Whether no other task is left."""
    return asyncio.all_tasks() == {asyncio.current_task()}


async def echo(word: str) -> str:
    """Say it again."""
    await asyncio.sleep(0)
    return word


def shout(word: str) -> str:
    """Say it louder."""
    return word.upper()


async def forever() -> None:
    """Never ends by itself."""
    await asyncio.Event().wait()


def raising(error: BaseException) -> Callable[[], Any]:
    """An async function that raises this."""

    async def raises() -> NoReturn:
        raise error

    return raises


def raising_on_a_thread(error: BaseException) -> Callable[[], Any]:
    """A plain function that raises this."""

    def raises() -> NoReturn:
        raise error

    return raises


RAISERS = pytest.mark.parametrize("raiser", [raising, raising_on_a_thread])
"""Runs a test with functions of both kinds."""
