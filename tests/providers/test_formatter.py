"""Seed 000's formatter for Groq: OpenAI's dialect, with Groq's target."""

from __future__ import annotations

from typing import Any

import pytest
from groq.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolMessageParam,
    ChatCompletionUserMessageParam,
)

import dragoman
from dragoman import Message, Text, Thinking, ToolDefinition
from dragoman.wire.formatter import Formatter
from tests.wire.test_formatter import ANSWERS, CALL, CONVERSATION

PARAMS: dict[str, Any] = {
    "system": ChatCompletionSystemMessageParam,
    "user": ChatCompletionUserMessageParam,
    "assistant": ChatCompletionAssistantMessageParam,
    "tool": ChatCompletionToolMessageParam,
}


@pytest.fixture
def formatter() -> Formatter:
    """Groq's."""
    return Formatter(dragoman.dialect("openai-chat"), dragoman.provider("groq").target())


def test_groq_is_formatted_as_its_api_has_it(formatter: Formatter) -> None:
    """Messages have the roles and fields of Groq's SDK, and no others (W13, W109)."""
    named = Message(dragoman.Role.USER, (Text("Hi"),), "Ann")
    thought = Message.assistant(Thinking("hm"), "So.")
    written = formatter.format_messages([*CONVERSATION, named, thought])
    assert [message["role"] for message in written] == [
        "system", "system", "user", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip
    for message in written:
        assert message.keys() <= PARAMS[message["role"]].__annotations__.keys()
        assert not {"name", "reasoning_content"} & message.keys()
    assert formatter.format_message(Message.developer("x")) == {"role": "system", "content": "x"}
    assert formatter.format_message(CONVERSATION[3])["tool_calls"][0]["id"] == CALL.id
    tool = ToolDefinition.create("now", "The time.", strict=False)
    assert formatter.format_tools([tool])[0]["function"]["name"] == "now"


def test_a_response_of_groq_gives_up_its_pieces(formatter: Formatter) -> None:
    """Usage, calls, text and the reason for the end, as with OpenAI."""
    answer = {**ANSWERS["openai-chat"], "x_groq": {"id": "req_1"}}
    assert formatter.usage(answer)["total_tokens"] == 10
    assert formatter.tool_calls(answer) == (CALL,)
    assert formatter.content(answer) == "Let me see."
    assert formatter.finish_reason(answer) == "tool_calls"
