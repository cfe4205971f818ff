"""Classification of JSON whose dialect is not yet known."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.wire.detection import dialect_of_history
from dragoman.wire.documents import is_message, is_response

ITEM = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
ANSWER = {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
          "stop_reason": "end_turn"}  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "message", "response"),
    [
        ({"role": "user", "content": "Hi"}, True, False),
        ({"role": "user", "parts": [{"text": "Hi"}]}, True, False),
        (ITEM, True, False),
        ({"type": "message", "role": "user", "content": "Hi"}, True, False),
        (ANSWER, False, True),
        ({"id": "resp_1", "object": "response", "output": []}, False, True),
        ({"messages": []}, False, False),
        ({"model": "m", "input": [ITEM]}, False, False),
    ],
)
def test_messages_and_responses_are_distinguished(wire: Any, message: bool, response: bool) -> None:
    """Tool results have an `output` as responses do; some responses are a `message`."""
    assert is_message(wire) is message
    assert is_response(wire, "messages") is response


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tool_use", "anthropic"),
        ("mcp_tool_use", "anthropic"),
        ("web_search_tool_result", "anthropic"),
        ("compaction", "anthropic"),
        ("input_text", "openai-responses"),
        ("image_url", "openai-chat"),
        ("text", "openai-chat"),
    ],
)
def test_one_part_identifies_the_dialect_of_a_list(kind: str, name: str) -> None:
    """A typical part at any position identifies the dialect; plain text does not."""
    items = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": kind}]}]
    assert dialect_of_history(items) == name


@pytest.mark.parametrize("kind", ["function_call", "reasoning", "web_search_call", "mcp_call"])
def test_one_item_identifies_the_dialect_of_a_list(kind: str) -> None:
    """Only Responses has items other than messages in its list."""
    items = [{"role": "user", "content": "Hi"}, {"type": kind}]
    assert dialect_of_history(items) == "openai-responses"
