"""Conversations compared without the ids of their tool calls."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, Messages, ServerToolCall, ServerToolResult, ToolCall, ToolResult
from dragoman.model.parts import Part
from tests.model import strategies as some

TWO = Message.assistant(tool_calls=[ToolCall.create("a", "f"), ToolCall.create("b", "f")])
ANSWERS = (ToolResult, ServerToolCall, ServerToolResult)


def _renamed(message: Message, names: dict[str, str]) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            parts.append(part.replace(id=names[part.id]))
        elif isinstance(part, ANSWERS) and part.call_id is not None:
            parts.append(part.replace(call_id=names[part.call_id]))
        else:
            parts.append(part)
    return message.replace_unchecked(parts=tuple(parts))


def _ids(conversation: Messages) -> list[str]:
    parts = [part for message in conversation for part in message.parts]
    found = [part.id for part in parts if isinstance(part, ToolCall)]
    found += [part.call_id for part in parts if isinstance(part, ANSWERS) and part.call_id]
    return list(dict.fromkeys(found))


@given(some.conversations, st.randoms(use_true_random=False))
def test_a_one_to_one_renaming_makes_no_difference(talk: Messages, order: object) -> None:
    """Whatever the conversation holds; the ids may even change places."""
    ids = _ids(talk)
    fresh = [*ids, *string.ascii_uppercase][: len(ids)]
    order.shuffle(fresh)  # type: ignore[attr-defined]  # a random.Random
    renamed = Messages.of(_renamed(each, dict(zip(ids, fresh, strict=True))) for each in talk)
    assert talk.equal_ignoring_call_ids(renamed)
    assert renamed.equal_ignoring_call_ids(talk)
    assert (talk == renamed) is (ids == fresh)


@given(some.conversations, some.conversations)
def test_equal_conversations_are_equal_without_ids(left: Messages, right: Messages) -> None:
    """It is as strict as `==` in all else, and symmetric."""
    assert left.equal_ignoring_call_ids(left)
    assert left.equal_ignoring_call_ids(right) is right.equal_ignoring_call_ids(left)
    if left == right:
        assert left.equal_ignoring_call_ids(right)
    if not _ids(left) and not _ids(right):
        assert left.equal_ignoring_call_ids(right) is (left == right)


@pytest.mark.parametrize("other", [
    Messages(TWO, Message.tool("b", "x")),
    Messages(TWO, Message.tool("c", "x")),
    Messages(TWO, Message.tool("a", "y")),
    Messages(TWO),
    Messages(TWO.replace(parts=(TWO.parts[0], TWO.parts[0])), Message.tool("a", "x")),
])  # fmt: skip
def test_links_between_calls_and_results_count(other: Messages) -> None:
    """A result of another call, a result of none, and two calls of one id are differences."""
    assert not Messages(TWO, Message.tool("a", "x")).equal_ignoring_call_ids(other)


def test_of_one_message() -> None:
    """A message alone is compared in the same way."""
    assert Message.tool("a", "x").equal_ignoring_call_ids(Message.tool("b", "x"))
    assert not Message.tool("a", "x").equal_ignoring_call_ids(Message.tool("a", "y"))
    assert not Message.tool("a", "x").equal_ignoring_call_ids("x")
    assert not Messages(TWO).equal_ignoring_call_ids([TWO])


def test_two_parallel_calls_that_are_alike_are_two() -> None:
    """A set keeps both: they differ in their ids."""
    assert len(set(TWO.tool_calls)) == 2
