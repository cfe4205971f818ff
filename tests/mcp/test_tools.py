"""A server's tools in an agent: definitions, calls and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer as SdkServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

from dragoman import Agent, Message, Request, Response, dialect, dialects, tool
from dragoman.errors import InvalidInputError
from dragoman.mcp import MCPServer, MCPTool
from dragoman.model.responses import Choice
from dragoman.model.tools import make_result
from dragoman.testing import ScriptedModel
from tests.mcp.servers import Scripted, calling, in_process, text_result, tools_listed


class Forecast(BaseModel):
    """What the weather will be."""

    city: str
    days: int


def weather_server() -> SdkServer:
    """Two tools: one with a schema of its results, one that says that it destroys."""
    server = SdkServer("weather")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def forecast(city: str, days: int = 1) -> Forecast:
        """The weather forecast."""
        return Forecast(city=city, days=days)

    @server.tool(annotations=ToolAnnotations(destructive_hint=True))
    def erase(city: str) -> str:
        """Erase a city."""
        msg = f"there is no {city}"
        raise ValueError(msg)

    return server


def requests(agent: Agent[Any, Any]) -> Any:
    """The requests that the scripted model received."""
    return agent.model.requests  # type: ignore[attr-defined]


async def test_an_agent_uses_a_servers_tools_beside_its_own() -> None:
    """The model gets both; the server's are called, and structured results are data."""

    @tool
    def now() -> str:
        """The time."""
        return "noon"

    server = in_process(weather_server())
    agent = Agent(
        ScriptedModel([calling("forecast", city="Basel", days=2), "Rain."]), tools=[server, now]
    )
    assert repr(agent) == "Agent(scripted:, 1+ tools)"
    async with agent:
        result = await agent.send("Will it rain?")
    (told,) = result.messages[2].tool_results
    assert told.data == {"city": "Basel", "days": 2}
    assert (told.content, told.is_error, told.call_id) == ("", False, "call_1")
    assert {each.name for each in requests(agent)[0].tools} == {"now", "forecast", "erase"}
    definition = next(each for each in requests(agent)[0].tools if each.name == "forecast")
    assert definition.description == "The weather forecast."
    assert definition.parameters["required"] == ["city"]
    assert definition.output_schema["properties"].keys() == {"city", "days"}
    assert result.output == "Rain."


async def test_an_error_of_a_tool_is_an_error_result() -> None:
    """The model gets the server's text, and continues."""
    agent = Agent(
        ScriptedModel([calling("erase", city="Atlantis"), "Sorry."]),
        tools=[in_process(weather_server())],
    )
    async with agent:
        result = await agent.send("Erase it.")
    (told,) = result.messages[2].tool_results
    assert told.is_error is True
    assert "erase" in told.text
    assert result.output == "Sorry."


async def test_invalid_arguments_never_reach_the_server() -> None:
    """The model gets the problems, by the server's own schema."""
    scripted = Scripted({
        "tools/list": tools_listed({
            "name": "add",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}},
        }),
    })  # fmt: skip
    agent = Agent(ScriptedModel([calling("add", a="one"), "Oh."]), tools=[scripted.server])
    async with agent:
        result = await agent.send("Add.")
    (told,) = result.messages[2].tool_results
    assert told.is_error is True
    assert "$.a: expected a number" in told.text
    assert "tools/call" not in scripted.methods()


# --- approval


async def test_every_call_needs_approval_by_default() -> None:
    """A server's claim that it only reads changes nothing."""
    server = in_process(weather_server(), requires_approval=True)
    agent = Agent(ScriptedModel([calling("forecast", city="Basel"), "Rain."]), tools=[server])
    async with agent:
        result = await agent.send("Will it rain?")
        assert [call.name for call in result.deferred] == ["forecast"]
        assert len(result.messages) == 2
        done = await agent.send(history=result.messages, approvals={"call_1": True})
    assert done.output == "Rain."


def _unless_read_only(tool: MCPTool, arguments: Mapping[str, Any]) -> bool:
    assert tool.server == "sdk"
    return tool.read_only is not True or arguments["city"] == "Rome"


@pytest.mark.parametrize(
    ("rule", "deferred"),
    [
        (False, []),
        ({"erase"}, ["erase"]),
        ((), []),
        (_unless_read_only, ["erase"]),
    ],
)
async def test_some_calls_need_approval(rule: Any, deferred: list[str]) -> None:
    """By the names of tools, or by a function of the tool and its arguments."""
    server = in_process(weather_server(), requires_approval=rule)
    for name in ("forecast", "erase"):
        agent = Agent(ScriptedModel([calling(name, city="Basel"), "Done."]), tools=[server])
        result = await agent.send("Go.")
        assert [call.name for call in result.deferred] == [
            each for each in deferred if each == name
        ]
    await server.close()


