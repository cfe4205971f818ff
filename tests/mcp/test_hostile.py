"""Malicious servers: what they send is rejected or reported, and never ends a program."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import Agent, Message, Request, dialect, dialects
from dragoman.errors import DragomanError, ServerError, WireError
from dragoman.mcp.tools import MAX_TOOLS, alias, offered
from dragoman.testing import ScriptedModel
from tests.mcp.servers import SCHEMA, Scripted, calling, text_result, tools_listed

pytestmark = pytest.mark.whole


def nested(depth: int) -> dict[str, Any]:
    """A nested schema."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def exploding(levels: int) -> dict[str, Any]:
    """A schema whose expanded size is 2 to the power of its levels."""
    definitions: dict[str, Any] = {"0": {"type": "string"}}
    for level in range(1, levels):
        one = {"$ref": f"#/$defs/{level - 1}"}
        definitions[str(level)] = {"anyOf": [one, {"allOf": [one, one]}]}
    last = {"$ref": f"#/$defs/{levels - 1}"}
    return {"type": "object", "properties": {"a": last}, "$defs": definitions}


TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    "a name of a megabyte": ({"name": "x" * 1_000_000}, "its name has 1,000,000 characters"),
    "no name": ({"name": ""}, "its name has 0 characters"),
    "a long description": ({"name": "a", "description": "x" * 30_000}, "description has 30,000"),
    "a schema of a megabyte": (
        {"name": "a", "inputSchema": {**SCHEMA, "title": "x" * 1_000_000}},
        "characters; the maximum is 100,000",
    ),
    "a deep schema": ({"name": "a", "inputSchema": nested(90)}, "deeper than 100 levels"),
    "a schema of a list": (
        {"name": "a", "inputSchema": {"type": "array"}},
        "does not describe an object",
    ),
    "no schema at all": (
        {"name": "a", "inputSchema": {"type": "object", "properties": 7}},
        "the schema of its arguments",
    ),
    "a schema of results that is none": (
        {"name": "a", "outputSchema": {"type": "object", "properties": {"a": {"type": 7}}}},
        "the schema of its results",
    ),
}


@pytest.mark.parametrize("kind", TOOLS)
async def test_a_tool_that_can_not_be_offered_is_left_out(kind: str) -> None:
    """The others are offered, and `problems` says why, briefly."""
    described, problem = TOOLS[kind]
    scripted = Scripted({
        "tools/list": tools_listed("before", {"inputSchema": SCHEMA, **described}, "after"),
    })  # fmt: skip
    try:
        found = await scripted.server.tools()
    except WireError:  # the SDK's own types reject some of them, and the list with them
        assert kind in {"no schema at all", "a schema of a list"}
    else:
        assert [each.name for each in found] == ["before", "after"]
        (told,) = scripted.server.problems
        assert problem in told
        assert len(told) < 500
    await scripted.server.close()


async def test_of_two_tools_of_one_name_the_first_is_offered() -> None:
    """A model could not distinguish them."""
    scripted = Scripted({"tools/list": tools_listed("look", "look", "jump")})
    assert [each.name for each in await scripted.server.tools()] == ["look", "jump"]
    assert scripted.server.problems == ("`look`: there is another tool with this name",)
    await scripted.server.close()


async def test_an_endless_list() -> None:
    """Pages are requested until there are more tools than any model accepts."""
    pages = 0

    async def page(_message: Any, _send: Any) -> Any:
        nonlocal pages
        pages += 1
        names = [f"t{pages}_{number}" for number in range(500)]
        return {**tools_listed(*names), "nextCursor": f"page {pages}"}

    scripted = Scripted({"tools/list": page})
    assert len(await scripted.server.tools()) == MAX_TOOLS
    assert pages <= 20
    assert "the rest are left out" in scripted.server.problems[0]
    await scripted.server.close()


async def test_a_list_with_a_loop() -> None:
    """A repeated page is the last."""
    scripted = Scripted({"tools/list": {**tools_listed("look"), "nextCursor": "again"}})
    assert [each.name for each in await scripted.server.tools()] == ["look"]
    assert scripted.methods().count("tools/list") <= 3
    await scripted.server.close()


async def test_an_exploding_schema_is_left_out() -> None:
    """Some providers' requests could not be encoded. Smaller ones are offered."""
    bombs = [{"name": f"bomb{at}", "inputSchema": exploding(60)} for at in range(50)]
    small = {"name": "small", "inputSchema": exploding(4)}
    scripted = Scripted({"tools/list": tools_listed(small, "plain", *bombs, "last")})
    async with asyncio.timeout(60):
        found = await scripted.server.tools()
    assert [each.name for each in found] == ["small", "plain", "last"]
    assert len(scripted.server.problems) == 50
    await scripted.server.close()


schemas: Any = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/a"},
                     {"$ref": "#/$defs/b"}, {"$ref": "#"}]),
    lambda inner: st.one_of([
        *(st.fixed_dictionaries({word: st.lists(inner, min_size=1, max_size=4)})
          for word in ("anyOf", "allOf", "oneOf")),
        st.fixed_dictionaries({"items": inner}),
        st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("abc"), inner)}),
    ]),
    max_leaves=12,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(st.tuples(schemas, schemas, schemas), min_size=1, max_size=2))
def test_offered_tools_can_be_encoded_for_every_provider(drawn: list[Any]) -> None:
    """References, alternatives and combinations; all tools in one request."""
    tools = [
        types.Tool(
            name=f"t{at}",
            input_schema={"type": "object", "properties": {"x": x}, "$defs": {"a": a, "b": b}},
        )
        for at, (x, a, b) in enumerate(drawn)
    ]
    made = offered(tools, _no_call, "s").tools
    request = Request(
        model="m", messages=(Message.user("Hi"),), tools=tuple(each.definition for each in made)
    )
    for name in dialects():
        assert dialect(name).encode_request(request).body


