"""Tool results that are too large: the model gets an error, and nothing is truncated."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Image, ToolCall, ToolExecutor, tool
from dragoman.agent import Hooks, RunContext
from dragoman.errors import InvalidInputError
from dragoman.model.tools import ToolResult
from tests.agent.scripts import asks, call, model


@tool
def letters(count: int) -> str:
    """So many letters."""
    return "é" * count


@tool(max_chars=20)
def brief(count: int) -> str:
    """So many letters, at most 20."""
    return "x" * count


@tool
def rows(count: int) -> list[str]:
    """So many rows."""
    return ["é"] * count


@tool
def picture(size: int) -> Image:
    """A picture of so many bytes."""
    return Image.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(size - 8))


async def result(name: str, executor: ToolExecutor | None = None, **arguments: int) -> ToolResult:
    """The result that the model gets."""
    agent = Agent(
        model(asks(call(name, "a", **arguments)), "Done."),
        tools=[letters, brief, rows, picture],
        executor=executor,
    )
    return (await agent.send("Go")).messages[2].tool_results[0]


@pytest.mark.parametrize(
    ("name", "arguments", "size"),
    [
        ("letters", {"count": 101}, "101 characters"),
        ("rows", {"count": 30}, "121 characters"),
        ("brief", {"count": 21}, "21 characters"),
        ("picture", {"size": 3003}, "3,003 bytes of media"),
    ],
)
async def test_results_that_are_too_large_are_rejected(
    name: str, arguments: dict[str, int], size: str
) -> None:
    """The error has the size and the limit: for text, JSON, media, and a tool's own limit."""
    found = await result(name, ToolExecutor(max_chars=100, max_media_bytes=3000), **arguments)
    assert found.is_error
    assert f"it has {size}, and" in found.text
    assert "are the limit. Nothing of it is shown" in found.text
    assert "é" not in found.text
    assert found.call_id == "a"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("letters", {"count": 100}), ("rows", {"count": 20}), ("brief", {"count": 20}),
     ("picture", {"size": 3000})],
)  # fmt: skip
async def test_a_result_of_exactly_the_limit_is_accepted(
    name: str, arguments: dict[str, int]
) -> None:
    """Characters count, not bytes."""
    executor = ToolExecutor(max_chars=100, max_media_bytes=3000)
    assert not (await result(name, executor, **arguments)).is_error


async def test_there_is_a_default_limit() -> None:
    """It can be removed."""
    assert (await result("letters", count=400_001)).is_error
    assert not (await result("letters", count=400_000)).is_error
    assert not (await result("letters", ToolExecutor(max_chars=None), count=400_001)).is_error


async def test_a_hook_may_shorten_it_first() -> None:
    """The limit applies to what the model would get."""

    def shorten(call: ToolCall, result: ToolResult, _run: RunContext) -> ToolResult:
        return ToolResult.success(call.id, result.text[:3])

    agent = Agent(
        model(asks(call("letters", count=500)), "Done."),
        tools=[letters],
        hooks=Hooks(after_tool_call=shorten),
        executor=ToolExecutor(max_chars=10),
    )
    assert (await agent.send("Go")).messages[2].tool_results[0].text == "ééé"


async def test_the_limit_applies_without_an_agent() -> None:
    """To everything that an executor runs."""
    executor = ToolExecutor(max_chars=10)
    calls = [call("letters", "a", count=11), call("letters", "b", count=10)]
    tools: Any = {"letters": letters}
    first, second = await executor.execute_batch(calls, tools)
    assert (first.is_error, second.text) == (True, "é" * 10)
    told = [event async for event in executor.execute(calls[:1], tools)]
    assert told[-1].result.is_error  # type: ignore[union-attr]  # it has ended


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many"])
def test_a_limit_is_an_integer(value: Any) -> None:
    """Of a tool, and of the executor."""
    for make in (
        lambda: ToolExecutor(max_chars=value),
        lambda: ToolExecutor(max_media_bytes=value),
        lambda: tool(max_chars=value)(letters.function),
    ):
        with pytest.raises(InvalidInputError, match=r"positive integer|integer of at least 1"):
            make()
