"""Malformed arguments written by a model, and hosts that parse them again (W114, C3)."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Message, Request, Role, ToolCall, ToolResult
from dragoman.model.events import ChoiceFinish, Event, ResponseEnd, ResponseStart
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCallDelta, make_call
from dragoman.model.usage import FinishReason
from dragoman.wire.encoded import Encoded
from tests.wire.streamed import read, written

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
def test_non_object_arguments_are_wrapped_in_an_object(name: str, raw: str) -> None:
    """Arguments that are no JSON object are wrapped in one, and that is reported."""
    encoded, call = _sent(name, make_call("call_1", "f", raw))
    assert ToolCall("c", "f", call["function"]["arguments"]).arguments == {"input": raw}
    repaired = [(repair.path, repair.action) for repair in encoded.repairs]
    assert repaired == [("messages[1].parts[0]", "retyped")]


@pytest.mark.parametrize("raw", ['{"a": 1}', "{}"])
@pytest.mark.parametrize("name", READERS)
def test_object_arguments_are_unchanged(name: str, raw: str) -> None:
    """Object arguments are sent byte for byte."""
    encoded, call = _sent(name, ToolCall("call_1", "f", raw))
    assert call["function"]["arguments"] == raw
    assert encoded.losses == ()


@pytest.mark.parametrize("raw", ["[1]", "5", "null"])
def test_openai_accepts_any_json_arguments(raw: str) -> None:
    """OpenAI does not require an object, so other JSON is sent as it is."""
    encoded, call = _sent("openai:gpt-4o", make_call("call_1", "f", raw))
    assert call["function"]["arguments"] == raw
    assert encoded.losses == ()


def test_arguments_that_no_host_parses_are_unchanged() -> None:
    """Truncated arguments are sent as plain text to hosts that do not parse them."""
    encoded, call = _sent("openai:gpt-4o", make_call("call_1", "f", '{"a":'))
    assert call["function"]["arguments"] == '{"a":'
    assert encoded.repairs == ()


def test_custom_tool_input_may_be_any_text() -> None:
    """Custom tool calls are not functions: their input is free text."""
    encoded, call = _sent("openai:gpt-4o", ToolCall("call_1", "f", "a b", kind="custom"))
    assert call["custom"]["input"] == "a b"
    assert encoded.losses == ()


# --- calls without any arguments

TEXTS = ("openai-chat", "openai-responses")  # where arguments are a text


def _asked(call: ToolCall, origin: Origin | None) -> Request:
    answer = Message(Role.ASSISTANT, (call,), origin=origin)
    result = Message(Role.TOOL, (ToolResult(call.id, "x"),))
    return Request(model="m", messages=(Message.user("Hi"), answer, result))


def _arguments(body: Any) -> list[str]:
    """All arguments in a body, at any depth."""
    if isinstance(body, dict):
        own = [body["arguments"]] if isinstance(body.get("arguments"), str) else []
        return own + [text for value in body.values() for text in _arguments(value)]
    return [text for value in body for text in _arguments(value)] if isinstance(body, list) else []


@pytest.mark.parametrize("raw", ["", " \n"])
@pytest.mark.parametrize("home", [None, "anthropic"])
@pytest.mark.parametrize("name", TEXTS)
def test_foreign_calls_without_arguments_get_an_empty_object(
    name: str, home: str | None, raw: str
) -> None:
    """In requests and answers, missing arguments become `{}`, without a loss."""
    origin = None if home is None else Origin(dialect=home)
    request = _asked(ToolCall("call_1", "f", raw), origin)
    encoded = dragoman.dialect(name).encode_request(request)
    assert _arguments(encoded.body) == ["{}"]
    assert encoded.losses == ()
    response = Response(choices=(Choice(0, request.messages[1], FinishReason.TOOL_CALLS),))
    assert _arguments(dragoman.dialect(name).encode_response(response).body) == ["{}"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_dialect_s_own_call_without_arguments_round_trips(name: str) -> None:
    """Decoded and encoded it is unchanged; another dialect's gets an object (W45)."""
    speaker = dragoman.dialect(name)
    fields: dict[str, Any] = {
        "openai-chat": {"messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}},
                {"id": "call_2", "type": "function", "index": 1,
                 "function": {"name": "f", "arguments": ""}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "x"},
            {"role": "tool", "tool_call_id": "call_2", "content": "x"},
        ]},
        "openai-responses": {"input": [
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": ""},
            {"type": "function_call", "call_id": "call_2", "name": "f", "arguments": "",
             "id": "fc_2", "status": "completed"},
            {"type": "function_call_output", "call_id": "call_1", "output": "x"},
            {"type": "function_call_output", "call_id": "call_2", "output": "x"},
        ]},
    }  # fmt: skip
    request = speaker.decode_request({"model": "m", **fields[name]})
    assert _arguments(speaker.encode_request(request).body) == ["", ""]
    (other,) = set(TEXTS) - {name}
    assert _arguments(dragoman.dialect(other).encode_request(request).body) == ["{}", "{}"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_call_truncated_before_its_arguments_has_none(name: str) -> None:
    """An empty object would make it look like a complete call (I7)."""
    answer = Message(Role.ASSISTANT, (ToolCall("call_1", "f", ""),))
    response = Response(choices=(Choice(0, answer, FinishReason.LENGTH),))
    assert _arguments(dragoman.dialect(name).encode_response(response).body) == [""]


@pytest.mark.parametrize("name", TEXTS)
def test_a_streamed_call_without_arguments_has_an_empty_object(name: str) -> None:
    """A streamed call without argument deltas gets an empty object."""
    events: list[Event] = [
        ResponseStart(id="r1", model="m"), ToolCallDelta(0, "call_1", "f", ""),
        ChoiceFinish(FinishReason.TOOL_CALLS), ResponseEnd(),
    ]  # fmt: skip
    (call,) = read(name, written(name, events)[0]).response.tool_calls
    assert call.raw_arguments == "{}"
