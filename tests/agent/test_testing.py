"""Helpers for testing agents: a model that generates values, and overrides."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import json
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic
import pytest

from dragoman import Agent, Text, ToolDefinition, tool
from dragoman.agent import RunContext, RunLimits
from dragoman.agent.made_up import made_up
from dragoman.errors import InvalidInputError, LimitExceeded
from dragoman.model.tools import make_definition
from dragoman.model.validation.problems import problems
from dragoman.testing import ScriptedModel, TestModel
from tests.agent.scripts import model, weather

_CALLING: dict[str, Any] = {
    "role": "assistant",
    "tool_calls": [
        {
            "id": "c",
            "type": "function",
            "function": {"name": "get-order.v2", "arguments": '{"number":0}'},
        }
    ],
}


@tool(name="get-order.v2")
def get_order(number: int) -> str:
    """An order."""
    return f"order {number}"


@pytest.mark.parametrize("kind", [TestModel, lambda: ScriptedModel([_CALLING, "Done."])])
async def test_tools_keep_the_names_that_providers_take(kind: Any) -> None:
    """`@tool(name=…)`, `TestModel` and `ScriptedModel` take names with hyphens and dots."""
    result = await Agent(kind(), tools=[get_order]).send("Hi")
    (call,) = result.messages[1].tool_calls
    assert call.name == "get-order.v2"
    assert result.messages[2].tool_results[0].text == "order 0"


async def test_a_tool_of_any_name_can_be_called() -> None:
    """A definition off a wire may have a name that nobody could write by hand."""
    foreign = make_definition("fs/read file", "It reads.", {"type": "object"})
    result = await Agent(TestModel(), tools=[foreign]).send("Hi")
    assert result.messages.pending_tool_calls[0].name == "fs/read file"


class Colour(enum.Enum):
    """A few."""

    RED = "red"


@dataclass
class Node:
    """Holds itself."""

    name: str
    parent: Node | None
    children: list[Node]


class City(pydantic.BaseModel):
    """With rules."""

    name: Annotated[str, pydantic.Field(min_length=3, max_length=5)]
    people: Annotated[int, pydantic.Field(gt=10, multiple_of=7)]


@dataclass
class Kinds:
    """All kinds of arguments."""

    whole: int
    choice: Literal["x", "y"]
    nodes: list[Node]
    table: dict[str, int]
    moment: dt.datetime
    day: dt.date
    key: uuid.UUID
    pair: tuple[int, str]
    maybe: float | None
    price: decimal.Decimal
    colour: Colour
    city: City
    data: bytes
    numbers: set[int]
    flag: bool
    either: int | str


@tool
def everything(kinds: Kinds, left_out: int = 5) -> str:
    """All kinds of arguments."""
    return f"{kinds.whole} {left_out} {kinds.city.people} {kinds.colour}"


# --- the model


async def test_every_tool_is_called_once_and_then_it_answers() -> None:
    """With valid arguments; the answer has what the tools returned."""
    made = TestModel()
    agent = Agent(made, tools=[weather, everything])
    result = await agent.send("Hi")
    assert json.loads(result.output) == {"weather": "rain in a", "everything": "0 5 14 Colour.RED"}
    assert [call.name for call in result.messages[1].tool_calls] == ["weather", "everything"]
    assert len(made.requests) == 2
    again = await agent.send("Hi", history=result.messages)
    assert again.output == result.output
    assert repr(made) == "TestModel(4 requests)"


async def test_it_is_deterministic_and_streams() -> None:
    """So that tests can compare."""
    texts = [(await Agent(TestModel(), tools=[everything]).send("Hi")).output for _ in range(2)]
    async with Agent(TestModel(), tools=[everything]).stream("Hi") as stream:
        pieces = [chunk.output async for chunk in stream]
    assert texts == ["".join(pieces)] * 2


@pytest.mark.parametrize(
    "kind", [Node, City, int, list[City], Literal["x"], Colour, dict[str, int]]
)
@pytest.mark.parametrize("mode", [None, "native", "tool"])
async def test_a_typed_run_gets_a_valid_value(kind: Any, mode: Any) -> None:
    """After the tools, in every mode."""
    result = await Agent(TestModel(), tools=[weather], output_mode=mode).send("Hi", output=kind)
    assert result.messages[1].tool_calls[0].name == "weather"
    if isinstance(kind, type):
        assert isinstance(result.output, kind)


async def test_its_answers_can_be_chosen() -> None:
    """Which tools it calls, with which arguments, and the text or output it returns."""
    made = TestModel(tools=["weather"], arguments={"weather": {"city": "Bern"}}, text="Done.")
    result = await Agent(made, tools=[weather, everything]).send("Hi")
    assert (result.output, len(result.messages[1].tool_calls)) == ("Done.", 1)
    assert result.messages[2].tool_results[0].text == "rain in Bern"
    for value, kind in (
        (7, int),
        (City(name="Basel", people=14), City),
        ({"a": 1}, dict[str, int]),
    ):
        found = await Agent(TestModel(output=value)).send("Hi", output=kind)
        assert found.output == value


async def test_without_tools_it_just_answers() -> None:
    """And calls for the caller are deferred as usual."""
    assert (await Agent(TestModel()).send("Hi")).output == "There was no tool to call."
    page = ToolDefinition("page", "Open a page.", {"type": "object", "properties": {}})
    assert [each.name for each in (await Agent(TestModel(), tools=[page]).send("Hi")).deferred] == [
        "page"
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[A-Z][0-9]$"},
        {"type": "string", "minLength": 5, "maxLength": 5},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "integer", "maximum": -3},
        {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "maxItems": 0},
        {"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}}]},
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "boolean"}},
        {"oneOf": [{"type": "null"}, {"type": "string", "format": "email"}]},
        {"$defs": {"a/b": {"type": "integer"}}, "$ref": "#/$defs/a~1b"},
        {},
    ],
)
def test_values_are_generated_for_schemas(schema: Any) -> None:
    """They are valid."""
    assert problems(schema, made_up(schema, "it")) == []


def test_values_that_cannot_be_generated_raise() -> None:
    """The error names the field; no value of the wrong type is generated."""
    with pytest.raises(InvalidInputError, match="arguments of `f`"):
        made_up({"type": "string", "pattern": "^(foo|bar){3}$"}, "the arguments of `f`")


# --- overrides


@tool
def whose(run: RunContext[str]) -> str:
    """Whose it is."""
    return f"{run.deps} {run.model}"


async def test_override_replaces_parts_of_an_agent() -> None:
    """Inside the block, whatever a call sets; afterwards everything is as before."""
    agent = Agent(model("Real."), tools=[weather], system="Real.")
    made = TestModel()
    with agent.override(model=made, deps="fake", tools=[whose], system="Fake."):
        result = await agent.send("Hi", deps="real")
        assert agent.model is made
    assert json.loads(result.output) == {"whose": "fake test:"}
    assert made.requests[0].system == (Text("Fake."),)
    assert (await agent.send("Hi")).output == "Real."


async def test_overrides_can_be_nested() -> None:
    """The inner one adds to the outer one, and blocking calls and chats see both."""
    agent = Agent(model(), tools=[whose])
    with agent.override(model=TestModel()):
        with agent.override(deps="inner"):
            assert "inner" in agent.send_sync("Hi", deps="given").output
            assert "inner" in (await agent.chat(deps="given").send("Hi")).output
            assert "inner" in (await agent.with_model("echo:").send("Hi", deps="given")).output
        assert "given" in (await agent.send("Hi", deps="given")).output


async def test_tasks_do_not_see_each_others_overrides() -> None:
    """Each task has its own."""
    agent = Agent(TestModel(text="shared"))
    ready = asyncio.Event()

    async def ask(text: str | None) -> str:
        if text is None:
            await ready.wait()
            return (await agent.send("Hi")).output
        with agent.override(model=TestModel(text=text)):
            ready.set()
            await asyncio.sleep(0)
            return (await asyncio.create_task(agent.send("Hi"))).output

    asked = asyncio.gather(ask(None), ask("one"), ask("two"))
    assert [*await asked] == ["shared", "one", "two"]


async def test_sub_agents_are_overridden_too() -> None:
    """As a tool, and in a handover."""
    helper = Agent(model())
    tools: list[Any] = [helper.as_tool("ask", "Ask."), helper.as_handoff("over", "Hand over.")]
    with helper.override(model=TestModel(text="from the helper")):
        for tool_name in ("ask", "over"):
            result = await Agent(TestModel(tools=[tool_name]), tools=tools).send("Hi")
            assert "from the helper" in result.output


def test_an_override_takes_an_open_model() -> None:
    """A name is rejected, since nobody would close its model."""
    wrong: Any = "openai:gpt-5"
    with pytest.raises(InvalidInputError, match="model object"):
        Agent("echo:").override(model=wrong)
    wrong = 5
    with pytest.raises(InvalidInputError):
        Agent("echo:").override(model=wrong)
    with pytest.raises(InvalidInputError):
        Agent("echo:").override(tools=wrong)


async def test_a_cost_limit_works_with_a_test_model() -> None:
    """Its answers cost nothing, or what the test sets, whatever prices the agent has."""
    agent = Agent("openai:gpt-5", tools=[weather], limits=RunLimits(cost="0.03"))
    with agent.override(model=TestModel()):
        assert (await agent.send("Hi")).cost == 0
    with agent.override(model=TestModel(cost="0.01")):
        result = await agent.send("Hi")
    assert result.cost == Decimal("0.02")  # the tool's call, and the answer
    with agent.override(model=TestModel(cost=0.05)), pytest.raises(LimitExceeded, match="spent"):
        await agent.send("Hi")
    with pytest.raises(InvalidInputError, match="the cost of an answer must be a number"):
        TestModel(cost="free")
