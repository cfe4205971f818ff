"""Agents as tools of other agents, and handoffs between agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from dragoman import Agent, ConversationHistory, Policy, ToolCall, tool
from dragoman.agent import (
    HandedOff,
    Hooks,
    Result,
    RunContext,
    RunLimits,
    ToolOrchestrator,
)
from dragoman.errors import InvalidInputError, LimitExceeded
from dragoman.model.tools import ToolResult
from dragoman.model.usage import Usage
from dragoman.providers.price import Price
from dragoman.transport.scripted import ScriptedModel
from tests.agent.scripts import asks, call, model, weather


@dataclass
class Place:
    """Where something is."""

    town: str


def expert(*script: Any, **options: Any) -> Agent[Any, str]:
    """An agent that others call."""
    return Agent(ScriptedModel(script, name="acme:expert"), **options)


# --- as a tool


async def test_an_agent_can_be_a_tool_of_another() -> None:
    """The sub-agent gets a prompt and the same dependencies; its answer is the result."""
    seen: list[Any] = []

    def told(run: RunContext[str]) -> str:
        seen.append(run.deps)
        return "You know maps."

    helper = expert("In Bosnia.", system=told)
    maps = helper.as_tool("maps", "Knows where things are.")
    parameters = maps.definition.parameters or {}
    assert [*parameters["properties"]] == parameters["required"] == ["prompt"]
    scripted = model(asks(call("maps", prompt="Where is Mostar?")), "Bosnia.")
    result = await Agent(scripted, tools=[maps]).send("Where?", deps="atlas")
    assert result.output == "Bosnia."
    assert result.messages[2].tool_results[0].text == "In Bosnia."
    assert helper.model.requests[0].messages[-1].text == "Where is Mostar?"  # type: ignore[attr-defined]
    assert seen == ["atlas"]


async def test_typed_outputs_of_sub_agents_are_data() -> None:
    """A sub-agent's typed output is the result's data."""
    helper = Agent(model(asks(call("return_result", town="Mostar"))), output=Place)
    scripted = model(asks(call("maps", prompt="Where?")), "There.")
    tools = [helper.as_tool("maps", "Knows where things are.")]
    result = await Agent(scripted, tools=tools).send("Where?")
    assert result.messages[2].tool_results[0].data == {"town": "Mostar"}


async def test_usage_of_sub_agents_is_included() -> None:
    """Usage and cost include the sub-agent's; its steps aren't counted."""
    prices = {"acme:*": Price("1", "1"), "scripted:*": Price("1", "1")}
    helper = expert("In Bosnia.", prices=prices)
    alone = await expert("In Bosnia.", prices=prices).send("Where?")
    scripted = ScriptedModel([asks(call("maps", prompt="Where?")), "Bosnia."], name="scripted:x")
    agent = Agent(scripted, tools=[helper.as_tool("maps", "Maps.")], prices=prices)
    result = await agent.send("Where?")
    own = [message.usage for message in result.messages if message.usage]
    assert result.usage is not None
    assert alone.usage is not None
    assert result.usage.total == sum(each.total for each in own) + alone.usage.total
    assert result.cost is not None
    assert alone.cost is not None
    assert result.cost > alone.cost
    assert result.steps == 2


@pytest.mark.parametrize(
    "limits", [RunLimits(steps=2), RunLimits(tokens=5), RunLimits(steps=4, calls=1)]
)
async def test_limits_include_sub_agents(limits: RunLimits) -> None:
    """Limits apply to all agents of a run together."""
    helper = expert(asks(call("weather", city="Basel")), "Rain.", tools=[weather])
    scripted = model(asks(call("ask", prompt="Weather?")), asks(call("ask", prompt="?")), "Rain.")
    agent = Agent(scripted, tools=[helper.as_tool("ask", "Knows the weather.")], limits=limits)
    with pytest.raises(LimitExceeded):
        await agent.send("Weather?")


async def test_within_shares_the_run() -> None:
    """With `within` a sub-agent's usage counts toward the run; without it doesn't."""
    helper = expert("One.", "Two.")

    @tool
    async def ask(shared: bool, run: RunContext) -> Result[str]:
        """Ask."""
        return await helper.send("Hi", within=run if shared else None)

    used: list[Usage | None] = []
    for shared in (True, False):
        scripted = model(asks(call("ask", shared=shared)), "Done.")
        result = await Agent(scripted, tools=[ask]).send("Go")
        own = sum(message.usage.total for message in result.messages if message.usage)
        used.append(result.usage)
        assert result.usage is not None
        assert (result.usage.total > own) is shared
    with pytest.raises(InvalidInputError, match="within"):
        await helper.send("Hi", within="run")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


async def test_the_approval_function_applies_to_sub_agents() -> None:
    """Without one, the model is told that the call needs approval."""

    @tool(requires_approval=True)
    def delete() -> str:
        """Delete everything."""
        return "gone"

    for approve, expected in ((lambda *_: True, "Gone."), (None, "there is no `approve` function")):
        helper = expert(asks(call("delete")), "Gone.", tools=[delete])
        scripted = model(asks(call("ask", prompt="Delete!")), "Well.")
        agent = Agent(scripted, tools=[helper.as_tool("ask", "Deletes.")], approve=approve)
        result = await agent.send("Go")
        assert expected in result.messages[2].tool_results[0].text


def test_an_agent_is_not_accepted_as_a_tool() -> None:
    """`as_tool` must be used, because a tool needs a name and a description."""
    with pytest.raises(InvalidInputError, match="as_tool"):
        Agent("echo:", tools=[Agent("echo:")])  # type: ignore[list-item]


# --- handoffs


def _office(*script: Any, **options: Any) -> tuple[Agent[Any, str], Agent[Any, str]]:
    """An agent, and one it hands off to, which has its own tool."""
    billing = expert(*script, tools=[weather], system="You are billing.", max_tokens=7)
    first = model(asks(call("billing", "h")))
    door = Agent(
        first, tools=[billing.as_handoff("billing", "Bills.")], system="The door.", **options
    )
    return door, billing


async def test_a_handoff_continues_the_conversation() -> None:
    """The other agent continues the conversation with its own tools and settings."""
    door, billing = _office(asks(call("weather", "w", city="Basel")), "Rain, and 5 euros.")
    history = ConversationHistory(policy=Policy.LENIENT)
    result = await door.send("What do I owe?", history=history)
    assert (result.output, result.agent, result.steps) == ("Rain, and 5 euros.", "billing", 3)
    assert [m.role.value for m in history.messages] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant"
    ]  # fmt: skip
    first, second = billing.model.requests  # type: ignore[attr-defined]
    assert first.system[0].text == "You are billing."
    assert first.sampling.max_tokens == 7
    assert [each.name for each in first.tools] == ["weather"]
    assert first.messages[0].text == "What do I owe?"
    assert "handed over to `billing`" in first.messages[2].tool_results[0].text
    assert second.messages[-1].tool_results[0].text == "rain in Basel"
    assert result.metadata.get("omitted") is None


async def test_agent_is_empty_without_a_handoff() -> None:
    """The result's `agent` is empty if the first agent answered."""
    door, _ = _office()
    assert (await door.with_model(model("Hello.")).send("Hi")).agent == ""


