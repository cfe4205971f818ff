"""Toolsets: sources of tools that are queried before each request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dragoman import Agent, RunContext, tool
from dragoman.agent import Toolset
from dragoman.errors import ConnectError, InvalidInputError
from dragoman.model.functions.tool import Tool
from tests.agent.scripts import asks, call, model, weather
from tests.agent.test_dynamic_tools import names


@tool
def clock() -> str:
    """The time."""
    return "noon"


class Growing:
    """One tool at first, then two."""

    def __init__(self, *tools: Any) -> None:
        self.offers = [*tools]
        self.asked: list[int] = []
        self.released = 0

    async def tools(self, run: RunContext[Any], /) -> Iterable[Tool[..., Any, Any]]:
        """As many as steps were made."""
        self.asked.append(run.step)
        return self.offers[: max(1, run.step)]

    async def release(self) -> None:
        """It is told."""
        self.released += 1


async def test_a_toolset_is_queried_before_each_request() -> None:
    """New tools can be called in the same run; beside tools and other toolsets."""

    def own() -> str:
        """Mine."""
        return "mine"

    growing: Toolset = Growing(clock, weather)
    script = [asks(call("clock")), asks(call("weather", "b", city="Basel")), "Rain."]
    agent = Agent(model(*script), tools=[own, growing, Growing()])
    assert repr(agent) == "Agent(scripted:, 1+ tools)"
    result = await agent.send("Hi")
    assert names(agent)[0] == ["own", "clock"]
    assert names(agent)[1] == names(agent)[2] == ["own", "clock", "weather"]
    assert result.messages[4].tool_results[0].text == "rain in Basel"


async def test_the_first_tool_of_a_name_is_used(caplog: Any) -> None:
    """The agent's tools come before those of toolsets, in order."""

    @tool(name="clock")
    def other() -> str:
        """Another time."""
        return "midnight"

    agent = Agent(
        model(asks(call("clock"), call("weather", "b", city="Rome")), "Done."),
        tools=[Growing(other), Growing(weather), Growing(weather), clock],
    )
    result = await agent.send("Hi")
    told = [each.text for each in result.messages[2].tool_results]
    assert told == ["noon", "rain in Rome"]
    assert len([each for each in caplog.records if "left out" in each.message]) >= 2


async def test_a_failing_toolset_ends_the_run_with_its_error() -> None:
    """Alone, or beside others that work."""

    class Gone:
        async def tools(self, _run: RunContext[Any], /) -> Iterable[Any]:
            msg = "it is gone"
            raise ConnectError(msg)

    for tools in ([Gone()], [Growing(clock), Gone()]):
        toolsets: list[Toolset] = [*tools]
        with pytest.raises(ConnectError, match="it is gone"):
            await Agent(model("Hi."), tools=toolsets).send("Hi")


async def test_a_toolset_must_return_tools() -> None:
    """Anything else is rejected, and the error names the type."""
    with pytest.raises(
        InvalidInputError, match="a toolset must return tools made with @tool, not int"
    ):
        await Agent(model("Hi."), tools=[Growing(7)]).send("Hi")


async def test_closing_an_agent_releases_its_toolsets() -> None:
    """Those with a `release` method."""

    class Plain:
        async def tools(self, _run: RunContext[Any], /) -> Iterable[Any]:
            return ()

    growing = Growing()
    async with Agent(model("Hi."), tools=[growing, Plain()]) as agent:
        await agent.send("Hi")
    assert growing.released == 1


async def test_toolsets_from_dynamic_tools_are_queried_too() -> None:
    """A function may return one as well."""
    agent = Agent(model("Hi."), dynamic_tools=lambda _run: [Growing(clock)], tools=[weather])
    await agent.send("Hi")
    assert names(agent) == [["weather", "clock"]]