async def _no_call(*_given: Any) -> Any:
    raise AssertionError


async def test_a_slow_pattern_is_harmless() -> None:
    """In arguments or results: both come from outside."""
    evil = {"type": "string", "pattern": "^(a+)+$"}
    schema = {"type": "object", "properties": {"a": evil}}
    scripted = Scripted({
        "tools/list": tools_listed({"name": "slow", "inputSchema": schema, "outputSchema": schema}),
        "tools/call": {"content": [], "structuredContent": {"a": "a" * 50 + "!"}},
    })  # fmt: skip
    agent = Agent(ScriptedModel([calling("slow", a="a" * 50), "Done."]), tools=[scripted.server])
    async with asyncio.timeout(30), agent:
        result = await agent.send("Go.")
    (told,) = result.messages[2].tool_results
    assert told.is_error is True
    assert "does not match its output schema" in told.text


RESULTS: dict[str, Any] = {
    "no content": {},
    "content of a strange type": {"content": [{"type": "hologram", "data": "x"}]},
    "content that is no list": {"content": "text"},
    "text that is none": {"content": [{"type": "text", "text": 7}]},
    "structured content that is no object": {"content": [], "structuredContent": [1, 2]},
    "deep content": {"content": [], "structuredContent": {"a": nested(200)}},
    "a task": {"task": {"taskId": "1", "status": "working"}},
}


@pytest.mark.parametrize("kind", RESULTS)
async def test_a_result_that_violates_the_protocol_is_an_error_result(kind: str) -> None:
    """The model gets it; the connection is still used."""
    scripted = Scripted({"tools/list": tools_listed("do"), "tools/call": RESULTS[kind]})
    agent = Agent(ScriptedModel([calling("do"), "Done."]), tools=[scripted.server])
    async with agent:
        result = await agent.send("Go.")
        scripted.answers["tools/call"] = text_result("fine")
        assert (await scripted.server.call_tool("do")).text == "fine"
    assert result.messages[2].tool_results[0].is_error is True
    assert scripted.connections == 1


async def test_a_result_that_is_too_large_is_not_shown() -> None:
    """The model gets its size."""
    scripted = Scripted({"tools/list": tools_listed("do"), "tools/call": text_result("x" * 10**6)})
    agent = Agent(ScriptedModel([calling("do"), "Done."]), tools=[scripted.server])
    async with agent:
        result = await agent.send("Go.")
    (told,) = result.messages[2].tool_results
    assert told.is_error is True
    assert "1,000,000 characters" in told.text


async def test_an_error_of_the_server_is_only_quoted_to_the_model() -> None:
    """It may contain anything: our errors don't quote it."""
    scripted = Scripted({
        "tools/list": tools_listed("do"),
        "tools/call": {"code": -32000, "message": "the secret is sk-1"},
        "prompts/get": {"code": -32000, "message": "the secret is sk-1"},
    })  # fmt: skip
    with pytest.raises(ServerError) as caught:
        await scripted.server.prompt("x")
    assert "sk-1" not in str(caught.value)
    assert "sk-1" not in repr(caught.value.__context__)
    assert caught.value.detail == "the secret is sk-1"
    agent = Agent(ScriptedModel([calling("do"), "Done."]), tools=[scripted.server])
    result = await agent.send("Go.")
    assert "the secret is sk-1" in result.messages[2].tool_results[0].text
    await scripted.server.close()


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner,
                                                                max_size=4),
    max_leaves=10,
)  # fmt: skip
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "x"])},
    optional={
        "text": st.text(max_size=30), "data": st.text(max_size=30) | st.just("aGk="),
        "mimeType": st.text(max_size=20) | st.just("image/png"), "uri": st.text(max_size=30),
        "name": st.text(max_size=30), "resource": json_values,
    },
)  # fmt: skip
results = st.one_of(
    json_values.filter(lambda value: isinstance(value, dict)),
    st.fixed_dictionaries(
        {"content": st.lists(blocks, max_size=3)},
        optional={"structuredContent": json_values, "isError": json_values},
    ),
)
described = st.fixed_dictionaries(
    {"name": st.text(max_size=200), "inputSchema": st.just(SCHEMA) | json_values},
    optional={
        "description": st.text(max_size=50), "outputSchema": json_values,
        "annotations": json_values, "title": json_values,
    },
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(described, max_size=3), results)
def test_a_run_ends_properly_whatever_a_server_sends(
    tools: list[dict[str, Any]], result: dict[str, Any]
) -> None:
    """With an answer, or with our own error before it began."""

    async def run() -> None:
        scripted = Scripted({"tools/list": {"tools": tools}, "tools/call": result})
        agent = Agent(ScriptedModel([calling("do"), "Done."]), tools=[scripted.server])
        try:
            found = await scripted.server.tools()
        except DragomanError:
            return
        finally:
            await scripted.server.close()
        if found:
            agent = Agent(ScriptedModel([calling(found[0].name), "Done."]), tools=[scripted.server])
        async with agent:
            done = await agent.send("Go.")
            assert done.output == "Done."
            assert len(done.messages[2].tool_results) == 1

    asyncio.run(run())


@given(st.text(max_size=300), st.text(max_size=300))
def test_aliases_are_valid_and_distinct(first: str, second: str) -> None:
    """Valid names stay; two names never have one alias."""
    assert alias(alias(first)) == alias(first)
    is_alias = second == alias(first) or first == alias(second)
    assert first == second or is_alias or alias(first) != alias(second)
