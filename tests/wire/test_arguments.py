"""Arguments that a model wrote badly, and hosts that read them again (W114, C3)."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Message, Request, Role, ToolCall, ToolResult
from dragoman.wire.encoded import Encoded

READERS = ("vllm:facebook/opt-125m", "llama.cpp:who-knows", "openai-compatible:Qwen/Qwen2.5-7B")


def _sent(name: str, call: ToolCall) -> tuple[Encoded, Any]:
    provider, _, model = name.partition(":")
    target = dragoman.provider(provider).target(model)
    messages = (
        Message.user("Hi"),
        Message(Role.ASSISTANT, (call,)),
        Message(Role.TOOL, (ToolResult(call.id, "x"),)),
    )
    speaker: Any = dragoman.dialect(target.dialect)
    encoded = speaker.encode_request(Request(model=model, messages=messages), target)
    assert [v.rule for v in speaker.check(encoded.body, target=target)] == []
    return encoded, encoded.body["messages"][1]["tool_calls"][0]


@pytest.mark.parametrize("raw", ['{"a":', "a b", "[1]", "5"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_object_is_put_into_one(name: str, raw: str) -> None:
    """The request goes through, and that is told."""
    encoded, call = _sent(name, ToolCall("call_1", "f", raw))
    assert ToolCall("c", "f", call["function"]["arguments"]).arguments == {"input": raw}
    assert [loss.path for loss in encoded.losses] == ["messages[1].parts[0]"]


@pytest.mark.parametrize("raw", ['{"a": 1}', "{}", ""])
@pytest.mark.parametrize("name", READERS)
def test_objects_are_left_alone(name: str, raw: str) -> None:
    """To the byte."""
    encoded, call = _sent(name, ToolCall("call_1", "f", raw))
    assert call["function"]["arguments"] == raw
    assert encoded.losses == ()


@pytest.mark.parametrize("raw", ["[1]", "5", "null"])
def test_others_take_json_of_any_kind(raw: str) -> None:
    """OpenAI does not look for an object in it."""
    encoded, call = _sent("openai:gpt-4o", ToolCall("call_1", "f", raw))
    assert call["function"]["arguments"] == raw
    assert encoded.losses == ()


def test_what_is_no_json_goes_nowhere() -> None:
    """A call that was cut off would poison the conversation (I6)."""
    encoded, call = _sent("openai:gpt-4o", ToolCall("call_1", "f", '{"a":'))
    assert ToolCall("c", "f", call["function"]["arguments"]).arguments == {"input": '{"a":'}
    assert [loss.path for loss in encoded.losses] == ["messages[1].parts[0]"]


def test_a_custom_tool_takes_any_text() -> None:
    """It is no function."""
    encoded, call = _sent("vllm:facebook/opt-125m", ToolCall("call_1", "f", "a b", kind="custom"))
    assert call["custom"]["input"] == "a b"
    assert encoded.losses == ()
