"""What type checkers know about agents: mypy and pyright check this file, nobody runs it.

Beside it, `rejected.py` has what they must not let pass.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack, assert_type

import msgspec
import pydantic

from dragoman import (
    Agent,
    Message,
    Response,
    Result,
    RunContext,
    ToolCall,
    ToolDefinition,
    ToolResult,
    tool,
)
from dragoman.agent import (
    AgentChat,
    AgentStream,
    BlockingAgentStream,
    CallOptions,
    Handoff,
    Hooks,
    Settings,
)
from dragoman.model import Tool
from dragoman.testing import ScriptedModel, TestModel

T = TypeVar("T")


@dataclass
class Place:
    """A dataclass."""

    name: str


class Route(TypedDict):
    """A TypedDict."""

    length: int


class City(pydantic.BaseModel):
    """A pydantic model."""

    name: str


class Bridge(msgspec.Struct):
    """A msgspec Struct."""

    name: str


class Point(NamedTuple):
    """A NamedTuple."""

    x: int


class Database:
    """What tools work with."""


class Replica(Database):
    """Another, which can do the same."""


class Surveyor(Agent[Database, Place]):
    """An agent whose class says what it gives."""


@tool
def first(run: RunContext[Database], number: int) -> str:
    """The context comes first."""
    return f"{run.deps}{number}"


@tool
async def second(number: int, run: RunContext[Database]) -> str:
    """The context comes second."""
    return f"{run.deps}{number}"


@tool(timeout=5)
def fourth(a: int, b: int, c: int, run: RunContext[Database] | None = None) -> str:
    """The context comes last, and may be left out."""
    return f"{run}{a}{b}{c}"


@tool
def weather(city: str, days: int = 1) -> str:
    """No context at all."""
    return city * days


def plain(city: str, run: RunContext[Database]) -> str:
    """A function that is no tool yet."""
    return f"{city}{run.deps}"


class Kitchen:
    """Has methods."""

    def cook(self, dish: str) -> str:
        """A method."""
        return dish

    @tool
    def bake(self, dish: str) -> str:
        """A method that is a tool."""
        return dish


def located(name: str) -> Place:
    """A function as output."""
    return Place(name)


async def located_soon(name: str, run: RunContext[Database]) -> Place:
    """An async one."""
    return Place(f"{name}{run.deps}")


def of_outputs(model: ScriptedModel) -> None:
    """`output` says what the agent gives."""
    assert_type(Agent(model), Agent[Any, str])
    assert_type(Agent("echo:", output=None), Agent[Any, str])
    assert_type(Agent(model, output=str), Agent[Any, str])
    assert_type(Agent(model, output=int), Agent[Any, int])
    assert_type(Agent(model, output=Place), Agent[Any, Place])
    assert_type(Agent(model, output=Route), Agent[Any, Route])
    assert_type(Agent(model, output=City), Agent[Any, City])
    assert_type(Agent(model, output=Bridge), Agent[Any, Bridge])
    assert_type(Agent(model, output=Point), Agent[Any, Point])
    assert_type(Agent(model, output=list[Place]), Agent[Any, list[Place]])
    assert_type(Agent(model, output=Place | City), Agent[Any, Place | City])
    assert_type(Agent(model, output=Place | None), Agent[Any, Place | None])
    assert_type(Agent(model, output=Literal["yes", "no"]), Agent[Any, Literal["yes", "no"]])
    assert_type(Agent(model, output=[Place]), Agent[Any, Place])
    assert_type(Agent(model, output=located), Agent[Any, Place])
    assert_type(Agent(model, output=located_soon), Agent[Any, Place])
    assert_type(Agent(model, output=tool(located)), Agent[Any, Place])
    assert_type(Agent(model, output={"type": "object"}), Agent[Any, Any])
    assert_type(Agent[Database, Place](model), Agent[Database, Place])


async def of_calls(agent: Agent[object, Place], chat: AgentChat[Database, Place]) -> None:
    """A call gives what the agent gives, or what its own `output` says."""
    assert_type(await agent.send("Hi"), Result[Place])
    assert_type((await agent.send("Hi")).output, Place)
    assert_type(agent.stream("Hi"), AgentStream[Place])
    assert_type(agent.stream("Hi").result.output, Place)
    assert_type(agent.send_sync("Hi"), Result[Place])
    assert_type(agent.stream_sync("Hi"), BlockingAgentStream[Place])
    assert_type(agent.stream_sync("Hi").collect().output, Place)

    assert_type(await agent.send("Hi", output=None), Result[str])
    assert_type(await agent.send("Hi", output=str), Result[str])
    assert_type(await agent.send("Hi", output=City | int), Result[City | int])
    assert_type(agent.send_sync("Hi", output=Route), Result[Route])
    assert_type(agent.stream("Hi", output=Bridge), AgentStream[Bridge])
    assert_type(agent.stream_sync("Hi", output=list[int]), BlockingAgentStream[list[int]])
    assert_type((await agent.send("Hi", output=located)).output, Place)
    assert_type((await agent.send("Hi", output=located_soon)).output, Place)
    assert_type((await agent.send("Hi", output={"type": "object"})).output, Any)
    either = (await agent.send("Hi", output=[City, Place])).output
    if isinstance(either, City):  # mypy knows an object, pyright the two of them
        assert_type(either, City)

    assert_type(agent.chat(), AgentChat[object, Place])
    assert_type(agent.with_model("echo:"), Agent[object, Place])
    assert_type(await chat.send("Hi"), Result[Place])
    assert_type(await chat.send("Hi", output=City | int), Result[City | int])
    assert_type(chat.stream("Hi"), AgentStream[Place])
    assert_type(chat.send_sync("Hi", output=int), Result[int])
    assert_type(chat.stream_sync("Hi", output=located_soon), BlockingAgentStream[Place])


async def of_wrappers(agent: Agent, kind: type[T], maybe: type[Place] | None) -> T:
    """What people put around an agent: a type as a parameter, given or not, and options."""
    assert_type((await agent.send("Hi", output=maybe)).output, Place | str)
    return (await agent.send("Hi", output=kind)).output


async def of_wrapped_options(
    agent: Agent[Database], *content: str, **options: Unpack[CallOptions[Database]]
) -> str:
    """All options of a call, handed on."""
    return (await agent.send(*content, **options)).output


def of_tools() -> None:
    """A tool says what it returns, what it takes, and which context it wants."""
    assert_type(first, Tool[..., str, RunContext[Database]])
    assert_type(fourth, Tool[..., str, RunContext[Database] | None])
    _all: list[Tool[..., Any]] = [first, second, weather]
    Agent[Database]("echo:", tools=_all)
    assert_type(weather("Basel", days=2), str)
    assert_type(Kitchen().bake("bread"), str)


def of_dependencies(model: ScriptedModel, functions: list[Callable[..., Any]]) -> None:
    """They are what tools, hooks and instructions want, or what is written."""

    def instructions(run: RunContext[Database]) -> str:
        return str(run.deps)

    async def instructions_soon(run: RunContext[Database]) -> list[str]:
        return [str(run.deps)]

    assert_type(Agent(model, tools=[first]), Agent[Database, str])
    assert_type(Agent(model, tools=[first, second], output=int), Agent[Database, int])
    assert_type(Agent(model, system=instructions), Agent[Database, str])
    assert_type(Agent(model, system=instructions_soon, output=Place), Agent[Database, Place])
    assert_type(Agent[Replica](model, tools=[first, fourth, weather]), Agent[Replica, str])
    assert_type(Agent[Database, int](model, tools=[plain], output=int), Agent[Database, int])
    Agent(model, tools=[weather, plain, Kitchen().cook, Kitchen().bake, partial(plain, "Basel")])
    Agent(model, tools=[ToolDefinition("x", "y", {}), lambda city: city, *functions])
    agent = Agent[Database](model, tools=[first])
    assert_type(agent.send_sync("Hi", deps=Replica()).output, str)
    agent.chat(deps=Database()).send_sync("Hi", deps=Replica())
    assert_type(agent.chat(["Hi"], deps=Replica()), AgentChat[Database, str])


async def of_calls_with_dependencies(agent: Agent[Database, Place], base: Database) -> None:
    """Where an agent wants some, a call gives them."""
    assert_type(await agent.send("Hi", deps=base, temperature=0), Result[Place])
    assert_type(agent.stream("Hi", deps=base, history=["Hi"]), AgentStream[Place])
    assert_type(agent.send_sync("Hi", deps=base), Result[Place])
    assert_type(agent.stream_sync("Hi", deps=base), BlockingAgentStream[Place])
    assert_type(await agent.send("Hi", deps=base, output=int), Result[int])
    assert_type(Surveyor("echo:").send_sync("Hi", deps=base).output, Place)


def of_calls_without_dependencies(
    any_: Agent, none: Agent[None], maybe: Agent[Database | None], anything: Agent[object]
) -> None:
    """Where an agent does without, a call need not give any, but may."""
    for agent in (any_, none, maybe, anything):
        assert_type(agent.send_sync("Hi"), Result[str])
    maybe.send_sync("Hi", deps=Database())
    anything.send_sync("Hi", deps=5)
    any_.send_sync("Hi", deps=5)
    none.chat().send_sync("Hi")
    maybe.chat(deps=Replica()).send_sync("Hi")


def of_hooks(model: ScriptedModel) -> None:
    """Plain and async, with the context last; what they return has the type of what they get."""

    def prompt(message: Message, _run: RunContext[Database]) -> Message:
        return message

    async def noted(response: Response, run: RunContext[Database]) -> None:
        print(response, run.deps)  # noqa: T201 - as people do

    async def checked(call: ToolCall, _run: RunContext[object]) -> ToolCall | ToolResult | None:
        return call

    def told(_call: ToolCall, result: ToolResult, run: RunContext) -> ToolResult | None:
        return result if run.deps.is_open else None

    hooks = Hooks(before_send=prompt, after_response=noted, before_tool_call=checked)
    assert_type(Agent(model, hooks=hooks), Agent[Database, str])
    Agent[Replica](model, hooks=hooks)
    assert_type(Hooks[Database](before_send=prompt), Hooks[Database])
    Agent[Replica](model, hooks=Hooks(after_tool_call=told))
    Agent(model, hooks=Hooks(on_event=lambda event, run: print(event, run.step)))  # noqa: T201
    Agent(model, hooks=Hooks(after_send=lambda result, run: None))  # noqa: ARG005 - as people do
    assert_type(Hooks(), Hooks[Any])


def of_approvals(model: ScriptedModel) -> None:
    """Plain and async, of the agent or of a call; the agent's dependencies are theirs."""

    def approve(call: ToolCall, run: RunContext[Database]) -> bool | str | dict[str, int]:
        return f"{call}{run.deps}"

    async def approve_soon(_call: ToolCall, _run: RunContext[Database]) -> bool | None:
        return None

    assert_type(Agent(model, approve=approve), Agent[Database, str])
    agent = Agent[Replica](model, approve=approve_soon)
    given = Replica()
    agent.send_sync("Hi", deps=given, approve=approve, approvals={"a": True, "c": {"x": 1}})
    agent.send_sync("Hi", deps=given, approve=lambda call, run: bool(call.name) and run.step > 1)