async def test_a_handoff_is_an_event() -> None:
    """`HandedOff` comes after the round and before the other agent's first step."""
    door, _ = _office("5 euros.")
    async with door.stream("What do I owe?") as stream:
        events = [event async for event in stream.events()]
    names = [type(event).__name__ for event in events]
    place = names.index("HandedOff")
    assert names[place - 1 : place + 2] == ["MessageAdded", "HandedOff", "StepStarted"]
    (over,) = (event for event in events if isinstance(event, HandedOff))
    assert (over.name, repr(over)) == ("billing", "HandedOff(billing)")
    assert stream.result.agent == "billing"


async def test_output_and_limits_of_the_call_apply_after_a_handoff() -> None:
    """Output type, limits and output hooks are those of the call."""
    billing = expert(asks(call("return_result", "r", town="Mostar")))
    tools = [billing.as_handoff("billing", "Bills.")]
    seen: list[Any] = []
    hooks = Hooks(before_output=lambda value, run: seen.append((value, run.model)))
    door = Agent(model(asks(call("billing"))), tools=tools, hooks=hooks)
    result = await door.send("Where?", output=Place)
    assert result.output == Place("Mostar")
    assert seen == [(Place("Mostar"), "acme:expert")]
    door, _ = _office("5 euros.")
    with pytest.raises(LimitExceeded):
        await door.send("What do I owe?", limits=RunLimits(steps=1))


