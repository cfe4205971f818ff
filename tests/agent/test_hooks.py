"""Hooks: what they see, what they may change, and what they may prevent."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import (
    Agent,
    ConversationHistory,
    Message,
    Policy,
    Request,
    RunContext,
    ToolResult,
    tool,
)
from dragoman.agent import AgentEvent, Hooks, ToolStarted
from dragoman.errors import InvalidInputError, ToolError
from tests.agent.scripts import asks, call, model, weather


class VetoError(Exception):
    """Somebody's own."""


def noting(seen: list[str], name: str, *, is_async: bool) -> Any:
    """A hook that notes what it is given."""

    def note(*arguments: Any) -> None:
        assert isinstance(arguments[-1], RunContext)
        seen.append(f"{name}:{type(arguments[0]).__name__}")

    async def note_async(*arguments: Any) -> None:
        note(*arguments)

    return note_async if is_async else note


@pytest.mark.parametrize("is_async", [False, True])
async def test_all_are_called_in_order(is_async: bool) -> None:
    """Sync or async; each is given what it is about and the run."""
    seen: list[str] = []
    names = ("before_send", "before_response", "after_response", "before_tool_call",
             "after_tool_call", "after_send")  # fmt: skip
    hooks = Hooks(**{name: noting(seen, name, is_async=is_async) for name in names})
    agent = Agent(model(asks(call("weather", city="Basel")), "Rain."), tools=[weather], hooks=hooks)
    result = await agent.send("Weather?")
    assert seen == [
        "before_send:Message", "before_response:Request", "after_response:Response",
        "before_tool_call:ToolCall", "after_tool_call:ToolCall",
        "before_response:Request", "after_response:Response", "after_send:Result",
    ]  # fmt: skip
    assert result.output == "Rain."


async def test_return_values_replace_arguments() -> None:
    """Of the prompt, a request, a call and a result."""
    hooks = Hooks(
        before_send=lambda prompt, _run: prompt.with_content(f"{prompt.text} Please."),
        before_response=lambda request, _run: request.replace(metadata={"seen": True}),
        before_tool_call=lambda asked, _run: call("weather", asked.id, city="Bern"),
        after_tool_call=lambda _call, result, _run: result.replace(content=result.text.upper()),
    )
    agent = Agent(model(asks(call("weather", city="Basel")), "Rain."), tools=[weather], hooks=hooks)
    result = await agent.send("Weather?")
    assert result.messages[0].text == "Weather? Please."
    assert result.messages[2].tool_results[0].text == "RAIN IN BERN"
    assert agent.model.requests[0].metadata == {"seen": True}  # type: ignore[attr-defined]


async def test_a_hook_may_prevent_a_call() -> None:
    """A `ToolError` or a result replaces the call, and the run continues."""

    def veto(asked: Any, _run: Any) -> Any:
        if asked.id == "a":
            msg = "Not on Sundays."
            raise ToolError(msg)
        return ToolResult.success(asked.id, "sun") if asked.id == "b" else None

    calls = asks(*(call("weather", id, city="Basel") for id in "abc"))
    agent = Agent(model(calls, "Well."), tools=[weather], hooks=Hooks(before_tool_call=veto))
    result = await agent.send("Weather?")
    told = [(each.text, each.is_error) for each in result.messages[2].tool_results]
    assert told == [("Not on Sundays.", True), ("sun", False), ("rain in Basel", False)]


@pytest.mark.parametrize("name", ["before_send", "before_response", "before_tool_call"])
async def test_any_other_exception_of_a_hook_stops_the_run(name: str) -> None:
    """The exception is raised unchanged, and the step isn't performed."""

    def veto(*_arguments: object) -> None:
        raise VetoError

    history = ConversationHistory(policy=Policy.LENIENT)
    agent = Agent(model(asks(call("weather", city="Basel")), "Rain."), tools=[weather],
                  hooks=Hooks(**{name: veto}))  # fmt: skip
    with pytest.raises(VetoError):
        await agent.send("Weather?", history=history)
    expected = {"before_send": 0, "before_response": 1, "before_tool_call": 2}
    assert len(history) == expected[name]


def test_a_hook_must_be_callable() -> None:
    """The error names the hook; the repr shows only names."""
    with pytest.raises(InvalidInputError, match="before_send"):
        Hooks(before_send="x")  # type: ignore[arg-type]
    assert repr(Hooks(after_send=print)) == "Hooks(after_send)"


async def test_history_hooks_are_called_by_the_history() -> None:
    """History hooks given to the agent are called only in its runs."""
    from dragoman import ChatHistory, SessionIdentity

    added: list[str] = []

    async def note(message: Message, _history: object) -> None:
        added.append(message.role.value)

    async with await ChatHistory.open(SessionIdentity(chat="1"), storage="memory:") as history:
        agent = Agent(model("Hi."), history_hooks={"on_after_add": note})
        await agent.send("Hello", history=history)
        await history.add("Not the agent's")
    assert added == ["user", "assistant"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_hook_receives_every_event(is_async: bool) -> None:
    """As it happens, whether or not the run is streamed; its return value is ignored."""
    seen: list[str] = []

    def note(event: AgentEvent, run: RunContext) -> str:
        seen.append(f"{run.step} {type(event).__name__}")
        return "ignored"

    async def note_soon(event: AgentEvent, run: RunContext) -> None:
        note(event, run)

    hooks = Hooks(on_event=note_soon if is_async else note)
    agent = Agent(model(asks(call("weather", city="Basel")), "Rain."), tools=[weather], hooks=hooks)
    await agent.send("Weather?")
    expected = [
        "0 MessageAdded", "1 StepStarted", "1 ResponseReceived", "1 MessageAdded", "1 ToolStarted",
        "1 ToolFinished", "1 MessageAdded", "2 StepStarted", "2 TextDelta", "2 ResponseReceived",
        "2 MessageAdded", "2 RunFinished",
    ]  # fmt: skip
    assert seen == expected
    again = agent.with_model(model(asks(call("weather", city="Basel")), "Rain."))
    told = [type(event).__name__ async for event in again.stream("Weather?").events()]
    assert [each.split()[1] for each in seen[len(expected) :]] == told


async def test_a_hook_on_events_that_raises_stops_the_run() -> None:
    """As any other."""

    def veto(event: AgentEvent, _run: RunContext) -> None:
        if isinstance(event, ToolStarted):
            raise VetoError

    ran: list[str] = []

    @tool
    def note() -> str:
        """Notes that it was run."""
        ran.append("note")
        return ""

    agent = Agent(model(asks(call("note"))), tools=[note], hooks=Hooks(on_event=veto))
    with pytest.raises(VetoError):
        await agent.send("Go")
    assert ran == []


async def test_request_changes_of_a_hook_are_not_stored() -> None:
    """Changes that `before_response` makes are sent, but not stored in the history."""

    def without_secrets(request: Request, _run: RunContext) -> Request:
        hidden = [m.with_content("***") if "secret" in m.text else m for m in request.messages]
        return request.replace(messages=hidden[-2:])

    scripted = model("One.", "Two.")
    agent = Agent(scripted, hooks=Hooks(before_response=without_secrets))
    history = ConversationHistory(policy=Policy.LENIENT)
    await agent.send("My secret is 7.", history=history)
    await agent.send("And now?", history=history)
    assert [[m.text for m in each.messages] for each in scripted.requests] == [
        ["***"], ["One.", "And now?"]
    ]  # fmt: skip
    assert [m.text for m in history.messages] == ["My secret is 7.", "One.", "And now?", "Two."]
