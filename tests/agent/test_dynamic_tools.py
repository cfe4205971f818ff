"""Tools that are not available in every run, or at every step."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, ToolDefinition, tool
from dragoman.agent import RunContext
from dragoman.errors import InvalidInputError
from tests.agent.scripts import asks, call, model, weather


@tool
def clock() -> str:
    """The time."""
    return "noon"


def names(agent: Agent[Any, Any]) -> list[list[str]]:
    """The tools offered to the model, by request."""
    requests: Any = agent.model.requests  # type: ignore[attr-defined]
    return [[each.name for each in request.tools] for request in requests]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_provides_the_tools(is_async: bool) -> None:
    """It is called before each request with the current run; other tools can't be called."""

    def tools(run: RunContext[str]) -> list[Any]:
        return [weather] if run.step > 1 or run.deps == "abroad" else [clock]

    async def tools_soon(run: RunContext[str]) -> list[Any]:
        return tools(run)

    script = [asks(call("clock", "a"), call("weather", "b", city="Basel")), "Rain."]
    agent = Agent(model(*script), dynamic_tools=tools_soon if is_async else tools)
    assert repr(agent) == "Agent(scripted:, 0+ tools)"
    result = await agent.send("Hi", deps="here")
    assert names(agent) == [["clock"], ["weather"]]
    told = result.messages[2].tool_results
    assert (told[0].text, told[1].is_error) == ("noon", True)
    assert "no tool named" in told[1].text


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_is_offered_only_if_enabled(is_async: bool) -> None:
    """A disabled tool is neither offered nor run."""

    def is_admin(run: RunContext[str]) -> bool:
        return run.deps == "admin"

    async def is_admin_soon(run: RunContext[str]) -> bool:
        return is_admin(run)

    @tool(enabled=is_admin_soon if is_async else is_admin)
    def delete() -> str:
        """Delete everything."""
        return "gone"

    @tool(enabled=False)
    def never() -> str:
        """Never there."""
        return ""

    script = [asks(call("delete")), "Done.", asks(call("delete")), "No."]
    agent = Agent(model(*script), tools=[weather, delete, never])
    admin = await agent.send("Delete", deps="admin")
    guest = await agent.send("Delete", deps="guest")
    assert admin.messages[2].tool_results[0].text == "gone"
    assert guest.messages[2].tool_results[0].is_error
    assert names(agent) == [["weather", "delete"]] * 2 + [["weather"]] * 2


async def test_pending_calls_use_the_tools_of_the_resumed_run() -> None:
    """Including those that the caller runs."""
    page = ToolDefinition("page", "Open a page.", {"type": "object", "properties": {}})
    script = model(asks(call("page", "a")), "Open.")
    agent = Agent(script, dynamic_tools=lambda _: [page, weather])
    waiting = await agent.send("Open")
    assert [each.name for each in waiting.deferred] == ["page"]
    done = await agent.send(history=waiting.messages, results={"a": "opened"})
    assert done.output == "Open."


async def test_a_typed_run_has_them_too() -> None:
    """Beside the output tool."""
    script = [asks(call("clock", "a")), asks(call("return_result", "b", result=12))]
    agent = Agent(model(*script), dynamic_tools=lambda run: [clock] if run.step < 2 else [])
    assert (await agent.send("How late?", output=int)).output == 12
    assert names(agent) == [["clock", "return_result"], ["return_result"]]


async def test_dynamic_tools_are_added_to_the_others() -> None:
    """After the static ones; names must be distinct."""
    agent = Agent(model("Hi."), tools=[weather], dynamic_tools=lambda run: [clock])  # noqa: ARG005 - a run's
    await agent.send("Hi")
    assert names(agent) == [["weather", "clock"]]
    again = Agent(model("Hi."), tools=[weather], dynamic_tools=lambda run: [weather])  # noqa: ARG005 - a run's
    with pytest.raises(InvalidInputError, match="two tools named"):
        await again.send("Hi")


async def test_an_invalid_result_of_dynamic_tools_raises() -> None:
    """The result is read like `tools`; a value that is no function is rejected immediately."""

    def wrong(_run: RunContext) -> Any:
        return "weather"

    with pytest.raises(InvalidInputError, match="list of functions"):
        await Agent(model("Hi."), dynamic_tools=wrong).send("Hi")
    with pytest.raises(InvalidInputError, match="dynamic_tools must be a function"):
        Agent(model("Hi."), dynamic_tools=[weather])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_enabled_is_a_function_or_a_bool() -> None:
    """Nothing else."""
    with pytest.raises(InvalidInputError, match="enabled"):
        tool(enabled="yes")(clock.function)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
