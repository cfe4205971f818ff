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
def test_what_is_no_object_is_put_into_one(name: str, raw: str) -> None:
    """The request goes through, and that is told."""
    encoded, call = _sent(name, make_call("call_1", "f", raw))
    assert ToolCall("c", "f", call["function"]["arguments"]).arguments == {"input": raw}
    repaired = [(repair.path, repair.action) for repair in encoded.repairs]
    assert repaired == [("messages[1].parts[0]", "retyped")]


@pytest.mark.parametrize("raw", ['{"a": 1}', "{}"])
@pytest.mark.parametrize("name", READERS)
def test_objects_are_left_alone(name: str, raw: str) -> None:
    """To the byte."""
    encoded, call = _sent(name, ToolCall("call_1", "f", raw))
    assert call["function"]["arguments"] == raw
    assert encoded.losses == ()


@pytest.mark.parametrize("raw", ["[1]", "5", "null"])
def test_others_take_json_of_any_kind(raw: str) -> None:
    """OpenAI does not look for an object in it."""
    encoded, call = _sent("openai:gpt-4o", make_call("call_1", "f", raw))
    assert call["function"]["arguments"] == raw
    assert encoded.losses == ()


def test_what_nobody_parses_stays_what_the_model_wrote() -> None:
    """A call that was cut off is a text like any other there."""
    encoded, call = _sent("openai:gpt-4o", make_call("call_1", "f", '{"a":'))
    assert call["function"]["arguments"] == '{"a":'
    assert encoded.repairs == ()


def test_a_custom_tool_takes_any_text() -> None:
    """It is no function."""
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
    """All arguments in a body, wherever they stand."""
    if isinstance(body, dict):
        own = [body["arguments"]] if isinstance(body.get("arguments"), str) else []
        return own + [text for value in body.values() for text in _arguments(value)]
    return [text for value in body for text in _arguments(value)] if isinstance(body, list) else []


@pytest.mark.parametrize("raw", ["", " \n"])
@pytest.mark.parametrize("home", [None, "anthropic"])
@pytest.mark.parametrize("name", TEXTS)
def test_others_calls_without_arguments_have_an_empty_object(
    name: str, home: str | None, raw: str
) -> None:
    """Requests and answers have JSON for whoever parses it, and nothing is lost by that."""
    origin = None if home is None else Origin(dialect=home)
    request = _asked(ToolCall("call_1", "f", raw), origin)
    encoded = dragoman.dialect(name).encode_request(request)
    assert _arguments(encoded.body) == ["{}"]
    assert encoded.losses == ()
    response = Response(choices=(Choice(0, request.messages[1], FinishReason.TOOL_CALLS),))
    assert _arguments(dragoman.dialect(name).encode_response(response).body) == ["{}"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_dialects_own_call_without_arguments_comes_back_as_it_was(name: str) -> None:
    """In a request that is read and written again; another dialect's is an object (W45)."""
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
def test_a_call_that_was_cut_off_before_its_arguments_has_none(name: str) -> None:
    """An empty object would make a whole call of it (I7)."""
    answer = Message(Role.ASSISTANT, (ToolCall("call_1", "f", ""),))
    response = Response(choices=(Choice(0, answer, FinishReason.LENGTH),))
    assert _arguments(dragoman.dialect(name).encode_response(response).body) == [""]


@pytest.mark.parametrize("name", TEXTS)
def test_a_streamed_call_without_arguments_has_an_empty_object(name: str) -> None:
    """Though none of its pieces had any."""
    events: list[Event] = [
        ResponseStart(id="r1", model="m"), ToolCallDelta(0, "call_1", "f", ""),
        ChoiceFinish(FinishReason.TOOL_CALLS), ResponseEnd(),
    ]  # fmt: skip
    (call,) = read(name, written(name, events)[0]).response.tool_calls
    assert call.raw_arguments == "{}"
