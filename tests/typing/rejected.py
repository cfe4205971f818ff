"""What type checkers must not let pass: mypy and pyright check this file, nobody runs it.

Every line that is wrong says so to both: mypy complains of a `type: ignore` that nothing is wrong
with, and so does pyright, as the next line tells it.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from typing import Any

from dragoman import Agent, Message, RunContext, ToolCall, tool
from dragoman.agent import AgentChat, Hooks, Settings
from dragoman.model import Tool
from dragoman.testing import ScriptedModel
from tests.typing.accepted import City, Database, Place, first, fourth, located, second, weather


class Stranger:
    """What no tool of a database can work with."""


class NoModel:
    """Has no `send`, `stream` or `close`."""

    name = "mine:none"


class Eager:
    """Its `send` is not async."""

    name = "mine:eager"

    def send(self, request: object) -> str:
        """Not even a response."""
        return str(request)


class Callable:
    """An object that can be called, which is made a tool by `tool`."""

    def __call__(self, city: str) -> str:
        """The city."""
        return city


@tool
def strange(number: int, run: RunContext[Stranger]) -> str:
    """Wants another kind of dependencies."""
    return f"{run.deps}{number}"


def instructions(run: RunContext[Stranger]) -> str:
    """Want another kind of dependencies, too."""
    return str(run.deps)


def hook(message: Message, run: RunContext[Stranger]) -> Message:
    """Wants another kind of dependencies, too."""
    return message.add_part(str(run.deps))


def of_settings(model: ScriptedModel, agent: Agent, chat: AgentChat) -> None:
    """Names and types of settings."""
    Agent(model, temprature=1)  # type: ignore[call-overload]
    Agent(model, temperature="warm")  # type: ignore[call-overload]
    Agent(model, output_mode="other")  # type: ignore[call-overload]
    Agent(model, stop=".")  # type: ignore[call-overload]
    agent.send_sync("Hi", temprature=1)  # type: ignore[call-overload]
    agent.send_sync("Hi", max_tokens="many")  # type: ignore[call-overload]
    agent.stream("Hi", temprature=1)  # type: ignore[call-overload]
    agent.stream_sync("Hi", temprature=1)  # type: ignore[call-overload]
    agent.send_sync("Hi", tools=[weather])  # type: ignore[call-overload]
    chat.send_sync("Hi", temprature=1)  # type: ignore[call-overload]
    chat.stream("Hi", history=["Hi"])  # type: ignore[call-overload]
    settings: Settings = {"temprature": 1}  # type: ignore[typeddict-unknown-key]
    agent.send_sync("Hi", **settings)


def of_tools(model: ScriptedModel) -> None:
    """A tool for other dependencies, and what is no tool."""
    Agent[Stranger](model, tools=[first])  # type: ignore[list-item]
    Agent[Stranger](model, tools=[weather, second])  # type: ignore[list-item]
    Agent[Stranger](model, tools=[fourth])  # type: ignore[list-item]
    Agent[Database, Place](model, tools=[strange], output=Place)  # type: ignore[list-item]
    Agent(model, tools=["weather"])  # type: ignore[list-item]
    Agent(model, tools=[Callable()])  # type: ignore[list-item]
    weather(5)  # type: ignore[arg-type]


def of_dependencies(agent: Agent[Database], chat: AgentChat[Database]) -> None:
    """Others than the agent's tools work with."""
    agent.send_sync("Hi", deps=Stranger())  # type: ignore[call-overload]
    agent.stream("Hi", deps=Stranger(), output=Place)  # type: ignore[call-overload]
    agent.chat(deps=Stranger())  # type: ignore[arg-type]
    chat.send_sync("Hi", deps=Stranger())  # type: ignore[call-overload]
    inferred = Agent("echo:", tools=[first])
    inferred.send_sync("Hi", deps=Stranger())  # type: ignore[call-overload]
    _other: Agent[object] = agent  # type: ignore[assignment]


