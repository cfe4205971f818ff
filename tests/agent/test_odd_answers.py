"""Unusual answers, decisions and hooks, each with its outcome."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import dragoman
from dragoman import Agent, FinishReason, Message, Request, Role, ToolDefinition, tool
from dragoman.agent import Hooks, TypedOrchestrator
from dragoman.agent.events import ResponseReceived, ToolStarted
from dragoman.agent.results import Result
from dragoman.errors import LimitExceeded, StreamInterrupted
from dragoman.model.parts import Refusal
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import make_call
from tests.agent.scripts import asks, call, model

MINE = ToolDefinition.create("mine", "The caller's.")
CUT_OFF = asks(call("return_result", result=2)).replace(finish=FinishReason.LENGTH)


@tool(requires_approval=True)
def danger(x: int) -> str:
    """Asks first."""
    return f"done {x}"


@tool
def double(x: int = 0) -> str:
    """Twice as much."""
    return str(2 * x)


def results(result: Result[Any]) -> list[tuple[str, str]]:
    """The results of the new messages, by the ids of their calls."""
    return [(each.call_id, each.text) for m in result.messages for each in m.tool_results]


def ids(result: Result[Any]) -> list[str]:
    """The ids of the calls, in order."""
    return [each.id for message in result.messages for each in message.tool_calls]


class TestDecisions:
    """Calls are distinguished by their ids, even if they are equal otherwise."""

    HISTORY = (Message.user("x"), asks(call("danger", "a", x=1), call("danger", "b", x=1)))

    @pytest.mark.parametrize(("decision", "told"), [(True, "done 1"), (False, "not allowed")])
    async def test_one_of_two_equal_calls_is_decided(self, decision: Any, told: str) -> None:
        """It is run, or rejected; the other one stays pending."""
        agent = Agent(model("Done."), tools=[danger])
        result = await agent.send(history=self.HISTORY, approvals={"a": decision})
        ((id, text),) = results(result)
        assert id == "a"
        assert told in text
        assert [each.id for each in result.deferred] == ["b"]

    async def test_approval_does_not_run_a_call_for_the_caller(self) -> None:
        """There is no function to run: the call still waits for its result."""
        history = [Message.user("x"), asks(call("mine", "a"))]
        result = await Agent(model(), tools=[MINE]).send(history=history, approvals={"a": True})
        assert [each.id for each in result.deferred] == ["a"]
        assert not result.messages


class TestIds:
    """Calls and results are paired by ids, which a model may repeat or omit (I5)."""

    @pytest.mark.parametrize("odd", ["a", ""])
    async def test_missing_and_repeated_ids_are_replaced(self, odd: str) -> None:
        """Only those are changed; the original one is kept as the wire id."""
        answer = asks(make_call("a", "double", '{"x":1}'), make_call(odd, "double", '{"x":2}'))
        result = await Agent(model(answer, "Done."), tools=[double]).send("x")
        first, second = ids(result)
        assert first == "a"
        assert second not in {"a", ""}
        assert results(result) == [("a", "2"), (second, "4")]
        assert result.messages[1].tool_calls[1].wire_id == (odd or None)

    @pytest.mark.parametrize("streams", [False, True])
    async def test_a_derived_id_is_used_once_in_a_conversation(self, streams: bool) -> None:
        """For two answers without call ids, from a server that gives its answers no ids either."""
        asked = {"function": {"name": "double", "arguments": {"x": 1}}}
        message = {"role": "assistant", "content": "", "tool_calls": [asked]}
        body = {"message": message, "done": True}
        answer = dragoman.dialect("ollama").decode_response(body)
        agent = Agent(model(answer, answer, "Done."), tools=[double])
        result = await (agent.stream("x").collect() if streams else agent.send("x"))
        first, second = ids(result)
        assert first != second
        assert results(result) == [(first, "2"), (second, "2")]
        made = [each for message in result.messages for each in message.tool_calls]
        assert [each.wire_id for each in made] == [None, None]

    async def test_all_events_have_the_same_ids(self) -> None:
        """The answer, the message and the tool that runs agree."""
        one = call("double", "a", x=1)
        stream = Agent(model(asks(one, one), "Done."), tools=[double]).stream("x")
        events = [event async for event in stream.events()]
        first = next(each for each in events if isinstance(each, ResponseReceived))
        begun = [each.call.id for each in events if isinstance(each, ToolStarted)]
        assert [each.id for each in first.response.tool_calls] == begun == ids(stream.result)

    async def test_a_repeated_call_object_is_two_calls(self) -> None:
        """Each has its result."""
        one = call("double", "a", x=1)
        result = await Agent(model(asks(one, one), "Done."), tools=[double]).send("x")
        assert [text for _, text in results(result)] == ["2", "2"]
        assert len(set(ids(result))) == 2

    async def test_a_call_that_shares_its_id_with_the_output_is_run(self) -> None:
        """Each call gets its own result."""
        answer = asks(call("return_result", "a", result=7), call("double", "a", x=1))
        agent = Agent(model(answer), tools=[double], output=int, output_mode="tool")
        result = await agent.send("x")
        assert result.output == 7
        assert results(result)[1][1] == "2"

    async def test_deferred_calls_can_be_answered_one_by_one(self) -> None:
        """Two calls that came with one id."""
        agent = Agent(model(asks(call("mine", "a"), call("mine", "a")), "Done."), tools=[MINE])
        waiting = await agent.send("x")
        one, other = (each.id for each in waiting.deferred)
        told = {one: "first", other: "second"}
        result = await agent.send(history=waiting.messages, results=told)
        assert dict(results(result)) == told


class TestHooks:
    """Return values of hooks are applied, or rejected."""

    async def test_a_hook_may_return_the_same_call_for_several(self) -> None:
        """Each of them has its result."""
        same = call("double", "z", x=9)
        hooks = Hooks(before_tool_call=lambda _call, _run: same)
        answer = asks(call("double", "a"), call("double", "b"))
        result = await Agent(model(answer, "Done."), tools=[double], hooks=hooks).send("x")
        assert results(result) == [("a", "18"), ("b", "18")]


async def test_a_typed_run_never_ends_with_plain_text() -> None:
    """Repeatedly truncated answers are not output."""
    agent = Agent(model(*[CUT_OFF] * 5), output=int)
    with pytest.raises(LimitExceeded, match="max_tokens"):
        await agent.send("x")


async def test_calls_of_a_malformed_answer_are_left_out() -> None:
    """Text beside an unreadable call is kept, without the calls, which are not run."""
    said = asks(call("double", "a"), text="Let me see.")
    choice = Choice(0, said, FinishReason.MALFORMED_CALL)
    broken = StreamInterrupted("broken", partial=Response(choices=(choice,)))
    result = await Agent(model(broken, "Done."), tools=[double]).send("x")
    assert [message.text for message in result.messages][1] == "Let me see."
    assert ids(result) == []


async def test_one_orchestrator_drives_many_runs_at_once() -> None:
    """Each run has its own phase."""

    def answer(request: Request) -> str:
        return (
            "Thinking." if request.output is None else f'{{"result": {request.messages[0].text}}}'
        )

    models = dragoman.testing.ScriptedModel([answer], repeat=True)
    agent = Agent(models, tools=[double], output=int, output_mode="two_phase",
                  orchestrator=TypedOrchestrator())  # fmt: skip
    found = await asyncio.gather(*(agent.send(str(number)) for number in range(20)))
    assert [(each.output, each.steps) for each in found] == [(n, 2) for n in range(20)]


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_refusal_is_an_empty_answer(text: str) -> None:
    """It is encoded as text, and blank texts are rejected (W46, W47)."""
    spoken = dragoman.dialect("anthropic")
    refused = Message(Role.ASSISTANT, (Refusal(text),))
    messages = (Message.user("x"), refused, Message.user("y"))
    body = spoken.encode_request(Request(model="m", messages=messages)).body
    assert [each for each in spoken.check(body) if each.severity == "error"] == []
