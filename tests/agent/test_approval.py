"""Tools that need approval, immediately or later."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Agent,
    ChatHistory,
    ConversationHistory,
    Message,
    Policy,
    RunContext,
    SessionIdentity,
    reveal,
    tool,
)
from dragoman.errors import InvalidInputError, ToolError
from dragoman.model.tools import ToolCall, ToolDefinition
from dragoman.testing import ScriptedModel
from tests.agent.scripts import asks, call, model, weather

ran: list[str] = []


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    ran.append(path)
    return "deleted"


@tool(requires_approval=lambda arguments: arguments["amount"] > 100)
def pay(amount: int) -> str:
    """Pay somebody."""
    ran.append(str(amount))
    return "paid"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


async def test_a_call_is_not_run_before_it_is_approved() -> None:
    """The run ends and returns the call; calls that need no approval are run."""
    agent = Agent(
        model(asks(call("delete", "a", path="x"), call("weather", "b", city="Basel")), "Done."),
        tools=[delete, weather],
    )
    asked = await agent.send("Delete x")
    assert ran == []
    assert [each.id for each in asked.deferred] == ["a"]
    assert [result.call_id for result in asked.messages[-1].tool_results] == ["b"]
    done = await agent.send(history=asked.messages, approvals={"a": True})
    assert (ran, done.output) == (["x"], "Done.")
    assert done.messages[0].tool_results[0].text == "deleted"


@pytest.mark.parametrize(("decision", "told"), [(False, "not allowed"), ("Ask Bob.", "Ask Bob.")])
async def test_a_rejection_is_sent_to_the_model(decision: bool | str, told: str) -> None:
    """With the reason, if one is given."""
    agent = Agent(model(asks(call("delete", path="x")), "As you like."), tools=[delete])
    asked = await agent.send("Delete x")
    done = await agent.send(history=asked.messages, approvals={"call_1": decision})
    result = done.messages[0].tool_results[0]
    assert ran == []
    assert result.is_error
    assert told in result.text


async def test_approval_may_depend_on_the_arguments() -> None:
    """Small sums are paid at once."""
    agent = Agent(model(asks(call("pay", amount=5)), "Paid."), tools=[pay])
    assert (await agent.send("Pay 5")).output == "Paid."
    agent = Agent(model(asks(call("pay", amount=500))), tools=[pay])
    assert (await agent.send("Pay 500")).deferred
    assert ran == ["5"]


async def test_an_invalid_call_needs_no_approval() -> None:
    """Nobody is asked about arguments that don't match the schema."""
    agent = Agent(model(asks(call("pay", amount="much")), "Sorry."), tools=[pay])
    result = await agent.send("Pay much")
    assert not result.deferred
    assert result.messages[2].tool_results[0].is_error


async def test_undecided_calls_stay_pending() -> None:
    """One of two is approved: it runs, the other still waits."""
    calls = asks(call("delete", "a", path="x"), call("delete", "b", path="y"))
    agent = Agent(model(calls, "Both gone."), tools=[delete])
    asked = await agent.send("Delete both")
    half = await agent.send(history=asked.messages, approvals={"a": True})
    assert [each.id for each in half.deferred] == ["b"]
    done = await agent.send(history=asked.messages + half.messages, approvals={"b": True})
    assert (ran, done.output) == (["x", "y"], "Both gone.")


async def test_resuming_without_a_decision_runs_nothing() -> None:
    """Continuing isn't approval."""
    agent = Agent(model(asks(call("delete", path="x"))), tools=[delete])
    asked = await agent.send("Delete x")
    again = await agent.send(history=asked.messages)
    assert ran == []
    assert again.deferred == asked.deferred
    assert not again.messages


async def test_a_decision_for_an_unknown_call_raises() -> None:
    """No pending call has that id."""
    with pytest.raises(InvalidInputError, match="don't match a pending call"):
        await Agent(model("x"), tools=[delete]).send("Hi", approvals={"a": True})


async def test_the_decision_may_come_much_later(tmp_path: Path) -> None:
    """From a stored history, by another agent in another process, on another model."""
    store, who = f"sqlite:///{tmp_path}/chats.db", SessionIdentity(chat="7")
    async with await ChatHistory.open(who, storage=store) as history:
        calls = asks(call("delete", "a", path="x"), call("weather", "b", city="Basel"))
        await Agent(model(calls), tools=[delete, weather]).send("Delete x", history=history)
    async with await ChatHistory.open(who, storage=store) as history:
        later = Agent(model("Gone."), tools=[delete, weather])
        waiting = (await later.send(history=history)).deferred
        result = await later.send(history=history, approvals={waiting[0].id: True})
        kept = await history.messages()
    assert (ran, result.output) == (["x"], "Gone.")
    assert [m.role.value for m in kept] == ["user", "assistant", "tool", "tool", "assistant"]


async def test_a_new_prompt_leaves_pending_calls_unrun() -> None:
    """The conversation continues; the request is repaired for the provider."""
    history = ConversationHistory(policy=Policy.LENIENT)
    agent = Agent(model(asks(call("delete", path="x")), "Never mind, then."), tools=[delete])
    await agent.send("Delete x", history=history)
    result = await agent.send("Stop, never mind", history=history)
    assert ran == []
    assert result.output == "Never mind, then."


# --- decided by a function


