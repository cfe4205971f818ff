"""Seed 000's formatter contract, for every dialect."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Message, Text, ToolCall, ToolDefinition, ToolResult
from dragoman.errors import InvalidInputError
from dragoman.model.parts import CacheHint
from dragoman.model.shapes import Shape
from dragoman.wire.formatter import Formatter

CALL = ToolCall.create("call_1", "weather", {"city": "Basel"})
CONVERSATION = (
    Message.system("Be brief."),
    Message.developer("In German."),
    Message.user("Weather?"),
    Message.assistant(tool_calls=[CALL]),
    Message.tool("call_1", "sunny", tool_name="weather"),
    Message.assistant("Sonnig."),
)
ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "r", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Let me see.", "tool_calls": [
                {"id": "call_1", "type": "function",
                 "function": {"name": "weather", "arguments": '{"city":"Basel"}'}}]}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    },
    "anthropic": {
        "id": "r", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "call_1", "name": "weather",
                     "input": {"city": "Basel"}}],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    },
    "gemini": {
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": "Let me see."},
            {"functionCall": {"name": "weather", "args": {"city": "Basel"}}}]}}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
    },
    "openai-responses": {
        "id": "r", "object": "response", "model": "m", "status": "completed", "output": [
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather",
             "arguments": '{"city":"Basel"}', "status": "completed"}],
        "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
    },
    "ollama": {
        "model": "m", "created_at": "2025-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "Let me see.", "tool_calls": [
            {"function": {"name": "weather", "arguments": {"city": "Basel"}}}]},
        "prompt_eval_count": 7, "eval_count": 3,
    },
}  # fmt: skip


@pytest.fixture(params=dragoman.dialects())
def name(request: pytest.FixtureRequest) -> str:
    """Each dialect in turn."""
    found: str = request.param
    return found


@pytest.fixture
def formatter(name: str) -> Formatter:
    """The dialect's formatter."""
    return Formatter(dragoman.dialect(name))


def test_formatted_messages_are_readable(name: str, formatter: Formatter) -> None:
    """The formatted messages, put into a request, decode to the same conversation."""
    dialect = dragoman.dialect(name)
    body = {dialect.messages_field: formatter.format_messages(CONVERSATION), "model": "m"}
    again = dialect.decode_request(body)
    spoken = [m for m in again.messages if not m.role.is_system]
    assert [m.kind for m in spoken] == ["user", "tool_call", "tool_result", "assistant"]
    assert spoken[0].text == "Weather?"
    assert spoken[1].tool_calls == (CALL,)
    assert spoken[3].text == "Sonnig."


def test_instructions_are_separate_if_the_dialect_has_a_field(
    name: str, formatter: Formatter
) -> None:
    """Dialects with a field for instructions get them only there."""
    found = formatter.system_instruction(CONVERSATION)
    roles = {str(m.get("role")) for m in formatter.format_messages(CONVERSATION)}
    if dragoman.dialect(name).system_field is None or found is None:
        assert {"system", "developer"} & roles
    else:
        assert "Be brief." in str(found)
        assert "In German." in str(found)
        assert not {"system", "developer"} & roles
    assert formatter.system_instruction([Message.user("Hi")]) is None


@pytest.mark.parametrize("shape", ["openai", "content", "flat", "canonical"])
def test_messages_may_be_dicts(name: str, formatter: Formatter, shape: Shape) -> None:
    """Dicts of any shape are accepted among messages, and mean the same (seed 000)."""
    dialect = dragoman.dialect(name)
    mixed = [
        message if place % 2 else message.to_dict(shape=shape)
        for place, message in enumerate(CONVERSATION)
    ]
    read = [
        dialect.decode_request({dialect.messages_field: formatter.format_messages(given)})
        for given in (mixed, CONVERSATION)
    ]
    assert read[0].messages == read[1].messages
    assert formatter.system_instruction(mixed) == formatter.system_instruction(CONVERSATION)
    user = CONVERSATION[2]
    assert formatter.format_message(user.to_dict(shape=shape)) == formatter.format_message(user)


def test_claude_s_plain_instructions_are_one_text() -> None:
    """Plain instructions are one text (seed 000); those with other fields stay separate."""
    formatter = Formatter(dragoman.dialect("anthropic"))
    assert formatter.system_instruction(CONVERSATION) == "Be brief.\nIn German."
    assert formatter.system_instruction([Message.system("Be brief."), CONVERSATION[2]]) == (
        "Be brief."
    )
    cached = Message.system(Text("Be brief.", cache=CacheHint()))
    apart = formatter.system_instruction([cached, *CONVERSATION[1:]])
    assert [block["text"] for block in apart] == ["Be brief.", "In German."]


def test_one_message_is_one_dict(formatter: Formatter) -> None:
    """A message that is one object in the dialect is formatted as that object."""
    assert isinstance(formatter.format_message(Message.user("Hi")), dict)
    assert isinstance(formatter.format_message(Message.tool("call_1", "x", tool_name="f")), dict)


def test_a_message_of_several_dicts_is_refused() -> None:
    """Two results are two messages for OpenAI, so there is no single dict for them."""
    both = Message.tool(ToolResult.success("1", "x"), ToolResult.success("2", "y"))
    with pytest.raises(InvalidInputError, match="format_messages"):
        Formatter(dragoman.dialect("openai-chat")).format_message(both)


def test_tools_are_formatted(formatter: Formatter) -> None:
    """A tool, with parameters or without, is one valid tool of the dialect."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [
        ToolDefinition.create("weather", "The weather.", schema, strict=False),
        ToolDefinition.create("now", "The time.", strict=False),
    ]
    written = str(formatter.format_tools(tools))
    assert "weather" in written
    assert "now" in written


def test_response_accessors_agree_in_all_dialects(name: str, formatter: Formatter) -> None:
    """Usage, calls, text and finish reason are the same from every dialect."""
    answer = ANSWERS[name]
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert formatter.usage(answer) == usage
    (call,) = formatter.tool_calls(answer)
    assert call.replace(id=CALL.id) == CALL  # two of them have no ids on the wire
    assert formatter.content(answer) == "Let me see."
    assert formatter.finish_reason(answer) == "tool_calls"
