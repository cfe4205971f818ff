"""Histories of other libraries, sent on by our dialects: as if the conversation had been ours."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic_ai import messages as theirs

import dragoman
from dragoman import Messages, Request
from dragoman.interop import from_langchain, from_pydantic_ai, to_langchain, to_pydantic_ai
from tests.interop.conversations import TOOLS
from tests.interop.test_langchain import ITEM, SIGNED


def sent(messages: Messages, name: str) -> dict[str, Any]:
    """The body of a request that says all of it."""
    encoded = dragoman.dialect(name).encode_request(Request(messages=tuple(messages)), strict=True)
    return encoded.body


CHAIN = [
    HumanMessage("Rain?", additional_kwargs={"lc_source": "x"}, id="h1"),
    AIMessage(
        [SIGNED, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}],
        tool_calls=[{"name": "f", "args": {"a": 1}, "id": "toolu_1"}],
        response_metadata={"model_provider": "anthropic", "stop_reason": "tool_use"},
        usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    ),
    ToolMessage(content="dry", tool_call_id="toolu_1", artifact={"a": 1}, status="error"),
    HumanMessage("Thanks"),
]
HISTORY = [
    theirs.ModelRequest(parts=[theirs.UserPromptPart("Rain?")], run_id="r1", metadata=None),
    theirs.ModelResponse(
        parts=[
            theirs.ThinkingPart("hm", signature="c2ln", provider_name="anthropic"),
            theirs.ToolCallPart("f", {"a": 1}, "toolu_1"),
        ],
        provider_name="anthropic",
        provider_details={"finish_reason": "tool_use"},
    ),
    theirs.ModelRequest(
        parts=[
            theirs.ToolReturnPart("f", "dry", "toolu_1", outcome="failed", metadata={"a": 1}),
            theirs.UserPromptPart("Thanks"),
        ]
    ),
]
EXPECTED = [
    {"role": "user", "content": "Rain?"},
    {
        "role": "assistant",
        "content": [SIGNED, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}],
    },
]


def test_claude_continues_a_langchain_history() -> None:
    """Signed thinking, calls and failed results are sent; LangChain's own data is not a loss."""
    body = sent(from_langchain(CHAIN), "anthropic")
    assert body["messages"][:2] == EXPECTED
    assert body["messages"][2]["content"][0]["is_error"] is True


def test_claude_continues_a_pydantic_ai_history() -> None:
    """The same conversation gives the same body."""
    body = sent(from_pydantic_ai(HISTORY), "anthropic")
    assert body == sent(from_langchain(CHAIN), "anthropic")


def test_openai_gets_its_sealed_reasoning_back() -> None:
    """The reasoning item is sent unchanged, with its id."""
    about = {"model_provider": "openai", "id": "resp_1"}
    text = {"type": "text", "text": "Hi", "id": "msg_1", "annotations": []}
    chain = from_langchain([HumanMessage("Hi"), AIMessage([ITEM, text], response_metadata=about)])
    assert sent(chain, "openai-responses")["input"][1] == ITEM
    answer = theirs.ModelResponse(
        parts=[
            theirs.ThinkingPart("a", id="rs_1", signature="c2VhbA==", provider_name="openai"),
            theirs.ThinkingPart("b", id="rs_1", provider_name="openai"),
            theirs.TextPart("Hi", id="msg_1", provider_name="openai"),
        ],
        provider_name="openai",
    )
    request = theirs.ModelRequest(parts=[theirs.UserPromptPart("Hi")])
    assert sent(from_pydantic_ai([request, answer]), "openai-responses")["input"][1] == ITEM


def test_from_one_library_to_the_other() -> None:
    """Through ours, nothing is lost that both can say."""
    over = to_pydantic_ai(from_langchain(to_langchain(TOOLS).messages)).messages
    back = from_pydantic_ai(over)
    assert list(back) == list(TOOLS)
    again = from_langchain(to_langchain(from_pydantic_ai(HISTORY), strict=True).messages)
    assert [message.text for message in again] == ["Rain?", "", "dry", "Thanks"]
    assert again[1].parts[0].signature == "c2ln"
