"""The effect of the type arguments of agents and contexts at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Optional, TypeVar

import pytest

from dragoman import Agent, RunContext, tool
from dragoman.agent import Hooks
from dragoman.errors import InvalidInputError
from dragoman.testing import ScriptedModel, TestModel
from tests.agent.scripts import model

T = TypeVar("T")


class Database:
    """What tools work with."""


@dataclass
class Place:
    """What agents give."""

    name: str


class Surveyor(Agent[Database, Place]):
    """Its class says what it gives."""


class Finder(Agent[Database, T], Generic[T]):
    """Its class leaves open what it gives."""


@tool
def order(run: RunContext[Database]) -> str:
    """Look an order up."""
    return type(run.deps).__name__


def wants(kind: Any) -> Callable[..., str]:
    """A function with a context of that type."""

    def function(run: Any) -> str:
        return type(run.deps).__name__

    function.__annotations__["run"] = kind
    return function


# --- the output


@pytest.mark.parametrize(
    "made", [Agent[Database, Place], Agent[Any, Place], Surveyor, Finder[Place]]
)
async def test_the_type_argument_is_the_output(made: Any) -> None:
    """As if it were passed as `output`: for the agent, its copies, chats and streams."""
    agent = made(TestModel())
    database = Database()
    found = [
        (await agent.send("Where?", deps=database)).output,
        (await agent.with_model(TestModel()).send("Where?", deps=database)).output,
        (await agent.chat(deps=database).send("Where?")).output,
        (await agent.stream("Where?", deps=database).collect()).output,
        made(TestModel(), output_mode="tool").send_sync("Where?", deps=database).output,
    ]
    assert found == [Place("a")] * 5


@pytest.mark.parametrize(
    "made", [Agent, Agent[Database], Agent[Database, str], Agent[Database, Any], Finder]
)
def test_without_a_type_argument_the_output_is_text(made: Any) -> None:
    """`Any` and unbound type variables don't request a typed value either."""
    assert made("echo:").send_sync("Hi", deps=Database()).output == "Hi"


def test_an_explicit_output_takes_precedence() -> None:
    """An `output` of the agent or of a call."""
    database = Database()
    assert Agent[Any, object](TestModel(), output=Place).send_sync("Hi").output == Place("a")
    agent = Agent[Database, Place](TestModel())
    assert agent.send_sync("Hi", deps=database, output=int).output == 0
    assert isinstance(agent.send_sync("Hi", deps=database, output=None).output, str)


def test_a_forward_reference_is_an_error() -> None:
    """A type given as a string can't be looked up; the output isn't silently text."""
    agent: Agent[Any, Any] = Agent[Any, "Place"](TestModel())
    with pytest.raises(InvalidInputError, match=r"output=…"):
        agent.send_sync("Hi")


# --- the dependencies


def _agents(wanted: Callable[..., Any]) -> dict[str, Agent[Any, Any]]:
    """Agents with a function in various places, and the name of that place."""
    made = tool(name="look", description="Looks.")(wanted)
    inner = Agent("echo:", tools=[made])
    return {
        "the tool `look`": inner,
        "the tool `inner`": Agent("echo:", tools=[inner.as_tool("inner", "Looks.")]),
        "the tool `look` of `inner`": Agent("echo:", tools=[inner.as_handoff("inner", "Looks.")]),
        "as system": Agent("echo:", system=wanted),
        "as dynamic_tools": Agent("echo:", dynamic_tools=wanted),
        "as approve": Agent("echo:", approve=wanted),
        "as output": Agent("echo:", output=wanted),
        "hook `before_send`": Agent("echo:", hooks=Hooks(before_send=wanted)),
    }


@pytest.mark.parametrize("place", _agents(wants(RunContext[Database])))
@pytest.mark.parametrize(
    "kind",
    [RunContext[Database], RunContext[Database] | None, Annotated[RunContext[Database], "it"]],
)
def test_a_run_without_deps_does_not_start(place: str, kind: Any) -> None:
    """If a function needs `deps`, the error names it and what to do, before any request."""
    agent = _agents(wants(kind))[place]
    for call in (agent.send_sync, agent.stream_sync, agent.chat().send_sync):
        with pytest.raises(InvalidInputError, match=r"`deps` \(Database\).*pass deps=…") as caught:
            call("Hi")
        assert place in str(caught.value)
    with agent.override(deps=Database(), model=ScriptedModel(["Hi"], repeat=True)):
        agent.stream_sync("Hi")  # it would start


@pytest.mark.parametrize(
    "kind",
    [RunContext, RunContext[Any], RunContext[object], RunContext[None],
     RunContext[Database | None], RunContext[Optional[Database]],  # noqa: UP045 - people write it
     RunContext[Annotated[Database | None, "it"]]],
)  # fmt: skip
def test_optional_deps_may_be_missing(kind: Any) -> None:
    """If the declared type includes None, `deps` may be left out."""
    for agent in _agents(wants(kind)).values():
        agent.stream_sync("Hi")


async def test_deps_are_passed_to_sub_agents() -> None:
    """An agent used as a tool gets those of the run that calls it."""
    inner = Agent(TestModel(), tools=[order])
    outer = Agent(TestModel(), tools=[inner.as_tool("inner", "Looks.")])
    assert "Database" in (await outer.send("Hi", deps=Database())).output


def test_functions_without_readable_annotations_are_called() -> None:
    """No annotations, unresolvable annotations, and unhashable objects."""

    def unknown(run: RunContext[Nowhere]) -> str:  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        return str(run.step)

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, run: RunContext[Database]) -> str:
            return str(run.step)

    assert Agent(model("Hi"), system=unknown).send_sync("Hi").output == "Hi"
    assert Agent(model("Hi"), system=lambda run: str(run.step)).send_sync("Hi").output == "Hi"
    with pytest.raises(InvalidInputError, match="pass deps"):
        Agent(model("Hi"), system=Unhashable()).send_sync("Hi")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