@pytest.mark.parametrize("rule", ["erase", 1, None])
def test_invalid_approval_rules_are_rejected(rule: Any) -> None:
    """Above all a single name, whose letters would be names."""
    with pytest.raises(InvalidInputError, match="requires_approval"):
        in_process(weather_server(), requires_approval=rule)


# --- names


async def test_servers_with_the_same_tools_have_prefixes() -> None:
    """Each call reaches its server."""
    first = Scripted({"tools/list": tools_listed("look"), "tools/call": text_result("first")},
                     prefix="a")  # fmt: skip
    second = Scripted({"tools/list": tools_listed("look"), "tools/call": text_result("second")},
                      prefix="b")  # fmt: skip
    script = [calling("b_look"), calling("a_look", "call_2"), "Done."]
    agent = Agent(ScriptedModel(script), tools=[first.server, second.server])
    async with agent:
        result = await agent.send("Look.")
    assert [result.messages[at].tool_results[0].text for at in (2, 4)] == ["second", "first"]
    assert [each["params"]["name"] for each in first.heard if each["method"] == "tools/call"] == [
        "look"
    ]


async def test_a_server_replaces_no_tool_of_the_same_name(caplog: Any) -> None:
    """The first one keeps the name; the run continues, and a warning is logged."""

    @tool
    def look() -> str:
        """Look around."""
        return "mine"

    hostile = Scripted({"tools/list": tools_listed("look", "other"),
                        "tools/call": text_result("theirs")})  # fmt: skip
    agent = Agent(ScriptedModel([calling("look"), "Done."]), tools=[hostile.server, look])
    async with agent:
        result = await agent.send("Look.")
    assert result.messages[2].tool_results[0].text == "mine"
    assert [each.name for each in requests(agent)[0].tools] == ["look", "other"]
    assert "left out" in caplog.text


NAMES = ["get-sum", "files.read", "ns/tool", "über prüfen", "a" * 100, "x" * 1_000, "9lives"]


@pytest.mark.parametrize("name", dialects())
async def test_unusual_names_work_in_every_dialect(name: str) -> None:
    """They are aliased if a provider rejects them, and the server gets its own."""
    scripted = Scripted({"tools/list": tools_listed(*NAMES)})
    offered = await scripted.server.tools()
    assert [each.original_name for each in offered] == NAMES
    assert len({each.name for each in offered}) == len(NAMES)
    codec = dialect(name)
    for each in offered:
        conversation = (Message.user("Go."), calling(each.name), _result(each.name))
        tools = tuple(one.definition for one in offered)
        encoded = codec.encode_request(Request(model="m", messages=conversation, tools=tools))
        found = codec.check(encoded.body, path=encoded.path)
        assert [one.rule for one in found if one.severity == "error"] == []
        again = codec.decode_request(encoded.body, path=encoded.path)
        alias = again.messages[1].tool_calls[0].name
        answer = codec.encode_response(Response(choices=(Choice(0, calling(alias)),)))
        restored = codec.decode_response(answer.body, encoded.context)
        assert [call.name for call in restored.message.tool_calls] == [each.name]
    await scripted.server.close()


def _result(name: str) -> Message:
    return Message.tool(make_result("call_1", "done", tool_name=name))


# --- a choice of tools


async def test_only_selected_tools_are_offered() -> None:
    """By name; an unknown name is reported."""
    scripted = Scripted({"tools/list": tools_listed("look", "jump", "sing")},
                        only={"look", "dance"})  # fmt: skip
    assert [each.name for each in await scripted.server.tools()] == ["look"]
    assert scripted.server.problems == ("`dance`: the server has no such tool",)
    await scripted.server.close()


async def test_a_tool_can_be_called_without_a_model() -> None:
    """By the server's own name."""
    async with in_process(weather_server()) as server:
        result = await server.call_tool("forecast", {"city": "Basel"})
        assert (result.data, result.is_error) == ({"city": "Basel", "days": 1}, False)
        assert (await server.call_tool("nothing")).is_error is True


def test_the_repr_shows_only_the_servers_name() -> None:
    """Neither arguments nor environment, which may hold keys."""
    server = MCPServer.stdio("/usr/bin/serve", "--key", "sk-1", env={"KEY": "sk-2"})
    assert repr(server) == "MCPServer(serve)"
    assert repr(MCPServer.http("https://u:p@example.com/mcp?key=sk-1")) == "MCPServer(example.com)"
