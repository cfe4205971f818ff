"""Calls and results of messages that were decoded separately."""

from __future__ import annotations

import pytest

from dragoman.errors import InvalidInputError
from dragoman.interop.message_dicts import Run, paired
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import unchecked

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


def test_derived_ids_of_two_runs_do_not_collide() -> None:
    """Each run counts from one; each result gets the id of its own call."""
    run = Run([call("call_1", "call_2"), result("call_1", "call_2")], NOTHING)
    assert ids_of(paired([run, run, run])) == [
        *("call_1", "call_2", "call_1", "call_2"),
        *("call_1_2", "call_2_2", "call_1_2", "call_2_2"),
        *("call_1_3", "call_2_3", "call_1_3", "call_2_3"),
    ]


def test_derived_ids_avoid_given_ids() -> None:
    """Even one that comes later; a given `Message` is never changed."""
    ours = call("call_1")
    read = paired([Run([call("call_1")], NOTHING), Run([ours, result("call_1")], None)])
    assert ids_of(read) == ["call_1_2", "call_1", "call_1"]
    assert read[1] is ours


def test_a_result_without_an_id_answers_the_previous_round() -> None:
    """Matched by name and order; equal derived ids are ignored."""
    calls = Message(Role.ASSISTANT, (ToolCall("a", "f"), ToolCall("b", "g")))
    results = Message(
        Role.TOOL, (ToolResult("x", "1", tool_name="g"), ToolResult("y", "2", tool_name="f"))
    )
    assert ids_of(paired([Run([calls], None), Run([results], NOTHING)])) == ["a", "b", "b", "a"]


def test_a_result_with_an_id_answers_only_that_call_or_one_without() -> None:
    """An unknown id is kept if the calls have ids of their own."""
    stranger = Run([result("x")], frozenset({"x"}))
    assert ids_of(paired([Run([call("a")], None), stranger])) == ["a", "x"]
    assert ids_of(paired([Run([call("call_1")], NOTHING), stranger])) == ["call_1", "call_1"]


def test_an_orphaned_result_without_an_id_is_refused() -> None:
    """It has no id that could be sent."""
    with pytest.raises(InvalidInputError, match="the id of its call"):
        paired([Run([result("")], NOTHING)])
    assert ids_of(paired([Run([call("c")], NOTHING), Run([result("")], NOTHING)])) == ["c", "c"]