async def of_missing_dependencies(agent: Agent[Database, Place], model: ScriptedModel) -> None:
    """A call that gives none to an agent that wants some."""
    await agent.send("Hi")  # type: ignore[call-overload]
    await agent.send("Hi", deps=None)  # type: ignore[call-overload]
    agent.stream("Hi", temperature=0)  # type: ignore[call-overload]
    agent.send_sync("Hi")  # type: ignore[call-overload]
    agent.stream_sync()  # type: ignore[call-overload]
    agent.chat()  # type: ignore[call-arg]
    Agent(model, tools=[first]).send_sync("Hi")  # type: ignore[call-overload]
    Agent(model, hooks=Hooks(before_send=hook)).send_sync("Hi")  # type: ignore[call-overload]
    Agent(model, system=instructions).send_sync("Hi")  # type: ignore[call-overload]


def of_instructions(model: ScriptedModel) -> None:
    """A function that wants other dependencies, or returns what is no text."""
    Agent[Database](model, system=instructions)  # type: ignore[arg-type]
    Agent(model, tools=[first], system=instructions)  # type: ignore[arg-type]
    Agent(model, system=lambda run: run.step)  # type: ignore[arg-type,return-value]
    Agent(model, system=5)  # type: ignore[call-overload]


def of_hooks(model: ScriptedModel) -> None:
    """Functions that want other dependencies, get something else, or return it."""

    def replaces(_call: ToolCall, _run: RunContext) -> str:
        return "x"

    Agent[Database](model, hooks=Hooks(before_send=hook))  # type: ignore[arg-type]
    Hooks(after_response=hook)  # type: ignore[arg-type]
    Hooks(before_tool_call=replaces)  # type: ignore[arg-type]
    Hooks(before=hook)  # type: ignore[call-arg]


def of_approvals(model: ScriptedModel) -> None:
    """Functions that want other dependencies, or decide nothing."""

    def strange(_call: ToolCall, run: RunContext[Stranger]) -> bool:
        return run.deps is not None

    Agent[Database](model, approve=strange)  # type: ignore[arg-type]
    Agent(model, approve=lambda call, run: 5)  # type: ignore[arg-type,return-value]  # noqa: ARG005 - to be found
    given = Database()
    Agent[Database](model).send_sync("Hi", deps=given, approve=strange)  # type: ignore[arg-type]


def of_agents(model: ScriptedModel, agent: Agent[Stranger]) -> None:
    """Agents, and functions, that want other dependencies."""

    def tools(run: RunContext[Stranger]) -> list[Tool[..., Any]]:
        return [strange] if run.step else []

    Agent[Database](model, tools=[agent.as_tool("a", "b")])  # type: ignore[list-item]
    Agent[Database](model, tools=[agent.as_handoff("a", "b")])  # type: ignore[list-item]
    Agent[Database](model, dynamic_tools=tools)  # type: ignore[arg-type]
    Agent(model, tools=[agent])  # type: ignore[list-item]
    agent.as_tool(3)  # type: ignore[arg-type]


def of_overrides(agent: Agent[Database]) -> None:
    """Parts that don't fit."""
    agent.override(deps=Stranger())  # type: ignore[arg-type]
    agent.override(tools=[strange])  # type: ignore[list-item]
    agent.override(model="openai:gpt-5")  # type: ignore[arg-type]
    agent.override(temperature=1)  # type: ignore[call-arg]


def of_outputs(model: ScriptedModel) -> None:
    """A value is none of another type, and a type is none of its values."""
    _text: str = Agent(model, output=Place).send_sync("Hi").output  # type: ignore[assignment]
    _city: City = Agent(model).send_sync("Hi", output=Place | City).output  # type: ignore[assignment]
    _other: str = Agent(model).send_sync("Hi", output=located).output  # type: ignore[assignment]
    Agent(model).send_sync("Hi").output.name  # type: ignore[attr-defined]  # noqa: B018 - to be found
    Agent(model, output=Place("Basel"))  # type: ignore[call-overload]
    Agent[Database, Place](model, output=City)  # type: ignore[arg-type]


def of_models() -> None:
    """What has not all that a model has."""
    Agent(NoModel())  # type: ignore[call-overload]
    Agent(Eager())  # type: ignore[call-overload]
    Agent(5)  # type: ignore[call-overload]