async def _decided(decision: Any, **options: Any) -> Any:
    """The result of a run that wants to delete `x`, and what the deciding function got."""
    seen: list[Any] = []

    async def approve(call: ToolCall, run: RunContext) -> Any:
        seen.append((call.name, call.arguments, run.call is call, run.deps))
        return decision

    agent = Agent(model(asks(call("delete", "a", path="x")), "Done."), tools=[delete], **options)
    result = await agent.send("Delete x", approve=approve, deps=7)
    assert seen == [("delete", {"path": "x"}, True, 7)]
    return result


async def test_a_function_may_decide_at_once() -> None:
    """The run continues; the function gets the call and the run."""
    result = await _decided(decision=True)
    assert (ran, result.output, result.deferred) == (["x"], "Done.", ())


@pytest.mark.parametrize(("decision", "told"), [(False, "not allowed"), ("Ask Bob.", "Ask Bob.")])
async def test_a_function_may_reject(decision: Any, told: str) -> None:
    """The model gets the rejection with its reason."""
    result = await _decided(decision)
    assert ran == []
    refusal = result.messages[2].tool_results[0]
    assert refusal.is_error
    assert told in refusal.text


async def test_a_function_may_change_the_arguments() -> None:
    """The tool is run with the changed arguments; the conversation keeps the model's."""
    result = await _decided({"path": "y"})
    assert ran == ["y"]
    assert result.messages[1].tool_calls[0].arguments == {"path": "x"}
    assert result.messages[2].tool_results[0].call_id == "a"


async def test_a_function_may_leave_it_to_the_caller() -> None:
    """None is no decision: the call is deferred as usual."""
    result = await _decided(None)
    assert (ran, [each.id for each in result.deferred]) == ([], ["a"])


@pytest.mark.parametrize("decision", [{"town": "y"}, {"path": 5}, 1, ["path"]])
async def test_an_invalid_decision_raises(decision: Any) -> None:
    """Arguments that don't match the tool's schema raise in the caller, and nothing is run."""
    with pytest.raises(InvalidInputError, match=r"approv"):
        await _decided(decision)
    assert ran == []


async def test_a_calls_function_overrides_the_agents() -> None:
    """None removes it. Only calls that need approval are passed to it."""
    calls = asks(call("pay", "a", amount=5), call("pay", "b", amount=500))
    asked: list[str] = []

    def yes(call: ToolCall, _run: RunContext) -> bool:
        asked.append(call.id)
        return True

    agent = Agent(model(calls, "Done.", calls), tools=[pay], approve=yes)
    assert (await agent.send("Pay")).output == "Done."
    assert (ran, asked) == (["5", "500"], ["b"])
    assert len((await agent.send("Pay", approve=None)).deferred) == 1
    assert asked == ["b"]
    with pytest.raises(InvalidInputError, match="approve must be a function"):
        await agent.send("Pay", approve=True)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


async def test_pending_calls_of_an_earlier_run_are_decided_too() -> None:
    """The function is called for pending calls without a decision."""
    calls = asks(call("delete", "a", path="x"), call("delete", "b", path="y"))
    agent = Agent(model(calls, "Done."), tools=[delete])
    waiting = await agent.send("Delete")
    done = await agent.send(
        history=waiting.messages, approvals={"a": {"path": "z"}}, approve=lambda *_: "No."
    )
    assert (ran, done.output) == (["z"], "Done.")
    assert [each.is_error for each in done.messages[0].tool_results] == [False, True]


async def test_calls_that_the_caller_runs_are_not_decided() -> None:
    """They need a result, not an approval."""
    mine = ToolDefinition("open_page", "Open a page.", {"type": "object", "properties": {}})
    agent = Agent(model(asks(call("open_page", "a")), "Done."), tools=[mine], approve=print)
    waiting = await agent.send("Open")
    assert [each.id for each in waiting.deferred] == ["a"]
    again = await agent.send(history=waiting.messages, approvals={"a": {"x": 1}})
    assert [each.id for each in again.deferred] == ["a"]


@dataclass(frozen=True)
class Receipt:
    """A typed output."""

    number: int


async def test_a_typed_run_with_pending_calls_has_no_output() -> None:
    """Reading it raises; copies, comparisons and reprs work; the resumed run has one."""
    scripted = ScriptedModel(
        [
            Message.assistant("A moment.", ToolCall.create("c1", "pay", {"amount": 500})),
            Message.assistant(ToolCall.create("c2", "return_result", {"number": 7})),
        ]
    )
    agent = Agent(scripted, tools=[pay], output=Receipt)
    paused = await agent.send("Pay.")
    assert (paused.has_output, paused.text) == (False, "A moment.")
    with pytest.raises(ToolError, match="a tool call waits in `deferred`"):
        _ = paused.output
    assert pickle.loads(pickle.dumps(paused)) == copy(paused) == paused  # noqa: S301 - our own
    assert "no output" in repr(paused)
    with reveal():
        assert "output=UNSET" in repr(paused)
    done = await agent.send(history=paused.messages, approvals={"c1": True})
    assert done.has_output
    assert done.output == Receipt(7)
    assert done != paused


async def test_an_untyped_run_with_pending_calls_has_its_text() -> None:
    """The output is the text so far."""
    paused = await Agent(ScriptedModel([Message.assistant("Wait.", ToolCall.create("c1", "pay"))]),
                         tools=[ToolDefinition.create("pay", "Pay.")]).send("Pay.")  # fmt: skip
    assert (paused.output, paused.has_output) == ("Wait.", True)
