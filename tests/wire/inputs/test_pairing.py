"""Calls and results of messages that were decoded separately."""

from __future__ import annotations

import pytest

from dragoman.errors import InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import unchecked
from dragoman.wire.inputs.message_dicts import Run, paired

NOTHING: frozenset[str] = frozenset()


def call(*ids: str, name: str = "f") -> Message:
    """A message with calls."""
    return Message(Role.ASSISTANT, tuple(ToolCall(id_, name) for id_ in ids))


def result(*ids: str, name: str | None = None) -> Message:
    """A message with results."""
    made = (unchecked(ToolResult)(id_, "ok", tool_name=name) for id_ in ids)
    return unchecked(Message)(Role.TOOL, tuple(made))


def ids_of(messages: list[Message]) -> list[str]:
    """The ids of calls and results, in order."""
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for message in messages
        for part in message.parts
        if isinstance(part, (ToolCall, ToolResult))
    ]


def test_made_ids_of_two_runs_do_not_collide() -> None:
    """Both begin to count anew; each result goes with its own call."""
    run = Run([call("call_1", "call_2"), result("call_1", "call_2")], NOTHING)
    assert ids_of(paired([run, run, run])) == [
        *("call_1", "call_2", "call_1", "call_2"),
        *("call_1_2", "call_2_2", "call_1_2", "call_2_2"),
        *("call_1_3", "call_2_3", "call_1_3", "call_2_3"),
    ]


def test_made_ids_give_way_to_those_that_were_handed_in() -> None:
    """Even to one that comes later; a message of ours is never changed for it."""
    ours = call("call_1")
    read = paired([Run([call("call_1")], NOTHING), Run([ours, result("call_1")], None)])
    assert ids_of(read) == ["call_1_2", "call_1", "call_1"]
    assert read[1] is ours


def test_a_result_without_id_answers_the_call_of_the_round_before() -> None:
    """By name and order; made ids that happen to be the same mean nothing."""
    calls = Message(Role.ASSISTANT, (ToolCall("a", "f"), ToolCall("b", "g")))
    results = Message(
        Role.TOOL, (ToolResult("x", "1", tool_name="g"), ToolResult("y", "2", tool_name="f"))
    )
    assert ids_of(paired([Run([calls], None), Run([results], NOTHING)])) == ["a", "b", "b", "a"]


def test_a_result_with_an_id_answers_only_that_call_or_one_without() -> None:
    """An id that nobody has is kept where the calls have ids of their own."""
    stranger = Run([result("x")], frozenset({"x"}))
    assert ids_of(paired([Run([call("a")], None), stranger])) == ["a", "x"]
    assert ids_of(paired([Run([call("call_1")], NOTHING), stranger])) == ["call_1", "call_1"]


def test_a_result_of_nothing_is_refused_without_an_id() -> None:
    """There is nothing by which it could be sent."""
    with pytest.raises(InvalidInputError, match="the id of its call"):
        paired([Run([result("")], NOTHING)])
    assert ids_of(paired([Run([call("c")], NOTHING), Run([result("")], NOTHING)])) == ["c", "c"]