def of_agents(model: ScriptedModel, agent: Agent[Database, Place]) -> None:
    """As a tool or a handoff, an agent wants its dependencies."""
    other = Agent(model, tools=[agent.as_tool("place", "Knows places.")])
    assert_type(other, Agent[Database, str])
    assert_type(agent.as_handoff("place", "Knows places."), Handoff[Database])
    assert_type(Agent(model, tools=[agent.as_handoff("a", "b")]), Agent[Database, str])
    Agent[Replica](model, tools=[first, agent.as_tool("a", "b"), agent.as_handoff("c", "d")])


def of_dynamic_tools(model: ScriptedModel) -> None:
    """A function of the context, plain or async; whether a tool is enabled."""

    def tools(run: RunContext[Database]) -> list[Tool[..., Any]]:
        return [first] if run.step else []

    async def tools_soon(run: RunContext[Database]) -> list[Tool[..., Any]]:
        return tools(run)

    assert_type(Agent(model, dynamic_tools=tools), Agent[Database, str])
    Agent[Replica](model, dynamic_tools=tools_soon)
    Agent(model, dynamic_tools=lambda run: [weather] if run.step else [])
    tool(enabled=lambda run: run.step > 1)(plain)


def of_overrides(agent: Agent[Database, Place]) -> None:
    """What tests put in place."""
    with agent.override(model=TestModel(), deps=Replica(), tools=[first, weather], system="Hi"):
        assert_type(agent.send_sync("Hi", deps=Database()).output, Place)


def of_settings(agent: Agent) -> None:
    """The agent's, a call's, and those that are put together first."""
    settings: Settings = {"max_tokens": 500, "temperature": 0, "thinking": "high", "stop": ["."]}
    agent.send_sync("Hi", **settings)
    agent.send_sync("Hi", tool_choice="required", seed=1, history=["Hi"], approvals={"c": True})
    Agent("echo:", **settings)


def of_assignments(model: ScriptedModel) -> None:
    """An agent that wants less, or gives more exactly, does where another is wanted."""
    wants_nothing: Agent[object, str] = Agent(model)
    _wants_some: Agent[Database, str] = wants_nothing
    _wants_more: Agent[Replica, object] = _wants_some
    _any: Agent[Any, Any] = Agent(model, tools=[first], output=Place)
    _result: Result[object] = Agent(model, output=Place).send_sync("Hi")