async def test_only_the_first_handoff_of_an_answer_is_run() -> None:
    """A second handoff gets an error result; calls of other tools are run."""
    billing, sales = expert("From billing."), expert("From sales.")
    calls = asks(call("weather", "w", city="Basel"), call("billing", "b"), call("sales", "s"))
    over = [billing.as_handoff("billing", "Bills."), sales.as_handoff("sales", "Sales.")]
    result = await Agent(model(calls), tools=[weather, *over]).send("Hi")
    assert (result.output, result.agent) == ("From billing.", "billing")
    told = result.messages[2].tool_results
    assert [each.is_error for each in told] == [False, False, True]
    assert told[0].text == "rain in Basel"


async def test_an_interrupted_handoff_is_resumed() -> None:
    """A pending handoff call in the history is run."""
    door, billing = _office("5 euros.")
    history = [call("billing", "h")]
    asked = ["What do I owe?", asks(*history)]
    result = await door.send(history=asked)
    assert (result.output, result.agent) == ("5 euros.", "billing")
    assert len(billing.model.requests) == 1  # type: ignore[attr-defined]


async def test_agents_may_hand_off_back_and_forth() -> None:
    """Limits end a run with circular handoffs."""
    agents: dict[str, Agent[Any, str]] = {}

    def tools(run: RunContext) -> list[Any]:
        name = "b" if run.model == "acme:a" else "a"
        return [agents[name].as_handoff(name, f"Agent {name}.")]

    for name, other in (("a", "b"), ("b", "a")):
        scripted = ScriptedModel([asks(call(other))], name=f"acme:{name}", repeat=True)
        agents[name] = Agent(scripted, dynamic_tools=tools)
    with pytest.raises(LimitExceeded) as raised:
        await agents["a"].send("Hi", limits=RunLimits(steps=5, repeats=None))
    assert raised.value.partial.steps == 5


async def test_a_custom_orchestrator_is_kept_after_a_handoff() -> None:
    """The orchestrator of the first agent drives the run to its end."""
    steps: list[str] = []

    class Noting(ToolOrchestrator):
        async def known(self, run: Any, calls: Any) -> Any:
            steps.append(run.setup.model.name)
            return await super().known(run, calls)

    door, _ = _office(asks(call("weather", city="Basel")), "Rain.", orchestrator=Noting())
    await door.send("Hi")
    assert steps == ["scripted:", "acme:expert"]


def test_a_handoff_has_a_repr_and_a_valid_name() -> None:
    """The repr has name and agent; an invalid tool name raises."""
    handoff = expert().as_handoff("billing", "Bills.")
    assert repr(handoff) == "Handoff(billing, Agent(acme:expert, 0 tools))"
    with pytest.raises(InvalidInputError):
        expert().as_handoff("no name", "Bills.")


async def test_hooks_of_the_other_agent_are_called_after_a_handoff() -> None:
    """Tool hooks are the other agent's; `after_send` is the first agent's."""
    told: list[str] = []

    def note(name: str) -> Hooks[Any]:
        def before(asked: ToolCall, _run: RunContext) -> ToolCall | ToolResult | None:
            told.append(f"{name} {asked.name}")
            return None

        return Hooks(before_tool_call=before, after_send=lambda *_: told.append(f"{name} end"))

    billing = expert(asks(call("weather", city="Basel")), "Rain.", tools=[weather],
                     hooks=note("billing"))  # fmt: skip
    tools = [billing.as_handoff("billing", "Bills.")]
    await Agent(model(asks(call("billing"))), tools=tools, hooks=note("door")).send("Hi")
    assert told == ["billing weather", "door end"]
